// SPDX-License-Identifier: GPL-2.0
#include "budget/watched_times.h"

#include <glib.h>
#include <stdbool.h>

#include "events/names.h"

/*
 * Windows change some hundred times a second at most, and what a process did is known when its end
 * has been read from the ring buffer, a few milliseconds later.
 */
#define CHANGES 256

struct change {
	uint64_t from_ns;
	unsigned int groups;
};

struct process {
	uint64_t start_ns;
	uint64_t until_ns; /* divided up to then */
	uint64_t cpu_ns;   /* of all so far */
	bool read;	   /* in this slice */
	bool called;
	bool in_window[PROBE_GROUPS];
	struct watched_time now[PROBE_GROUPS];
	struct watched_time ended[PROBE_GROUPS]; /* of slices that have ended, not yet written */
};

struct watched_times {
	GHashTable *processes; /* struct process by pid */
	struct change changes[CHANGES];
	uint64_t count;
};

struct watched_times *watched_times_new(void)
{
	struct watched_times *times = g_new0(struct watched_times, 1);

	times->processes = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	return times;
}

void watched_times_free(struct watched_times *times)
{
	if (!times)
		return;
	g_hash_table_unref(times->processes);
	g_free(times);
}

void watched_times_change(struct watched_times *times, uint64_t now_ns, unsigned int groups)
{
	times->changes[times->count++ % CHANGES] =
		(struct change){ .from_ns = now_ns, .groups = groups };
}

/*
 * The part of a time in which a group was watched. What was before all that is known was as the
 * first of it. No time at all is as its moment.
 */
static double watched_part(const struct watched_times *times, unsigned int group, uint64_t from_ns,
			   uint64_t to_ns)
{
	uint64_t oldest = times->count > CHANGES ? times->count - CHANGES : 0;
	uint64_t end_ns = to_ns, watched_ns = 0, number, begin_ns;

	/* The record of its end may come when it has been found to do nothing for a while. */
	from_ns = MIN(from_ns, to_ns);
	for (number = times->count; number > oldest; number--) {
		const struct change *change = &times->changes[(number - 1) % CHANGES];
		bool watched = change->groups >> group & 1;

		begin_ns = number - 1 == oldest ? 0 : change->from_ns;
		if (from_ns == to_ns && begin_ns <= to_ns)
			return watched;
		if (watched && begin_ns < end_ns)
			watched_ns += end_ns - MAX(begin_ns, from_ns);
		if (begin_ns <= from_ns)
			break;
		end_ns = MIN(end_ns, begin_ns);
	}
	return from_ns < to_ns ? 1.0 * watched_ns / (to_ns - from_ns) : 0.0;
}

static struct process *process_of(struct watched_times *times, pid_t pid, uint64_t start_ns)
{
	struct process *process = g_hash_table_lookup(times->processes, GINT_TO_POINTER(pid));

	if (!process) {
		process = g_new0(struct process, 1);
		g_hash_table_insert(times->processes, GINT_TO_POINTER(pid), process);
	}
	/* The number is another one's now: what both had in this slice is of one row. */
	if (process->start_ns != start_ns) {
		process->start_ns = start_ns;
		process->until_ns = start_ns;
		process->cpu_ns = 0;
	}
	return process;
}

void watched_times_read(struct watched_times *times, pid_t pid, uint64_t start_ns, uint64_t at_ns,
			uint64_t cpu_ns)
{
	struct process *process = process_of(times, pid, start_ns);
	uint64_t gained_ns = cpu_ns > process->cpu_ns ? cpu_ns - process->cpu_ns : 0;
	unsigned int group;

	process->read = true;
	for (group = 0; group < PROBE_GROUPS; group++) {
		double part = watched_part(times, group, process->until_ns, at_ns);
		struct watched_time *now = &process->now[group];

		now->cpu_ns += gained_ns;
		now->watched_ns += part * gained_ns;
		now->windows +=
			gained_ns && part > 0 && (!process->in_window[group] || !now->windows);
		process->in_window[group] = part > 0;
	}
	process->cpu_ns += gained_ns;
	process->until_ns = MAX(process->until_ns, at_ns);
}

static void end_slice(struct watched_time *now, struct watched_time *ended)
{
	ended->cpu_ns += now->cpu_ns;
	ended->watched_ns += now->watched_ns;
	ended->windows += now->windows;
	*now = (struct watched_time){};
}

void watched_times_end_slice(struct watched_times *times)
{
	GHashTableIter iter;
	unsigned int group;
	gpointer value;

	g_hash_table_iter_init(&iter, times->processes);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct process *process = value;

		if (!process->read) {
			g_hash_table_iter_remove(&iter);
			continue;
		}
		for (group = 0; group < PROBE_GROUPS; group++)
			end_slice(&process->now[group], &process->ended[group]);
		process->read = false;
	}
}

void watched_times_called(struct watched_times *times, pid_t pid)
{
	struct process *process = g_hash_table_lookup(times->processes, GINT_TO_POINTER(pid));

	if (process)
		process->called = true;
}

const struct watched_time *watched_times_of(const struct watched_times *times, pid_t pid,
					    enum probe_group group)
{
	const struct process *process = g_hash_table_lookup(times->processes, GINT_TO_POINTER(pid));

	return process ? &process->ended[group] : NULL;
}

/* One of the functions of a group stands for all of them. */
static const unsigned int fns[] = { FN_MALLOC, FN_CALLOC, FN_REALLOC };

static int write_group(pid_t pid, unsigned int fn, const struct watched_time *time,
		       struct recording *recording)
{
	if (!time->cpu_ns)
		return 0;
	return recording_watch_process(recording, fn_name(fn), pid, time->windows, time->cpu_ns,
				       time->watched_ns);
}

/* Of a group that was always watched nothing is estimated. */
static int write_process(struct process *process, pid_t pid, unsigned int groups,
			 struct recording *recording)
{
	int err = 0;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(fns) && !err; i++) {
		enum probe_group group = probe_group_of(fns[i]);
		bool missed = groups >> group & 1;

		if (missed && !process->called)
			continue;
		if (missed)
			err = write_group(pid, fns[i], &process->ended[group], recording);
		process->ended[group] = (struct watched_time){};
	}
	return err;
}

int watched_times_write(struct watched_times *times, unsigned int groups,
			struct recording *recording)
{
	GHashTableIter iter;
	gpointer key, value;
	int err = 0;

	g_hash_table_iter_init(&iter, times->processes);
	while (!err && g_hash_table_iter_next(&iter, &key, &value))
		err = write_process(value, GPOINTER_TO_INT(key), groups, recording);
	return err;
}
