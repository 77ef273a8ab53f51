// SPDX-License-Identifier: GPL-2.0
/*
 * What happens to targets, as ptrace or the ring buffer reports it: exec, fork, exit, and what they
 * map; the rest of the targets is in targets.c.
 */
#include "targets/targets_internal.h"

#include <glib.h>

#include "base/clock.h"
#include "bpf/wire/records.h"
#include "bpf/wire/targets.h"
#include "host/proc.h"
#include "probes/process_rows.h"
#include "targets/observers.h"
#include "unwind/unwind_load.h"

/* Polls of what a program has mapped after its start, at intervals that double. */
#define LOOK_FIRST_NS 5000000ULL
#define LOOK_LAST_NS 2000000000ULL

/* A refresh that takes longer is followed by a rest of so many times its length, ... */
#define REFRESH_NS 200000000ULL
#define REST_TIMES 4
/* ... and at most of this. */
#define REST_MAX_NS 5000000000ULL

/* After counting has ended, as a command that is terminated then: later counters are not used. */
static bool is_late(const struct targets *targets, const struct memtoll_process *record)
{
	return targets->ended_ns && (record ? record->time_ns : now_ns()) > targets->ended_ns;
}

void followed_end(struct targets *targets, struct followed *followed, int exit_code,
		  const struct memtoll_process *record)
{
	struct target *target = &followed->target;
	struct memtoll_target_state state;
	bool is_another = process_row_lives(targets->config.bpf, target->pid, &state) && record;

	if (!is_late(targets, record)) {
		if (!is_another)
			followed_read_counters(followed);
		if (state.ended)
			followed_use_counted(followed, state.counted_minor_faults,
					     state.counted_major_faults);
		else if (record)
			followed_use_counted(followed, record->minor_faults, record->major_faults);
	}
	target->exited = true;
	targets->dead++;
	recording_process_end(targets->config.recording, target->pid,
			      record ? record->time_ns : now_ns(), exit_code);
	starting_end(g_steal_pointer(&followed->start), NULL);
	followed_detach(followed);
	/* A row without the mark belongs to another process by now, made when that was forked. */
	if (state.ended)
		process_row_remove(targets->config.bpf, target->pid);
	unwinder_exit(targets->unwinder, target->pid);
	observers_exited(targets->config.observers, AT_ONCE, target->pid);
}

/* What was known of the old image is obsolete. */
static void begin_image(struct targets *targets, struct followed *followed, pid_t caller)
{
	observers_executed(targets->config.observers, AT_ONCE, followed->target.pid);
	/* The kernel ties probes to the process's first thread, and that has ended. */
	if (caller != followed->target.pid)
		followed_detach(followed);
	starting_end(g_steal_pointer(&followed->start), NULL);
	followed->malloc_par = 0;
	followed->pinned = false;
	followed->images++;
	followed->rest_until_ns = 0;
}

void targets_exec(struct targets *targets, pid_t pid, pid_t caller)
{
	struct followed *followed = followed_get(targets, pid);

	if (!followed)
		return;
	begin_image(targets, followed, caller);
	followed->starting = false;
	followed_record(targets, followed);
	followed_begin_thresholds(targets, followed, true, 0);
	followed->target.changed = true;
	if (targets->config.maps_reported)
		return;
	followed->look_step_ns = LOOK_FIRST_NS;
	followed->look_ns = now_ns() + LOOK_FIRST_NS;
}

bool targets_exec_held(struct targets *targets, pid_t pid, pid_t caller, uint64_t loader,
		       bool may_signal)
{
	struct followed *followed = followed_get(targets, pid);
	const GPtrArray *modules = NULL;
	struct maps maps = {};
	guint i;

	if (!followed)
		return false;
	begin_image(targets, followed, caller);
	/* The first exec of a command: everything before was the tracer's own image. */
	if (!followed->target.now.cpu_ns)
		followed_start_counting(followed);
	followed->starting = true;
	followed_read_maps(targets, followed, &maps);
	targets_publish_code(targets, followed, &maps);
	/* The program itself may hold the allocator (static linking). */
	followed_attach_modules(targets, followed, &maps);
	if (loader && may_signal && !targets->detached)
		followed->start = starting_new(targets->starts, pid, &maps, loader);
	if (followed->start)
		modules = starting_modules(followed->start);
	/* The kernel puts probes into what a process maps, if they are there before. */
	for (i = 0; modules && i < modules->len; i++)
		followed_attach_module(targets, followed, g_ptr_array_index(modules, i));
	maps_free(&maps);
	return modules;
}

void targets_mapped(struct targets *targets, pid_t pid)
{
	struct followed *followed = followed_get(targets, pid);
	struct maps maps = {};

	if (!followed)
		return;
	followed_read_maps(targets, followed, &maps);
	followed_attach_modules(targets, followed, &maps);
	maps_free(&maps);
}

bool targets_has_started(struct targets *targets, pid_t pid)
{
	struct followed *followed = followed_get(targets, pid);

	return !followed || !followed->start || starting_is_over(followed->start);
}

static void remember_start(struct followed *followed)
{
	GPtrArray *modules;
	guint i;

	if (!followed->start)
		return;
	modules = g_ptr_array_new();
	for (i = 0; i < followed->attached->len; i++) {
		const struct attached *attached = g_ptr_array_index(followed->attached, i);

		/* Not what the images before it had, the parent's among them. */
		if (attached->image == followed->images)
			g_ptr_array_add(modules, (gpointer)attached->module);
	}
	starting_end(g_steal_pointer(&followed->start), modules);
}

void targets_ready(struct targets *targets, pid_t pid)
{
	struct followed *followed = followed_get(targets, pid);
	struct maps maps = {};

	if (!followed)
		return;
	followed->starting = false;
	followed->target.changed = false;
	followed_read_maps(targets, followed, &maps);
	followed_attach_modules(targets, followed, &maps);
	remember_start(followed);
	observers_mapped(targets->config.observers, pid, &maps, true);
	followed_record(targets, followed);
	followed_begin_thresholds(targets, followed, true, 0);
	targets_publish_code(targets, followed, &maps);
	maps_free(&maps);
}

void targets_forked(struct targets *targets, pid_t parent, pid_t child, bool held)
{
	struct followed *followed = followed_get(targets, child);
	struct memtoll_target_state state;
	struct proc_stat stat;
	struct maps maps = {};
	uint32_t table;

	if (followed && !followed->target.exited) {
		if (proc_stat_read(child, 0, &stat) || stat.start_ticks == followed->start_ticks)
			return;
		/* The record of its end was lost, and its number is another's by now. */
		followed_end(targets, followed, -1, NULL);
	}
	if (!parent && !proc_stat_read(child, 0, &stat))
		parent = stat.ppid;
	if (!parent || !followed_get(targets, parent))
		return;
	followed = targets_follow(targets, child, "child");
	followed->target.parent_pid = parent;
	/* Its hits have counted since it was forked. */
	followed->target.cpu_base_ns = 0;
	/* Before the observers, of which one may wait: until then its stacks end at once. */
	table = unwinder_fork(targets->unwinder, parent, child);
	targets_publish_table(targets, child, table);
	/* No table: its parent has ended, and that one's with it. */
	followed->target.changed = !table;
	observers_forked(targets->config.observers, AT_ONCE, parent, child);
	/* Its counters began at 0, and so did ours: nothing is subtracted. */
	followed_read_counters(followed);
	counters_read_size(child, &followed->target.now);
	/* The record of its end may be next: whoever has its number by then is not to be probed. */
	if (held || process_row_lives(targets->config.bpf, child, &state)) {
		followed_read_maps(targets, followed, &maps);
		followed_attach_modules(targets, followed, &maps);
		maps_free(&maps);
	}
	if (!held && targets->config.uprobes)
		targets->losses.late++;
	followed_record(targets, followed);
	followed_begin_thresholds(targets, followed, true, parent);
}

void targets_dying(struct targets *targets, pid_t tid)
{
	struct followed *followed;
	struct proc_status status;

	if (proc_status_read(tid, &status) || status.rss_bytes < 0)
		return;
	followed = followed_get(targets, status.tgid);
	if (!followed || followed->target.exited)
		return;
	followed->target.now.rss_bytes = status.rss_bytes;
	followed->target.now.swap_bytes = status.swap_bytes;
	followed_look_at_thresholds(followed);
	/* Once for each process: all its threads are in one memory cgroup. */
	if (tid == status.tgid && followed->listed)
		followed_record_cgroup(targets, followed);
}

void targets_exiting(struct targets *targets, pid_t pid, int exit_code,
		     const struct memtoll_process *record)
{
	struct followed *followed = followed_get(targets, pid);

	if (followed && !followed->target.exited)
		followed_end(targets, followed, exit_code, record);
}

void targets_changed(struct targets *targets, pid_t pid)
{
	struct followed *followed = followed_get(targets, pid);

	if (followed && !followed->starting)
		followed->target.changed = true;
}

void targets_suspect_code(struct targets *targets)
{
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value))
		((struct followed *)value)->target.changed = true;
}

/*
 * A process that maps code again and again, or in very many pieces, must not take all of the
 * tracer's time: after a refresh that took long there is none for several times as long.
 */
static bool is_resting(struct targets *targets, struct followed *followed)
{
	if (now_ns() >= followed->rest_until_ns)
		return false;
	targets->losses.maps_postponed += !followed->postponed;
	followed->postponed = true;
	return true;
}

static void look_again(struct targets *targets, struct followed *followed)
{
	uint64_t begin_ns = now_ns(), took_ns;
	struct maps maps = {};

	followed_read_maps(targets, followed, &maps);
	/* First what stacks need while the process runs on. */
	targets_publish_code(targets, followed, &maps);
	followed_attach_modules(targets, followed, &maps);
	observers_mapped(targets->config.observers, followed->target.pid, &maps, false);
	maps_free(&maps);
	took_ns = now_ns() - begin_ns;
	if (took_ns > REFRESH_NS)
		followed->rest_until_ns =
			begin_ns + took_ns + MIN(REST_TIMES * took_ns, REST_MAX_NS);
}

/* A new program maps its libraries as it starts; without records of that they are polled for. */
static void look_if_due(struct followed *followed)
{
	uint64_t now;

	if (!followed->look_ns)
		return;
	now = now_ns();
	if (now < followed->look_ns)
		return;
	followed->target.changed = true;
	followed->look_step_ns *= 2;
	followed->look_ns = now + followed->look_step_ns;
	if (followed->look_step_ns > LOOK_LAST_NS)
		followed->look_ns = 0;
}

void targets_refresh(struct targets *targets)
{
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct followed *followed = value;

		look_if_due(followed);
		if (!followed->target.changed || followed->target.exited ||
		    is_resting(targets, followed))
			continue;
		followed->target.changed = false;
		followed->postponed = false;
		look_again(targets, followed);
	}
}
