// SPDX-License-Identifier: GPL-2.0
#include "session/session.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "bpf/wire/events.h"
#include "budget/fault_window.h"
#include "budget/budget_executor.h"
#include "events/rates.h"
#include "events/sums.h"
#include "host/bounded.h"
#include "host/cgroup.h"
#include "host/other_tracers.h"
#include "host/own_limits.h"
#include "host/pagetable.h"
#include "host/priority.h"
#include "host/privileges.h"
#include "host/swapdevice.h"
#include "host/vmstat.h"
#include "ledger/ledger.h"
#include "ledger/sampled.h"
#include "memtoll.skel.h"
#include "probes/attach.h"
#include "probes/calibrate.h"
#include "probes/programs.h"
#include "probes/syscalls.h"
#include "python/python.h"
#include "python/python_reader.h"
#include "recording/machine_facts.h"
#include "recording/recording.h"
#include "session/run_facts.h"
#include "session/slice.h"
#include "session/watchdog.h"
#include "symbols/symbolize.h"
#include "targets/launch.h"
#include "targets/targets.h"

#define MS 1000000ULL
#define SLICE_NS (1000 * MS)
/*
 * What the dead had takes room in the kernel's tables until slices have ended: of many, shorter
 * ones.
 */
#define SHORT_SLICE_NS (250 * MS)
#define DEAD_MANY 50
#define POLL_NS (20 * MS)		/* how long records may wait in the ring buffer */
#define CGROUP_NS (100 * MS)		/* how often a cgroup is asked for new processes */
#define KEEP_UP_NS (5 * MS)		/* how often targets are seen to while a slice is written */
#define SIZES_NS (100 * MS)		/* how often processes are asked for their sizes */
#define WINDOW_LATE_NS (1000 * MS)	/* so late a window of timed faults closes by itself */
#define HELD_NS (20 * MS)		/* so long windows need not be seen to while a process is held */
#define WINDOW_WAIT_NS (500 * MS)	/* how long a slice may wait for a window to close */
#define TERMINATE_NS (5000 * MS)	/* how long a command gets to end after SIGTERM */

struct session {
	struct session_config config;
	struct memtoll_bpf *bpf;
	struct pagetable pagetable;
	enum uprobe_mechanism mechanism;
	struct calibration *calibration;
	struct calibration_result prices;
	struct symbolizer *symbolizer;
	struct python *python;
	struct python_reader *python_reader;
	struct recording *recording;
	struct targets *targets;
	struct memory_cgroups *memory_cgroups;
	struct swap_devices *swap_devices;
	bool swap_types_seen[SWAP_TYPES];	/* in swap entries, since devices changed */
	bool swap_in_counted;
	bool locks_asked;			/* futex calls are to be watched */
	struct ledger *ledger;
	struct watch *watch;
	struct thresholds *thresholds;
	struct sampled *sampled;
	struct slicer *slicer;
	struct probes *probes;
	struct ring_buffer *ring;
	struct launch *launch;
	struct system_counters *system;
	int signal_fd;
	struct watchdog *watchdog;
	sigset_t old_signals;
	bool signals_blocked;
	uint64_t start_ns;
	uint64_t end_due_ns;			/* 0: none */
	uint64_t slice_start_ns;
	uint64_t cgroup_read_ns;
	uint64_t sizes_read_ns;
	uint64_t kept_up_ns;
	uint64_t windows_seen_ns;	/* to */
	struct fault_window window;
	struct priority priority;
	bool more_waits;		/* of the command's processes than were seen to */
	bool draining;			/* threads were asked for their open runs */
	bool others_told;		/* that another memtoll traces a target, too */
	const char *end_reason;
	bool command_ended;
	int command_status;
};

struct session *session_new(const struct session_config *config)
{
	struct session *session = g_new0(struct session, 1);

	session->config = *config;
	session->signal_fd = -1;
	return session;
}

static void move_window(struct session *session, uint64_t now);

static uint64_t step_watch(struct session *session)
{
	uint64_t next_ns = watch_step(session->watch);

	session->windows_seen_ns = now_ns();
	return next_ns;
}

/* ---- what ptrace tells of a launched command ---- */

/* A process that was held for long goes on, and finds its windows as they should be. */
static void let_go_on(struct session *session)
{
	/* At the end nothing is probed any more, and the command is still waited for. */
	if (!session->probes || now_ns() - session->windows_seen_ns < HELD_NS)
		return;
	step_watch(session);
	move_window(session, now_ns());
}

static bool launched_exec(void *context, pid_t pid, pid_t caller, uint64_t loader, bool may_tell)
{
	struct session *session = context;
	bool tells;

	ring_buffer__consume(session->ring);
	python_reader_catch_up(session->python_reader);
	slicer_name_stacks(session->slicer, pid);
	tells = targets_exec_held(session->targets, pid, caller, loader, may_tell);
	let_go_on(session);
	return tells;
}

static void launched_mapped(void *context, pid_t pid)
{
	targets_mapped(((struct session *)context)->targets, pid);
	let_go_on(context);
}

static bool launched_started(void *context, pid_t pid)
{
	return targets_has_started(((struct session *)context)->targets, pid);
}

static void launched_ready(void *context, pid_t pid)
{
	targets_ready(((struct session *)context)->targets, pid);
	let_go_on(context);
}

static void launched_forked(void *context, pid_t child, pid_t parent)
{
	targets_forked(((struct session *)context)->targets, parent, child, true);
	let_go_on(context);
}

static void launched_dying(void *context, pid_t tid)
{
	struct session *session = context;

	/* What was met last is named while it is still in memory. */
	ring_buffer__consume(session->ring);
	python_reader_catch_up(session->python_reader);
	targets_dying(session->targets, tid);
}

static void launched_exiting(void *context, pid_t pid, int wait_status)
{
	targets_exiting(((struct session *)context)->targets, pid, wait_status, NULL);
}

static const struct launch_events launch_events = {
	.exec = launched_exec,
	.mapped = launched_mapped,
	.started = launched_started,
	.ready = launched_ready,
	.forked = launched_forked,
	.dying = launched_dying,
	.exiting = launched_exiting,
};

/* ---- steps ---- */

static int open_signals(struct session *session)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	/* Calibration children and commands unblock them again before exec. */
	if (sigprocmask(SIG_BLOCK, &signals, &session->old_signals))
		return -errno;
	session->signals_blocked = true;
	session->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (session->signal_fd < 0)
		return -errno;
	sigdelset(&signals, SIGCHLD);
	session->watchdog = watchdog_start(&signals);
	return 0;
}

int session_open(struct session *session)
{
	int err;

	own_limits_lift();
	err = open_signals(session);
	if (err) {
		message("cannot wait for signals: %s", strerror(-err));
		return STATUS_FAILED;
	}
	session->recording = recording_create(session->config.output, session->config.force);
	if (session->recording && session->config.max_bytes)
		recording_limit(session->recording, session->config.max_bytes);
	return session->recording ? STATUS_DONE : STATUS_FAILED;
}

int session_prepare(struct session *session)
{
	int err = pagetable_find(&session->pagetable);

	if (err) {
		message("cannot read page tables here: %s", err == -EPERM ?
			"no privilege (CAP_BPF, CAP_PERFMON)" : strerror(-err));
		return STATUS_UNSUPPORTED;
	}
	session->mechanism = uprobe_mechanism_find();
	session->calibration = calibration_begin();
	if (!session->calibration)
		return STATUS_FAILED;
	if (session->config.command) {
		session->launch = launch_new(session->config.command, &launch_events, session);
		if (!session->launch)
			return STATUS_UNSUPPORTED;
	}
	return STATUS_DONE;
}

int session_load(struct session *session)
{
	const struct session_config *config = &session->config;
	const char *refused;

	session->bpf = programs_load(&(struct programs_config){
		.pagetable = &session->pagetable,
		.mechanism = session->mechanism,
		.min_size = config->min_size,
		.sample = config->sample,
		.buffer_bytes = config->buffer_bytes,
		.uprobes = config->uprobes,
		.faults = config->faults,
		.mappings = config->mappings,
		.samples = config->samples,
		.reads = config->reads,
	}, &refused);
	if (session->bpf) {
		sums_take_memory(session->bpf->obj);
		return STATUS_DONE;
	}
	message("this kernel refuses the BPF programs%s%s: %s; see memtoll doctor",
		refused ? ", first " : "", refused ? refused : "", strerror(errno));
	return STATUS_UNSUPPORTED;
}

static void switch_window(struct session *session, bool open)
{
	int err = probes_window(session->probes, open);

	if (err)
		slicer_lose(session->slicer, LOST_WINDOW_SHUT, 1);
	/* Short of files, the one that is left is the recording's. */
	watch_window(session->watch, open && !err);
}

static void move_window(struct session *session, uint64_t now)
{
	struct fault_window *window = &session->window;
	bool open = window->open;

	watch_window_until(session->watch, now + WINDOW_LATE_NS);
	fault_window_step(window, now, window->first ? targets_cpu_ns(session->targets) : 0,
			  g_random_double());
	if (window->open != open)
		switch_window(session, window->open);
}

/*
 * Code that targets map now wants its unwind table now: until then stacks through it are cut off.
 */
static void keep_up(struct session *session)
{
	ring_buffer__consume(session->ring);
	targets_refresh(session->targets);
}

/* While a slice is written. */
static void meanwhile(void *context)
{
	struct session *session = context;
	uint64_t now = now_ns();

	watchdog_alive(session->watchdog);
	if (!session->probes || now - session->kept_up_ns < KEEP_UP_NS)
		return;
	keep_up(session);
	step_watch(session);
	move_window(session, now);
	session->kept_up_ns = now_ns();
}

static int open_consumers(struct session *session)
{
	session->symbolizer = symbolizer__new();
	session->python = python_new();
	session->python_reader = python_reader_start(bpf_map__fd(session->bpf->maps.pythons),
						     session->python);
	if (!session->python_reader)
		return -errno;
	session->ledger = ledger_new();
	ledger_set_min_size(session->ledger, session->config.min_size);
	session->swap_devices = swap_devices_read();
	session->memory_cgroups = memory_cgroups_new();
	session->thresholds = thresholds_new();
	session->targets = targets_new(&(struct targets_config){
		.bpf = session->bpf,
		.symbolizer = session->symbolizer,
		.python = session->python,
		.recording = session->recording,
		.memory_cgroups = session->memory_cgroups,
		.thresholds = session->thresholds,
		.mechanism = session->mechanism,
		.held = session->launch != NULL,
		.uprobes = session->config.uprobes,
		.maps_told = session->config.mappings,
	});
	session->watch = watch_new(&(struct watch_config){
		.bpf = session->bpf,
		.probes = session->probes,
		.targets = session->targets,
		.recording = session->recording,
		.limit = session->config.uprobes ? session->config.overhead_limit : 0,
		.command = session->launch != NULL,
		.may_leave_calls = session->config.may_leave_calls,
	}, &session->prices);
	session->sampled = sampled_new(session->config.sample,
					session->config.min_size);
	session->slicer = slicer_new(&(struct slicer_config){
		.bpf = session->bpf,
		.recording = session->recording,
		.symbolizer = session->symbolizer,
		.python = session->python,
		.python_reader = session->python_reader,
		.targets = session->targets,
		.ledger = session->ledger,
		.watch = session->watch,
		.thresholds = session->thresholds,
		.sampled = session->sampled,
		.swap_devices = session->swap_devices,
		.swap_types_seen = session->swap_types_seen,
		.launched = session->launch != NULL,
		.meanwhile = meanwhile,
		.meanwhile_context = session,
	});
	session->ring = ring_buffer__new(bpf_map__fd(session->bpf->maps.events), slicer_on_event,
					 session->slicer, NULL);
	return session->ring ? 0 : -errno;
}

/* What is not counted over a slice but stands as it is now; a killed recording has it, too. */
static void record_state(struct session *session)
{
	system_counters_record(session->system, session->recording);
	memory_cgroups_record(session->memory_cgroups, session->recording);
	if (session->probes && session->config.faults && !session->swap_in_counted &&
	    probes_follow_swap(session->probes, session->bpf)) {
		session->swap_in_counted = true;
		recording_meta(session->recording, "swap_in_counted", "1");
	}
	/* Devices that came or went: the numbers seen before may mean others now. */
	if (swap_devices_refresh(session->swap_devices))
		memset(session->swap_types_seen, 0, sizeof(session->swap_types_seen));
	swap_devices_record(session->swap_devices, session->swap_types_seen, session->recording);
	if (session->launch)
		recording_meta_int(session->recording, "held_ns",
				   launch_held_ns(session->launch));
}

/* Follow the cgroup's processes that are not followed yet; false: the cgroup is gone. */
static bool add_cgroup(struct session *session)
{
	g_autoptr(GArray) pids = g_array_new(FALSE, FALSE, sizeof(pid_t));
	guint i;

	if (cgroup_processes(session->config.cgroup, pids))
		return false;
	for (i = 0; i < pids->len; i++) {
		pid_t pid = g_array_index(pids, pid_t, i);
		const struct target *known = targets_find(session->targets, pid);

		if (pid != getpid() && (!known || known->exited))
			targets_add(session->targets, pid);
	}
	return true;
}

static int add_targets(struct session *session)
{
	const struct session_config *config = &session->config;
	size_t i;
	int err;

	for (i = 0; i < config->pid_count; i++) {
		err = targets_add(session->targets, config->pids[i]);
		if (err) {
			message("cannot follow process %d: %s", config->pids[i], strerror(-err));
			return STATUS_FAILED;
		}
	}
	if (config->cgroup) {
		add_cgroup(session);
		recording_meta(session->recording, "cgroup", config->cgroup);
		recording_meta_int(session->recording, "cgroup_memory_limit_bytes",
				   cgroup_memory_limit(config->cgroup));
	}
	if (!session->launch)
		return STATUS_DONE;
	err = targets_expect_exec(session->targets, launch_pid(session->launch));
	if (!err)
		err = launch_go(session->launch);
	if (err) {
		message("cannot run '%s': %s", config->command[0], strerror(-err));
		return STATUS_FAILED;
	}
	return STATUS_DONE;
}

static void warn_without_allocator(struct session *session)
{
	unsigned int without = targets_without_allocator(session->targets);

	if (session->config.uprobes && without)
		message("no allocator that memtoll knows was found in %u of %u processes: faults "
			"and mappings only", without, targets_count(session->targets));
}

static void add_pid(void *pids, struct target *target)
{
	if (!target->exited)
		g_array_append_val(pids, target->pid);
}

/* As it is now: at the start, and, as others may have come since, at the end. */
static void tell_other_tracers(struct session *session)
{
	g_autoptr(GArray) pids = NULL;
	struct bpf_map_info own = {};
	uint32_t size = sizeof(own);
	pid_t shared;

	if (session->others_told ||
	    bpf_obj_get_info_by_fd(bpf_map__fd(session->bpf->maps.processes), &own, &size))
		return;
	pids = g_array_new(FALSE, FALSE, sizeof(pid_t));
	targets_each(session->targets, add_pid, pids);
	shared = other_tracers_share(pids, own.id);
	if (!shared)
		return;
	session->others_told = true;
	message("another memtoll traces process %d, too: the overhead limit holds for each by itself",
		shared);
	recording_meta_int(session->recording, "other_tracer_of", shared);
}

int session_attach(struct session *session)
{
	const struct session_config *config = &session->config;
	const struct probe_set set = {
		.faults = config->faults,
		.mappings = config->mappings,
		.samples = config->samples,
		.reads = config->reads,
	};
	struct memtoll_rates rates;
	int status;

	session->probes = probes_attach(session->bpf, &set);
	if (!session->probes)
		return STATUS_UNSUPPORTED;
	if (calibration_run(session->calibration, session->bpf, session->mechanism,
			    session->probes, config->uprobes, &session->prices))
		return STATUS_UNSUPPORTED;
	calibration_end(session->calibration);
	session->calibration = NULL;
	if (open_consumers(session)) {
		message("cannot open the ring buffer: %s", strerror(errno));
		return STATUS_FAILED;
	}
	session->start_ns = now_ns();
	session->slice_start_ns = session->start_ns;
	session->system = system_counters_read();
	run_start_record(session->recording, config, session->mechanism, session->start_ns);
	record_state(session);
	if (run_prices_record(session->recording, &session->prices))
		return STATUS_FAILED;
	switch_window(session, true);
	/* The calibration's faults were counted, too. */
	rates_read(session->bpf, &rates);
	fault_window_begin(&session->window, session->start_ns, rates.faults);
	watch_begin(session->watch);
	/* The time counts from then on: a large program takes its own, within bounds. */
	if (config->duration_ns)
		watchdog_attach_by(session->watchdog,
				   session->start_ns + MAX(config->duration_ns,
							   WATCHDOG_ATTACH_MS * MS));
	status = add_targets(session);
	if (!status)
		tell_other_tracers(session);
	if (config->duration_ns) {
		session->end_due_ns = now_ns() + config->duration_ns;
		watchdog_due(session->watchdog, session->end_due_ns);
	}
	if (!status && !session->launch)
		warn_without_allocator(session);
	privileges_keep(PRIVILEGES_FOLLOW);
	return status;
}

static int commit_slice(struct session *session, uint64_t now)
{
	struct memtoll_rates rates;
	int err;

	rates_read(session->bpf, &rates);
	fault_window_slice(&session->window, now, rates.faults);
	keep_up(session);
	targets_read_counters(session->targets);
	record_state(session);
	watch_end_slice(session->watch);
	err = slicer_commit(session->slicer, session->slice_start_ns, now);
	session->slice_start_ns = now;
	priority_step(&session->priority);
	return err;
}

/*
 * At a slice's end threads are asked for their open runs, which come with their next fault; what is
 * there by the next turn belongs to the slice. The first slice is the first window: its faults are
 * all timed, those of later slices in part, and each slice's figures are weighed by themselves.
 */
static int move_slice(struct session *session, uint64_t now)
{
	uint64_t age = now - session->slice_start_ns;
	bool first = session->slice_start_ns == session->start_ns && !session->window.first;
	bool crowded = targets_dead(session->targets) > DEAD_MANY && age >= SHORT_SLICE_NS;

	if (age < SLICE_NS && !first && !crowded)
		return 0;
	/* Writing takes long, and a window left open meanwhile costs the target. */
	if (watch_in_window(session->watch) && age < SLICE_NS + WINDOW_WAIT_NS)
		return 0;
	session->draining = !session->draining;
	if (!session->draining)
		return commit_slice(session, now);
	session->bpf->bss->drain_epoch++;
	return 0;
}

/* Signals that came; true: the recording is over. */
static bool read_signals(struct session *session)
{
	struct signalfd_siginfo info;
	bool over = false;

	while (read(session->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		session->end_reason = "signal";
		watchdog_due(session->watchdog, 0);
		over = true;
	}
	session->more_waits = session->launch && launch_poll(session->launch);
	return over;
}

static bool is_over(struct session *session, uint64_t now)
{
	if (session->launch) {
		if (!launch_ended(session->launch, &session->command_status))
			goto time;
		session->command_ended = true;
		session->end_reason = "target exited";
		return true;
	}
	if (session->config.cgroup)
		goto time;	/* processes may yet come */
	if (targets_all_exited(session->targets)) {
		session->end_reason = "target exited";
		return true;
	}
time:
	if (session->end_due_ns && now >= session->end_due_ns) {
		session->end_reason = "duration";
		return true;
	}
	return false;
}

/* Sleep until something is to be done: a signal, records, a window's edge, the end of the slice. */
static void wait_for_work(struct session *session, uint64_t now, uint64_t watch_ns)
{
	struct pollfd fds[] = {
		{ .fd = session->signal_fd, .events = POLLIN },
		{ .fd = ring_buffer__epoll_fd(session->ring), .events = POLLIN },
	};
	uint64_t until = session->more_waits ? now : now + POLL_NS;
	struct timespec timeout;

	if (session->end_due_ns)
		until = MIN(until, MAX(now, session->end_due_ns));
	until = MIN(until, MAX(now, watch_ns));
	if (!session->window.first)
		until = MIN(until, MAX(now, session->window.edge_ns));
	timeout.tv_sec = 0;
	timeout.tv_nsec = MIN(until - now, 999 * MS);
	ppoll(fds, G_N_ELEMENTS(fds), &timeout, NULL);
}

/* Processes that came into the cgroup otherwise than by fork; false: it was removed. */
static bool follow_cgroup(struct session *session, uint64_t now)
{
	if (now - session->cgroup_read_ns < CGROUP_NS)
		return true;
	session->cgroup_read_ns = now;
	if (add_cgroup(session))
		return true;
	session->end_reason = "cgroup removed";
	return false;
}

int session_run(struct session *session)
{
	uint64_t now = now_ns();
	int err = 0;

	priority_begin(&session->priority);
	while (!err && !read_signals(session) && !is_over(session, now)) {
		watchdog_alive(session->watchdog);
		wait_for_work(session, now, step_watch(session));
		/* First of all: a window that is closed late costs the target. */
		move_window(session, now_ns());
		keep_up(session);
		now = now_ns();
		if (session->config.cgroup && !follow_cgroup(session, now))
			break;
		if (now - session->sizes_read_ns >= SIZES_NS) {
			session->sizes_read_ns = now;
			targets_read_sizes(session->targets);
		}
		/* Tried once: a kernel that refuses would do so again. */
		if (session->bpf->bss->lock_suspected && !session->locks_asked) {
			session->locks_asked = true;
			syscalls_follow_locks(probes_syscalls(session->probes));
		}
		err = move_slice(session, now);
	}
	/* As asked for; session_finish() sees to it. */
	if (recording_is_full(session->recording))
		return STATUS_DONE;
	if (err)
		session->end_reason = "the recording could not be written";
	return err ? STATUS_FAILED : STATUS_DONE;
}

/* Read the task iterator to its end: every thread's open run comes through the ring buffer. */
static int drain_threads(struct session *session)
{
	struct bpf_link *link = bpf_program__attach_iter(session->bpf->progs.drain_threads, NULL);
	char byte[64];
	int fd, err;

	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	err = fd < 0 ? fd : 0;
	while (!err && read(fd, byte, sizeof(byte)) > 0)
		;
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return err;
}

/* Stop counting first, so that our counters and the kernel's end at the same moment. */
static void stop_counting(struct session *session)
{
	if (!session->bpf || !session->targets)
		return;
	session->bpf->bss->stopped = 1;
	targets_end_counting(session->targets);
}

static void detach(struct session *session)
{
	if (session->targets)
		targets_detach(session->targets);
	probes_detach(session->probes);
	session->probes = NULL;
	uprobe_detach_finish();
}

/* A command outlives its recording only if it ignores SIGTERM. */
static void end_command(struct session *session)
{
	uint64_t start = now_ns();
	struct pollfd fd = { .fd = session->signal_fd, .events = POLLIN };

	if (!session->launch || session->command_ended)
		return;
	launch_terminate(session->launch);
	while (!launch_ended(session->launch, &session->command_status) &&
	       now_ns() - start < TERMINATE_NS) {
		poll(&fd, 1, session->more_waits ? 0 : 100);
		read_signals(session);
		watchdog_alive(session->watchdog);
	}
	session->command_ended = launch_ended(session->launch, &session->command_status);
	if (!session->command_ended)
		message("the command (pid %d) does not end on SIGTERM and is left running",
			launch_pid(session->launch));
}

int session_finish(struct session *session)
{
	struct recording *recording = session->recording;
	const char *reason = session->end_reason;
	uint64_t end = now_ns();
	int err;

	watch_end_slice(session->watch);
	stop_counting(session);
	detach(session);
	tell_other_tracers(session);
	priority_end(&session->priority);
	watchdog_finishing(session->watchdog);
	drain_threads(session);
	ring_buffer__consume(session->ring);
	end_command(session);
	if (session->launch)
		warn_without_allocator(session);
	record_state(session);
	/* What goes on of a command is not held by what is still to be written. */
	g_clear_pointer(&session->launch, launch_free);
	err = slicer_commit(session->slicer, session->slice_start_ns, end);
	/* The last thing that was read of a process; by its thread, too. */
	g_clear_pointer(&session->python_reader, python_reader_stop);
	bounded_finish();
	privileges_keep(PRIVILEGES_WRITE);
	if (recording_is_full(recording)) {
		end = recording_resume_full(recording);
		reason = "size limit";
		err = end ? 0 : -EFBIG;
	}
	recording_meta_int(recording, "end_ns", end);
	recording_meta(recording, "end_reason", reason ? reason : "error");
	if (session->command_ended)
		recording_meta_int(recording, "exit_status",
				   shell_exit_status(session->command_status));
	if (!err)
		err = recording_finish(recording);
	return err ? STATUS_FAILED : STATUS_DONE;
}

void session_close(struct session *session)
{
	stop_counting(session);
	detach(session);
	priority_end(&session->priority);
	watchdog_finishing(session->watchdog);
	g_clear_pointer(&session->launch, launch_free);
	uprobe_detach_finish_dead();
	g_clear_pointer(&session->calibration, calibration_end);
	g_clear_pointer(&session->ring, ring_buffer__free);
	g_clear_pointer(&session->slicer, slicer_free);
	g_clear_pointer(&session->watch, watch_free);
	g_clear_pointer(&session->sampled, sampled_free);
	g_clear_pointer(&session->targets, targets_free);
	g_clear_pointer(&session->thresholds, thresholds_free);
	g_clear_pointer(&session->memory_cgroups, memory_cgroups_free);
	g_clear_pointer(&session->ledger, ledger_free);
	g_clear_pointer(&session->symbolizer, symbolizer__free);
	g_clear_pointer(&session->python_reader, python_reader_stop);
	g_clear_pointer(&session->python, python_free);
	g_clear_pointer(&session->bpf, memtoll_bpf__destroy);
	pagetable_release(&session->pagetable);
	g_clear_pointer(&session->system, system_counters_free);
	g_clear_pointer(&session->swap_devices, swap_devices_free);
	g_clear_pointer(&session->watchdog, watchdog_stop);
	if (session->signal_fd >= 0)
		close(session->signal_fd);
	session->signal_fd = -1;
	if (session->signals_blocked)
		sigprocmask(SIG_SETMASK, &session->old_signals, NULL);
	session->signals_blocked = false;
}

void session_free(struct session *session)
{
	if (!session)
		return;
	session_close(session);
	recording_close(session->recording);
	g_free(session);
}

int session_record(struct session *session)
{
	int status = session_open(session), last;

	if (!status)
		status = session_prepare(session);
	watchdog_alive(session->watchdog);
	if (!status)
		status = session_load(session);
	watchdog_alive(session->watchdog);
	if (!status)
		status = session_attach(session);
	if (status)
		return status;
	status = session_run(session);
	/* After a failed write the rest is still put in order, but the failure is the answer. */
	last = session_finish(session);
	return status ? status : last;
}

sqlite3 *session_database(struct session *session)
{
	return recording_database(session->recording);
}

bool session_command_status(const struct session *session, int *wait_status)
{
	if (session->command_ended)
		*wait_status = session->command_status;
	return session->command_ended;
}
