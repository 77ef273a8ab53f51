// SPDX-License-Identifier: GPL-2.0
#include "targets/nameless.h"

#include <bpf/bpf.h>
#include <glib.h>
#include <stdbool.h>

#include "bpf/wire/stacks.h"
#include "symbols/symbolize.h"
#include "targets/targets.h"

#define NOT_KEPT UINT16_MAX

struct nameless {
	int stacks_fd;
	struct symbolizer *symbolizer;
	struct targets *targets;
	GHashTable *of_shape; /* struct shape -> id */
	GHashTable *in_slice; /* id -> id */
};

/* All that is known of such a stack. */
struct shape {
	uint16_t depth; /* NOT_KEPT: nothing */
	uint8_t how;
	uint8_t flags;
	uint8_t stop;
};

static guint shape_hash(gconstpointer key)
{
	const struct shape *shape = key;

	return shape->depth | shape->how << 8 | shape->flags << 16 | (guint)shape->stop << 24;
}

static gboolean shape_equal(gconstpointer a, gconstpointer b)
{
	const struct shape *x = a, *y = b;

	return x->depth == y->depth && x->how == y->how && x->flags == y->flags &&
	       x->stop == y->stop;
}

struct nameless *nameless_new(int stacks_fd, struct symbolizer *symbolizer, struct targets *targets)
{
	struct nameless *nameless = g_new0(struct nameless, 1);

	nameless->stacks_fd = stacks_fd;
	nameless->symbolizer = symbolizer;
	nameless->targets = targets;
	nameless->of_shape = g_hash_table_new_full(shape_hash, shape_equal, g_free, g_free);
	nameless->in_slice = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	return nameless;
}

void nameless_free(struct nameless *nameless)
{
	if (!nameless)
		return;
	g_hash_table_destroy(nameless->of_shape);
	g_hash_table_destroy(nameless->in_slice);
	g_free(nameless);
}

static bool is_nameless(const struct nameless *nameless, const struct memtoll_stack *stack)
{
	unsigned int i;

	if (stack->python_depth)
		return false;
	for (i = 0; i < stack->depth && i < MEMTOLL_STACK_DEPTH; i++)
		if (symbolizer_has_code(nameless->symbolizer, (pid_t)stack->tgid, stack->frames[i]))
			return false;
	return true;
}

static uint64_t look_at(struct nameless *nameless, pid_t pid, uint64_t id)
{
	const struct target *target = targets_find(nameless->targets, pid);
	struct shape shape = { .depth = NOT_KEPT };
	struct memtoll_stack stack;
	const uint64_t *known;

	/* Of a living process the stack may still come, and its code can be read. */
	if (!id || !target || !target->exited)
		return id;
	if (!bpf_map_lookup_elem(nameless->stacks_fd, &id, &stack)) {
		if (!is_nameless(nameless, &stack))
			return id;
		shape = (struct shape){ stack.depth, stack.how, stack.flags, stack.stop };
	}
	known = g_hash_table_lookup(nameless->of_shape, &shape);
	if (known)
		return *known;
	g_hash_table_insert(nameless->of_shape, g_memdup2(&shape, sizeof(shape)),
			    g_memdup2(&id, sizeof(id)));
	return id;
}

uint64_t nameless_as(struct nameless *nameless, pid_t pid, uint64_t id)
{
	const uint64_t *known = g_hash_table_lookup(nameless->in_slice, &id);
	uint64_t as;

	if (known)
		return *known;
	as = look_at(nameless, pid, id);
	g_hash_table_insert(nameless->in_slice, g_memdup2(&id, sizeof(id)),
			    g_memdup2(&as, sizeof(as)));
	return as;
}

void nameless_end_slice(struct nameless *nameless)
{
	g_hash_table_remove_all(nameless->in_slice);
}
