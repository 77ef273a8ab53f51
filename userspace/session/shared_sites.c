// SPDX-License-Identifier: GPL-2.0
#include "session/shared_sites.h"

#include <bpf/bpf.h>
#include <glib.h>

#include "bpf/wire/stacks.h"

struct shared_sites {
	int stacks_fd;
	GHashTable *shared;   /* id of the kernel side -> the one that all processes have */
	GHashTable *examples; /* the reverse; of several the last */
};

struct shared_sites *shared_sites_new(int stacks_fd)
{
	struct shared_sites *sites = g_new0(struct shared_sites, 1);

	sites->stacks_fd = stacks_fd;
	sites->shared = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	sites->examples = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	return sites;
}

void shared_sites_free(struct shared_sites *sites)
{
	if (!sites)
		return;
	g_hash_table_destroy(sites->shared);
	g_hash_table_destroy(sites->examples);
	g_free(sites);
}

static void map_id(GHashTable *table, uint64_t from, uint64_t to)
{
	g_hash_table_replace(table, g_memdup2(&from, sizeof(from)), g_memdup2(&to, sizeof(to)));
}

uint64_t shared_sites_get(struct shared_sites *sites, uint64_t id)
{
	const uint64_t *known = g_hash_table_lookup(sites->shared, &id);
	struct memtoll_stack stack;

	if (known)
		return *known;
	if (!id || bpf_map_lookup_elem(sites->stacks_fd, &id, &stack) ||
	    !(stack.flags & STACK_SITE))
		return id;
	map_id(sites->shared, id, stack.id);
	map_id(sites->examples, stack.id, id);
	return stack.id;
}

/* Under which id the kernel side has it. */
static uint64_t example_of(const struct shared_sites *sites, uint64_t id)
{
	const uint64_t *example = g_hash_table_lookup(sites->examples, &id);

	return example ? *example : id;
}

bool shared_sites_stack(const struct shared_sites *sites, uint64_t id, struct memtoll_stack *stack)
{
	uint64_t example = example_of(sites, id);

	return !bpf_map_lookup_elem(sites->stacks_fd, &example, stack);
}

void shared_sites_forget(struct shared_sites *sites, uint64_t id)
{
	const uint64_t *shared = g_hash_table_lookup(sites->shared, &id);

	if (!shared)
		return;
	if (example_of(sites, *shared) == id)
		g_hash_table_remove(sites->examples, shared);
	g_hash_table_remove(sites->shared, &id);
}
