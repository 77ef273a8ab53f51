// SPDX-License-Identifier: GPL-2.0
#include "session/session_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/message.h"
#include "base/shell.h"
#include "bpf/wire/rates.h"
#include "bpf/wire/targets.h"
#include "budget/budget_executor.h"
#include "budget/fault_window.h"
#include "budget/starts_paid.h"
#include "events/rates.h"
#include "events/sums.h"
#include "host/cgroup.h"
#include "host/other_tracers.h"
#include "host/own_limits.h"
#include "host/privileges.h"
#include "host/timed_call.h"
#include "host/vmstat.h"
#include "ledger/ledger.h"
#include "memtoll.skel.h"
#include "probes/price_cache.h"
#include "probes/programs.h"
#include "probes/thread_iterator.h"
#include "python/python.h"
#include "python/python_reader.h"
#include "recording/machine_facts.h"
#include "recording/recording.h"
#include "session/consumers.h"
#include "session/hold_looks.h"
#include "session/jvm_names.h"
#include "session/rested.h"
#include "session/run_facts.h"
#include "session/progress.h"
#include "session/slice_writer.h"
#include "session/watchdog.h"
#include "symbols/symbolize.h"
#include "targets/observers.h"
#include "targets/targets.h"

struct session *session_new(const struct session_config *config)
{
	struct session *session = g_new0(struct session, 1);

	session->config = *config;
	session->signal_fd = -1;
	return session;
}

/*
 * ---- steps ----
 *
 * In the order of session_record(). Each returns an exit status, after one message where it is not
 * 0; session_close() may follow any of them.
 */

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

/* Targets exist; the recording is created. */
static int step_open(struct session *session)
{
	int err;

	own_limits_lift();
	err = open_signals(session);
	if (err) {
		message("cannot wait for signals: %s", strerror(-err));
		return STATUS_FAILED;
	}
	session->recording =
		session->config.redact ?
			recording_create_redacted(session->config.output, session->config.force) :
			recording_create(session->config.output, session->config.force);
	if (session->recording && session->config.max_bytes)
		recording_limit(session->recording, session->config.max_bytes);
	return session->recording ? STATUS_DONE : STATUS_FAILED;
}

static struct probe_set probes_wanted(const struct session_config *config)
{
	return (struct probe_set){
		.faults = config->faults,
		.mappings = config->mappings,
		.samples = config->samples,
		.reads = config->reads,
	};
}

static struct price_key price_key(const struct session *session)
{
	return (struct price_key){
		.mechanism = session->mechanism,
		.uprobes = session->config.uprobes,
		.set = probes_wanted(&session->config),
	};
}

/* What this kernel can do; calibration without probes. */
static int step_prepare(struct session *session)
{
	int err = pagetable_find(&session->pagetable);
	struct price_key key;

	if (err) {
		message("cannot read page tables here: %s",
			err == -EPERM ? "no privilege (CAP_BPF, CAP_PERFMON)" : strerror(-err));
		return STATUS_UNSUPPORTED;
	}
	session->mechanism = uprobe_mechanism_find();
	key = price_key(session);
	if (!session->config.counts_only &&
	    !price_cache_read(&key, &session->prices, &session->prices_age_s)) {
		session->calibration = calibration_begin();
		if (!session->calibration)
			return STATUS_FAILED;
	}
	if (session->config.command) {
		session->launch =
			launch_new(session->config.command, &session_launch_events, session);
		if (!session->launch)
			return STATUS_UNSUPPORTED;
	}
	return STATUS_DONE;
}

static void pay_starts(struct session *session, uint64_t every_ns)
{
	session->bpf->bss->start_every_ns = every_ns;
	if (session->launch)
		launch_pay_starts(session->launch, every_ns);
}

/* BPF programs. */
static int step_load(struct session *session)
{
	const struct session_config *config = &session->config;
	const bool small = own_limits_are_small(config->buffer_bytes);
	const char *refused;

	session->bpf = programs_load(
		&(struct programs_config){
			.pagetable = &session->pagetable,
			.mechanism = session->mechanism,
			.min_size = config->min_size,
			.sample = config->sample,
			.buffer_bytes = config->buffer_bytes ? config->buffer_bytes :
					small		     ? BUFFER_SMALL :
							       BUFFER_DEFAULT,
			.stacks = small ? STACKS_SMALL : 0,
			.uprobes = config->uprobes,
			.faults = config->faults,
			.mappings = config->mappings,
			.samples = config->samples,
			.reads = config->reads,
		},
		&refused);
	if (session->bpf) {
		sums_take_memory(session->bpf->obj);
		if (config->overhead_limit > 0 || !config->uprobes)
			pay_starts(session, starts_paid_every_ns(config->overhead_limit));
		return STATUS_DONE;
	}
	message("this kernel refuses the BPF programs%s%s: %s; see memtoll doctor",
		refused ? ", first " : "", refused ? refused : "", strerror(errno));
	return STATUS_UNSUPPORTED;
}

static int open_consumers(struct session *session)
{
	session->symbolizer = symbolizer__new();
	session->python = python_new();
	session->python_reader =
		python_reader_start(bpf_map__fd(session->bpf->maps.pythons), session->python);
	if (!session->python_reader)
		return -errno;
	session->observers = observers_new();
	session->consumers = consumers_new(&(struct consumers_config){
		.bpf = session->bpf,
		.recording = session->recording,
		.symbolizer = session->symbolizer,
		.python = session->python,
		.observers = session->observers,
		.min_size = session->config.min_size,
		.sample = session->config.sample,
	});
	if (session->config.jvm_perfmap)
		session->jvm_names = jvm_names_new(session->symbolizer, session->observers);
	session->swap_devices = swap_devices_read();
	session->memory_cgroups = memory_cgroups_new();
	probe_groups_order(session->config.place);
	session->targets = targets_new(&(struct targets_config){
		.bpf = session->bpf,
		.python = session->python,
		.recording = session->recording,
		.memory_cgroups = session->memory_cgroups,
		.thresholds = session->consumers->thresholds,
		.observers = session->observers,
		.mechanism = session->mechanism,
		.place = session->config.place,
		.min_size = session->config.min_size,
		.held = session->launch != NULL,
		.uprobes = session->config.uprobes,
		.maps_reported = session->config.mappings,
		.start_every_ns = session->bpf->bss->start_every_ns,
		.looked_at = session_adopt,
		.looked_context = session,
	});
	session->budget = budget_new(
		&(struct budget_config){
			.bpf = session->bpf,
			.probes = session->probes,
			.targets = session->targets,
			.recording = session->recording,
			.limit = session->config.overhead_limit,
			.command = session->launch != NULL,
			.may_leave_calls = session->config.may_leave_calls,
		},
		&session->prices);
	session->writer = slice_writer_new(&(struct slice_writer_config){
		.bpf = session->bpf,
		.recording = session->recording,
		.symbolizer = session->symbolizer,
		.python = session->python,
		.python_reader = session->python_reader,
		.jvm_names = session->jvm_names,
		.targets = session->targets,
		.budget = session->budget,
		.consumers = session->consumers,
		.service = session_service_targets,
		.service_context = session,
	});
	session->dispatch = (struct dispatch){
		.consumers = session->consumers,
		.targets = session->targets,
		.observers = session->observers,
		.swap_devices = session->swap_devices,
		.swap_types_seen = session->swap_types_seen,
		.launched = session->launch != NULL,
		.adopt = session_adopt,
		.started = session_started,
		.adopt_context = session,
	};
	session->ring = ring_buffer__new(bpf_map__fd(session->bpf->maps.events), dispatch_event,
					 &session->dispatch, NULL);
	return session->ring ? 0 : -errno;
}

/* Not after ours have ended. */
static void record_counts(struct session *session)
{
	if (session->counts_ended)
		return;
	system_counters_record(session->system, session->recording);
	memory_cgroups_record(session->memory_cgroups, session->recording);
}

void session_record_state(struct session *session)
{
	record_counts(session);
	if (session->probes && session->config.faults && !session->swap_in_counted &&
	    probes_follow_swap(session->probes)) {
		session->swap_in_counted = true;
		recording_meta(session->recording, "swap_in_counted", "1");
	}
	/* Devices were added or removed: numbers seen before may mean others now. */
	if (swap_devices_refresh(session->swap_devices))
		memset(session->swap_types_seen, 0, sizeof(session->swap_types_seen));
	swap_devices_record(session->swap_devices, session->swap_types_seen, session->recording);
	if (session->launch)
		recording_meta_int(session->recording, "held_ns", launch_held_ns(session->launch));
}

/* Asked to end before there is anything to record. */
static bool is_interrupted(struct session *session)
{
	struct signalfd_siginfo info;

	while (read(session->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		message("ended while attaching: nothing was recorded");
		return true;
	}
	return false;
}

/* What the machine swapped and threw out since the probes were attached is none of it. */
static void forget_others(struct memtoll_bpf *bpf)
{
	sums_forget(bpf->maps.swaps);
	sums_forget(bpf->maps.swaps_shared);
	sums_forget(bpf->maps.drops);
	sums_forget(bpf->maps.drops_shared);
}

/* What ours are compared with: the machine's counts and the groups' begin as the targets' do. */
static void begin_counts(struct session *session)
{
	g_clear_pointer(&session->system, system_counters_free);
	session->system = system_counters_read();
	memory_cgroups_rebase(session->memory_cgroups);
	forget_others(session->bpf);
}

/* Counting ends in the recording before once it has begun in this one. */
static void begin_coming(struct session *session)
{
	const struct session_watch *watch = session->config.watch;

	if (watch)
		watch->ready(watch->context);
	begin_counts(session);
	session->first_ns = now_ns();
}

static int add_targets(struct session *session)
{
	const struct session_config *config = &session->config;
	size_t i;
	int err;

	for (i = 0; i < config->pid_count; i++) {
		if (is_interrupted(session))
			return STATUS_FAILED;
		targets_prepare(session->targets, config->pids[i]);
	}
	if (!config->cgroup && !config->watch)
		begin_counts(session);
	for (i = 0; i < config->pid_count; i++) {
		err = targets_publish(session->targets, config->pids[i]);
		if (err) {
			message("cannot follow process %d: %s", config->pids[i], strerror(-err));
			return STATUS_FAILED;
		}
	}
	if (config->cgroup)
		session_note_cgroup(session);
	if (config->cgroup || config->watch)
		session_add_coming(session, begin_coming);
	if (config->watch)
		config->watch->begun(config->watch->context, session->first_ns);
	if (config->cgroup) {
		recording_meta(session->recording, "cgroup", config->cgroup);
		if (config->container)
			recording_meta(session->recording, "container", config->container);
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

	if (session->config.uprobes && without && !session->config.watch)
		message("no allocator whose functions can be probed was found in %u of %u "
			"processes: faults, mapping calls and samples only",
			without, targets_count(session->targets));
}

static void add_pid(void *pids, struct target *target)
{
	if (!target->exited)
		g_array_append_val(pids, target->pid);
}

/* At the start, and again at the end, as others may have been started since. */
static void report_other_tracers(struct session *session)
{
	g_autoptr(GArray) pids = NULL;
	struct bpf_map_info own = {};
	uint32_t size = sizeof(own);
	pid_t shared;

	if (session->others_reported ||
	    bpf_obj_get_info_by_fd(bpf_map__fd(session->bpf->maps.processes), &own, &size))
		return;
	pids = g_array_new(FALSE, FALSE, sizeof(pid_t));
	targets_each(session->targets, add_pid, pids);
	shared = other_tracers_share(pids, own.id, session->config.watch);
	if (!shared)
		return;
	session->others_reported = true;
	message("another memtoll traces process %d, too: the overhead limit holds for each by itself",
		shared);
	recording_meta_int(session->recording, "other_tracer_of", shared);
}

/* What a hit costs: as it was measured before, or with the probes that are attached now. */
static int find_prices(struct session *session)
{
	const struct price_key key = price_key(session);

	if (!session->calibration) {
		calibration_apply(session->bpf, &session->prices);
		return probes_begin_faults(session->probes);
	}
	if (calibration_run(session->calibration, session->bpf, session->mechanism, session->probes,
			    session->config.uprobes, &session->prices))
		return -1;
	calibration_end(session->calibration);
	session->calibration = NULL;
	price_cache_write(&key, &session->prices, &session->prices_age_s);
	calibration_apply(session->bpf, &session->prices);
	return 0;
}

/* Probes; what they cost; counting begins. */
static int step_attach(struct session *session)
{
	const struct session_config *config = &session->config;
	const struct probe_set set = probes_wanted(config);
	struct memtoll_rates rates;
	int status;

	session->probes = probes_attach(session->bpf, &set);
	if (!session->probes)
		return STATUS_UNSUPPORTED;
	if (find_prices(session))
		return STATUS_UNSUPPORTED;
	if (open_consumers(session)) {
		message("cannot open the ring buffer: %s", strerror(errno));
		return STATUS_FAILED;
	}
	session->start_ns = now_ns();
	session->slice_start_ns = session->start_ns;
	if (config->hold_ns)
		session->hold_looks = hold_looks_new(config->hold_ns);
	begin_counts(session);
	run_start_record(session->recording, config, session->mechanism, session->start_ns);
	session_record_state(session);
	if (!config->counts_only &&
	    run_prices_record(session->recording, &session->prices, session->prices_age_s))
		return STATUS_FAILED;
	session_switch_window(session, true);
	/* The calibration's faults were counted, too. */
	rates_read(session->bpf, &rates);
	fault_window_begin(&session->window, session->start_ns,
			   rates.faults + rates.passed_faults + rates.rested_faults);
	budget_begin(session->budget);
	/*
	 * -d counts from when all is attached: that takes long in a large program, within bounds.
	 */
	if (config->duration_ns)
		watchdog_attach_by(session->watchdog,
				   session->start_ns +
					   MAX(config->duration_ns, WATCHDOG_ATTACH_MS * MS));
	progress_attaching(config, "its code and its allocator");
	/* No ring buffer fills meanwhile, and what is not found in a process now is long unknown. */
	timed_calls_be_patient(1);
	status = is_interrupted(session) ? STATUS_FAILED : add_targets(session);
	timed_calls_be_patient(0);
	if (!status)
		report_other_tracers(session);
	if (config->duration_ns) {
		session->end_due_ns = now_ns() + config->duration_ns;
		watchdog_due(session->watchdog, session->end_due_ns);
	}
	if (!status && !session->launch)
		warn_without_allocator(session);
	privileges_keep(PRIVILEGES_FOLLOW);
	return status;
}

/*
 * Stop counting first, so that our counters and the kernel's end at the same moment: a thread's
 * when the iterator comes to it.
 */
static void stop_counting(struct session *session)
{
	bool counted;

	if (!session->bpf || !session->targets || session->bpf->bss->stopped == STOPPED)
		return;
	session->bpf->bss->stopping_ns = now_ns();
	session->bpf->bss->stopped = STOPPING;
	counted = !threads_iterate(session->bpf);
	session->bpf->bss->stopped = STOPPED;
	targets_end_counting(session->targets, counted);
	record_counts(session);
	session->counts_ended = true;
}

static void detach(struct session *session)
{
	if (session->targets)
		targets_detach(session->targets);
	probes_detach(session->probes);
	session->probes = NULL;
	uprobe_detach_finish();
}

/* A command that ptrace holds would not answer. */
static void keep_alive(void *context)
{
	struct session *session = context;

	watchdog_alive(session->watchdog);
	if (session->launch)
		launch_poll(session->launch);
}

/* The last slice; the recording is complete. */
static int step_finish(struct session *session)
{
	struct recording *recording = session->recording;
	const char *reason = session->end_reason;
	struct memtoll_rates rates;
	uint64_t end;
	int err;

	budget_end(session->budget);
	stop_counting(session);
	end = now_ns();
	progress_ending(&session->config, "detaching");
	detach(session);
	report_other_tracers(session);
	priority_end(&session->priority);
	watchdog_finishing(session->watchdog);
	threads_iterate(session->bpf);
	ring_buffer__consume(session->ring);
	rates_read(session->bpf, &rates);
	ledger_unspoken(session->consumers->ledger, 0, rates.passed_open, true);
	if (rates.passed_reads_open)
		consumers_lose(session->consumers, LOST_READS_PASSED, rates.passed_reads_open);
	rested_settle(session->bpf, session->targets, session->consumers->ledger, true);
	if (session->jvm_names) {
		progress_ending(&session->config, "names of Java's code");
		jvm_names_end(session->jvm_names, keep_alive, session);
	}
	session_end_command(session);
	if (session->launch)
		warn_without_allocator(session);
	session_record_state(session);
	/* Processes of the command that live on are not held while the rest is written. */
	g_clear_pointer(&session->launch, launch_free);
	if (session->hold_looks) {
		progress_ending(&session->config, "who holds the memory");
		hold_looks_end(session->hold_looks, session->targets);
		hold_looks_write(session->hold_looks, recording, session->consumers);
	}
	progress_ending(&session->config, "names of code");
	if (session->jvm_names)
		jvm_names_write(session->jvm_names, recording);
	err = slice_commit(session->writer, session->slice_start_ns, end);
	if (!err)
		progress_recorded(session->progress, recording_database(recording));
	g_clear_pointer(&session->progress, progress_free);
	/* Nothing is read of any process after this, nor by this thread. */
	g_clear_pointer(&session->python_reader, python_reader_stop);
	timed_call_finish();
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
	progress_ending(&session->config, NULL);
	return err ? STATUS_FAILED : STATUS_DONE;
}

void session_close(struct session *session)
{
	stop_counting(session);
	detach(session);
	priority_end(&session->priority);
	watchdog_finishing(session->watchdog);
	g_clear_pointer(&session->launch, launch_free);
	g_clear_pointer(&session->progress, progress_free);
	g_clear_pointer(&session->hold_looks, hold_looks_free);
	uprobe_detach_finish_dead();
	g_clear_pointer(&session->calibration, calibration_end);
	g_clear_pointer(&session->ring, ring_buffer__free);
	g_clear_pointer(&session->writer, slice_writer_free);
	g_clear_pointer(&session->budget, budget_free);
	g_clear_pointer(&session->targets, targets_free);
	g_clear_pointer(&session->jvm_names, jvm_names_free);
	g_clear_pointer(&session->consumers, consumers_free);
	g_clear_pointer(&session->observers, observers_free);
	g_clear_pointer(&session->memory_cgroups, memory_cgroups_free);
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
	g_free(session->cgroup_again);
	g_free(session);
}

int session_record(struct session *session)
{
	int status = step_open(session), last;

	if (!status)
		session->progress = progress_new(&session->config);
	if (!status)
		status = step_prepare(session);
	watchdog_alive(session->watchdog);
	if (!status) {
		progress_attaching(&session->config, "loading");
		status = is_interrupted(session) ? STATUS_FAILED : step_load(session);
	}
	watchdog_alive(session->watchdog);
	if (!status) {
		progress_attaching(&session->config, "what probes cost here");
		status = is_interrupted(session) ? STATUS_FAILED : step_attach(session);
	}
	if (status) {
		progress_ending(&session->config, NULL);
		return status;
	}
	status = session_run(session);
	/* After a failed write the recording is still finished, but the failure is the status. */
	last = step_finish(session);
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
