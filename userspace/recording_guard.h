/* SPDX-License-Identifier: GPL-2.0 */
/* recording_guard.h: what a statement may do where a recording may be anybody's. */
#ifndef MEMTOLL_RECORDING_GUARD_H
#define MEMTOLL_RECORDING_GUARD_H

#include <sqlite3.h>

/*
 * From here on the connection reads, and writes to its temporary tables. Whatever else a statement
 * asks for, one made of a view's text among them, is refused when it is prepared: SQLITE_AUTH.
 */
void recording_guard(sqlite3 *database);

#endif /* MEMTOLL_RECORDING_GUARD_H */
