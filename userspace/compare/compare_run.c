// SPDX-License-Identifier: GPL-2.0
#include "compare/compare_run.h"

#include <errno.h>
#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "compare/setting.h"
#include "host/privileges.h"

#define TERMINATE_MS 5000 /* how long a command gets to end after SIGTERM */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

bool compare_interrupted(void)
{
	return interrupted;
}

void compare_catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

const char *compare_side_name(enum compare_side side)
{
	return side == WITH ? "with" : "without";
}

static double now_s(void)
{
	return now_ns() / 1e9;
}

/*
 * In the child: its environment, and nowhere to write to but stderr, or what there is (relay()). The
 * command to run, never freed.
 */
static char **enter(const struct compare_plan *plan, enum compare_side side)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char **command;

	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	/* One that came since the fork has been caught, and would be forgotten. */
	if (interrupted)
		_exit(STATUS_FAILED);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    (!plan->shows_output && dup2(null, STDOUT_FILENO) < 0)) {
		message("cannot run '%s' without input: /dev/null: %s", plan->command[0],
			strerror(errno));
		_exit(STATUS_FAILED);
	}
	if (side != WITH || !plan->changes)
		return plan->command;
	command = setting_command(plan->command, plan->changes, environ);
	setting_enter(plan->changes);
	return command;
}

/* Wait until the process has ended, for so long; -1: for ever. False: it goes on. */
static bool wait_end(int pidfd, int timeout_ms)
{
	struct pollfd fd = { .fd = pidfd, .events = POLLIN };

	return poll(&fd, 1, timeout_ms) == 1;
}

/* " without the change" */
static char *said_side(const struct compare_plan *plan, enum compare_side side)
{
	return plan->changes ? g_strdup_printf(" %s the change", compare_side_name(side)) :
			       g_strdup("");
}

/* What there is to say of a command's end; STATUS_DONE where it is as it should be. */
static int judge(const struct compare_plan *plan, enum compare_side side, int wait_status,
		 bool we_ended_it)
{
	g_autofree char *where = said_side(plan, side);

	if (we_ended_it || (WIFEXITED(wait_status) && !WEXITSTATUS(wait_status)))
		return STATUS_DONE;
	if (WIFSIGNALED(wait_status))
		message("%s: '%s' was ended by signal %d%s", plan->who, plan->command[0],
			WTERMSIG(wait_status), where);
	else
		message("%s: '%s' failed%s (exit status %d)", plan->who, plan->command[0], where,
			WEXITSTATUS(wait_status));
	return STATUS_FAILED;
}

/* Let it run for the time given, if one is; true: it was ended by us. */
static bool let_run(const struct compare_plan *plan, pid_t pid, int pidfd)
{
	double until =
		plan->tracing.duration_ns ? now_s() + plan->tracing.duration_ns / 1e9 : INFINITY;

	while (!interrupted) {
		double left = until - now_s();

		/* Not for ever: a signal may come just before the wait. */
		if (left > 0 && wait_end(pidfd, MIN(left * 1e3 + 1, 500)))
			return false;
		if (left <= 0)
			break;
	}
	kill(pid, SIGTERM);
	if (!wait_end(pidfd, TERMINATE_MS))
		kill(pid, SIGKILL);
	return true;
}

int compare_run_plain(const struct compare_plan *plan, enum compare_side side,
		      struct plain_run *run)
{
	int error[2] = { -1, -1 }, pidfd = -1, wait_status = 0, err = 0, status = STATUS_FAILED;
	struct rusage usage;
	bool ended = false;
	double start;
	pid_t pid;

	if (pipe2(error, O_CLOEXEC)) {
		message("cannot make a pipe: %s", strerror(errno));
		return STATUS_FAILED;
	}
#ifdef __GLIBC__
	/* Its peak is at least what memory it had before exec (exec_mmap()): a copy of this process. */
	malloc_trim(0);
#endif
	start = now_s();
	pid = fork();
	if (!pid) {
		char **command = enter(plan, side);

		privileges_keep_from_command();
		execvp(command[0], command);
		err = errno;
		_exit(write(error[1], &err, sizeof(err)) == sizeof(err) ? 127 : 126);
	}
	close(error[1]);
	if (pid < 0) {
		message("cannot fork: %s", strerror(errno));
		goto out;
	}
	if (read(error[0], &err, sizeof(err)) == sizeof(err)) {
		message("cannot run '%s': %s", plan->command[0], strerror(err));
		waitpid(pid, NULL, 0);
		goto out;
	}
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	ended = let_run(plan, pid, pidfd);
	while (wait4(pid, &wait_status, 0, &usage) < 0 && errno == EINTR)
		;
	run->wall_s = now_s() - start;
	run->cpu_s = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
		     (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	run->max_rss_bytes = usage.ru_maxrss * 1024.0;
	run->minor_faults = usage.ru_minflt;
	run->major_faults = usage.ru_majflt;
	status = judge(plan, side, wait_status, ended);
out:
	close(error[0]);
	if (pidfd >= 0)
		close(pidfd);
	return status;
}

/* In the child: record, and tell by the exit status how it went. */
static int trace(const struct compare_plan *plan, enum compare_side side, const char *path)
{
	struct session_config config = plan->tracing;
	struct session *session;
	int status, wait_status = 0;

	config.command = enter(plan, side);
	config.output = path;
	session = session_new(&config);
	status = session_record(session);
	/* A command that is asked to end when its time is over has not failed. */
	if (!status && !config.duration_ns && session_command_status(session, &wait_status))
		status = judge(plan, side, wait_status, false);
	session_close(session);
	session_free(session);
	return status;
}

/* So much of it goes to stderr. */
static void write_all(const char *text, ssize_t length)
{
	struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };
	ssize_t written, at = 0;

	while (at < length) {
		written = write(STDERR_FILENO, text + at, length - at);
		if (written < 0 && errno == EAGAIN && !interrupted)
			poll(&fd, 1, 500); /* whoever gave it to us made it so */
		else if (written < 0 && (errno != EINTR || interrupted))
			break; /* nobody reads it: the run goes on */
		at += MAX(written, 0);
	}
}

/* Some of what there is to read goes to stderr. How much; 0: there will be no more. */
static ssize_t pass_on(int from)
{
	char some[4096];
	ssize_t length;

	do {
		length = read(from, some, sizeof(some));
	} while (length < 0 && errno == EINTR);
	if (length > 0)
		status_line(NULL);
	write_all(some, length);
	return MAX(length, 0);
}

/* What was written until now, and no more: who lives on may never be silent. */
static void pass_on_rest(int from)
{
	int left = 0;
	ssize_t length = 1;

	if (ioctl(from, FIONREAD, &left))
		return;
	while (left > 0 && length > 0) {
		length = pass_on(from);
		left -= length;
	}
}

/*
 * While the child runs, what it and its command write goes to our stderr, by way of a pipe: what a
 * program allocates depends on what it writes to, and a terminal, a file and the log of a server
 * would each have counts of their own. Who outlives the command is not waited for.
 */
static void relay(int from, pid_t pid)
{
	struct pollfd fds[] = { { .fd = from, .events = POLLIN },
				{ .fd = syscall(SYS_pidfd_open, pid, 0), .events = POLLIN } };
	void (*on_pipe)(int) = signal(SIGPIPE, SIG_IGN); /* the child's is as it was */
	bool ended = false, asked = false;

	while (!ended) {
		/* Not for ever: a signal may come just before the wait. */
		poll(fds, 2, 500);
		if (interrupted && !asked)
			kill(pid, SIGTERM); /* it finishes its recording */
		asked |= interrupted;
		ended = fds[1].fd < 0 || fds[1].revents;
		if (ended)
			pass_on_rest(from);
		else if (fds[0].revents && !pass_on(from))
			fds[0].fd = -1;
		fds[0].revents = 0;
	}
	signal(SIGPIPE, on_pipe);
	if (fds[1].fd >= 0)
		close(fds[1].fd);
}

int compare_run_traced(const struct compare_plan *plan, enum compare_side side, const char *path)
{
	int wait_status = 0, output[2] = { -1, -1 };
	pid_t pid;

	if (plan->shows_output && pipe2(output, O_CLOEXEC)) {
		message("cannot make a pipe: %s", strerror(errno));
		return STATUS_FAILED;
	}
	pid = fork();
	if (!pid) {
		if (plan->shows_output &&
		    (dup2(output[1], STDOUT_FILENO) < 0 || dup2(output[1], STDERR_FILENO) < 0))
			_exit(126);
		_exit(trace(plan, side, path));
	}
	if (plan->shows_output)
		close(output[1]);
	if (pid < 0)
		message("cannot fork: %s", strerror(errno));
	else if (plan->shows_output)
		relay(output[0], pid);
	if (plan->shows_output)
		close(output[0]);
	if (pid < 0)
		return STATUS_FAILED;
	while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
		if (interrupted)
			kill(pid, SIGTERM);
	if (WIFEXITED(wait_status))
		return WEXITSTATUS(wait_status);
	message("%s: the tracer was ended by signal %d", plan->who, WTERMSIG(wait_status));
	return STATUS_FAILED;
}

void compare_remove_temporary(const char *directory)
{
	GDir *entries = g_dir_open(directory, 0, NULL);
	const char *name;

	while (entries && (name = g_dir_read_name(entries))) {
		g_autofree char *path = g_build_filename(directory, name, NULL);

		unlink(path);
	}
	if (entries)
		g_dir_close(entries);
	rmdir(directory);
}
