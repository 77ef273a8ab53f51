/* SPDX-License-Identifier: GPL-2.0 */
/* report_hold.h: section HOLD: who held the memory at the first look and at the last (hold.sql). */
#ifndef MEMTOLL_REPORT_HOLD_H
#define MEMTOLL_REPORT_HOLD_H

#include "report/report_page.h"

/* Nothing where no look found anything. */
void report_hold(struct page *page);

/* Of it that live blocks grow, and which; nothing where they do not. */
void report_hold_growth(struct page *page, const char *prefix);

/* And because of which blocks free memory is kept; nothing where that is little. */
void report_hold_pinned(struct page *page, const char *prefix);

/* What malloc_trim(0) would give back, and what would be used again; nothing where that is little. */
void report_hold_trim(struct page *page, const char *prefix);

#endif /* MEMTOLL_REPORT_HOLD_H */
