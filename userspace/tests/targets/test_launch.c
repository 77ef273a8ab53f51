// SPDX-License-Identifier: GPL-2.0
/*
 * test_launch.c: commands followed by ptrace from their first instruction to their end. This
 * program is the command, too: called with a mode, it acts it out.
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/proc.h"
#include "targets/launch.h"

#define PAGE 4096ul
#define GROWN (2003 * PAGE)
#define THREADS 7
#define CROWD 499 /* more than are held */
#define STORM 307 /* likewise, of processes */
#define AFTER 11

/* ---- the command ---- */

static pthread_barrier_t all_there;

static void *wait_forever(void *unused)
{
	pthread_barrier_wait(&all_there);
	for (;;)
		pause();
	return unused;
}

static void *end_at_once(void *argument)
{
	return argument;
}

/* Once it is followed, though nobody was held when it was made. */
static void *fork_when_followed(void *unused)
{
	struct timespec moment = { .tv_nsec = 1000000 };
	char path[64], line[128] = "";
	int followed = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", gettid());
	while (!followed) {
		nanosleep(&moment, NULL);
		file = fopen(path, "r");
		while (file && fgets(line, sizeof(line), file))
			sscanf(line, "TracerPid: %d", &followed);
		if (file)
			fclose(file);
	}
	if (!fork())
		_exit(0);
	wait(NULL);
	return unused;
}

static void *exec_true(void *unused)
{
	pthread_barrier_wait(&all_there);
	execl("/bin/true", "true", NULL);
	_exit(99);
	return unused;
}

static char *itself;

/* Makes a crowd of threads, all of them by itself, and becomes another program that makes some. */
static void *crowd_and_exec(void *unused)
{
	pthread_t thread;
	int i;

	for (i = 0; i < CROWD; i++)
		if (pthread_create(&thread, NULL, end_at_once, NULL) || pthread_join(thread, NULL))
			_exit(96);
	execl(itself, itself, "threads", NULL);
	_exit(99);
	return unused;
}

static void start_threads(unsigned int count, void *(*last)(void *))
{
	pthread_t thread;
	unsigned int i;

	pthread_barrier_init(&all_there, NULL, count + 1);
	for (i = 0; i < count; i++)
		if (pthread_create(&thread, NULL, i + 1 < count ? wait_forever : last, NULL))
			_exit(98);
	pthread_barrier_wait(&all_there);
}

/* Programs one after the other; before the last ones it stops. */
static int storm(void)
{
	int i, status;

	for (i = 0; i < STORM + AFTER; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			return 94;
		if (i == STORM - 1)
			raise(SIGSTOP);
	}
	return 41;
}

static int act(const char *mode)
{
	const struct rlimit no_core = { 0, 0 };
	char *memory =
		mmap(NULL, GROWN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;
	int i;

	if (memory == MAP_FAILED)
		return 97;
	setrlimit(RLIMIT_CORE, &no_core);
	memset(memory, 1, GROWN);
	if (!strcmp(mode, "one"))
		return 23;
	if (!strcmp(mode, "storm"))
		return storm();
	if (!strcmp(mode, "churn")) {
		for (i = 0; i < 101; i++)
			if (pthread_create(&thread, NULL, end_at_once, NULL) ||
			    pthread_join(thread, NULL))
				return 96;
		return 29;
	}
	if (!strcmp(mode, "crowd")) {
		for (i = 0; i < CROWD; i++)
			if (pthread_create(&thread, NULL,
					   i + 1 < CROWD ? end_at_once : fork_when_followed,
					   NULL) ||
			    pthread_join(thread, NULL))
				return 96;
		return 37;
	}
	if (!strcmp(mode, "crowd-exec")) {
		if (!pthread_create(&thread, NULL, crowd_and_exec, NULL))
			pthread_join(thread, NULL);
		return 95;
	}
	start_threads(THREADS, !strcmp(mode, "exec") ? exec_true : wait_forever);
	if (!strcmp(mode, "abort"))
		abort();
	if (!strcmp(mode, "leader"))
		pthread_exit(NULL);
	if (!strcmp(mode, "exec") || !strcmp(mode, "wait"))
		for (;;)
			pause();
	return 31; /* "threads": all end with the process */
}

/* ---- what was seen of it ---- */

struct seen {
	unsigned int execs, by_others, forked, dying, exiting;
	unsigned int ready, started;
	unsigned int dying_before; /* the last exec */
	bool ready_late;	   /* a thread had been seen dying */
	bool will_signal;	   /* its loader is expected to send SIGURG ... */
	bool urgent;		   /* and a signal comes as if it had */
	int64_t least_rss;	   /* at any thread's end; -1: unknown at one */
	bool died_after_end;
	int exit_status;
};

static bool on_exec(void *context, pid_t pid, pid_t caller, uint64_t loader, bool may_signal)
{
	struct seen *seen = context;
	struct maps maps = {};

	seen->execs++;
	seen->by_others += caller != pid;
	seen->dying_before = seen->dying;
	assert_true(may_signal);
	assert_int_equal(maps_read(pid, &maps), 0);
	assert_non_null(maps_find(&maps, loader));
	maps_free(&maps);
	if (seen->urgent)
		assert_int_equal(kill(pid, SIGURG), 0);
	return seen->will_signal;
}

static void on_nothing(void *context, pid_t pid)
{
	(void)context;
	(void)pid;
}

static void on_ready(void *context, pid_t pid)
{
	struct seen *seen = context;

	(void)pid;
	seen->ready++;
	seen->ready_late |= seen->dying > 0;
}

static bool on_started(void *context, pid_t pid)
{
	(void)pid;
	((struct seen *)context)->started++;
	return true;
}

static void on_forked(void *context, pid_t child, pid_t parent)
{
	(void)child;
	(void)parent;
	((struct seen *)context)->forked++;
}

static void on_dying(void *context, pid_t tid)
{
	struct seen *seen = context;
	struct proc_status status;

	assert_int_equal(proc_status_read(tid, &status), 0);
	if (!seen->dying++ || status.rss_bytes < seen->least_rss)
		seen->least_rss = status.rss_bytes;
	seen->died_after_end |= seen->exiting > 0;
}

static void on_exiting(void *context, pid_t pid, int wait_status)
{
	struct seen *seen = context;

	(void)pid;
	seen->exiting++;
	seen->exit_status = wait_status;
}

static const struct launch_events events = {
	.exec = on_exec,
	.mapped = on_nothing,
	.started = on_started,
	.ready = on_ready,
	.forked = on_forked,
	.dying = on_dying,
	.exiting = on_exiting,
};

static struct launch *start_as(const char *mode, struct seen *seen)
{
	char *argv[] = { "/proc/self/exe", (char *)mode, NULL };
	struct launch *launch;
	char self[4096];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(length > 0);
	self[length] = '\0';
	argv[0] = self;
	launch = launch_new(argv, &events, seen);
	assert_non_null(launch);
	assert_int_equal(launch_go(launch), 0);
	return launch;
}

static struct launch *start(const char *mode, struct seen *seen)
{
	memset(seen, 0, sizeof(*seen));
	return start_as(mode, seen);
}

/* One change of state of any child is awaited, then all that there are are handled. */
static void step(struct launch *launch)
{
	siginfo_t info;

	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL), 0);
	launch_poll(launch);
}

static int run_to_end(struct launch *launch)
{
	int status = -1;

	while (!launch_ended(launch, &status))
		step(launch);
	launch_free(launch);
	return status;
}

static unsigned int thread_count(pid_t pid)
{
	struct proc_stat stat;

	assert_int_equal(proc_stat_read(pid, 0, &stat), 0);
	return (unsigned int)stat.threads;
}

/* ---- tests ---- */

static void test_one_thread(void **state)
{
	struct seen seen;
	int status = run_to_end(start("one", &seen));

	(void)state;
	assert_int_equal(WEXITSTATUS(status), 23);
	assert_int_equal(seen.execs, 1);
	assert_int_equal(seen.ready, 1);
	assert_int_equal(seen.dying, 1);
	assert_int_equal(seen.exiting, 1);
	assert_false(seen.died_after_end);
	assert_int_equal(seen.exit_status, status);
	assert_true(seen.least_rss >= (int64_t)GROWN);
}

static char state_of(pid_t pid)
{
	struct proc_stat stat;

	assert_int_equal(proc_stat_read(pid, 0, &stat), 0);
	return stat.state;
}

/* Who is let go in a storm and stops keeps nobody from the others, and is followed again as it is. */
static void test_storm_that_stops(void **state)
{
	struct seen seen;
	struct launch *launch = start("storm", &seen);
	pid_t pid = launch_pid(launch);
	unsigned int before;
	int status;
	bool busy;

	(void)state;
	launch_pay_starts(launch, 1000000000ULL);
	while (state_of(pid) != 'T')
		step(launch);
	busy = launch_poll(launch);
	if (busy) /* or it stands in the way of the next test */
		kill(pid, SIGKILL);
	assert_false(busy);
	before = seen.forked;
	assert_in_range(before, 257, STORM - 1);
	launch_follow_again(launch);
	while (state_of(pid) != 't')
		step(launch);
	launch_poll(launch);
	assert_int_equal(kill(pid, SIGCONT), 0);
	status = run_to_end(launch);
	assert_int_equal(WEXITSTATUS(status), 41);
	assert_in_range(seen.forked, before + 1, before + AFTER);
	assert_int_equal(seen.exiting, seen.forked + 1);
}

/* Asked at the signal, which the process itself never sees: it would have to ignore it. */
static void test_loader_signals(void **state)
{
	struct seen seen = { .will_signal = true, .urgent = true };
	int status = run_to_end(start_as("one", &seen));

	(void)state;
	assert_int_equal(WEXITSTATUS(status), 23);
	assert_int_equal(seen.started, 1);
	assert_int_equal(seen.ready, 1);
}

/* One that never tells is ready at its end at the latest ... */
static void test_loader_does_not_signal(void **state)
{
	struct seen seen = { .will_signal = true };
	int status = run_to_end(start_as("one", &seen));

	(void)state;
	assert_int_equal(WEXITSTATUS(status), 23);
	assert_int_equal(seen.started, 0);
	assert_int_equal(seen.ready, 1);
	assert_false(seen.ready_late);
}

/* ... and does not have to end for it. */
static void test_loader_signals_late(void **state)
{
	struct seen seen = { .will_signal = true };
	struct launch *launch = start_as("wait", &seen);
	const struct timespec moment = { .tv_nsec = 1000000 };
	unsigned int tries;

	(void)state;
	for (tries = 0; !seen.ready && tries < 60000; tries++) {
		nanosleep(&moment, NULL);
		launch_poll(launch);
	}
	assert_int_equal(seen.ready, 1);
	assert_int_equal(kill(launch_pid(launch), SIGKILL), 0);
	run_to_end(launch);
	assert_int_equal(seen.ready, 1);
}

/* Whichever of the threads is seen first or last, the memory is whole. */
static void test_threads_end_with_the_process(void **state)
{
	struct seen seen;
	int status = run_to_end(start("threads", &seen));

	(void)state;
	assert_int_equal(WEXITSTATUS(status), 31);
	assert_int_equal(seen.dying, THREADS + 1);
	assert_int_equal(seen.exiting, 1);
	assert_true(seen.least_rss >= (int64_t)GROWN);
}

static void test_threads_come_and_go(void **state)
{
	struct seen seen;
	int status = run_to_end(start("churn", &seen));

	(void)state;
	assert_int_equal(WEXITSTATUS(status), 29);
	assert_int_equal(seen.dying, 101 + 1);
	assert_int_equal(seen.forked, 0);
	assert_true(seen.least_rss >= (int64_t)GROWN);
}

/* They are not held any more, all but the first, but those that live on are followed later on. */
static void test_a_crowd_of_threads(void **state)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	struct seen seen;
	struct launch *launch = start("crowd", &seen);
	int status = -1;

	(void)state;
	while (!launch_ended(launch, &status)) {
		nanosleep(&moment, NULL);
		launch_adopt_threads(launch);
		launch_poll(launch);
	}
	launch_free(launch);
	assert_int_equal(WEXITSTATUS(status), 37);
	assert_int_equal(seen.forked, 1);
	assert_in_range(seen.dying, 2, CROWD / 2);
	assert_int_equal(seen.exiting, 2);
	assert_true(seen.least_rss > 0);
}

static void test_abort(void **state)
{
	struct seen seen;
	int status = run_to_end(start("abort", &seen));

	(void)state;
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	assert_int_equal(seen.dying, THREADS + 1);
	assert_true(seen.least_rss >= (int64_t)GROWN);
}

static void test_kill(void **state)
{
	struct seen seen;
	struct launch *launch = start("wait", &seen);
	pid_t pid = launch_pid(launch);
	int status;

	(void)state;
	while (thread_count(pid) < THREADS + 1)
		step(launch);
	assert_int_equal(kill(pid, SIGKILL), 0);
	status = run_to_end(launch);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_int_equal(seen.exiting, 1);
}

/* The kernel ends the other threads and waits for each: those must not wait for ever. */
static void test_exec_by_a_thread(void **state)
{
	struct seen seen;
	int status = run_to_end(start("exec", &seen));

	(void)state;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(seen.execs, 2);
	assert_int_equal(seen.by_others, 1);
	assert_int_equal(seen.exiting, 1);
}

/* What the thread of a crowd no longer stopped for, the threads of the new program do again. */
static void test_exec_by_a_thread_of_a_crowd(void **state)
{
	struct seen seen;
	int status = run_to_end(start("crowd-exec", &seen));

	(void)state;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 31);
	assert_int_equal(seen.execs, 2);
	assert_int_equal(seen.by_others, 1);
	assert_int_equal(seen.dying - seen.dying_before, THREADS + 1);
	assert_int_equal(seen.exiting, 1);
}

static unsigned int traced_threads(pid_t pid)
{
	unsigned int traced = 0;
	char command[128];
	FILE *output;

	snprintf(command, sizeof(command),
		 "grep -h TracerPid /proc/%d/task/*/status | grep -cv '\t0$'", pid);
	output = popen(command, "r");
	assert_non_null(output);
	assert_int_equal(fscanf(output, "%u", &traced), 1);
	pclose(output);
	return traced;
}

/* Let go while it runs: nothing of it stays stopped, traced or waited for. */
static void test_let_go(void **state)
{
	struct seen seen;
	struct launch *launch = start("wait", &seen);
	pid_t pid = launch_pid(launch);
	int status = -1;

	(void)state;
	while (thread_count(pid) < THREADS + 1)
		step(launch);
	assert_int_equal(traced_threads(pid), THREADS + 1);
	launch_free(launch);
	assert_int_equal(traced_threads(pid), 0);
	assert_int_equal(thread_count(pid), THREADS + 1);
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

/* The same where the leader has ended and cannot stop any more. */
static void test_let_go_without_leader(void **state)
{
	struct seen seen;
	struct launch *launch = start("leader", &seen);
	pid_t pid = launch_pid(launch);
	struct proc_stat stat;
	int status = -1;

	(void)state;
	while (!seen.dying)
		step(launch);
	do
		assert_int_equal(proc_stat_read(pid, 0, &stat), 0);
	while (stat.state != 'Z');
	assert_true(seen.least_rss >= (int64_t)GROWN);
	launch_free(launch);
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

static void test_not_found(void **state)
{
	char *argv[] = { "/no/such/program", NULL };
	struct seen seen = {};
	struct launch *launch = launch_new(argv, &events, &seen);

	(void)state;
	assert_non_null(launch);
	assert_int_equal(launch_go(launch), -ENOENT);
	launch_free(launch);
	assert_int_equal(seen.execs, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_thread),
		cmocka_unit_test(test_storm_that_stops),
		cmocka_unit_test(test_loader_signals),
		cmocka_unit_test(test_loader_does_not_signal),
		cmocka_unit_test(test_loader_signals_late),
		cmocka_unit_test(test_threads_end_with_the_process),
		cmocka_unit_test(test_threads_come_and_go),
		cmocka_unit_test(test_a_crowd_of_threads),
		cmocka_unit_test(test_abort),
		cmocka_unit_test(test_kill),
		cmocka_unit_test(test_exec_by_a_thread),
		cmocka_unit_test(test_exec_by_a_thread_of_a_crowd),
		cmocka_unit_test(test_let_go),
		cmocka_unit_test(test_let_go_without_leader),
		cmocka_unit_test(test_not_found),
	};

	itself = argv[0];
	if (argc > 1)
		_exit(act(argv[1])); /* no look for leaks: that needs ptrace itself */
	alarm(100);		     /* a hang is a failure */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
