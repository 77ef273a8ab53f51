// SPDX-License-Identifier: GPL-2.0
#include "ledger/sampled.h"

#include <glib.h>
#include <math.h>

#include "base/hash.h"

/* A chosen block that lives. */
struct chosen {
	uint64_t addr;
	uint64_t pid;
	uint64_t size;
	uint64_t stack_id;
	uint8_t fn;
};

struct sampled {
	double mean;
	uint64_t min_size;
	GHashTable *live;  /* struct chosen -> itself */
	GHashTable *sites; /* struct sampled_site -> itself */
};

static guint chosen_hash(gconstpointer key)
{
	const struct chosen *chosen = key;
	uint64_t hash = (chosen->addr ^ chosen->pid << 48) * HASH_GOLDEN;

	return hash >> 32;
}

static gboolean chosen_equal(gconstpointer a, gconstpointer b)
{
	const struct chosen *x = a, *y = b;

	return x->addr == y->addr && x->pid == y->pid;
}

static guint site_hash(gconstpointer key)
{
	const struct sampled_site *site = key;
	uint64_t hash = (site->stack_id ^ (uint64_t)site->pid << 8 ^ site->fn) * HASH_GOLDEN;

	return hash >> 32;
}

static gboolean site_equal(gconstpointer a, gconstpointer b)
{
	const struct sampled_site *x = a, *y = b;

	return x->pid == y->pid && x->fn == y->fn && x->stack_id == y->stack_id;
}

struct sampled *sampled_new(uint64_t mean_bytes, uint64_t min_size)
{
	struct sampled *sampled = g_new0(struct sampled, 1);

	sampled->mean = mean_bytes;
	sampled->min_size = min_size;
	sampled->live = g_hash_table_new_full(chosen_hash, chosen_equal, NULL, g_free);
	sampled->sites = g_hash_table_new_full(site_hash, site_equal, NULL, g_free);
	return sampled;
}

void sampled_free(struct sampled *sampled)
{
	if (!sampled)
		return;
	g_hash_table_destroy(sampled->live);
	g_hash_table_destroy(sampled->sites);
	g_free(sampled);
}

static struct sampled_site *site_of(struct sampled *sampled, const struct chosen *chosen)
{
	struct sampled_site key = {
		.pid = chosen->pid,
		.fn = chosen->fn,
		.stack_id = chosen->stack_id,
	};
	struct sampled_site *site = g_hash_table_lookup(sampled->sites, &key);

	if (!site) {
		site = g_memdup2(&key, sizeof(key));
		g_hash_table_insert(sampled->sites, site, site);
	}
	return site;
}

/* Probability that a block of this size is chosen. */
static double probability(const struct sampled *sampled, uint64_t size)
{
	return -expm1(-(double)size / sampled->mean);
}

static void made(struct sampled *sampled, const struct memtoll_block *block)
{
	double p = probability(sampled, block->size), variance = (1 - p) / (p * p);
	double size = block->size;
	struct chosen *chosen = g_new0(struct chosen, 1);
	struct sampled_site *site;

	chosen->addr = block->addr;
	chosen->pid = block->tgid;
	chosen->size = block->size;
	chosen->stack_id = block->stack_id;
	chosen->fn = block->fn;
	site = site_of(sampled, chosen);
	site->chosen++;
	site->chosen_bytes += block->size;
	site->calls += 1 / p;
	site->calls_variance += variance;
	site->bytes += size / p;
	site->bytes_variance += size * size * variance;
	g_hash_table_replace(sampled->live, chosen, chosen);
}

/* false: no chosen block lived there. */
static bool ended(struct sampled *sampled, pid_t pid, uint64_t addr)
{
	struct chosen key = { .addr = addr, .pid = pid };
	const struct chosen *chosen = g_hash_table_lookup(sampled->live, &key);
	struct sampled_site *site;
	double p, size;

	if (!chosen)
		return false;
	site = site_of(sampled, chosen);
	p = probability(sampled, chosen->size);
	size = chosen->size;
	site->freed += 1 / p;
	site->freed_bytes += size / p;
	site->freed_bytes_variance += size * size * (1 - p) / (p * p);
	g_hash_table_remove(sampled->live, &key);
	return true;
}

bool sampled_block(struct sampled *sampled, struct memtoll_block *block)
{
	bool moved = block->fn != FN_FREE, kept = moved && !block->addr && block->size;
	bool was_chosen = false;

	if (!sampled->mean)
		return false;
	/* A realloc that failed leaves the old block as it is. */
	if (block->old_addr && !kept)
		was_chosen = ended(sampled, block->tgid, block->old_addr);
	if (block->addr && block->flags & BLOCK_SAMPLED) {
		/* Its address is free: a free that was missed is proved. */
		ended(sampled, block->tgid, block->addr);
		made(sampled, block);
	}
	/* The old one, or a small block that a chosen one became: neither is in the ledger. */
	if (was_chosen)
		block->old_addr = 0;
	return !block->old_addr &&
	       (block->flags & BLOCK_SAMPLED ||
		(was_chosen && (!block->addr || block->size < sampled->min_size)));
}

static gboolean is_of(gpointer key, gpointer value, gpointer pid)
{
	(void)value;
	return ((struct chosen *)key)->pid == GPOINTER_TO_UINT(pid);
}

/* Allocators align blocks to so much at least; longer ones than that are the ledger's. */
#define BLOCK_ALIGN 16
#define BLOCK_LONGEST (64ULL << 10)

bool sampled_owner(const struct sampled *sampled, pid_t pid, uint64_t address, uint64_t *stack_id,
		   uint8_t *fn)
{
	struct chosen key = { .addr = address & ~(BLOCK_ALIGN - 1ULL), .pid = (uint64_t)pid };
	uint64_t lowest = key.addr - MIN(key.addr, MIN(sampled->min_size, BLOCK_LONGEST));
	const struct chosen *chosen;

	if (!g_hash_table_size(sampled->live))
		return false;
	for (; key.addr > lowest; key.addr -= BLOCK_ALIGN) {
		chosen = g_hash_table_lookup(sampled->live, &key);
		if (!chosen)
			continue;
		*stack_id = chosen->stack_id;
		*fn = chosen->fn;
		return address - chosen->addr < chosen->size;
	}
	return false;
}

double sampled_weight(const struct sampled *sampled, uint64_t size)
{
	return sampled->mean > 0 && size ? 1 / probability(sampled, size) : 1;
}

void sampled_forget(struct sampled *sampled, pid_t pid)
{
	g_hash_table_foreach_remove(sampled->live, is_of, GUINT_TO_POINTER(pid));
}

void sampled_drain(struct sampled *sampled,
		   void (*each)(void *context, const struct sampled_site *site), void *context)
{
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, sampled->sites);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		each(context, value);
		g_hash_table_iter_remove(&iter);
	}
}
