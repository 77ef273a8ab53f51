/* SPDX-License-Identifier: GPL-2.0 */
/* recording_guard.h: what a statement may do where a recording may be anybody's. */
#ifndef MEMTOLL_RECORDING_GUARD_H
#define MEMTOLL_RECORDING_GUARD_H

#include <sqlite3.h>
#include <stdbool.h>

/*
 * From here on the connection reads, and writes to its temporary tables; views of the file are
 * errors. Whatever else a statement asks for is refused when it is prepared: SQLITE_AUTH.
 *
 * All statements together have GUARD_STEPS instructions of SQLite's machine and GUARD_STEPS_PER_BYTE
 * for each byte of the file, five times what the largest report takes; one that takes long counts
 * as one for each GUARD_STEP_NS of processor time, which makes 6 s for a small file. What is beyond
 * is ended: SQLITE_INTERRUPT. Of a file with holes those bytes count that are there, as often as
 * GUARD_COMPRESSED, for a file system may have compressed an honest one. The last recording that was
 * opened is what they are counted of.
 *
 * The schema is read within GUARD_STEPS_OPEN, 3 s, of which each step takes GUARD_OPEN_WEIGHT: it has
 * few steps for each table or view, and SQLite works long for one of them. Ours takes 25 ms on a
 * processor of today, thirty times as long on one that is emulated.
 *
 * All connections of the process together have GUARD_HEAP_BYTES, and GUARD_HEAP_PER_BYTE for each
 * byte of the file, up to GUARD_HEAP_BYTES_MAX: SQLITE_NOMEM. A value has GUARD_VALUE_BYTES, a
 * hundred times the longest that is recorded: SQLITE_TOOBIG. Only JSON may be longer, as
 * recording_guard_length() says.
 *
 * SQLITE_OK, or why the file's schema cannot be read, which this does.
 */
#define GUARD_STEPS 150000000LL
#define GUARD_STEPS_PER_BYTE 60
#define GUARD_COMPRESSED 4
#define GUARD_STEPS_OPEN 75000000LL
#define GUARD_OPEN_WEIGHT 1000
#define GUARD_STEP_NS 40
#define GUARD_HEAP_BYTES (512LL << 20)
#define GUARD_HEAP_PER_BYTE 64
#define GUARD_HEAP_BYTES_MAX (2LL << 30)
#define GUARD_VALUE_BYTES (4 << 20)

/* What a value may have from here on: that of a fact, or of JSON made of all facts. */
void recording_guard_length(sqlite3 *database, bool json);

int recording_guard(sqlite3 *database);

/* The same, and frames and stack_frames may be inserted and deleted. */
int recording_guard_change(sqlite3 *database);

#endif /* MEMTOLL_RECORDING_GUARD_H */
