/* SPDX-License-Identifier: GPL-2.0 */
/*
 * recording_store.h: what recording.c (life and transactions) and recording_facts.c (statements)
 * share. Nobody else includes it.
 */
#ifndef MEMTOLL_RECORDING_STORE_H
#define MEMTOLL_RECORDING_STORE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/recording.h"

enum statement {
	STMT_BEGIN,
	STMT_COMMIT,
	STMT_META,
	STMT_PROCESS,
	STMT_PROCESS_END,
	STMT_PROCESS_CGROUP,
	STMT_PROCESS_CONTAINER,
	STMT_CONTAINER,
	STMT_ALLOCATOR,
	STMT_ALLOCATOR_PROBE,
	STMT_PAST_CACHE,
	STMT_PRICE,
	STMT_CALIBRATION,
	STMT_SYSTEM_COUNTER,
	STMT_NOT_CAPTURED,
	STMT_MEMORY_CGROUP,
	STMT_MEMORY_CGROUP_COUNTER,
	STMT_HUGE_LOOK,
	STMT_HOLD_LOOK,
	STMT_HOLD_PARTS,
	STMT_HOLD_PIN,
	STMT_HOLD_REUSE,
	STMT_SWAP_DEVICE,
	STMT_ACCESS,
	STMT_LOSS_KIND,
	STMT_SLICE,
	STMT_PROCESS_SLICE,
	STMT_CALL,
	STMT_LATENCY,
	STMT_OUTLIER,
	STMT_BLOCK,
	STMT_FAULT,
	STMT_FAULT_RUN,
	STMT_MAP_CALL,
	STMT_GIVEBACK,
	STMT_THRESHOLD,
	STMT_SAMPLE,
	STMT_SWAP,
	STMT_RECLAIM_SITE,
	STMT_FILE,
	STMT_FILE_READ,
	STMT_OWN_CACHE,
	STMT_REUSE,
	STMT_REUSE_CLEAR,
	STMT_REUSE_DISTANCE,
	STMT_HIT,
	STMT_WATCH,
	STMT_WATCH_PROCESS,
	STMT_WATCH_PASSED,
	STMT_WATCH_EVENT,
	STMT_THINNED,
	STMT_HIT_GAP,
	STMT_PAGE_FILL,
	STMT_PAGE_DROP,
	STMT_ADVISED,
	STMT_HANDLER,
	STMT_WAIT,
	STMT_LONGEST_WAIT,
	STMT_SAMPLED,
	STMT_LOSS,
	STMT_STACK,
	STMT_FRAME,
	STMT_STACK_FRAME,
	STMT_RENAME,
	STMT_COUNT,
};

extern const char *const recording_statements[STMT_COUNT];

struct recording {
	sqlite3 *database;
	char *path;    /* as named by the user; NULL: in memory */
	char *written; /* the file that is written: path, or the new one beside it */
	sqlite3_stmt *prepared[STMT_COUNT];
	GHashTable *stacks; /* ids, as gint64 keys */
	GHashTable *frames; /* all fields joined -> frame_id */
	int64_t frame_count;
	int64_t slice;	       /* begun; 0: none yet */
	int64_t committed;     /* last slice that is in the file */
	uint64_t committed_ns; /* its end */
	uint64_t slice_start_ns;
	bool open_transaction;
	int spare_fd;	      /* between transactions: whoever else takes the last, one is left */
	uint64_t limit_bytes; /* 0: none */
	unsigned int unchecked_rows; /* that fit for certain */
	bool full;		     /* ended by its limit: all is well up to the last slice */
	bool redacts;		     /* in memory until it is finished, whatever the path */
	bool finished;
	int error;
};

enum value_type { VALUE_INT, VALUE_REAL, VALUE_TEXT, VALUE_NULL };

struct value {
	enum value_type type;
	int64_t integer;
	double real;
	const char *text;
};

/* Counters beyond 63 bits cannot happen honestly; they must not turn negative. */
static inline struct value count(uint64_t number)
{
	return (struct value){ .type = VALUE_INT,
			       .integer = number > INT64_MAX ? INT64_MAX : (int64_t)number };
}

static inline struct value signed_int(int64_t number)
{
	return (struct value){ .type = VALUE_INT, .integer = number };
}

/* Ids and addresses keep their 64 bits, whatever the sign. */
static inline struct value bits(uint64_t number)
{
	return (struct value){ .type = VALUE_INT, .integer = (int64_t)number };
}

static inline struct value real(double number)
{
	return (struct value){ .type = VALUE_REAL, .real = number };
}

static inline struct value text(const char *string)
{
	return (struct value){ .type = string ? VALUE_TEXT : VALUE_NULL, .text = string };
}

static inline struct value known(int64_t number)
{
	return (struct value){ .type = number < 0 ? VALUE_NULL : VALUE_INT, .integer = number };
}

/* What may be absent where the table says NOT NULL. */
static inline struct value text_or_empty(const char *string)
{
	return text(string ? string : "");
}

/*
 * Run a statement with its parameters in order, in the open transaction, which is begun where
 * there is none. 0, or -errno: the recording's first error, also when it was an earlier one.
 */
int recording_store(struct recording *recording, enum statement which, const struct value *values,
		    size_t value_count);

/* Of its row, which is made where there is none. 0 or -errno. */
int recording_frame_number(struct recording *recording, const struct frame *frame, int64_t *number);

/* recording_limit.c: is there room for a row with texts of so many bytes? */
bool recording_has_room(struct recording *recording, uint64_t text_bytes);

#define STORE(recording, which, ...)                                             \
	recording_store(recording, which, (const struct value[]){ __VA_ARGS__ }, \
			sizeof((const struct value[]){ __VA_ARGS__ }) / sizeof(struct value))

#endif /* MEMTOLL_RECORDING_STORE_H */
