/* SPDX-License-Identifier: GPL-2.0 */
/* recording_memory.h: where SQLite has its memory from. */
#ifndef MEMTOLL_RECORDING_MEMORY_H
#define MEMTOLL_RECORDING_MEMORY_H

#include <stdint.h>

/*
 * Before SQLite is first used, by a process that uses it in one thread only. Parsing and planning
 * views is hundreds of thousands of small pieces of memory, and locks that nobody else takes: a
 * third of the time of a report.
 */
void recording_memory_of_one_thread(void);

/* What all connections together may have: more is SQLITE_NOMEM. */
void recording_memory_limit(int64_t bytes);

#endif /* MEMTOLL_RECORDING_MEMORY_H */
