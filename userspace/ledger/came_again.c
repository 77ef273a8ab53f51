// SPDX-License-Identifier: GPL-2.0
#include "ledger/came_again.h"

#include <stdbool.h>

#include "events/passed.h"

/* A process, and a class of faults. */
struct brought {
	pid_t pid;
	uint8_t fault_class;
	uint64_t pages;
	uint64_t unspoken_pages; /* since the sums were drained */
	uint64_t unspoken_faults;
	GArray *again; /* struct giveback_sum, of what was drained before */
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

static struct brought *brought_get(struct came_again *came, pid_t pid, uint8_t fault_class)
{
	const struct brought key = { .pid = pid, .fault_class = fault_class };
	struct brought *brought = g_hash_table_lookup(came->brought, &key);

	if (!brought) {
		brought = g_new0(struct brought, 1);
		brought->pid = pid;
		brought->fault_class = fault_class;
		brought->again = g_array_new(FALSE, FALSE, sizeof(struct giveback_sum));
		g_hash_table_insert(came->brought, brought, brought);
	}
	return brought;
}

void came_again_brought(struct came_again *came, const struct memtoll_run *run)
{
	brought_get(came, run->tgid, run->fault_class)->pages += with_passed(run, run->pages);
	came->thinned |= run->passed;
}

void came_again_unspoken(struct came_again *came, const struct memtoll_run *part)
{
	struct brought *brought = brought_get(came, part->tgid, part->fault_class);

	brought->unspoken_pages += part->pages;
	brought->unspoken_faults += part->faults;
	came->thinned = true;
}

static uint64_t part_of(uint64_t count, uint64_t part, uint64_t all)
{
	return (unsigned __int128)count * MIN(part, all) / all;
}

static void speak(const struct brought *brought, giveback_fn *on_part, void *context)
{
	guint i;

	for (i = 0; i < brought->again->len && brought->pages; i++) {
		const struct giveback_sum *like =
			&g_array_index(brought->again, struct giveback_sum, i);
		struct giveback_sum sum = *like;

		sum.again_pages =
			part_of(brought->unspoken_pages, like->again_pages, brought->pages);
		sum.again_faults =
			part_of(brought->unspoken_faults, like->again_pages, brought->pages);
		sum.twice_pages =
			part_of(brought->unspoken_pages, like->twice_pages, brought->pages);
		if (sum.again_pages)
			on_part(context, &sum);
	}
}

static void halve(struct brought *brought)
{
	guint i;

	for (i = brought->again->len; i-- > 0;) {
		struct giveback_sum *sum = &g_array_index(brought->again, struct giveback_sum, i);

		sum->again_pages /= 2;
		sum->twice_pages /= 2;
		if (!sum->again_pages)
			g_array_remove_index_fast(brought->again, i);
	}
	brought->pages /= 2;
	brought->unspoken_pages = 0;
	brought->unspoken_faults = 0;
}

void came_again_settle(struct came_again *came, GHashTable *sums, giveback_fn *on_part,
		       void *context)
{
	GHashTableIter iter;
	gpointer value;

	if (!came->thinned) {
		g_hash_table_remove_all(came->brought);
		return;
	}
	g_hash_table_iter_init(&iter, sums);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		const struct giveback_sum *sum = value;

		if (sum->again_pages)
			g_array_append_val(brought_get(came, sum->pid, sum->fault_class)->again,
					   *sum);
	}
	g_hash_table_iter_init(&iter, came->brought);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct brought *brought = value;

		if (brought->unspoken_pages)
			speak(brought, on_part, context);
		halve(brought);
		if (!brought->pages)
			g_hash_table_iter_remove(&iter);
	}
}
