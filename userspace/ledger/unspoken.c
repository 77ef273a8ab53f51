// SPDX-License-Identifier: GPL-2.0
/*
 * unspoken.c: at the end of a recording, the faults that were passed over and for whom no other has
 * spoken: they are what those were that were seen last, in proportion.
 */
#include <glib.h>

#include "bpf/wire/faults.h"
#include "ledger/ledger.h"
#include "ledger/ledger_internal.h"

/* Not those that are taken in a system call, each of which is known by what the call has changed. */
static bool may_be_passed(const struct charge *charge)
{
	bool populated = charge->fault_class >= FAULT_ZERO_POPULATED &&
			 charge->fault_class <= FAULT_READ_POPULATED;

	return !charge->major && charge->faults && !populated;
}

/* Of a drain in which there were none those of the one before stay: a last slice may be short. */
void unspoken_keep(struct ledger *ledger)
{
	bool first = true;
	GHashTableIter iter;
	gpointer value;

	if (!ledger->thinned)
		return;
	g_hash_table_iter_init(&iter, ledger->charges);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		const struct charge *charge = value;

		if (!may_be_passed(charge))
			continue;
		if (first)
			g_array_set_size(ledger->passable, 0);
		first = false;
		g_array_append_val(ledger->passable, *charge);
	}
}

/* The charge with the key of this one, which may have been drained. */
static struct charge *charge_like(struct ledger *ledger, const struct charge *like)
{
	struct charge *charge = g_hash_table_lookup(ledger->charges, like);

	if (charge)
		return charge;
	charge = g_memdup2(like, sizeof(*like));
	charge->faults = 0;
	charge->pages = 0;
	charge->timed_faults = 0;
	charge->timed_cpu_ns = 0;
	charge->timed_cpu_us2 = 0;
	charge->blocked_ns = 0;
	g_hash_table_insert(ledger->charges, charge, charge);
	return charge;
}

void ledger_unspoken(struct ledger *ledger, uint64_t faults)
{
	uint64_t before = 0, all = 0, given = 0, share;
	const struct charge *like;
	struct charge *charge;
	guint i;

	if (!faults)
		return;
	unspoken_keep(ledger);
	for (i = 0; i < ledger->passable->len; i++)
		all += g_array_index(ledger->passable, struct charge, i).faults;
	for (i = 0; i < ledger->passable->len; i++) {
		like = &g_array_index(ledger->passable, struct charge, i);
		/* Rounded so that the shares add up. */
		before += like->faults;
		share = (unsigned __int128)faults * before / all - given;
		given += share;
		charge = charge_like(ledger, like);
		charge->pages += (unsigned __int128)share * like->pages / like->faults;
		charge->faults += share;
	}
}
