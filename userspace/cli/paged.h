/* SPDX-License-Identifier: GPL-2.0 */
/* paged.h: a report that is longer than a screen. */
#ifndef MEMTOLL_PAGED_H
#define MEMTOLL_PAGED_H

#include <sqlite3.h>

#include "report/report.h"

/*
 * The full report of an open recording, through a pager on a terminal. Of the privileges none is
 * left after it; before it there must be PRIVILEGES_LEAVE. 0, or -errno after a message.
 */
int print_paged(sqlite3 *database, const struct report_options *options);

#endif /* MEMTOLL_PAGED_H */
