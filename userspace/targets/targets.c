// SPDX-License-Identifier: GPL-2.0
#include "targets/targets_internal.h"

#include <glib.h>

#include "base/clock.h"
#include "host/proc.h"
#include "host/server_cache.h"
#include "memtoll.skel.h"
#include "probes/process_rows.h"
#include "recording/allocator_record.h"
#include "targets/observers.h"
#include "unwind/unwind_load.h"

#define NUMBERS_WORD 64

/* Rows are made in advance for so many processes: a few for each, of at most 32,768. */
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
	targets->containers = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
	targets->scans = g_ptr_array_new_with_free_func(scan_free);
	targets->slow_places = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	targets->stay = g_hash_table_new(NULL, NULL);
	/* Half a MiB, of which a page is there for each 32,768 numbers that come up. */
	targets->numbers = g_new0(uint64_t, PROC_PID_MAX / NUMBERS_WORD);
	return targets;
}

void targets_free(struct targets *targets)
{
	if (!targets)
		return;
	g_hash_table_destroy(targets->followed);
	unwinder_free(targets->unwinder);
	starts_free(targets->starts);
	g_queue_clear(&targets->briefs);
	uprobe_detach_finish();
	g_hash_table_destroy(targets->modules);
	g_hash_table_destroy(targets->containers);
	g_ptr_array_free(targets->scans, TRUE);
	g_hash_table_destroy(targets->slow_places);
	g_hash_table_destroy(targets->stay);
	g_free(targets->numbers);
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

bool targets_is_new(struct targets *targets, pid_t pid)
{
	const struct followed *followed = followed_get(targets, pid);
	struct proc_stat stat;

	if (!followed)
		return true;
	if (!followed->target.exited || proc_stat_read(pid, 0, &stat) || proc_stat_has_ended(&stat))
		return false;
	return stat.start_ticks != followed->start_ticks;
}

enum sums_owner targets_owner(struct targets *targets, pid_t pid)
{
	const struct target *target = targets_find(targets, pid);

	if (!pid || (target && !target->exited))
		return OWNER_KNOWN;
	/* The kernel side makes a row at the fork, and its record may not have been read yet. */
	if (!target && process_row_exists(targets->config.bpf, pid))
		return OWNER_COMING;
	return OWNER_GONE;
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
void followed_record_cgroup(struct targets *targets, struct followed *followed)
{
	const char *path = memory_cgroups_of(targets->config.memory_cgroups, followed->target.pid,
					     followed->memory_cgroup);

	/* Paths are kept once each: the same one is the same pointer. */
	if (!path || path == followed->memory_cgroup)
		return;
	followed->memory_cgroup = path;
	recording_process_cgroup(targets->config.recording, followed->target.pid, path);
	followed_record_container(targets, followed);
}

static void record_own_cache(struct targets *targets, pid_t pid)
{
	struct server_cache cache;

	if (!server_cache_find(pid, &cache))
		return;
	recording_own_cache(targets->config.recording, pid, cache.program, cache.setting,
			    cache.bytes, cache.source);
	server_cache_clear(&cache);
}

void followed_record(struct targets *targets, struct followed *followed)
{
	pid_t pid = followed->target.pid;
	g_autofree char *command = proc_cmdline(pid);
	g_autofree char *executable = proc_exe(pid);
	struct proc_stat stat;

	/* It has ended meanwhile: the record of that has a name for it. */
	if (proc_stat_read(pid, 0, &stat)) {
		followed->look_at_ns = UINT64_MAX;
		return;
	}
	recording_process(targets->config.recording,
			  &(struct process_fact){
				  .pid = pid,
				  .parent_pid = followed->target.parent_pid,
				  .comm = stat.comm,
				  .command = command ? command : "",
				  .executable = executable ? executable : "",
				  .start_ns = followed->target.start_ns,
				  .role = followed->target.role,
			  });
	followed->listed = true;
	followed_record_cgroup(targets, followed);
	record_own_cache(targets, pid);
	g_free(followed->tunables);
	followed->tunables = tunables_read(pid);
}

void followed_record_unseen(struct targets *targets, struct followed *followed, const char *comm)
{
	recording_process(targets->config.recording,
			  &(struct process_fact){
				  .pid = followed->target.pid,
				  .parent_pid = followed->target.parent_pid,
				  .comm = comm,
				  .command = "",
				  .executable = "",
				  .start_ns = followed->target.start_ns,
				  .role = followed->target.role,
			  });
	followed->listed = true;
}

/* It is no longer followed; counts and times of all still include it. */
static void count_forgotten(struct targets *targets, const struct followed *followed)
{
	targets->dead -= followed->target.exited;
	targets->forgotten++;
	targets->forgotten_without += !followed->target.brief && !followed_has_allocator(followed);
	targets->forgotten_cpu_ns += followed->target.cpu_seen_ns;
}

/* What is not yet written of the process that had this number before is written with this one's. */
static void inherit(struct targets *targets, const struct followed *before, struct target *target)
{
	count_forgotten(targets, before);
	target->recorded.cpu_ns -= before->target.now.cpu_ns - before->target.recorded.cpu_ns;
	target->recorded.minor_faults -=
		before->target.now.minor_faults - before->target.recorded.minor_faults;
	target->recorded.major_faults -=
		before->target.now.major_faults - before->target.recorded.major_faults;
}

/* A recording has one row for a number. */
static void note_number(struct targets *targets, pid_t pid)
{
	uint64_t *word = &targets->numbers[pid % PROC_PID_MAX / NUMBERS_WORD];
	uint64_t bit = 1ULL << pid % NUMBERS_WORD;

	targets->losses.pids_reused += *word & bit ? 1 : 0;
	*word |= bit;
}

struct followed *targets_follow_unseen(struct targets *targets, pid_t pid, const char *role)
{
	struct followed *before = followed_get(targets, pid);
	struct followed *followed = g_new0(struct followed, 1);

	followed->target.pid = pid;
	followed->target.role = role;
	followed->target.start_ns = now_ns();
	followed->target.now.rss_bytes = followed->target.now.swap_bytes = -1;
	followed->target.recorded = followed->target.now;
	if (before)
		inherit(targets, before, &followed->target);
	followed->images = 1;
	followed->attached = g_ptr_array_new_with_free_func(attached_free);
	g_hash_table_replace(targets->followed, GINT_TO_POINTER(pid), followed);
	note_number(targets, pid);
	return followed;
}

bool followed_see(struct targets *targets, struct followed *followed)
{
	struct proc_stat stat;
	pid_t pid = followed->target.pid;

	if (proc_stat_read(pid, 0, &stat))
		return false;
	followed->target.parent_pid = stat.ppid;
	followed->start_ticks = stat.start_ticks;
	followed->stack_start = stat.stack_start;
	if (g_hash_table_size(targets->followed) <= PREPARED_PROCESSES)
		sums_prepare_calls(targets->config.bpf->maps.calls, pid);
	return true;
}

struct followed *targets_follow(struct targets *targets, pid_t pid, const char *role)
{
	struct followed *followed = targets_follow_unseen(targets, pid, role);

	followed->target.cpu_base_ns = process_cpu_ns(pid);
	followed_see(targets, followed);
	return followed;
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

void targets_forget_dead(struct targets *targets)
{
	struct proc_stat stat;
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct followed *followed = value;

		/* One slice more than needed: its last records may have been waiting. */
		if (!followed->target.exited || ++followed->target.slices_dead <= 2)
			continue;
		/* targets_add() makes the state anew of one that BPF added at its fork: no mark then. */
		if (!followed->rowless && proc_stat_read(followed->target.pid, 0, &stat))
			process_row_remove(targets->config.bpf, followed->target.pid);
		count_forgotten(targets, followed);
		observers_forgotten(targets->config.observers, followed->target.pid);
		g_hash_table_iter_remove(&iter);
	}
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
