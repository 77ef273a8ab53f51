// SPDX-License-Identifier: GPL-2.0
/*
 * recording_limit.c: a recording that is not to become larger than so many bytes, its journal with
 * it.
 *
 * SQLite can keep the file below a number of pages, but not the journal, which has the old content
 * of each page that a transaction changes (pager.c). So the room that is left is looked at before a
 * row is written, but only after as many as can surely not have filled it.
 */
#include <glib.h>

#include "recording/query_number.h"
#include "recording/recording_store.h"

#define PAGE_BYTES 4096U /* write_schema() */

/* For the end: rows of one table, and what a commit itself writes. */
#define RESERVE_BYTES (128ULL << 10)

/*
 * What a row can add to the journal and the file: up to four pages of each level of a tree are
 * balanced (btree.c), twice where a row is replaced, and a tree has six levels at most. Long texts
 * come on top.
 */
#define ROW_BYTES (2 * 48ULL * (PAGE_BYTES + 8))
#define LONG_TEXT PAGE_BYTES

#define ROWS_MAX 1024

void recording_limit(struct recording *recording, uint64_t bytes)
{
	recording->limit_bytes = MAX(bytes, RECORDING_LIMIT_MIN);
	recording->unchecked_rows = 0;
}

bool recording_is_limited(const struct recording *recording)
{
	return recording->limit_bytes != 0;
}

bool recording_is_full(const struct recording *recording)
{
	return recording->full;
}

/* 0 between transactions; of a database in memory it is there, too. */
static uint64_t journal_bytes(sqlite3 *database)
{
	sqlite3_file *journal = NULL;
	sqlite3_int64 bytes = 0;

	if (sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &journal) !=
		    SQLITE_OK ||
	    !journal || !journal->pMethods ||
	    journal->pMethods->xFileSize(journal, &bytes) != SQLITE_OK)
		return 0;
	return (uint64_t)bytes;
}

bool recording_has_room(struct recording *recording, uint64_t text_bytes)
{
	uint64_t taken, left;

	if (!recording->limit_bytes || recording->full)
		return true;
	if (text_bytes < LONG_TEXT && recording->unchecked_rows) {
		recording->unchecked_rows--;
		return true;
	}
	taken = RESERVE_BYTES + text_bytes + journal_bytes(recording->database) +
		(uint64_t)query_number_or(recording->database, "PRAGMA page_count", 0) * PAGE_BYTES;
	left = recording->limit_bytes > taken ? recording->limit_bytes - taken : 0;
	if (left < ROW_BYTES)
		return false;
	recording->unchecked_rows = MIN(left / ROW_BYTES - 1, ROWS_MAX);
	return true;
}
