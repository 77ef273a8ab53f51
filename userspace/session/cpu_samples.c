// SPDX-License-Identifier: GPL-2.0
#include "session/cpu_samples.h"

#include <bpf/bpf.h>
#include <glib.h>

#include "base/hash.h"
#include "bpf/wire/stacks.h"
#include "events/names.h"
#include "session/sample_place.h"

/* How many frames an allocator's function may lie below the instruction that was sampled. */
#define ALLOCATOR_DEPTH 6

struct sample_key {
	uint32_t pid;
	uint16_t place;
	uint16_t in_fn;
	uint64_t stack_id;
};

G_STATIC_ASSERT(sizeof(struct sample_key) == 16);

struct sample_count {
	struct sample_key key;
	uint64_t samples;
};

struct cpu_samples {
	int stacks_fd;
	struct symbolizer *symbolizer;
	struct sample_judge judge;
	GHashTable *counts; /* struct sample_count -> itself */
	GArray *unnamed;    /* of struct memtoll_sample: the function follows from their stacks */
	GHashTable *fns;    /* stack id -> the allocator's function in it, plus 1 */
};

struct cpu_samples *cpu_samples_new(int stacks_fd, struct symbolizer *symbolizer)
{
	struct cpu_samples *samples = g_new0(struct cpu_samples, 1);

	samples->stacks_fd = stacks_fd;
	samples->symbolizer = symbolizer;
	samples->counts = g_hash_table_new_full(key16_hash, key16_equal, NULL, g_free);
	samples->fns = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	samples->unnamed = g_array_new(false, false, sizeof(struct memtoll_sample));
	sample_judge_prepare(&samples->judge);
	return samples;
}

void cpu_samples_free(struct cpu_samples *samples)
{
	if (!samples)
		return;
	g_hash_table_destroy(samples->counts);
	g_hash_table_destroy(samples->fns);
	g_array_unref(samples->unnamed);
	g_free(samples);
}

/* Worked out once for each stack. */
static unsigned int fn_of_stack(struct cpu_samples *samples, uint64_t id)
{
	gpointer known = g_hash_table_lookup(samples->fns, &id);
	unsigned int fn = FN_NONE, i;
	struct memtoll_stack stack;
	struct frame frame;

	if (known)
		return GPOINTER_TO_UINT(known) - 1;
	if (bpf_map_lookup_elem(samples->stacks_fd, &id, &stack))
		return FN_NONE;
	/* Its own helpers lie above it: _int_malloc, sysmalloc, memset. */
	for (i = 0; i < stack.depth && i < ALLOCATOR_DEPTH && !fn; i++)
		if (symbolizer_user(samples->symbolizer, stack.tgid, stack.frames[i],
				    !(stack.exact[0] >> i & 1), &frame, 1))
			fn = sample_fn_of_symbol(frame.function);
	g_hash_table_insert(samples->fns, g_memdup2(&id, sizeof(id)), GUINT_TO_POINTER(fn + 1));
	return fn;
}

void cpu_samples_forget_stack(struct cpu_samples *samples, uint64_t id)
{
	g_hash_table_remove(samples->fns, &id);
}

static void add_named(struct cpu_samples *samples, const struct memtoll_sample *sample)
{
	struct sample_key key = {
		.pid = sample->tgid,
		.place = sample_place(&samples->judge, sample),
		.in_fn = sample->in_fn,
		.stack_id = sample->stack_id,
	};
	struct sample_count *count = g_hash_table_lookup(samples->counts, &key);

	if (!count) {
		count = g_new0(struct sample_count, 1);
		count->key = key;
		g_hash_table_insert(samples->counts, &count->key, count);
	}
	count->samples++;
}

void cpu_samples_add(struct cpu_samples *samples, const struct memtoll_sample *sample, bool missed)
{
	/* A library's names take a tenth of a second to read: not while a window may be open. */
	if (!sample->in_fn && missed)
		g_array_append_vals(samples->unnamed, sample, 1);
	else
		add_named(samples, sample);
}

static void name_samples(struct cpu_samples *samples)
{
	struct memtoll_sample *sample;
	guint i;

	for (i = 0; i < samples->unnamed->len; i++) {
		sample = &g_array_index(samples->unnamed, struct memtoll_sample, i);
		sample->in_fn = fn_of_stack(samples, sample->stack_id);
		add_named(samples, sample);
	}
	g_array_set_size(samples->unnamed, 0);
}

int cpu_samples_commit(struct cpu_samples *samples, struct recording *recording,
		       void (*on_stack)(void *context, uint64_t id), void *context)
{
	GHashTableIter iter;
	gpointer value;
	int err = 0;

	name_samples(samples);
	g_hash_table_iter_init(&iter, samples->counts);
	while (g_hash_table_iter_next(&iter, NULL, &value) && !err) {
		const struct sample_count *count = value;

		on_stack(context, count->key.stack_id);
		err = recording_sample(recording, count->key.pid,
				       sample_place_name(count->key.place),
				       fn_name(count->key.in_fn), count->key.stack_id,
				       count->samples);
		g_hash_table_iter_remove(&iter);
	}
	return err;
}
