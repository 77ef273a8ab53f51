// SPDX-License-Identifier: GPL-2.0
/*
 * recording_memory.c: pieces of memory for SQLite, by size, without locks. What is given back is
 * kept for the next piece of its size. SQLite's own statistics, a tenth of a report's time, are off:
 * what it has is counted here.
 */
#include "recording/recording_memory.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define STEP 16
/* Pages of a database, 4 KiB and what SQLite puts beside them, are the largest that come often. */
#define SMALL_BYTES 8192
#define CHUNK_BYTES (128 << 10)

/* A piece of memory: its length, then what SQLite gets, in whole steps. */
struct piece {
	uint64_t bytes; /* with these 8 */
	union {
		struct piece *next; /* of those that are free */
		char data[8];
	};
};

static struct {
	struct piece *free[SMALL_BYTES / STEP + 1]; /* by length in steps */
	char *chunk;
	size_t left;	/* of the chunk */
	int64_t used;	/* by SQLite */
	int64_t limit;	/* ... at most */
	bool is_theirs; /* SQLite has its memory from here */
} memory = { .limit = INT64_MAX };

static struct piece *piece_of(void *data)
{
	return (struct piece *)((char *)data - offsetof(struct piece, data));
}

/* SQLite's sizes are int, and below 2 GiB by far: it refuses larger ones itself. */
static size_t bytes_of(int size)
{
	return ((size_t)size + offsetof(struct piece, data) + STEP - 1) & ~(size_t)(STEP - 1);
}

/* The rest of the chunk before is left: less than one piece. */
static struct piece *cut(size_t bytes)
{
	struct piece *piece;

	if (memory.left < bytes) {
		memory.chunk = malloc(CHUNK_BYTES);
		memory.left = memory.chunk ? CHUNK_BYTES : 0;
		if (!memory.chunk)
			return NULL;
	}
	piece = (struct piece *)memory.chunk;
	memory.chunk += bytes;
	memory.left -= bytes;
	return piece;
}

static void *take(int size)
{
	size_t bytes = bytes_of(size);
	struct piece *piece;

	if (memory.used + (int64_t)bytes > memory.limit)
		return NULL;
	if (bytes > SMALL_BYTES) {
		piece = malloc(bytes);
	} else if (memory.free[bytes / STEP]) {
		piece = memory.free[bytes / STEP];
		memory.free[bytes / STEP] = piece->next;
	} else {
		piece = cut(bytes);
	}
	if (!piece)
		return NULL;
	piece->bytes = bytes;
	memory.used += (int64_t)bytes;
	return piece->data;
}

static void give_back(void *data)
{
	struct piece *piece = piece_of(data);

	memory.used -= (int64_t)piece->bytes;
	if (piece->bytes > SMALL_BYTES) {
		free(piece);
		return;
	}
	piece->next = memory.free[piece->bytes / STEP];
	memory.free[piece->bytes / STEP] = piece;
}

static int size_of(void *data)
{
	return data ? (int)(piece_of(data)->bytes - offsetof(struct piece, data)) : 0;
}

static void *resize(void *data, int size)
{
	struct piece *piece = piece_of(data);
	size_t bytes = bytes_of(size);
	void *larger;

	if (bytes == piece->bytes)
		return data;
	if (bytes > SMALL_BYTES && piece->bytes > SMALL_BYTES) {
		int64_t used = memory.used + (int64_t)bytes - (int64_t)piece->bytes;

		if (used > memory.limit && bytes > piece->bytes)
			return NULL;
		piece = realloc(piece, bytes);
		if (!piece)
			return NULL;
		piece->bytes = bytes;
		memory.used = used;
		return piece->data;
	}
	larger = take(size);
	if (!larger)
		return NULL;
	memcpy(larger, data, (size_t)(size < size_of(data) ? size : size_of(data)));
	give_back(data);
	return larger;
}

static int round_up(int size)
{
	return (int)(bytes_of(size) - offsetof(struct piece, data));
}

static int begin(void *unused)
{
	(void)unused;
	return SQLITE_OK;
}

static void end(void *unused)
{
	(void)unused;
}

void recording_memory_of_one_thread(void)
{
/* Which look at each piece of memory by themselves. */
#ifndef __SANITIZE_ADDRESS__
	static const sqlite3_mem_methods methods = {
		.xMalloc = take,
		.xFree = give_back,
		.xRealloc = resize,
		.xSize = size_of,
		.xRoundup = round_up,
		.xInit = begin,
		.xShutdown = end,
	};

	memory.is_theirs = sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK &&
			   sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) == SQLITE_OK;
#endif
	sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
}

void recording_memory_limit(int64_t bytes)
{
	if (memory.is_theirs)
		memory.limit = bytes;
	else
		sqlite3_hard_heap_limit64(bytes);
}
