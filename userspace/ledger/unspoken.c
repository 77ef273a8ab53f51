// SPDX-License-Identifier: GPL-2.0
/*
 * unspoken.c: faults that were passed over and for whom no other has spoken: they are what those
 * were that were seen of their process lately, in proportion.
 */
#include <glib.h>

#include "bpf/wire/faults.h"
#include "ledger/ledger.h"
#include "ledger/ledger_internal.h"

/* What was seen of a process, most of it lately. */
struct seen {
	uint64_t look;	 /* number of the look that saw it */
	uint64_t drains; /* of the ledger, by then */
	GArray *charges; /* struct charge */
	guint earlier;	 /* so many, the first, are of before the ledger was drained */
};

static void seen_free(gpointer data)
{
	struct seen *seen = data;

	g_array_free(seen->charges, TRUE);
	g_free(seen);
}

GHashTable *unspoken_new(void)
{
	return g_hash_table_new_full(NULL, NULL, NULL, seen_free);
}

/* Not those that are taken in a system call, each of which is known by what the call has changed. */
static bool may_be_passed(const struct charge *charge)
{
	bool populated = charge->fault_class >= FAULT_ZERO_POPULATED &&
			 charge->fault_class <= FAULT_READ_POPULATED;

	return !charge->major && charge->faults && !populated;
}

/*
 * What was seen before the ledger was drained counts for half: a slice in which a process has hardly
 * done anything, as at its end, says little of it. What it did long ago is soon nothing beside what
 * it does.
 */
static void fade(GArray *charges)
{
	struct charge *charge;
	guint i;

	for (i = charges->len; i-- > 0;) {
		charge = &g_array_index(charges, struct charge, i);
		charge->faults /= 2;
		charge->spoken /= 2;
		charge->pages /= 2;
		if (!charge->faults)
			g_array_remove_index_fast(charges, i);
	}
}

static void keep_charge(struct ledger *ledger, const struct charge *charge, uint64_t look)
{
	struct seen *seen = g_hash_table_lookup(ledger->seen, GINT_TO_POINTER(charge->pid));

	if (!seen) {
		seen = g_new0(struct seen, 1);
		seen->charges = g_array_new(FALSE, FALSE, sizeof(struct charge));
		seen->drains = ledger->drains;
		g_hash_table_insert(ledger->seen, GINT_TO_POINTER(charge->pid), seen);
	}
	if (seen->drains != ledger->drains) {
		fade(seen->charges);
		seen->earlier = seen->charges->len;
		seen->drains = ledger->drains;
	} else if (seen->look != look) {
		/* All that is charged is looked at again. */
		g_array_set_size(seen->charges, seen->earlier);
	}
	seen->look = look;
	g_array_append_val(seen->charges, *charge);
}

/* Processes that are gone are asked for so long. */
#define LOOKS_KEPT 16

static gboolean is_past(gpointer pid, gpointer data, gpointer context)
{
	const struct ledger *ledger = context;
	const struct seen *seen = data;

	return seen->look + LOOKS_KEPT < ledger->looks &&
	       !g_hash_table_contains(ledger->processes, pid);
}

void unspoken_keep(struct ledger *ledger)
{
	uint64_t look = ledger->looks + 1;
	GHashTableIter iter;
	gpointer value;

	if (!ledger->thinned || !ledger->charged)
		return;
	ledger->charged = false;
	g_hash_table_iter_init(&iter, ledger->charges);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		const struct charge *charge = value;

		if (!may_be_passed(charge))
			continue;
		ledger->looks = look;
		keep_charge(ledger, charge, look);
	}
	g_hash_table_foreach_remove(ledger->seen, is_past, ledger);
}

/* The charge with the key of this one, which may have been drained. */
static struct charge *charge_like(struct ledger *ledger, const struct charge *like)
{
	struct charge *charge = g_hash_table_lookup(ledger->charges, like);

	if (charge)
		return charge;
	charge = g_memdup2(like, sizeof(*like));
	charge->faults = 0;
	charge->spoken = 0;
	charge->pages = 0;
	charge->timed_faults = 0;
	charge->timed_cpu_ns = 0;
	charge->timed_cpu_us2 = 0;
	charge->blocked_ns = 0;
	g_hash_table_insert(ledger->charges, charge, charge);
	return charge;
}

/* By which charges are weighed. */
enum weight {
	BY_SPOKEN, /* what they have spoken for: where faults began to be passed over only then, those
		    * before were others */
	BY_FAULTS,
	BY_SEEN, /* of processes that have spoken for little, or for nothing */
};

static uint64_t weigh(const struct charge *charge, enum weight weight)
{
	switch (weight) {
	case BY_SPOKEN:
		return charge->spoken;
	case BY_FAULTS:
		return charge->faults;
	default:
		return charge->faults - charge->spoken;
	}
}

static void give(struct ledger *ledger, const struct charge *like, uint64_t faults)
{
	struct charge *charge = charge_like(ledger, like);
	const struct memtoll_run part = {
		.tgid = like->pid,
		.fault_class = like->fault_class,
		.area = like->area,
		.inode = like->inode,
		.dev = like->dev,
		.faults = faults,
		.pages = (unsigned __int128)faults * like->pages / like->faults,
	};

	charge->faults += faults;
	charge->pages += part.pages;
	accesses_unspoken(ledger->accesses, &part, like->allocated_fn, like->allocated_stack);
	if (ledger->on_unspoken)
		ledger->on_unspoken(ledger->on_unspoken_context, &part);
}

/* charges: pointers to struct charge. False: there are none. */
static bool share_out(struct ledger *ledger, const GPtrArray *charges, enum weight weight,
		      uint64_t faults)
{
	uint64_t before = 0, all = 0, given = 0, share;
	const struct charge *like;
	guint i;

	for (i = 0; i < charges->len; i++)
		all += weigh(g_ptr_array_index(charges, i), weight);
	for (i = 0; i < charges->len && all; i++) {
		like = g_ptr_array_index(charges, i);
		/* Rounded so that the shares add up. */
		before += weigh(like, weight);
		share = (unsigned __int128)faults * before / all - given;
		if (!share)
			continue;
		given += share;
		give(ledger, like, share);
	}
	return all;
}

static void append_seen(GPtrArray *charges, const struct seen *seen)
{
	guint i;

	for (i = 0; i < seen->charges->len; i++)
		g_ptr_array_add(charges, &g_array_index(seen->charges, struct charge, i));
}

/* It lived for a moment, or nothing more will be seen of it. */
static bool has_ended(const struct ledger *ledger, gconstpointer pid)
{
	const struct process_ledger *process = g_hash_table_lookup(ledger->processes, pid);

	return !process || process->exited;
}

enum whose {
	OF_BRIEF, /* those that have ended, and have spoken for none but what they were themselves */
	OF_ENDED,
	OF_ALL,
};

static bool is_asked(const struct ledger *ledger, gconstpointer pid, const struct seen *seen,
		     enum whose whose)
{
	guint i;

	if (whose != OF_ALL && !has_ended(ledger, pid))
		return false;
	for (i = 0; i < seen->charges->len && whose == OF_BRIEF; i++)
		if (g_array_index(seen->charges, struct charge, i).spoken)
			return false;
	return true;
}

/* What was seen last of such processes. */
static void append_last(const struct ledger *ledger, GPtrArray *charges, enum whose whose)
{
	gpointer pid, value;
	GHashTableIter iter;
	uint64_t last = 0;

	g_hash_table_iter_init(&iter, ledger->seen);
	while (g_hash_table_iter_next(&iter, &pid, &value))
		if (is_asked(ledger, pid, value, whose))
			last = MAX(last, ((const struct seen *)value)->look);
	g_hash_table_iter_init(&iter, ledger->seen);
	while (g_hash_table_iter_next(&iter, &pid, &value))
		if (((const struct seen *)value)->look == last &&
		    is_asked(ledger, pid, value, whose))
			append_seen(charges, value);
}

bool ledger_unspoken(struct ledger *ledger, pid_t pid, uint64_t faults, bool last)
{
	g_autoptr(GPtrArray) charges = g_ptr_array_new();
	const struct seen *seen;
	int whose;

	if (!faults)
		return true;
	unspoken_keep(ledger);
	seen = g_hash_table_lookup(ledger->seen, GINT_TO_POINTER(pid));
	if (seen) {
		append_seen(charges, seen);
		return share_out(ledger, charges, BY_SPOKEN, faults) ||
		       share_out(ledger, charges, BY_FAULTS, faults);
	}
	for (whose = OF_BRIEF; whose <= (last ? OF_ALL : OF_BRIEF) && (!pid || last); whose++) {
		g_ptr_array_set_size(charges, 0);
		append_last(ledger, charges, whose);
		if (share_out(ledger, charges, BY_SEEN, faults))
			return true;
	}
	return false;
}
