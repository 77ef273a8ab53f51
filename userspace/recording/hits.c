// SPDX-License-Identifier: GPL-2.0
#include "recording/hits.h"

#include <glib.h>

#include "events/names.h"

struct hit_counts {
	GHashTable *of; /* pid -> struct hits */
};

struct hit_counts *hit_counts_new(void)
{
	struct hit_counts *counts = g_new0(struct hit_counts, 1);

	counts->of = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	return counts;
}

void hit_counts_free(struct hit_counts *counts)
{
	if (!counts)
		return;
	g_hash_table_destroy(counts->of);
	g_free(counts);
}

struct hits *hits_of(struct hit_counts *counts, pid_t pid)
{
	struct hits *hits = g_hash_table_lookup(counts->of, GINT_TO_POINTER(pid));

	if (!hits) {
		hits = g_new0(struct hits, 1);
		g_hash_table_insert(counts->of, GINT_TO_POINTER(pid), hits);
	}
	return hits;
}

void hits_pass(struct hits *hits, const uint64_t *passes)
{
	hits->other_reads += passes[0];
	hits->syscalls += passes[1];
	/* At the price that reads were seen to have, all in all. */
	hits->reads += passes[2];
}

static int write_one(struct recording *recording, pid_t pid, const struct hits *hits,
		     double syscalls_scale)
{
	const struct {
		const char *probe;
		uint64_t count;
	} rows[] = {
		{ "fault", hits->faults },
		{ "fault_end", hits->timed },
		{ "map", hits->maps },
		{ "read", hits->reads },
		{ "read_other", hits->other_reads },
		{ "walk", hits->walks },
		{ "idle", hits->idle },
		{ "sample", hits->samples },
		{ "syscall", hits->syscalls * syscalls_scale },
	};
	unsigned int fn;
	int err = 0;
	size_t i;

	for (fn = FN_MALLOC; fn < FN_COUNT && !err; fn++)
		if (hits->calls[fn])
			err = recording_hit(recording, pid, fn_name(fn), hits->calls[fn]);
	for (i = 0; i < G_N_ELEMENTS(rows) && !err; i++)
		if (rows[i].count)
			err = recording_hit(recording, pid, rows[i].probe, rows[i].count);
	return err;
}

int hit_counts_write(struct hit_counts *counts, struct recording *recording, double syscalls_scale)
{
	GHashTableIter iter;
	gpointer pid, hits;
	int err = 0;

	g_hash_table_iter_init(&iter, counts->of);
	while (!err && g_hash_table_iter_next(&iter, &pid, &hits))
		err = write_one(recording, GPOINTER_TO_INT(pid), hits, syscalls_scale);
	g_hash_table_remove_all(counts->of);
	return err;
}
