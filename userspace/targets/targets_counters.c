// SPDX-License-Identifier: GPL-2.0
/*
 * targets_counters.c: what the kernel itself counts for the targets; the rest of the targets is in
 * targets.c.
 */
#include "targets/targets_internal.h"

#include <glib.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "bpf/wire/targets.h"
#include "host/proc.h"
#include "probes/process_rows.h"

/* Two files a process are read for sizes: 64 processes take 1 to 2 ms. */
#define SIZES_PROCESSES 64

/* Whether the number is still its own. */
bool followed_read_stat(const struct followed *followed, struct proc_stat *stat)
{
	return !proc_stat_read(followed->target.pid, 0, stat) &&
	       stat->start_ticks == followed->start_ticks;
}

/* Of the whole process, its dead threads included (clock_getcpuclockid(3)). */
static bool read_cpu_clock(pid_t pid, uint64_t *ns)
{
	struct timespec cpu;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &cpu))
		return false;
	*ns = cpu.tv_sec * 1000000000ULL + cpu.tv_nsec;
	return true;
}

static bool take_counters(struct followed *followed, const struct proc_stat *stat)
{
	struct counters *counters = &followed->target.now;

	if (!read_cpu_clock(followed->target.pid, &counters->cpu_ns))
		return false;
	counters->minor_faults = stat->minor_faults;
	counters->major_faults = stat->major_faults;
	return true;
}

bool followed_read_counters(struct followed *followed)
{
	struct proc_stat stat;

	return followed_read_stat(followed, &stat) && take_counters(followed, &stat);
}

/* Of a process without memory any more the last size stays. */
void counters_read_size(pid_t tid, struct counters *counters)
{
	struct proc_status status;

	if (proc_status_read(tid, &status) || status.rss_bytes < 0)
		return;
	counters->rss_bytes = status.rss_bytes;
	counters->swap_bytes = status.swap_bytes;
}

/* Its size and its group. */
static void look_at(struct targets *targets, struct followed *followed)
{
	counters_read_size(followed->target.pid, &followed->target.now);
	if (followed->listed)
		followed_record_cgroup(targets, followed);
}

uint64_t process_cpu_ns(pid_t pid)
{
	uint64_t ns;

	return read_cpu_clock(pid, &ns) ? ns : 0;
}

void followed_use_counted(struct followed *followed, uint64_t minor, uint64_t major)
{
	struct target *target = &followed->target;

	target->now.minor_faults = target->base.minor_faults + minor;
	target->now.major_faults = target->base.major_faults + major;
}

void followed_use_cpu(struct followed *followed, uint64_t cpu_ns)
{
	struct target *target = &followed->target;

	target->now.cpu_ns = MAX(target->now.cpu_ns, cpu_ns);
	if (target->now.cpu_ns > target->cpu_base_ns)
		target->cpu_seen_ns =
			MAX(target->cpu_seen_ns, target->now.cpu_ns - target->cpu_base_ns);
}

void followed_start_counting(struct followed *followed)
{
	struct counters unwritten = followed->target.recorded;

	if (followed_read_counters(followed)) {
		followed->target.base = followed->target.now;
		followed->target.recorded = followed->target.now;
		followed->target.recorded.cpu_ns += unwritten.cpu_ns;
		followed->target.recorded.minor_faults += unwritten.minor_faults;
		followed->target.recorded.major_faults += unwritten.major_faults;
	}
	counters_read_size(followed->target.pid, &followed->target.now);
}

uint64_t targets_cpu_ns(struct targets *targets)
{
	uint64_t total = targets->forgotten_cpu_ns;
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct target *target = &((struct followed *)value)->target;
		uint64_t cpu_ns = target->exited ? 0 : process_cpu_ns(target->pid);

		if (cpu_ns > target->cpu_base_ns)
			target->cpu_seen_ns =
				MAX(target->cpu_seen_ns, cpu_ns - target->cpu_base_ns);
		total += target->cpu_seen_ns;
	}
	return total;
}

/* What is counted of a brief one refers to its row, which others get when they are looked at. */
void followed_list_brief(struct targets *targets, struct followed *followed)
{
	struct proc_stat stat;

	if (proc_stat_read(followed->target.pid, 0, &stat))
		return;
	followed->start_ticks = stat.start_ticks;
	followed_record_unseen(targets, followed, stat.comm);
}

void targets_read_counters(struct targets *targets)
{
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct followed *followed = value;
		struct memtoll_target_state state;
		struct proc_stat stat;
		bool there;

		if (followed->target.exited)
			continue;
		if (followed->look_at_ns && !followed->listed)
			followed_list_brief(targets, followed);
		there = followed_read_stat(followed, &stat);
		if (there && take_counters(followed, &stat))
			look_at(targets, followed);
		/*
		 * It may have ended a moment ago, and the record of that be next. A row that does not
		 * know of it was made when the last of several threads had passed the tracepoint.
		 */
		if (there && !proc_stat_has_ended(&stat) &&
		    process_row_lives(targets->config.bpf, followed->target.pid, &state))
			followed->missing = false;
		else if (!followed->missing)
			followed->missing = true;
		else
			followed_end(targets, followed, -1, NULL);
	}
}

/* Those that nobody will look at any more. */
static void count_briefs(struct targets *targets)
{
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct followed *followed = value;

		if (followed->target.exited || !followed->look_at_ns ||
		    followed->look_at_ns == UINT64_MAX)
			continue;
		targets->losses.brief++;
		followed->look_at_ns = UINT64_MAX;
	}
}

void targets_end_counting(struct targets *targets, bool counted)
{
	struct memtoll_target_state state;
	GHashTableIter iter;
	gpointer value;

	if (targets->ended_ns)
		return;
	targets_read_counters(targets);
	targets->ended_ns = now_ns();
	count_briefs(targets);
	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct followed *followed = value;

		if (!followed->target.exited)
			followed_look_at_thresholds(followed);
		if (counted && !followed->target.exited &&
		    process_row_lives(targets->config.bpf, followed->target.pid, &state) &&
		    !state.exec_pending)
			followed_use_counted(followed, state.counted_minor_faults,
					     state.counted_major_faults);
	}
}

void targets_read_sizes(struct targets *targets)
{
	GHashTableIter iter;
	unsigned int living = 0;
	gpointer value;

	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value))
		living += !((struct followed *)value)->target.exited;
	if (living > SIZES_PROCESSES)
		return;
	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value))
		if (!((struct followed *)value)->target.exited)
			look_at(targets, value);
}
