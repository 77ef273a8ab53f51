/* SPDX-License-Identifier: GPL-2.0 */
/*
 * slow_places.h: the probes of glibc's malloc and free that only calls meet which the thread's
 * cache does not answer, in place of those at the entries.
 *
 * malloc: the entry of the routine that it calls then, where a return probe can wait for the block;
 * whose call it is, is known by the return address. free: what it hands the block to, or where it
 * does. All other functions have no cache, or are seldom called: they keep their entries.
 */
#ifndef MEMTOLL_SLOW_PLACES_H
#define MEMTOLL_SLOW_PLACES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "allocators/modules.h"
#include "allocators/slow_path.h"

struct memtoll_bpf;

struct slow_place {
	__u64 offset; /* in the file */
	__u64 cookie;
	enum memtoll_fn fn;
	bool timed;
};

struct slow_places {
	size_t count;
	struct slow_place places[SLOW_SITES_MAX];
	bool found[FN_COUNT]; /* of which functions: malloc, free, both or none */
	bool timed[FN_COUNT]; /* at all of its places */
	/* Their code, as offsets in the file: who returns there is inside a call of theirs. */
	struct slow_code code[FN_COUNT][SLOW_SITES_MAX + 1];
	char refusal[112]; /* why not of both, or "" */
};

/*
 * Find them in the module, which a process maps, and tell the BPF side whose calls they see.
 * number: of the next place; counted up.
 */
void slow_places_find(struct memtoll_bpf *bpf, const struct allocator_module *module, pid_t pid,
		      __u16 *number, struct slow_places *places);

/* Whether they stand for the entry of this point. */
bool slow_places_replace(const struct slow_places *places, const struct probe_point *point);

/*
 * The largest block that a thread's cache of a process may answer with: at that size and below not
 * all calls are seen. tunables: as tunables_read() has them.
 */
size_t slow_places_cached(const char *tunables);

#endif /* MEMTOLL_SLOW_PLACES_H */
