// SPDX-License-Identifier: GPL-2.0
#include "targets/targets_internal.h"

#include <errno.h>
#include <glib.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "bpf/wire/events.h"
#include "events/sums.h"
#include "host/server_cache.h"
#include "host/proc.h"
#include "memtoll.skel.h"
#include "probes/process_rows.h"
#include "recording/allocator_record.h"
#include "unwind/unwind_load.h"

/* Two files a process are read for sizes: 64 processes take 1 to 2 ms. */
#define SIZES_PROCESSES 64

/* Rows are made beforehand for so many: a few for each, of the 32,768 that there can be. */
#define PREPARED_PROCESSES 64

static void followed_free(gpointer data)
{
	struct followed *followed = data;

	starting_end(followed->start, NULL);
	g_ptr_array_free(followed->attached, TRUE);
	g_free(followed->tunables);
	g_free(followed);
}

struct targets *targets_new(const struct targets_config *config)
{
	struct targets *targets = g_new0(struct targets, 1);

	targets->config = *config;
	targets->watched = (1U << PROBE_GROUPS) - 1;
	targets->unwinder = unwinder_new(config->bpf);
	targets->starts = starts_new(config->bpf, config->mechanism);
	targets->followed = g_hash_table_new_full(NULL, NULL, NULL, followed_free);
	targets->modules = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	targets->scans = g_ptr_array_new_with_free_func(scan_free);
	return targets;
}

void targets_free(struct targets *targets)
{
	if (!targets)
		return;
	g_hash_table_destroy(targets->followed);
	unwinder_free(targets->unwinder);
	starts_free(targets->starts);
	uprobe_detach_finish();
	g_hash_table_destroy(targets->modules);
	g_ptr_array_free(targets->scans, TRUE);
	g_free(targets);
}

struct followed *followed_get(const struct targets *targets, pid_t pid)
{
	return g_hash_table_lookup(targets->followed, GINT_TO_POINTER(pid));
}

struct target *targets_find(struct targets *targets, pid_t pid)
{
	struct followed *followed = followed_get(targets, pid);

	return followed ? &followed->target : NULL;
}

/* Whether the number is still its own. */
bool followed_read_stat(const struct followed *followed, struct proc_stat *stat)
{
	return !proc_stat_read(followed->target.pid, 0, stat) &&
	       stat->start_ticks == followed->start_ticks;
}

/* The CPU clock of the whole process, its dead threads included (clock_getcpuclockid(3)). */
bool followed_read_counters(struct followed *followed)
{
	struct counters *counters = &followed->target.now;
	struct proc_stat stat;
	struct timespec cpu;
	clockid_t clock;

	if (!followed_read_stat(followed, &stat) ||
	    clock_getcpuclockid(followed->target.pid, &clock) || clock_gettime(clock, &cpu))
		return false;
	counters->cpu_ns = cpu.tv_sec * 1000000000ULL + cpu.tv_nsec;
	counters->minor_faults = stat.minor_faults;
	counters->major_faults = stat.major_faults;
	return true;
}

/* The size stays as it was where there is no memory any more: that was the last. */
void counters_read_size(pid_t tid, struct counters *counters)
{
	struct proc_status status;

	if (proc_status_read(tid, &status) || status.rss_bytes < 0)
		return;
	counters->rss_bytes = status.rss_bytes;
	counters->swap_bytes = status.swap_bytes;
}

/* What it maps now; nothing, where it is gone. What is left out of it counts once. */
void followed_read_maps(struct targets *targets, struct followed *followed, struct maps *maps)
{
	if (maps_read(followed->target.pid, maps)) {
		maps_free(maps);
		return;
	}
	if (maps->left_out > followed->left_out) {
		targets->losses.mappings_left_out += maps->left_out - followed->left_out;
		followed->left_out = maps->left_out;
	}
}

/* A process may be moved to another group at any time. */
void followed_note_cgroup(struct targets *targets, struct followed *followed)
{
	const char *path = memory_cgroups_of(targets->config.memory_cgroups, followed->target.pid,
					     followed->memory_cgroup);

	/* Paths are kept once each: the same one is the same pointer. */
	if (!path || path == followed->memory_cgroup)
		return;
	followed->memory_cgroup = path;
	recording_process_cgroup(targets->config.recording, followed->target.pid, path);
}

/* Its size and its group. */
static void look_at(struct targets *targets, struct followed *followed)
{
	counters_read_size(followed->target.pid, &followed->target.now);
	if (followed->listed)
		followed_note_cgroup(targets, followed);
}

static void record_own_cache(struct targets *targets, pid_t pid)
{
	struct own_cache cache;

	if (!own_cache_find(pid, &cache))
		return;
	recording_own_cache(targets->config.recording, pid, cache.program, cache.setting,
			    cache.bytes, cache.source);
	own_cache_clear(&cache);
}

void followed_record(struct targets *targets, struct followed *followed)
{
	pid_t pid = followed->target.pid;
	g_autofree char *command = proc_cmdline(pid);
	g_autofree char *executable = proc_exe(pid);
	struct proc_stat stat = {};

	proc_stat_read(pid, 0, &stat);
	recording_process(targets->config.recording, &(struct process_fact){
		.pid = pid,
		.parent_pid = followed->target.parent_pid,
		.comm = stat.comm,
		.command = command ? command : "",
		.executable = executable ? executable : "",
		.start_ns = followed->target.start_ns,
		.role = followed->target.role,
	});
	followed->listed = true;
	followed_note_cgroup(targets, followed);
	record_own_cache(targets, pid);
	g_free(followed->tunables);
	followed->tunables = tunables_read(pid);
}

/* Of all its threads, the dead ones too, up to now; 0 when it is gone. */
static uint64_t cpu_clock_ns(pid_t pid)
{
	struct timespec cpu;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &cpu))
		return 0;
	return cpu.tv_sec * 1000000000ULL + cpu.tv_nsec;
}

/* It is followed no more, and counts and times of all go on to include it. */
static void count_forgotten(struct targets *targets, const struct followed *followed)
{
	targets->dead -= followed->target.exited;
	targets->forgotten++;
	targets->forgotten_without += !followed_has_allocator(followed);
	targets->forgotten_cpu_ns += followed->target.cpu_seen_ns;
}

/* What is not written yet of who had the number before is written with what this one does. */
static void inherit(struct targets *targets, const struct followed *before, struct target *target)
{
	count_forgotten(targets, before);
	target->recorded.cpu_ns -= before->target.now.cpu_ns - before->target.recorded.cpu_ns;
	target->recorded.minor_faults -=
		before->target.now.minor_faults - before->target.recorded.minor_faults;
	target->recorded.major_faults -=
		before->target.now.major_faults - before->target.recorded.major_faults;
}

struct followed *targets_follow(struct targets *targets, pid_t pid, const char *role)
{
	struct followed *before = followed_get(targets, pid);
	struct followed *followed = g_new0(struct followed, 1);
	struct proc_stat stat;

	followed->target.pid = pid;
	followed->target.role = role;
	followed->target.start_ns = now_ns();
	followed->target.cpu_base_ns = cpu_clock_ns(pid);
	followed->target.now.rss_bytes = followed->target.now.swap_bytes = -1;
	followed->target.recorded = followed->target.now;
	if (before)
		inherit(targets, before, &followed->target);
	if (!proc_stat_read(pid, 0, &stat)) {
		followed->target.parent_pid = stat.ppid;
		followed->start_ticks = stat.start_ticks;
	}
	followed->images = 1;
	followed->attached = g_ptr_array_new_with_free_func(attached_free);
	g_hash_table_replace(targets->followed, GINT_TO_POINTER(pid), followed);
	if (g_hash_table_size(targets->followed) <= PREPARED_PROCESSES)
		sums_prepare_calls(targets->config.bpf->maps.calls, pid);
	return followed;
}

/* maps: NULL before a command's exec. */
static int publish_process(struct targets *targets, pid_t pid, const struct maps *maps)
{
	/*
	 * Counting begins here: stacks want their table at once. A command's comes with its exec.
	 */
	struct memtoll_target state = {
		.exec_pending = !maps,
		.unwind_table = maps ? unwinder_show(targets->unwinder, pid, maps) : 0,
	};

	return process_row_put(targets->config.bpf, pid, &state);
}

/* Faults that the living threads have had: the rest of the process's belong to dead ones. */
static void read_dead_faults(struct followed *followed)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/task", followed->target.pid);
	GDir *tasks = g_dir_open(path, 0, NULL);
	uint64_t minor = 0, major = 0;
	struct proc_stat stat;
	const char *name;

	if (!tasks)
		return;
	while ((name = g_dir_read_name(tasks))) {
		if (!proc_stat_read(followed->target.pid, atoi(name), &stat)) {
			minor += stat.minor_faults;
			major += stat.major_faults;
		}
	}
	g_dir_close(tasks);
	if (followed->target.now.minor_faults > minor)
		followed->target.dead_minor_faults = followed->target.now.minor_faults - minor;
	if (followed->target.now.major_faults > major)
		followed->target.dead_major_faults = followed->target.now.major_faults - major;
}

void followed_start_counting(struct followed *followed)
{
	struct counters unwritten = followed->target.recorded;

	if (followed_read_counters(followed)) {
		followed->target.recorded = followed->target.now;
		followed->target.recorded.cpu_ns += unwritten.cpu_ns;
		followed->target.recorded.minor_faults += unwritten.minor_faults;
		followed->target.recorded.major_faults += unwritten.major_faults;
	}
	counters_read_size(followed->target.pid, &followed->target.now);
	read_dead_faults(followed);
}

int targets_add(struct targets *targets, pid_t pid)
{
	struct followed *followed = targets_follow(targets, pid, "target");
	struct proc_stat stat;
	struct maps maps = {};
	int err;

	/*
	 * What takes long before the probes: until the process is published they cost and count
	 * nothing.
	 */
	followed_read_maps(targets, followed, &maps);
	symbolizer_show_maps(targets->config.symbolizer, pid, &maps, true);
	unwinder_show(targets->unwinder, pid, &maps);
	followed_record(targets, followed);
	followed_attach_modules(targets, followed, &maps);
	followed_begin_thresholds(targets, followed, false, 0);
	followed_start_counting(followed);
	/* It has run on meanwhile. */
	maps_free(&maps);
	followed_read_maps(targets, followed, &maps);
	followed->target.start_ns = now_ns();
	err = publish_process(targets, pid, &maps);
	/* Hits count from here, and so does the time they are compared with. */
	followed->target.cpu_base_ns = cpu_clock_ns(pid);
	targets_publish_code(targets, followed, &maps);
	maps_free(&maps);
	/* Ended before its exit could be seen: else it would be waited for in vain. */
	if (!err && (!followed_read_stat(followed, &stat) || stat.state == 'Z' ||
		     stat.state == 'X')) {
		process_row_remove(targets->config.bpf, pid);
		targets_exiting(targets, pid, -1, NULL);
		err = -ESRCH;
	}
	return err;
}

int targets_expect_exec(struct targets *targets, pid_t pid)
{
	targets_follow(targets, pid, "target")->starting = true;
	return publish_process(targets, pid, NULL);
}

bool targets_all_exited(const struct targets *targets)
{
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value))
		if (!((struct followed *)value)->target.exited)
			return false;
	return true;
}

unsigned int targets_dead(const struct targets *targets)
{
	return targets->dead;
}

unsigned int targets_count(const struct targets *targets)
{
	return g_hash_table_size(targets->followed) + targets->forgotten;
}

void targets_forget_dead(struct targets *targets, void (*forgotten)(void *context, pid_t pid),
			 void *context)
{
	struct proc_stat stat;
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct followed *followed = value;

		/* Once more than needed: its last events may have been waiting. */
		if (!followed->target.exited || ++followed->target.slices_dead <= 2)
			continue;
		/* The mark may have been overwritten by what we had to say of it at that moment. */
		if (proc_stat_read(followed->target.pid, 0, &stat))
			process_row_remove(targets->config.bpf, followed->target.pid);
		count_forgotten(targets, followed);
		forgotten(context, followed->target.pid);
		g_hash_table_iter_remove(&iter);
	}
}

uint64_t targets_cpu_ns(struct targets *targets)
{
	uint64_t total = targets->forgotten_cpu_ns;
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct target *target = &((struct followed *)value)->target;
		uint64_t cpu_ns = target->exited ? 0 : cpu_clock_ns(target->pid);

		if (cpu_ns > target->cpu_base_ns)
			target->cpu_seen_ns =
				MAX(target->cpu_seen_ns, cpu_ns - target->cpu_base_ns);
		total += target->cpu_seen_ns;
	}
	return total;
}

void targets_read_counters(struct targets *targets)
{
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct followed *followed = value;
		struct memtoll_target state;

		if (followed->target.exited)
			continue;
		if (followed_read_counters(followed))
			look_at(targets, followed);
		/* It may have ended a moment ago, and be told of next. */
		if (process_row_lives(targets->config.bpf, followed->target.pid, &state))
			followed->missing = false;
		else if (!followed->missing)
			followed->missing = true;
		else
			followed_end(targets, followed, -1, NULL);
	}
}

void targets_end_counting(struct targets *targets)
{
	if (targets->ended_ns)
		return;
	targets_read_counters(targets);
	targets->ended_ns = now_ns();
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

void targets_each(struct targets *targets, void (*each)(void *context, struct target *target),
		  void *context)
{
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value))
		each(context, &((struct followed *)value)->target);
}

struct targets_losses targets_take_losses(struct targets *targets)
{
	struct targets_losses losses = targets->losses;

	losses.unwind_left_out = unwinder_left_out(targets->unwinder);
	targets->losses = (struct targets_losses){};
	return losses;
}
