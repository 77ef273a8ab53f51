// SPDX-License-Identifier: GPL-2.0
#include "targets_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../bpf/events.h"
#include "allocator_record.h"
#include "malloc_par.h"
#include "memtoll.skel.h"
#include "message.h"
#include "owncache.h"
#include "proc.h"
#include "process_rows.h"
#include "sums.h"
#include "unwind_load.h"

/* Two files a process are read for sizes: 64 processes take 1 to 2 ms. */
#define SIZES_PROCESSES 64

/* Rows are made beforehand for so many: a few for each, of the 32,768 that there can be. */
#define PREPARED_PROCESSES 64

/* Allocators of a process that are probed; two are many. */
#define MODULES_MAX 32

/* Looks at what a program has mapped after its start, each twice as long after the one before. */
#define LOOK_FIRST_NS 5000000ULL
#define LOOK_LAST_NS 2000000000ULL

/* A look at what a process has mapped that takes longer is followed by so many times its time... */
#define REFRESH_NS 200000000ULL
#define REST_TIMES 4
/* ... without one, at most. */
#define REST_MAX_NS 5000000000ULL

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void attached_free(gpointer data)
{
	struct attached *attached = data;
	int group;

	for (group = GROUP_PAIR; group < PROBE_GROUPS; group++)
		uprobe_detach_aside(attached->groups[group]);
	g_free(attached);
}

static void followed_free(gpointer data)
{
	struct followed *followed = data;

	starting_end(followed->start, NULL);
	g_ptr_array_free(followed->attached, TRUE);
	g_free(followed->tunables);
	g_free(followed);
}

static void scan_free(gpointer data)
{
	struct scan *scan = data;

	allocator_modules_free(scan->modules, scan->count);
	g_free(scan);
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

static struct followed *followed_get(const struct targets *targets, pid_t pid)
{
	return g_hash_table_lookup(targets->followed, GINT_TO_POINTER(pid));
}

struct target *targets_find(struct targets *targets, pid_t pid)
{
	struct followed *followed = followed_get(targets, pid);

	return followed ? &followed->target : NULL;
}

/* Whether the number is still its own. */
static bool read_stat(const struct followed *followed, struct proc_stat *stat)
{
	return !proc_stat_read(followed->target.pid, 0, stat) &&
	       stat->start_ticks == followed->start_ticks;
}

/* The CPU clock of the whole process, its dead threads included (clock_getcpuclockid(3)). */
static bool read_counters(struct followed *followed)
{
	struct counters *counters = &followed->target.now;
	struct proc_stat stat;
	struct timespec cpu;
	clockid_t clock;

	if (!read_stat(followed, &stat) ||
	    clock_getcpuclockid(followed->target.pid, &clock) || clock_gettime(clock, &cpu))
		return false;
	counters->cpu_ns = cpu.tv_sec * 1000000000ULL + cpu.tv_nsec;
	counters->minor_faults = stat.minor_faults;
	counters->major_faults = stat.major_faults;
	return true;
}

/* The size stays as it was where there is no memory any more: that was the last. */
static void read_size(pid_t tid, struct counters *counters)
{
	struct proc_status status;

	if (proc_status_read(tid, &status) || status.rss_bytes < 0)
		return;
	counters->rss_bytes = status.rss_bytes;
	counters->swap_bytes = status.swap_bytes;
}

static char *module_key(const struct mapping *mapping)
{
	return g_strdup_printf("%u:%u:%lu", mapping->dev_major, mapping->dev_minor,
			       (unsigned long)mapping->inode);
}

/* Look into files never seen before; what each holds is remembered for all processes. */
static void scan_modules(struct targets *targets, pid_t pid, const struct maps *maps)
{
	struct maps fresh = { .entries = g_new0(struct mapping, maps->count) };
	struct scan *scan;
	size_t i;

	for (i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->entries[i];
		g_autofree char *key = module_key(mapping);

		if (mapping->inode && !g_hash_table_contains(targets->modules, key))
			fresh.entries[fresh.count++] = *mapping;
	}
	if (!fresh.count)
		goto out;
	scan = g_new0(struct scan, 1);
	g_ptr_array_add(targets->scans, scan);
	if (!allocator_modules_find(pid, &fresh, &scan->modules, &scan->count)) {
		for (i = 0; i < fresh.count; i++) {
			/* Executable and without an allocator: not looked into again. */
			if (fresh.entries[i].exec)
				g_hash_table_insert(targets->modules,
						    module_key(&fresh.entries[i]), NULL);
		}
		for (i = 0; i < scan->count; i++) {
			const struct allocator_module *module = &scan->modules[i];

			g_hash_table_insert(targets->modules,
					    g_strdup_printf("%u:%u:%lu", module->dev_major,
							    module->dev_minor,
							    (unsigned long)module->inode),
					    (gpointer)module);
		}
	}
out:
	g_free(fresh.entries);
}

static struct attached *attached_get(const struct followed *followed,
				     const struct allocator_module *module)
{
	guint i;

	for (i = 0; i < followed->attached->len; i++) {
		struct attached *attached = g_ptr_array_index(followed->attached, i);

		if (attached->module == module)
			return attached;
	}
	return NULL;
}

/*
 * Bring the probes of one module in one process to what is wanted. may_wait: not now, where the
 * kernel is behind with taking away those of the dead.
 */
static void watch_module(struct targets *targets, struct followed *followed,
			 struct attached *attached, bool may_wait)
{
	unsigned int group;

	for (group = GROUP_PAIR; group < PROBE_GROUPS; group++) {
		bool wanted = targets->watched & 1U << group;
		struct uprobe_attachment **attachment = &attached->groups[group];

		if (!wanted) {
			uprobe_detach_aside(*attachment);
			*attachment = NULL;
		} else if (!*attachment && may_wait && uprobe_dead_are_many()) {
			/* Most of a storm are dead by now. Who is not is tried again soon. */
			followed->target.changed = true;
		} else if (!*attachment) {
			*attachment = uprobe_attach(targets->config.bpf, targets->config.mechanism,
						    followed->target.pid, attached->module, group);
			if (*attachment || errno == ESRCH)
				continue;
			targets->attach_failures++;
			attached->unprobed = "the kernel refused";
			message("cannot probe %s in process %d: %s", attached->module->path,
				followed->target.pid, strerror(errno));
			return;
		}
	}
}

void targets_watch(struct targets *targets, unsigned int groups)
{
	GHashTableIter iter;
	gpointer value;
	guint i;

	if (groups == targets->watched)
		return;
	targets->watched = groups;
	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct followed *followed = value;

		for (i = 0; i < followed->attached->len && !followed->target.exited; i++)
			watch_module(targets, followed, g_ptr_array_index(followed->attached, i),
				     false);
	}
}

/* NULL: the process has too many. */
static struct attached *attached_add(struct targets *targets, struct followed *followed,
				     const struct allocator_module *module)
{
	struct attached *attached;

	if (followed->attached->len >= MODULES_MAX) {
		targets->attach_failures += !followed->too_many;
		followed->too_many = true;
		return NULL;
	}
	attached = g_new0(struct attached, 1);
	attached->module = module;
	attached->linkage = allocator_linkage(followed->target.pid, module);
	if (!targets->config.uprobes)
		attached->unprobed = "left out by --probes or the overhead limit";
	g_ptr_array_add(followed->attached, attached);
	return attached;
}

/* NULL: the process has too many. */
static struct attached *attach_module(struct targets *targets, struct followed *followed,
				      const struct allocator_module *module)
{
	struct attached *attached = attached_get(followed, module);

	if (!attached)
		attached = attached_add(targets, followed, module);
	/* Its probes may have gone with the thread that they were tied to. */
	if (attached && !attached->unprobed)
		watch_module(targets, followed, attached, !targets->config.held);
	return attached;
}

/* Probe every allocator module that the process maps and that is not probed in it yet. */
static void attach_modules(struct targets *targets, struct followed *followed,
			   const struct maps *maps)
{
	pid_t pid = followed->target.pid;
	size_t i;

	if (!maps->count)
		return;
	scan_modules(targets, pid, maps);
	followed->callocs.count = 0;
	for (i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->entries[i];
		struct allocator_module *module;
		struct attached *attached;
		g_autofree char *key = NULL;

		if (!mapping->exec || !mapping->inode)
			continue;
		key = module_key(mapping);
		module = g_hash_table_lookup(targets->modules, key);
		if (!module)
			continue;
		callocs_note(&followed->callocs, module, mapping);
		attached = attach_module(targets, followed, module);
		if (!attached || attached->image == followed->images)
			continue;
		attached->image = followed->images;
		/* Of several mappings of its code the first tells, or none does. */
		if (module->kind == ALLOCATOR_GLIBC && !followed->malloc_par)
			malloc_par_find(pid, mapping, &followed->malloc_par);
	}
	targets_publish_callocs(targets, followed);
	thresholds_set_glibc(targets->config.thresholds, pid, followed_uses_glibc(followed));
}

/* What it maps now; nothing, where it is gone. What is left out of it counts once. */
static void read_maps(struct targets *targets, struct followed *followed, struct maps *maps)
{
	if (maps_read(followed->target.pid, maps)) {
		maps_free(maps);
		return;
	}
	if (maps->left_out > followed->left_out) {
		targets->mappings_left_out += maps->left_out - followed->left_out;
		followed->left_out = maps->left_out;
	}
}

/* A process may be moved to another group at any time. */
static void note_memory_cgroup(struct targets *targets, struct followed *followed)
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
	read_size(followed->target.pid, &followed->target.now);
	if (followed->listed)
		note_memory_cgroup(targets, followed);
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

static void record_process(struct targets *targets, struct followed *followed)
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
	note_memory_cgroup(targets, followed);
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

static bool has_allocator(const struct followed *followed)
{
	guint i;

	for (i = 0; i < followed->attached->len; i++) {
		const struct attached *attached = g_ptr_array_index(followed->attached, i);

		if (attached->module->point_count)
			return true;
	}
	return false;
}

/* It is followed no more, and counts and times of all go on to include it. */
static void count_forgotten(struct targets *targets, const struct followed *followed)
{
	targets->dead -= followed->target.exited;
	targets->forgotten++;
	targets->forgotten_without += !has_allocator(followed);
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

static struct followed *follow(struct targets *targets, pid_t pid, const char *role)
{
	struct followed *followed = g_new0(struct followed, 1), *before = followed_get(targets, pid);
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

static void start_counting(struct followed *followed)
{
	struct counters unwritten = followed->target.recorded;

	if (read_counters(followed)) {
		followed->target.recorded = followed->target.now;
		followed->target.recorded.cpu_ns += unwritten.cpu_ns;
		followed->target.recorded.minor_faults += unwritten.minor_faults;
		followed->target.recorded.major_faults += unwritten.major_faults;
	}
	read_size(followed->target.pid, &followed->target.now);
	read_dead_faults(followed);
}

int targets_add(struct targets *targets, pid_t pid)
{
	struct followed *followed = follow(targets, pid, "target");
	struct proc_stat stat;
	struct maps maps = {};
	int err;

	/*
	 * What takes long before the probes: until the process is published they cost and count
	 * nothing.
	 */
	read_maps(targets, followed, &maps);
	symbolizer_show_maps(targets->config.symbolizer, pid, &maps, true);
	unwinder_show(targets->unwinder, pid, &maps);
	record_process(targets, followed);
	attach_modules(targets, followed, &maps);
	followed_begin_thresholds(targets, followed, false, 0);
	start_counting(followed);
	/* It has run on meanwhile. */
	maps_free(&maps);
	read_maps(targets, followed, &maps);
	followed->target.start_ns = now_ns();
	err = publish_process(targets, pid, &maps);
	/* Hits count from here, and so does the time they are compared with. */
	followed->target.cpu_base_ns = cpu_clock_ns(pid);
	targets_publish_code(targets, followed, &maps);
	maps_free(&maps);
	/* Ended before its exit could be seen: else it would be waited for in vain. */
	if (!err && (!read_stat(followed, &stat) || stat.state == 'Z' || stat.state == 'X')) {
		process_row_remove(targets->config.bpf, pid);
		targets_exiting(targets, pid, 0, NULL);
		err = -ESRCH;
	}
	return err;
}

int targets_expect_exec(struct targets *targets, pid_t pid)
{
	follow(targets, pid, "target")->starting = true;
	return publish_process(targets, pid, NULL);
}

/* What was attached stays listed, for the record; its probes go. */
static void detach_all(struct followed *followed)
{
	guint i;

	for (i = 0; i < followed->attached->len; i++) {
		struct attached *attached = g_ptr_array_index(followed->attached, i);
		int group;

		for (group = GROUP_PAIR; group < PROBE_GROUPS; group++) {
			if (followed->target.exited)
				uprobe_detach_dead(attached->groups[group]);
			else
				uprobe_detach_aside(attached->groups[group]);
			attached->groups[group] = NULL;
		}
	}
}

/* What the BPF side has of a process. false: it has ended, and its number may be another's by now. */
static bool lives_there(const struct targets *targets, pid_t pid, struct memtoll_target *state)
{
	uint32_t key = pid;

	if (bpf_map_lookup_elem(bpf_map__fd(targets->config.bpf->maps.processes), &key, state)) {
		memset(state, 0, sizeof(*state));
		return false;
	}
	return !state->ended;
}

/* It has ended: told so, or found. exit_code: -1: not known. */
static void end_followed(struct targets *targets, struct followed *followed, int exit_code,
			 const struct memtoll_process *told)
{
	struct target *target = &followed->target;
	struct memtoll_target state;
	bool is_another = lives_there(targets, target->pid, &state) && told;

	/* Where it is reaped already, its threads have left their faults with the BPF side. */
	if ((is_another || !read_counters(followed)) && (told || state.ended)) {
		target->now.minor_faults = target->dead_minor_faults +
			(state.ended ? state.exited_minor_faults : told->minor_faults);
		target->now.major_faults = target->dead_major_faults +
			(state.ended ? state.exited_major_faults : told->major_faults);
	}
	target->exited = true;
	targets->dead++;
	python_exited(targets->config.python, target->pid);
	recording_process_end(targets->config.recording, target->pid,
			      told ? told->time_ns : now_ns(), exit_code);
	detach_all(followed);
	/* A row that is not marked is another's by now, made when that was forked. */
	if (state.ended)
		process_row_remove(targets->config.bpf, target->pid);
	unwinder_exit(targets->unwinder, target->pid);
}

/* What was known of the image before is no more. */
static void begin_image(struct targets *targets, struct followed *followed, pid_t caller)
{
	python_exec(targets->config.python, followed->target.pid);
	/* The kernel ties probes to the process's first thread, and that has ended. */
	if (caller != followed->target.pid)
		detach_all(followed);
	starting_end(g_steal_pointer(&followed->start), NULL);
	followed->malloc_par = 0;
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
	record_process(targets, followed);
	followed_begin_thresholds(targets, followed, true, 0);
	followed->target.changed = true;
	if (targets->config.maps_told)
		return;
	followed->look_step_ns = LOOK_FIRST_NS;
	followed->look_ns = now_ns() + LOOK_FIRST_NS;
}

bool targets_exec_held(struct targets *targets, pid_t pid, pid_t caller, uint64_t loader,
		       bool may_tell)
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
		start_counting(followed);
	followed->starting = true;
	read_maps(targets, followed, &maps);
	targets_publish_code(targets, followed, &maps);
	/* The program itself may hold the allocator (static linking). */
	attach_modules(targets, followed, &maps);
	if (loader && may_tell)
		followed->start = starting_new(targets->starts, pid, &maps, loader);
	if (followed->start)
		modules = starting_modules(followed->start);
	/* The kernel puts probes into what a process maps, if they are there before. */
	for (i = 0; modules && i < modules->len; i++)
		attach_module(targets, followed, g_ptr_array_index(modules, i));
	maps_free(&maps);
	return modules;
}

void targets_mapped(struct targets *targets, pid_t pid)
{
	struct followed *followed = followed_get(targets, pid);
	struct maps maps = {};

	if (!followed)
		return;
	read_maps(targets, followed, &maps);
	attach_modules(targets, followed, &maps);
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
	read_maps(targets, followed, &maps);
	attach_modules(targets, followed, &maps);
	remember_start(followed);
	symbolizer_show_maps(targets->config.symbolizer, pid, &maps, true);
	record_process(targets, followed);
	followed_begin_thresholds(targets, followed, true, 0);
	targets_publish_code(targets, followed, &maps);
	maps_free(&maps);
}

void targets_forked(struct targets *targets, pid_t parent, pid_t child, bool held)
{
	struct followed *followed = followed_get(targets, child);
	struct memtoll_target state;
	struct proc_stat stat;
	struct maps maps = {};

	if (followed && !followed->target.exited) {
		if (proc_stat_read(child, 0, &stat) || stat.start_ticks == followed->start_ticks)
			return;
		/* Its end went untold, and its number is another's by now. */
		end_followed(targets, followed, -1, NULL);
	}
	if (!parent && !proc_stat_read(child, 0, &stat))
		parent = stat.ppid;
	if (!parent || !followed_get(targets, parent))
		return;
	followed = follow(targets, child, "child");
	followed->target.parent_pid = parent;
	/* Its hits have counted since it was forked. */
	followed->target.cpu_base_ns = 0;
	symbolizer_fork(targets->config.symbolizer, parent, child);
	targets_publish_table(targets, child, unwinder_fork(targets->unwinder, parent, child));
	python_fork(targets->config.python, parent, child);
	/* Its counters began at 0, and so did ours: nothing is subtracted. */
	read_counters(followed);
	read_size(child, &followed->target.now);
	/* One that has ended by now is told of next: whoever has its number is not to be probed. */
	if (held || lives_there(targets, child, &state)) {
		read_maps(targets, followed, &maps);
		attach_modules(targets, followed, &maps);
		maps_free(&maps);
	}
	if (!held && targets->config.uprobes)
		targets->late++;
	record_process(targets, followed);
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
	/* Once a process: its threads are all in one group where memory is concerned. */
	if (tid == status.tgid && followed->listed)
		note_memory_cgroup(targets, followed);
}

void targets_exiting(struct targets *targets, pid_t pid, int exit_code,
		     const struct memtoll_process *told)
{
	struct followed *followed = followed_get(targets, pid);

	if (followed && !followed->target.exited)
		end_followed(targets, followed, exit_code, told);
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
 * A process that maps code again and again, or in very many pieces, is not to keep the tracer from
 * everything else: what took long is not done again for several times as long.
 */
static bool is_resting(struct targets *targets, struct followed *followed)
{
	if (now_ns() >= followed->rest_until_ns)
		return false;
	targets->maps_postponed += !followed->postponed;
	followed->postponed = true;
	return true;
}

static void look_again(struct targets *targets, struct followed *followed)
{
	uint64_t begin_ns = now_ns(), took_ns;
	struct maps maps = {};

	read_maps(targets, followed, &maps);
	/* First what stacks need while the process runs on. */
	targets_publish_code(targets, followed, &maps);
	attach_modules(targets, followed, &maps);
	symbolizer_show_maps(targets->config.symbolizer, followed->target.pid, &maps, false);
	maps_free(&maps);
	took_ns = now_ns() - begin_ns;
	if (took_ns > REFRESH_NS)
		followed->rest_until_ns = begin_ns + took_ns +
					  MIN(REST_TIMES * took_ns, REST_MAX_NS);
}

/* A new program maps its libraries as it starts; where nobody tells of that it is looked for. */
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
	followed->look_ns = followed->look_step_ns > LOOK_LAST_NS ? 0 : now + followed->look_step_ns;
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
		if (read_counters(followed))
			look_at(targets, followed);
		/* It may have ended a moment ago, and be told of next. */
		if (lives_there(targets, followed->target.pid, &state))
			followed->missing = false;
		else if (!followed->missing)
			followed->missing = true;
		else
			end_followed(targets, followed, -1, NULL);
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

void targets_each(struct targets *targets, void (*each)(void *context, struct target *target),
		  void *context)
{
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value))
		each(context, &((struct followed *)value)->target);
}

void targets_detach(struct targets *targets)
{
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value))
		detach_all(value);
	uprobe_detach_finish();
}

unsigned int targets_without_allocator(const struct targets *targets)
{
	unsigned int count = targets->forgotten_without;
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value))
		count += !has_allocator(value);
	return count;
}

uint64_t targets_unwind_left_out(struct targets *targets)
{
	return unwinder_left_out(targets->unwinder);
}

uint64_t targets_mappings_left_out(struct targets *targets)
{
	uint64_t left_out = targets->mappings_left_out;

	targets->mappings_left_out = 0;
	return left_out;
}

uint64_t targets_maps_postponed(struct targets *targets)
{
	uint64_t postponed = targets->maps_postponed;

	targets->maps_postponed = 0;
	return postponed;
}

uint64_t targets_late(struct targets *targets)
{
	uint64_t late = targets->late;

	targets->late = 0;
	return late;
}

uint64_t targets_attach_failures(struct targets *targets)
{
	uint64_t failures = targets->attach_failures;

	targets->attach_failures = 0;
	return failures;
}

int targets_record_allocators(struct targets *targets)
{
	GHashTableIter iter;
	gpointer value;
	int err = 0;
	guint i;

	g_hash_table_iter_init(&iter, targets->followed);
	while (!err && g_hash_table_iter_next(&iter, NULL, &value)) {
		const struct followed *followed = value;
		struct bounds threshold;

		thresholds_get(targets->config.thresholds, followed->target.pid, THRESHOLD_MMAP,
			       &threshold);
		for (i = 0; i < followed->attached->len && !err; i++) {
			const struct attached *attached = g_ptr_array_index(followed->attached, i);

			err = allocator_record(targets->config.recording, followed->target.pid,
					       attached->module, attached->linkage,
					       attached->unprobed, &threshold, followed->tunables);
		}
	}
	return err;
}
