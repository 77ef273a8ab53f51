// SPDX-License-Identifier: GPL-2.0
#include "session/kernel_stacks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <glib.h>

#include "bpf/wire/records.h"
#include "bpf/wire/stacks.h"
#include "memtoll.skel.h"
#include "targets/targets.h"

struct kernel_stacks {
	struct memtoll_bpf *bpf;
	GHashTable *of;	   /* pid -> GArray of ids */
	unsigned int dead; /* ids of those that ended since the last kernel_stacks_drop() */
};

static void ids_free(gpointer ids)
{
	g_array_free(ids, TRUE);
}

struct kernel_stacks *kernel_stacks_new(struct memtoll_bpf *bpf)
{
	struct kernel_stacks *stacks = g_new0(struct kernel_stacks, 1);

	stacks->bpf = bpf;
	stacks->of = g_hash_table_new_full(NULL, NULL, NULL, ids_free);
	return stacks;
}

void kernel_stacks_free(struct kernel_stacks *stacks)
{
	if (!stacks)
		return;
	g_hash_table_destroy(stacks->of);
	g_free(stacks);
}

void kernel_stacks_add(struct kernel_stacks *stacks, const struct memtoll_new_stack *stack)
{
	gpointer pid = GUINT_TO_POINTER(stack->tgid);
	GArray *ids = g_hash_table_lookup(stacks->of, pid);

	if (!ids) {
		ids = g_array_new(FALSE, FALSE, sizeof(stack->id));
		g_hash_table_insert(stacks->of, pid, ids);
	}
	g_array_append_val(ids, stack->id);
}

void kernel_stacks_exited(struct kernel_stacks *stacks, pid_t pid)
{
	const GArray *ids = g_hash_table_lookup(stacks->of, GINT_TO_POINTER(pid));

	stacks->dead += ids ? ids->len : 0;
}

unsigned int kernel_stacks_dead(const struct kernel_stacks *stacks)
{
	return stacks->dead;
}

static void search_all(int fd, pid_t pid, void (*each)(void *context, uint64_t id), void *context)
{
	struct memtoll_stack stack;
	uint64_t id, previous;
	bool first = true;

	while (!bpf_map_get_next_key(fd, first ? NULL : &previous, &id)) {
		first = false;
		previous = id;
		if (!bpf_map_lookup_elem(fd, &id, &stack) && stack.tgid == (uint32_t)pid)
			each(context, id);
	}
}

void kernel_stacks_each(const struct kernel_stacks *stacks, pid_t pid,
			void (*each)(void *context, uint64_t id), void *context)
{
	const GArray *ids = g_hash_table_lookup(stacks->of, GINT_TO_POINTER(pid));
	guint i;

	if (stacks->bpf->bss->stacks_unannounced) {
		search_all(bpf_map__fd(stacks->bpf->maps.stacks), pid, each, context);
		return;
	}
	for (i = 0; ids && i < ids->len; i++)
		each(context, g_array_index(ids, uint64_t, i));
}

void kernel_stacks_drop(struct kernel_stacks *stacks, struct targets *targets,
			void (*dropped)(void *context, uint64_t id), void *context)
{
	int fd = bpf_map__fd(stacks->bpf->maps.stacks);
	GHashTableIter iter;
	gpointer pid, value;
	guint i;

	g_hash_table_iter_init(&iter, stacks->of);
	while (g_hash_table_iter_next(&iter, &pid, &value)) {
		const GArray *ids = value;

		if (targets_find(targets, GPOINTER_TO_INT(pid)))
			continue;
		for (i = 0; i < ids->len; i++) {
			bpf_map_delete_elem(fd, &g_array_index(ids, uint64_t, i));
			dropped(context, g_array_index(ids, uint64_t, i));
		}
		g_hash_table_iter_remove(&iter);
	}
	stacks->dead = 0;
}
