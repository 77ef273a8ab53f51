/* SPDX-License-Identifier: GPL-2.0 */
/*
 * thresholds.h: glibc's mmap_threshold, trim_threshold and top_pad as they are now, deduced from
 * what its calls do, and who moved them.
 *
 * Pure: records in, facts out. The rules are glibc's (malloc/malloc.c): a block of at least
 * mmap_threshold gets a mapping of its own; freeing one of less than 32 MiB that is larger than the
 * threshold raises mmap_threshold to its size and trim_threshold to twice that, unless a tunable or
 * mallopt pinned them; a heap that grows grows by the block and top_pad; free trims a top of
 * at least trim_threshold. All three are 128 KiB at the start.
 */
#ifndef MEMTOLL_THRESHOLDS_H
#define MEMTOLL_THRESHOLDS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "allocators/threshold_names.h"
#include "bpf/wire/records.h"

struct thresholds;

/* What is known of a value: bytes, both ends included. */
struct bounds {
	uint64_t low;
	uint64_t high; /* UINT64_MAX: no upper bound is known */
};

/* How it came to be known. */
enum threshold_how {
	THRESHOLD_DEFAULT = 0,	 /* glibc's, at the start of the process */
	THRESHOLD_TUNABLE = 1,	 /* set in the environment */
	THRESHOLD_INHERITED = 2, /* of the process that forked this one */
	THRESHOLD_FREED = 3,	 /* changed: a block with its own mapping was freed */
	THRESHOLD_MAPPED = 4,	 /* a block got its own mapping: not above its size */
	THRESHOLD_GREW = 5,	 /* the heap grew for a block */
	THRESHOLD_TRIMMED = 6,	 /* free trimmed the heap */
	THRESHOLD_READ = 7,	 /* read from libc's data */
	THRESHOLD_EXEC = 8,	 /* another program, of whose malloc nothing is known yet */
	THRESHOLD_HOWS = 9,
};

const char *threshold_name(enum threshold_name name);
const char *threshold_how_name(enum threshold_how how);

struct thresholds *thresholds_new(void);
void thresholds_free(struct thresholds *thresholds);

/*
 * A process begins, or is looked at for the first time. tunables: of its environment, "NAME=VALUE"
 * with blanks between, or NULL. from_start: nothing of it was missed; else only tunables are known.
 * parent: the process whose memory it has a copy of, or 0.
 */
void thresholds_start(struct thresholds *thresholds, pid_t pid, uint64_t now_ns,
		      const char *tunables, bool from_start, pid_t parent);

/* Its malloc is glibc's: only then is anything reported of it. */
void thresholds_set_glibc(struct thresholds *thresholds, pid_t pid, bool glibc);

/* Records of the ring buffer, in their order. */
void thresholds_block(struct thresholds *thresholds, const struct memtoll_block *block);
void thresholds_mapping(struct thresholds *thresholds, const struct memtoll_mapping *mapping);

/*
 * The values as they lie in libc's data at now_ns, by enum threshold_name, and whether they move no
 * more. Records of what was before may still come: so what was read is reported one drain later.
 */
void thresholds_read(struct thresholds *thresholds, pid_t pid, uint64_t now_ns,
		     const uint64_t *values, bool pinned);

/* What is known now. False: nothing, or the process's malloc is not glibc's. */
bool thresholds_get(const struct thresholds *thresholds, pid_t pid, enum threshold_name name,
		    struct bounds *bounds);

/*
 * A value changed, or more is known of it. Each change that was seen; of what is known the latest.
 */
struct threshold_fact {
	uint64_t time_ns;
	pid_t pid;
	enum threshold_name name;
	enum threshold_how how;
	struct bounds bounds;
	uint64_t stack_id; /* of the call that showed it; 0: none */
	uint8_t fn;	   /* enum memtoll_fn of that call */
};

typedef void threshold_fn(void *context, const struct threshold_fact *fact);

/* A dead process, after the drain that has its records. */
void thresholds_forget(struct thresholds *thresholds, pid_t pid);

/* Facts since the last drain, oldest first for each process. last: no records will come. */
void thresholds_drain(struct thresholds *thresholds, bool last, threshold_fn *on_fact,
		      void *context);

#endif /* MEMTOLL_THRESHOLDS_H */
