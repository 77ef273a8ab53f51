// SPDX-License-Identifier: GPL-2.0
#include "session/past_cache.h"

#include <bpf/bpf.h>
#include <glib.h>

#include "bpf/wire/functions.h"
#include "bpf/wire/stacks.h"
#include "events/names.h"
#include "targets/targets.h"

/* mmap, new_heap, _int_new_arena, arena_get2, malloc; sbrk needs one more. */
#define DEPTH 8U

struct past_cache {
	int stacks_fd;
	GHashTable *known; /* id of a stack -> function */
};

struct past_cache *past_cache_new(int stacks_fd)
{
	struct past_cache *past_cache = g_new0(struct past_cache, 1);

	past_cache->stacks_fd = stacks_fd;
	past_cache->known = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	return past_cache;
}

void past_cache_free(struct past_cache *past_cache)
{
	if (!past_cache)
		return;
	g_hash_table_destroy(past_cache->known);
	g_free(past_cache);
}

unsigned int past_cache_fn(struct past_cache *past_cache, const struct targets *targets, pid_t pid,
			   unsigned int in_fn, uint64_t stack_id)
{
	struct memtoll_stack stack;
	gpointer known;
	unsigned int fn;

	if (in_fn || !stack_id || !targets_have_past_cache(targets, pid))
		return in_fn;
	if (g_hash_table_lookup_extended(past_cache->known, &stack_id, NULL, &known))
		return GPOINTER_TO_UINT(known);
	if (bpf_map_lookup_elem(past_cache->stacks_fd, &stack_id, &stack))
		return FN_NONE;
	fn = targets_past_cache(targets, pid, stack.frames, MIN(stack.depth, DEPTH));
	g_hash_table_insert(past_cache->known, g_memdup2(&stack_id, sizeof(stack_id)),
			    GUINT_TO_POINTER(fn));
	return fn;
}

struct map_call_fact past_cache_map_call(struct past_cache *past_cache,
					 const struct targets *targets,
					 const struct memtoll_map_key *key)
{
	return (struct map_call_fact){
		.pid = key->tgid,
		.call = map_fn_name(key->map_fn),
		.in_call = fn_name(past_cache_fn(past_cache, targets, key->tgid, key->in_fn,
						 key->stack_id)),
	};
}

void past_cache_forget(struct past_cache *past_cache, uint64_t stack_id)
{
	g_hash_table_remove(past_cache->known, &stack_id);
}
