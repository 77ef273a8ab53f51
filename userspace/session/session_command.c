// SPDX-License-Identifier: GPL-2.0
/*
 * session_command.c: what ptrace reports of a launched command, and its end; the rest of the
 * session is in session.c.
 */
#include "session/session_internal.h"

#include <bpf/libbpf.h>
#include <poll.h>

#include "base/message.h"
#include "python/python_reader.h"
#include "session/slice_writer.h"
#include "session/watchdog.h"
#include "targets/targets.h"

#define HELD_NS (20 * MS)	 /* how long windows may wait while a process is held */
#define TERMINATE_NS (5000 * MS) /* how long a command gets to end after SIGTERM */

/* Before a process that was held for long continues: bring windows to where they should be. */
static void let_go_on(struct session *session)
{
	/* At the end probes are gone, while the command is still waited for. */
	if (!session->probes || now_ns() - session->windows_seen_ns < HELD_NS)
		return;
	session_step_budget(session);
	session_move_window(session, now_ns());
}

static bool launched_exec(void *context, pid_t pid, pid_t caller, uint64_t loader, bool may_signal)
{
	struct session *session = context;
	bool will_signal;

	ring_buffer__consume(session->ring);
	python_reader_catch_up(session->python_reader);
	slice_name_stacks(session->writer, pid);
	will_signal = targets_exec_held(session->targets, pid, caller, loader, may_signal);
	let_go_on(session);
	return will_signal;
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
	targets_forked(((struct session *)context)->targets, parent, child, now_ns(), true);
	let_go_on(context);
}

static void launched_dying(void *context, pid_t tid)
{
	struct session *session = context;

	/* Name what the last records refer to while it is still in memory. */
	ring_buffer__consume(session->ring);
	python_reader_catch_up(session->python_reader);
	targets_dying(session->targets, tid);
}

static void launched_exiting(void *context, pid_t pid, int wait_status)
{
	targets_exiting(((struct session *)context)->targets, pid, wait_status, NULL);
}

const struct launch_events session_launch_events = {
	.exec = launched_exec,
	.mapped = launched_mapped,
	.started = launched_started,
	.ready = launched_ready,
	.forked = launched_forked,
	.dying = launched_dying,
	.exiting = launched_exiting,
};

void session_adopt(void *context, pid_t pid)
{
	struct session *session = context;

	if (session->launch)
		launch_adopt(session->launch, pid);
}

void session_started(void *context)
{
	struct session *session = context;

	if (session->launch)
		launch_started(session->launch);
}

void session_end_command(struct session *session)
{
	uint64_t start = now_ns();
	struct pollfd fd = { .fd = session->signal_fd, .events = POLLIN };

	if (!session->launch || session->command_ended)
		return;
	launch_terminate(session->launch);
	while (!launch_ended(session->launch, &session->command_status) &&
	       now_ns() - start < TERMINATE_NS) {
		poll(&fd, 1, session->more_waits ? 0 : 100);
		session_read_signals(session);
		watchdog_alive(session->watchdog);
	}
	session->command_ended = launch_ended(session->launch, &session->command_status);
	if (!session->command_ended)
		message("the command (pid %d) does not end on SIGTERM and is left running",
			launch_pid(session->launch));
}
