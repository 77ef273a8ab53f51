/* SPDX-License-Identifier: GPL-2.0 */
/* recording_guard.h: what a statement may do where a recording may be anybody's. */
#ifndef MEMTOLL_RECORDING_GUARD_H
#define MEMTOLL_RECORDING_GUARD_H

#include <sqlite3.h>

/*
 * From here on the connection reads, and writes to its temporary tables; views of the file are
 * errors. Whatever else a statement asks for is refused when it is prepared: SQLITE_AUTH.
 *
 * Each statement has GUARD_STEPS instructions of SQLite's machine, some 3 s, and
 * GUARD_STEPS_PER_BYTE for each byte of the file, ten times what the largest of a report takes;
 * beyond it is ended: SQLITE_INTERRUPT. All connections of the process together have
 * GUARD_HEAP_BYTES: SQLITE_NOMEM.
 */
#define GUARD_STEPS 300000000LL
#define GUARD_STEPS_PER_BYTE 100
#define GUARD_HEAP_BYTES (2LL << 30)

void recording_guard(sqlite3 *database);

#endif /* MEMTOLL_RECORDING_GUARD_H */
