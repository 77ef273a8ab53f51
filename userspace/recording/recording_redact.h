/* SPDX-License-Identifier: GPL-2.0 */
/* recording_redact.h: a recording for others: without arguments, names of files, and addresses. */
#ifndef MEMTOLL_RECORDING_REDACT_H
#define MEMTOLL_RECORDING_REDACT_H

#include <sqlite3.h>

/*
 * A private copy of an open recording, with pseudonyms in it (redact.sql), that is read as one that
 * was opened. NULL after a message. The recording stays open.
 */
sqlite3 *recording_redacted(sqlite3 *recording);

/*
 * The same in a recording that is in memory, and has all tables of this version: an SQLite status. It
 * is not to be added to after that.
 */
int recording_redact(sqlite3 *recording);

#endif /* MEMTOLL_RECORDING_REDACT_H */
