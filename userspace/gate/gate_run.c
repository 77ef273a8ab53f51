// SPDX-License-Identifier: GPL-2.0
#include "gate/gate_run.h"

#include <unistd.h>

#include "base/message.h"
#include "gate/verdict.h"

char *gate_recording_path(const char *prefix, enum compare_side side, unsigned int run)
{
	return g_strdup_printf("%s-%s-%u.memtoll", prefix, side == WITH ? "now" : "before", run);
}

/* A run of a side, and what it says. */
static int run_side(const struct gate_plan *plan, const char *prefix, enum compare_side side,
		    unsigned int run, GPtrArray *runs, struct comparison *times, char **losses)
{
	g_autofree char *path = gate_recording_path(prefix, side, run);
	int status = compare_run_traced(&plan->side[side], WITHOUT, path);
	struct counts *counts = NULL;
	double divisor;

	if (compare_interrupted()) {
		message("gate: interrupted");
		status = STATUS_FAILED;
	}
	if (!status) {
		counts = counts_read(path, plan->budget);
		if (counts)
			g_ptr_array_add(runs, counts);
		else
			status = STATUS_FAILED;
	}
	if (!status && times &&
	    compare_read(path, &plan->side[side], side, times, &divisor, losses))
		status = STATUS_FAILED;
	if (!plan->prefix)
		unlink(path);
	return status;
}

static bool is_all_within(const struct gate_plan *plan, const GPtrArray *before,
			  const GPtrArray *now)
{
	struct verdict *verdict = verdict_new(plan->budget, before, now, NULL);
	bool within = !verdict->over && !verdict->unsure;

	verdict_free(verdict);
	return within;
}

static int run_all(const struct gate_plan *plan, const char *prefix, GPtrArray *before,
		   GPtrArray *now, struct comparison *times, char **losses)
{
	const bool both = plan->side[WITHOUT].command != NULL;
	int status = STATUS_DONE, i;
	unsigned int run;

	for (run = 1; !status && run <= plan->runs; run++) {
		status_line("gate: run %u of %s%u", run, plan->all_runs ? "" : "at most ",
			    plan->runs);
		for (i = 0; !status && i < SIDES; i++) {
			enum compare_side side = (i + run + 1) % SIDES;

			if (side == WITH || both)
				status = run_side(plan, prefix, side, run,
						  side == WITH ? now : before, times, losses);
		}
		if (!status && !plan->all_runs && is_all_within(plan, before, now))
			break;
	}
	status_line(NULL);
	return status;
}

int gate_run(const struct gate_plan *plan, GPtrArray *before, GPtrArray *now,
	     struct comparison *times, char **losses)
{
	g_autofree char *directory = NULL, *prefix = NULL;
	const double divisor[SIDES] = { 1, 1 };
	g_autoptr(GError) error = NULL;
	int status;

	compare_catch_signals();
	if (!plan->prefix) {
		directory = g_dir_make_tmp("memtoll-gate-XXXXXX", &error);
		if (!directory) {
			message("gate: no temporary directory: %s", error->message);
			return STATUS_FAILED;
		}
		prefix = g_build_filename(directory, "run", NULL);
	}
	status = run_all(plan, plan->prefix ? plan->prefix : prefix, before, now, times, losses);
	if (directory)
		compare_remove_temporary(directory);
	if (!status && times)
		comparison_finish(times, divisor);
	return status;
}
