// SPDX-License-Identifier: GPL-2.0
/*
 * allocator_stacks.c: by the names of functions. Most libraries keep only those that they export,
 * and what an allocator calls inside, or goes on to by a jump, has none: that is known by its
 * module, and the function by the place that it returns to, once a probe has seen a call from
 * there.
 */
#include "session/allocator_stacks.h"

#include <bpf/bpf.h>
#include <glib.h>

#include "base/hash.h"
#include "bpf/wire/functions.h"
#include "bpf/wire/stacks.h"
#include "bpf/wire/store_loops.h"
#include "session/sample_place.h"

/* How many frames a function may lie below the instruction: by its name, by its module. */
#define NAME_DEPTH 6
#define MODULE_DEPTH 16

struct allocator_stacks {
	int stacks_fd;
	struct symbolizer *symbolizer;
	GHashTable *codes;   /* stack id -> struct allocator_code, as a number */
	GHashTable *callers; /* struct memtoll_store_key -> the function that returns there */
	GHashTable *learned; /* stack ids that were looked at: callers has what there was */
};

struct allocator_stacks *allocator_stacks_new(int stacks_fd, struct symbolizer *symbolizer)
{
	struct allocator_stacks *stacks = g_new0(struct allocator_stacks, 1);

	stacks->stacks_fd = stacks_fd;
	stacks->symbolizer = symbolizer;
	stacks->codes = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	stacks->callers = g_hash_table_new_full(key16_hash, key16_equal, g_free, NULL);
	stacks->learned = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	return stacks;
}

void allocator_stacks_free(struct allocator_stacks *stacks)
{
	if (!stacks)
		return;
	g_hash_table_destroy(stacks->codes);
	g_hash_table_destroy(stacks->callers);
	g_hash_table_destroy(stacks->learned);
	g_free(stacks);
}

void allocator_stacks_learn(struct allocator_stacks *stacks, unsigned int fn, uint64_t stack_id)
{
	struct memtoll_store_key caller = {};
	struct memtoll_stack stack;

	if (!stack_id || g_hash_table_contains(stacks->learned, &stack_id) ||
	    bpf_map_lookup_elem(stacks->stacks_fd, &stack_id, &stack))
		return;
	g_hash_table_add(stacks->learned, g_memdup2(&stack_id, sizeof(stack_id)));
	if (stack.depth < 2)
		return;
	caller.ip = stack.frames[1];
	caller.tgid = stack.tgid;
	g_hash_table_replace(stacks->callers, g_memdup2(&caller, sizeof(caller)),
			     GUINT_TO_POINTER(fn));
}

static unsigned int fn_called_at(const struct allocator_stacks *stacks, uint32_t tgid, uint64_t ip)
{
	struct memtoll_store_key caller = { .ip = ip, .tgid = tgid };

	return GPOINTER_TO_UINT(g_hash_table_lookup(stacks->callers, &caller));
}

static struct allocator_code judge(const struct allocator_stacks *stacks,
				   const struct memtoll_stack *stack, const struct targets *targets)
{
	struct allocator_code code = {};
	struct frame frame;
	unsigned int i;

	for (i = 0; i < stack->depth && i < MODULE_DEPTH; i++) {
		symbolizer_user(stacks->symbolizer, stack->tgid, stack->frames[i],
				!(stack->exact[0] >> i & 1), &frame, 1);
		if (targets && targets_is_allocator(targets, stack->tgid, frame.module)) {
			code.in_allocator = true;
			code.fn = sample_fn_of_symbol(frame.function);
			if (!code.fn && i + 1 < stack->depth)
				code.fn = fn_called_at(stacks, stack->tgid, stack->frames[i + 1]);
		} else if (code.in_allocator) {
			break;
		} else if (i < NAME_DEPTH) {
			code.fn = sample_fn_of_symbol(frame.function);
			if (code.fn)
				break;
		}
	}
	code.in_allocator |= code.fn != FN_NONE;
	return code;
}

bool allocator_stacks_known(const struct allocator_stacks *stacks, uint64_t stack_id,
			    bool in_memset, struct allocator_code *code)
{
	gpointer known = g_hash_table_lookup(stacks->codes, &stack_id);

	*code = (struct allocator_code){
		.fn = GPOINTER_TO_UINT(known) >> 2,
		.in_allocator = GPOINTER_TO_UINT(known) & 2,
	};
	/* That it is in neither was found before it was known that this code is memset. */
	return known && (code->fn || !in_memset);
}

struct allocator_code allocator_stacks_judge(struct allocator_stacks *stacks,
					     const struct targets *targets, uint64_t stack_id,
					     bool in_memset)
{
	struct allocator_code code;
	struct memtoll_stack stack;

	if (allocator_stacks_known(stacks, stack_id, in_memset, &code) ||
	    bpf_map_lookup_elem(stacks->stacks_fd, &stack_id, &stack))
		return code;
	code = judge(stacks, &stack, targets);
	/*
	 * calloc may go on to memset by a jump, and be reached by one: then the two have what they
	 * return to in common, and that alone.
	 */
	if (!code.fn && in_memset && stack.depth > 1 &&
	    fn_called_at(stacks, stack.tgid, stack.frames[1]) == FN_CALLOC) {
		code.fn = FN_CALLOC;
		code.in_allocator = true;
	}
	/* Who called the function may be seen later. */
	if (code.fn || (!code.in_allocator && !in_memset))
		g_hash_table_insert(stacks->codes, g_memdup2(&stack_id, sizeof(stack_id)),
				    GUINT_TO_POINTER(code.fn << 2 | (code.in_allocator ? 2 : 0) |
						     1));
	return code;
}

void allocator_stacks_forget(struct allocator_stacks *stacks, uint64_t stack_id)
{
	g_hash_table_remove(stacks->codes, &stack_id);
	g_hash_table_remove(stacks->learned, &stack_id);
}

static gboolean is_of(gpointer caller, gpointer fn, gpointer pid)
{
	(void)fn;
	return ((const struct memtoll_store_key *)caller)->tgid == GPOINTER_TO_UINT(pid);
}

void allocator_stacks_forget_process(struct allocator_stacks *stacks, pid_t pid)
{
	g_hash_table_foreach_remove(stacks->callers, is_of, GINT_TO_POINTER(pid));
	/* By an id that has no process in it: those of others are learned again. */
	g_hash_table_remove_all(stacks->learned);
	g_hash_table_remove_all(stacks->codes);
}
