/* SPDX-License-Identifier: GPL-2.0 */
/* recording_change.h: opening a recording whose frames are to be named again. */
#ifndef MEMTOLL_RECORDING_CHANGE_H
#define MEMTOLL_RECORDING_CHANGE_H

#include <sqlite3.h>

/*
 * In a transaction, as no other program changes it: its frames and stack_frames may be read,
 * inserted and deleted, and no SQL of the file's is run by that. NULL after one line: it cannot be
 * read (recording_open()), is not complete, cannot be written to, or has what would run. The caller
 * ends the transaction.
 */
sqlite3 *recording_open_to_change(const char *path);

#endif /* MEMTOLL_RECORDING_CHANGE_H */
