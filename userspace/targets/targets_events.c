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

/* A process of a storm is looked at when it has lived for so long. */
#define BRIEF_NS 50000000ULL
/* Looks that were not taken are not saved up for longer. */
#define LOOKS_SAVED_NS 200000000ULL

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
		if (!is_another && !followed->look_at_ns)
			followed_read_counters(followed);
		if (record)
			followed_use_cpu(followed, record->cpu_ns);
		if (state.ended)
			followed_use_counted(followed, state.counted_minor_faults,
					     state.counted_major_faults);
		else if (record)
			followed_use_counted(followed, record->minor_faults, record->major_faults);
	}
	target->exited = true;
	target->ended_ns = record ? record->time_ns : now_ns();
	targets->dead++;
	if (followed->look_at_ns && (record || !followed->listed))
		followed_record_unseen(targets, followed, record ? record->comm : "");
	if (followed->look_at_ns && followed->look_at_ns != UINT64_MAX)
		targets->losses.brief++;
	followed->look_at_ns = 0;
	recording_process_end(targets->config.recording, target->pid, target->ended_ns, exit_code);
	starting_end(g_steal_pointer(&followed->start), NULL);
	followed_detach(followed);
	/*
	 * A row without the mark belongs to another process by now, made when that was forked. One that
	 * nobody holds is freed soon, and by its row the kernel side knows that it was a target.
	 */
	if (state.ended == ENDED_HELD) {
		process_row_remove(targets->config.bpf, target->pid);
		followed->rowless = true;
	}
	unwinder_exit(targets->unwinder, target->pid);
	unwinder_forget_generated(targets->unwinder, target->pid);
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
	unwinder_forget_generated(targets->unwinder, followed->target.pid);
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
	/* Nothing to be read yet, or any more. */
	if (followed->look_at_ns)
		return;
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

/* The record of its end was lost where another has its number by now. False: it is known. */
static bool is_new(struct targets *targets, pid_t child)
{
	struct followed *followed = followed_get(targets, child);
	struct proc_stat stat;

	if (!followed || followed->target.exited)
		return true;
	if (!followed->start_ticks || proc_stat_read(child, 0, &stat) ||
	    stat.start_ticks == followed->start_ticks)
		return false;
	followed_end(targets, followed, -1, NULL);
	return true;
}

/* It is a copy of its parent, also in what is known of that one's code. */
static void inherit_code(struct targets *targets, struct followed *followed, pid_t parent)
{
	pid_t child = followed->target.pid;
	/* Before the observers, of which one may wait: until then its stacks end at once. */
	uint32_t table = unwinder_fork(targets->unwinder, parent, child);

	followed->target.parent_pid = parent;
	targets_publish_table(targets, child, table);
	/* No table: its parent has ended, and that one's with it. */
	followed->target.changed = !table;
	observers_forked(targets->config.observers, AT_ONCE, parent, child);
}

/* held, or alive: the record of its end may be next, and whoever has its number is not probed. */
static void look_at(struct targets *targets, struct followed *followed, bool held)
{
	struct memtoll_target_state state;
	struct maps maps = {};
	pid_t pid = followed->target.pid;

	/* Its counters began at 0, and so did ours: nothing is subtracted. */
	followed_read_counters(followed);
	counters_read_size(pid, &followed->target.now);
	if (held || process_row_lives(targets->config.bpf, pid, &state)) {
		followed_read_maps(targets, followed, &maps);
		followed_attach_modules(targets, followed, &maps);
		maps_free(&maps);
	}
	followed_record(targets, followed);
}

void targets_forked(struct targets *targets, pid_t parent, pid_t child, uint64_t forked_ns,
		    bool held)
{
	struct followed *followed;
	struct proc_stat stat;

	if (!is_new(targets, child))
		return;
	if (!parent && !proc_stat_read(child, 0, &stat))
		parent = stat.ppid;
	if (!parent || !followed_get(targets, parent))
		return;
	followed = targets_follow_unseen(targets, child, "child");
	followed->target.start_ns = forked_ns;
	if (!held && targets->config.uprobes)
		targets->losses.late++;
	inherit_code(targets, followed, parent);
	if (followed_see(targets, followed)) {
		followed->target.parent_pid = parent;
		look_at(targets, followed, held);
	} else {
		/* What the record of its end says is all that will be known of it. */
		followed->look_at_ns = UINT64_MAX;
	}
	followed_begin_thresholds(targets, followed, true, parent);
}

void targets_forked_brief(struct targets *targets, pid_t parent, pid_t child, uint64_t forked_ns)
{
	struct followed *followed;

	if (!is_new(targets, child) || !followed_get(targets, parent))
		return;
	followed = targets_follow_unseen(targets, child, "child");
	followed->target.start_ns = forked_ns;
	inherit_code(targets, followed, parent);
	followed->look_at_ns = now_ns() + BRIEF_NS;
	followed->target.brief = true;
	followed_begin_thresholds(targets, followed, true, parent);
	if (targets->ended_ns) {
		/* It is counted all the same, and nobody will look at it any more. */
		followed->look_at_ns = UINT64_MAX;
		targets->losses.brief++;
		followed_list_brief(targets, followed);
	} else {
		g_queue_push_tail(&targets->briefs, GINT_TO_POINTER(child));
	}
}

/* It lives, and is a process like another from now on. */
static void look_at_brief(struct targets *targets, struct followed *followed)
{
	if (targets->config.uprobes)
		targets->losses.late++;
	followed->look_at_ns = 0;
	followed->target.brief = false;
	if (!followed_see(targets, followed))
		followed->look_at_ns = UINT64_MAX;
	else
		look_at(targets, followed, false);
	followed->target.changed = true;
	if (targets->config.looked_at)
		targets->config.looked_at(targets->config.looked_context, followed->target.pid);
}

/* Brief ones that have lived for so long, as far as the overhead limit pays for looking at them. */
static void look_at_briefs(struct targets *targets)
{
	uint64_t now = now_ns();
	struct followed *followed;
	gpointer pid;

	while ((pid = g_queue_peek_head(&targets->briefs))) {
		followed = followed_get(targets, GPOINTER_TO_INT(pid));
		/* Others have ended, or have been looked at. */
		if (followed && !followed->target.exited && followed->look_at_ns &&
		    followed->look_at_ns != UINT64_MAX) {
			if (now < followed->look_at_ns || now < targets->look_due_ns)
				break;
			targets->look_due_ns = MAX(targets->look_due_ns, now - LOOKS_SAVED_NS) +
					       targets->config.start_every_ns;
			look_at_brief(targets, followed);
		}
		g_queue_pop_head(&targets->briefs);
	}
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

void targets_freed(struct targets *targets, pid_t pid, const struct memtoll_process *record)
{
	struct followed *followed = followed_get(targets, pid);
	struct memtoll_target_state state;

	if (!followed || !followed->target.exited)
		return;
	if (!is_late(targets, record))
		followed_use_cpu(followed, record->cpu_ns);
	/* One that lives is another's by now, whose fork is the next that is read. */
	if (!process_row_lives(targets->config.bpf, pid, &state))
		process_row_remove(targets->config.bpf, pid);
	followed->rowless = true;
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

	look_at_briefs(targets);
	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct followed *followed = value;

		look_if_due(followed);
		if (!followed->target.changed || followed->target.exited || followed->look_at_ns ||
		    is_resting(targets, followed))
			continue;
		followed->target.changed = false;
		followed->postponed = false;
		look_again(targets, followed);
	}
}
