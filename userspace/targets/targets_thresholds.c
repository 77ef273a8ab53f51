// SPDX-License-Identifier: GPL-2.0
/*
 * targets_thresholds.c: glibc's thresholds of the processes that are followed, read where they lie.
 */
#include "targets/targets_internal.h"

#include "allocators/glibc_params.h"
#include "base/clock.h"

bool followed_uses_glibc(const struct followed *followed)
{
	bool glibc = false;
	guint i;

	for (i = 0; i < followed->attached->len; i++) {
		const struct attached *attached = g_ptr_array_index(followed->attached, i);

		if (attached->module->kind != ALLOCATOR_GLIBC)
			return false;
		glibc = true;
	}
	return glibc;
}

void followed_look_at_thresholds(struct followed *followed)
{
	if (followed->malloc_par && malloc_par_read(followed->target.pid, followed->malloc_par,
						    followed->values, &followed->pinned))
		followed->values_ns = now_ns();
}

void followed_begin_thresholds(struct targets *targets, const struct followed *followed,
			       bool from_start, pid_t parent)
{
	thresholds_start(targets->config.thresholds, followed->target.pid, now_ns(),
			 followed->tunables, from_start, parent);
	thresholds_set_glibc(targets->config.thresholds, followed->target.pid,
			     followed_uses_glibc(followed));
}

static void take_values(struct targets *targets, struct followed *followed)
{
	if (followed->values_ns)
		thresholds_read(targets->config.thresholds, followed->target.pid,
				followed->values_ns, followed->values, followed->pinned);
	followed->values_ns = 0;
}

void followed_read_thresholds(struct targets *targets, struct followed *followed)
{
	followed_look_at_thresholds(followed);
	take_values(targets, followed);
}

bool targets_read_thresholds(struct targets *targets)
{
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct followed *followed = value;

		/* What happens after the end is not seen, and nobody's doing. */
		if (followed->target.exited || targets->ended_ns)
			take_values(targets, followed);
		else
			followed_read_thresholds(targets, followed);
	}
	return targets->ended_ns;
}
