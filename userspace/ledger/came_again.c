// SPDX-License-Identifier: GPL-2.0
#include "ledger/came_again.h"

#include <stdbool.h>

#include "events/passed.h"

/* A process, and a class of faults. */
struct brought {
	pid_t pid;
	uint8_t fault_class;
	uint64_t pages;
	GArray *again; /* struct giveback_sum, of before the last drain */
};

struct came_again {
	GHashTable *brought; /* struct brought -> itself */
	bool thinned;	     /* before that nobody asks */
};

static guint brought_hash(gconstpointer key)
{
	const struct brought *brought = key;

	return (guint)brought->pid << 8 | brought->fault_class;
}

static gboolean brought_equal(gconstpointer a, gconstpointer b)
{
	const struct brought *x = a, *y = b;

	return x->pid == y->pid && x->fault_class == y->fault_class;
}

static void brought_free(gpointer data)
{
	struct brought *brought = data;

	g_array_free(brought->again, TRUE);
	g_free(brought);
}

struct came_again *came_again_new(void)
{
	struct came_again *came = g_new0(struct came_again, 1);

	came->brought = g_hash_table_new_full(brought_hash, brought_equal, NULL, brought_free);
	return came;
}

void came_again_free(struct came_again *came)
{
	if (!came)
		return;
	g_hash_table_destroy(came->brought);
	g_free(came);
}

static struct brought *brought_find(struct came_again *came, pid_t pid, uint8_t fault_class)
{
	return g_hash_table_lookup(came->brought,
				   &(struct brought){ .pid = pid, .fault_class = fault_class });
}

void came_again_brought(struct came_again *came, const struct memtoll_run *run)
{
	struct brought *brought = brought_find(came, run->tgid, run->fault_class);

	if (!brought) {
		brought = g_new0(struct brought, 1);
		brought->pid = run->tgid;
		brought->fault_class = run->fault_class;
		brought->again = g_array_new(FALSE, FALSE, sizeof(struct giveback_sum));
		g_hash_table_insert(came->brought, brought, brought);
	}
	brought->pages += with_passed(run, run->pages);
	came->thinned |= run->passed;
}

static void append_now(GArray *again, GHashTable *now, pid_t pid, uint8_t fault_class)
{
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, now);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		const struct giveback_sum *sum = value;

		if (sum->pid == pid && sum->fault_class == fault_class && sum->again_pages)
			g_array_append_val(again, *sum);
	}
}

static uint64_t part_of(uint64_t count, uint64_t part, uint64_t all)
{
	return (unsigned __int128)count * MIN(part, all) / all;
}

void came_again_unspoken(struct came_again *came, GHashTable *now, const struct memtoll_run *part,
			 giveback_fn *on_part, void *context)
{
	struct brought *brought = brought_find(came, part->tgid, part->fault_class);
	g_autoptr(GArray) again = NULL;
	guint i;

	came->thinned = true;
	if (!brought || !brought->pages)
		return;
	again = g_array_copy(brought->again);
	append_now(again, now, part->tgid, part->fault_class);
	for (i = 0; i < again->len; i++) {
		const struct giveback_sum *like = &g_array_index(again, struct giveback_sum, i);
		struct giveback_sum sum = *like;

		sum.again_pages = part_of(part->pages, like->again_pages, brought->pages);
		sum.again_faults = part_of(part->faults, like->again_pages, brought->pages);
		sum.twice_pages = part_of(part->pages, like->twice_pages, brought->pages);
		if (sum.again_pages)
			on_part(context, &sum);
	}
	brought->pages += part->pages;
}

static void halve(GArray *again)
{
	guint i;

	for (i = again->len; i-- > 0;) {
		struct giveback_sum *sum = &g_array_index(again, struct giveback_sum, i);

		sum->again_pages /= 2;
		sum->twice_pages /= 2;
		if (!sum->again_pages)
			g_array_remove_index_fast(again, i);
	}
}

void came_again_keep(struct came_again *came, GHashTable *now)
{
	GHashTableIter iter;
	gpointer value;

	if (!came->thinned) {
		g_hash_table_remove_all(came->brought);
		return;
	}
	g_hash_table_iter_init(&iter, now);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		const struct giveback_sum *sum = value;
		struct brought *brought = brought_find(came, sum->pid, sum->fault_class);

		if (brought && sum->again_pages)
			g_array_append_val(brought->again, *sum);
	}
	g_hash_table_iter_init(&iter, came->brought);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct brought *brought = value;

		halve(brought->again);
		brought->pages /= 2;
		if (!brought->pages)
			g_hash_table_iter_remove(&iter);
	}
}
