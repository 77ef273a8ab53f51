/* SPDX-License-Identifier: GPL-2.0 */
/* query_number.h: the one integer that a query asks for. */
#ifndef MEMTOLL_QUERY_NUMBER_H
#define MEMTOLL_QUERY_NUMBER_H

#include <sqlite3.h>
#include <stdint.h>

/*
 * The first column of its first row, into *value. SQLITE_ROW; SQLITE_DONE where there is no row; or
 * the status that prevented it. *value stays as it is but for SQLITE_ROW.
 */
int query_number(sqlite3 *database, const char *sql, int64_t *value);

/* The same, or `otherwise` where it cannot be had. */
int64_t query_number_or(sqlite3 *database, const char *sql, int64_t otherwise);

#endif /* MEMTOLL_QUERY_NUMBER_H */
