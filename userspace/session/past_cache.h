/* SPDX-License-Identifier: GPL-2.0 */
/*
 * past_cache.h: mapping calls inside of malloc and free that no open call tells of: where these are
 * probed past their threads' caches, an arena is made before that, and the return of free is not
 * always seen.
 */
#ifndef MEMTOLL_PAST_CACHE_H
#define MEMTOLL_PAST_CACHE_H

#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/sums.h"
#include "recording/recording.h"

struct targets;
struct past_cache;

/* stacks_fd: the map of stacks. */
struct past_cache *past_cache_new(int stacks_fd);
void past_cache_free(struct past_cache *past_cache);

/*
 * The function that a call was made in, as the BPF side has it, or else by the call's stack; FN_NONE:
 * in none, or malloc and free are not so probed.
 */
unsigned int past_cache_fn(struct past_cache *past_cache, const struct targets *targets, pid_t pid,
			   unsigned int in_fn, uint64_t stack_id);

/* What is written of the sum of these calls, but for its numbers and its stack. */
struct map_call_fact past_cache_map_call(struct past_cache *past_cache,
					 const struct targets *targets,
					 const struct memtoll_map_key *key);

/* It will not be asked for again. */
void past_cache_forget(struct past_cache *past_cache, uint64_t stack_id);

#endif /* MEMTOLL_PAST_CACHE_H */
