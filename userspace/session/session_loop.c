// SPDX-License-Identifier: GPL-2.0
/*
 * session_loop.c: from the first slice to the last: windows, signals, processes that come, slices
 * that end; the rest of the session is in session.c.
 */
#include "session/session_internal.h"

#include <bpf/libbpf.h>
#include <glib.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/message.h"
#include "bpf/wire/faults.h"
#include "budget/budget_executor.h"
#include "events/rates.h"
#include "host/cgroup.h"
#include "ledger/ledger.h"
#include "memtoll.skel.h"
#include "probes/syscalls.h"
#include "session/consumers.h"
#include "session/hold_looks.h"
#include "session/huge_looks.h"
#include "session/jvm_names.h"
#include "session/progress.h"
#include "session/kernel_stacks.h"
#include "session/rested.h"
#include "session/slice_writer.h"
#include "session/watchdog.h"
#include "targets/targets.h"

#define SLICE_NS (1000 * MS)
/* A program that ends soon has some slices, too, to be told apart in time and to be compared by. */
#define EARLY_NS (5 * SLICE_NS)
#define EARLY_SLICE_NS (500 * MS)
/*
 * Rows and stacks of dead processes leave the kernel's tables with the end of slices: those are
 * shorter where many die, and shortest where they leave so many stacks that these could fill it.
 */
#define SHORT_SLICE_NS (250 * MS)
#define SHORTEST_SLICE_NS (50 * MS)
#define DEAD_MANY 50
#define STACKS_MANY 8192     /* since the last slice: the table holds those of three and more */
#define POLL_NS (20 * MS)    /* how long records may wait in the ring buffer */
#define CGROUP_NS (100 * MS) /* how often a cgroup is asked for new processes */
#define KEEP_UP_NS (5 * MS)  /* how often targets are serviced while a slice is written */
#define SIZES_NS (100 * MS)  /* how often processes are asked for their sizes */
#define WINDOW_LATE_NS (1000 * MS) /* a window of timed faults ends by itself if we are so late */
#define WINDOW_WAIT_NS (500 * MS)  /* how long a slice may wait for a window to end */

uint64_t session_step_budget(struct session *session)
{
	uint64_t next_ns = budget_step(session->budget);

	if (budget_has_thinned(session->budget))
		ledger_thinned(session->consumers->ledger);
	session->windows_seen_ns = now_ns();
	return next_ns;
}

void session_switch_window(struct session *session, bool open)
{
	int err = probes_window(session->probes, open);

	if (err)
		consumers_lose(session->consumers, LOST_WINDOW_SHUT, 1);
	/* Out of descriptors: the last one is for the recording. */
	budget_window(session->budget, open && !err);
}

void session_move_window(struct session *session, uint64_t now)
{
	struct fault_window *window = &session->window;
	bool open = window->open;

	window->rests =
		session->bpf->bss->faults_rest == FAULTS_REST || probes_calls_rest(session->probes);
	budget_window_until(session->budget, now + WINDOW_LATE_NS);
	fault_window_step(window, now, window->first ? targets_cpu_ns(session->targets) : 0,
			  g_random_double());
	if (window->open == open)
		return;
	if (window->timed)
		session_switch_window(session, window->open);
	else if (probes_see(session->probes, window->open))
		consumers_lose(session->consumers, LOST_WINDOW_SHUT, 1);
}

/*
 * Code that targets map now wants its unwind table now: until then stacks through it are cut off.
 */
static void keep_up(struct session *session)
{
	ring_buffer__consume(session->ring);
	targets_refresh(session->targets);
}

void session_service_targets(void *context)
{
	struct session *session = context;
	uint64_t now = now_ns();

	watchdog_alive(session->watchdog);
	if (!session->probes || now - session->kept_up_ns < KEEP_UP_NS)
		return;
	keep_up(session);
	session_step_budget(session);
	session_move_window(session, now);
	session->kept_up_ns = now_ns();
}

static bool find_coming(const struct session_config *config, GArray *pids)
{
	if (!config->watch)
		return !cgroup_processes(config->cgroup, pids);
	config->watch->find(config->watch->context, pids);
	return true;
}

bool session_add_coming(struct session *session, void (*begin)(struct session *session))
{
	g_autoptr(GArray) pids = g_array_new(FALSE, FALSE, sizeof(pid_t));
	guint i;

	if (!find_coming(&session->config, pids))
		return false;
	for (i = 0; i < pids->len; i++) {
		pid_t pid = g_array_index(pids, pid_t, i);

		if (pid != getpid() && targets_is_new(session->targets, pid))
			targets_prepare(session->targets, pid);
		else
			g_array_index(pids, pid_t, i) = 0;
	}
	if (begin)
		begin(session);
	for (i = 0; i < pids->len; i++)
		if (g_array_index(pids, pid_t, i))
			targets_publish(session->targets, g_array_index(pids, pid_t, i));
	return true;
}

/* Faults; and reads, where they are seen in windows, too, which are as long as both need. */
static uint64_t seen_in_windows(const struct session *session, const struct memtoll_rates *rates)
{
	uint64_t events = rates->faults + rates->passed_faults + rates->rested_faults;

	if (session->bpf->bss->calls_rest)
		events += rates->reads + rates->passed_reads + rates->rested_reads;
	return events;
}

/* With the slice that begins, unless that was short, or so often in a long one. */
static void adapt_window(struct session *session, uint64_t now, uint64_t after_ns)
{
	struct memtoll_rates rates;

	if (session->window.slice_ns != session->start_ns &&
	    now - session->window.slice_ns < after_ns)
		return;
	rates_read(session->bpf, &rates);
	fault_window_slice(&session->window, now, seen_in_windows(session, &rates));
}

static int commit_slice(struct session *session, uint64_t now)
{
	int err;

	adapt_window(session, now, SHORT_SLICE_NS);
	keep_up(session);
	targets_read_counters(session->targets);
	session_record_state(session);
	budget_end_slice(session->budget);
	if (session->hold_looks)
		hold_looks_write(session->hold_looks, session->recording, session->consumers);
	if (session->jvm_names)
		jvm_names_write(session->jvm_names, session->recording);
	rested_settle(session->bpf, session->targets, session->consumers->ledger, false);
	err = slice_commit(session->writer, session->slice_start_ns, now);
	session->slice_start_ns = now;
	priority_step(&session->priority);
	if (!err)
		progress_recording(session->progress, recording_database(session->recording),
				   session->end_due_ns ?
					   now + session->config.duration_ns - session->end_due_ns :
					   now - session->start_ns);
	return err;
}

static uint64_t slice_length(const struct session *session)
{
	if (session->config.slice_ns)
		return session->config.slice_ns;
	return session->slice_start_ns - session->start_ns < EARLY_NS ? EARLY_SLICE_NS : SLICE_NS;
}

static bool is_crowded(const struct session *session, uint64_t age)
{
	if (age < SHORTEST_SLICE_NS || targets_dead(session->targets) <= DEAD_MANY)
		return false;
	return age >= SHORT_SLICE_NS ||
	       kernel_stacks_dead(session->consumers->kernel_stacks) > STACKS_MANY;
}

/*
 * At a slice's end threads are asked for their open runs, which come with their next fault; what
 * has come by the next round of the loop belongs to the slice. The first slice is the first window:
 * its faults are all timed, those of later slices in part, and each slice's figures are weighed by
 * themselves.
 */
static int move_slice(struct session *session, uint64_t now)
{
	uint64_t age = now - session->slice_start_ns, length = slice_length(session);
	bool first = session->slice_start_ns == session->start_ns && !session->window.first;

	if (age < length && !first && !is_crowded(session, age))
		return 0;
	/* Writing takes long, and a window that stays open for it costs the target. */
	if (budget_in_window(session->budget) && age < length + WINDOW_WAIT_NS)
		return 0;
	session->draining = !session->draining;
	if (!session->draining)
		return commit_slice(session, now);
	session->bpf->bss->drain_epoch++;
	return 0;
}

bool session_read_signals(struct session *session)
{
	struct signalfd_siginfo info;
	bool over = false;

	while (read(session->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		session->end_reason = session->config.watch ? "rotated" : "signal";
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
	if (session->config.cgroup || session->config.watch)
		goto time; /* processes may yet come */
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

/* Sleep until there is work: a signal, records, the edge of a window, the end of the slice. */
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

/* Processes that were moved into the cgroup, or came; false: it was removed. */
static bool follow_coming(struct session *session, uint64_t now)
{
	if (now - session->cgroup_read_ns < CGROUP_NS)
		return true;
	session->cgroup_read_ns = now;
	if (session->config.container)
		return session_follow_container(session, now);
	if (session_add_coming(session, NULL))
		return true;
	session->end_reason = "cgroup removed";
	return false;
}

int session_run(struct session *session)
{
	uint64_t now = now_ns();
	int err = 0;

	priority_begin(&session->priority);
	while (!err && !session_read_signals(session) && !is_over(session, now)) {
		watchdog_alive(session->watchdog);
		wait_for_work(session, now, session_step_budget(session));
		/* First of all: a window that ends late costs the target. */
		session_move_window(session, now_ns());
		keep_up(session);
		now = now_ns();
		huge_looks_look(session->consumers->huge_looks, now);
		if (session->hold_looks)
			hold_looks_step(session->hold_looks, now, session->targets);
		if (session->jvm_names)
			jvm_names_step(session->jvm_names, now, session->targets);
		if ((session->config.cgroup || session->config.watch) &&
		    !follow_coming(session, now))
			break;
		if (now - session->sizes_read_ns >= SIZES_NS) {
			session->sizes_read_ns = now;
			targets_read_sizes(session->targets);
			if (session->launch) {
				launch_adopt_threads(session->launch);
				launch_follow_again(session->launch);
			}
		}
		/* Tried once: a kernel that refuses would do so again. */
		if (session->bpf->bss->lock_suspected && !session->locks_asked) {
			session->locks_asked = true;
			syscalls_follow_locks(probes_syscalls(session->probes));
		}
		if (session->bpf->bss->handler_suspected)
			probes_follow_handlers(session->probes);
		if (session->config.slice_ns > SLICE_NS && !session->window.first)
			adapt_window(session, now, SLICE_NS);
		err = move_slice(session, now);
	}
	/* As asked for; step_finish() ends the recording. */
	if (recording_is_full(session->recording))
		return STATUS_DONE;
	if (err)
		session->end_reason = "the recording could not be written";
	return err ? STATUS_FAILED : STATUS_DONE;
}
