/* SPDX-License-Identifier: GPL-2.0 */
/*
 * report_trust.h: how far the figures of a report can be trusted: the kernel's own counts beside
 * ours, remarks, how whole the stacks are, what the probes cost, and what was lost.
 */
#ifndef MEMTOLL_REPORT_TRUST_H
#define MEMTOLL_REPORT_TRUST_H

#include "report/report_page.h"

/* The last part of the text, after all that was measured. */
void print_trust(struct page *page);

#endif /* MEMTOLL_REPORT_TRUST_H */
