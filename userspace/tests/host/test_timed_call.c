// SPDX-License-Identifier: GPL-2.0
/* A call that blocks for ever is given up, and no other call waits for it. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <glib.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "host/target_memory.h"
#include "host/timed_call.h"

#define PAGE 4096
/* No processes: the number is only who a call is about. */
#define SOMEBODY 100000001
#define OTHERS 100000100
#define LATER 100000200
#define WAIT_MS TIMED_CALL_MEMORY_MS

struct job {
	int pipes[2];
	GThread *by;
	bool nested;
};

static gint released;

static struct job *job_new(void)
{
	struct job *job = g_new0(struct job, 1);

	assert_int_equal(pipe(job->pipes), 0);
	return job;
}

static void job_free(gpointer data)
{
	struct job *job = data;

	close(job->pipes[0]);
	close(job->pipes[1]);
	g_free(job);
	g_atomic_int_inc(&released);
}

static void note_thread(void *data)
{
	((struct job *)data)->by = g_thread_self();
}

static void wait_for_byte(void *data)
{
	struct job *job = data;
	char byte;

	job->nested = read(job->pipes[0], &byte, 1) == 1;
}

static void call_inside(void *data)
{
	struct job *job = data, *inner = job_new();

	assert_true(timed_call(SOMEBODY, WAIT_MS, note_thread, inner, job_free));
	job->nested = inner->by == g_thread_self();
	job_free(inner);
}

static void test_call_that_ends(void **state)
{
	struct job *job = job_new();

	(void)state;
	assert_true(timed_call(SOMEBODY, WAIT_MS, note_thread, job, job_free));
	assert_non_null(job->by);
	assert_ptr_not_equal(job->by, g_thread_self());
	assert_true(timed_call(SOMEBODY, WAIT_MS, call_inside, job, job_free));
	assert_true(job->nested);
	assert_int_equal(timed_calls_given_up(), 0);
	job_free(job);
}

static void test_blocked_call_is_given_up(void **state)
{
	struct job *stuck = job_new(), *other = job_new();
	int begin, to = dup(stuck->pipes[1]);

	(void)state;
	begin = g_atomic_int_get(&released);
	assert_false(timed_call(SOMEBODY, WAIT_MS, wait_for_byte, stuck, job_free));
	/* It is still at work. */
	assert_int_equal(g_atomic_int_get(&released), begin);
	/* No further calls about the same process, but about others. */
	assert_false(timed_call(SOMEBODY, WAIT_MS, note_thread, job_new(), job_free));
	assert_int_equal(g_atomic_int_get(&released), begin + 1);
	assert_true(timed_call(OTHERS, WAIT_MS, note_thread, other, job_free));
	job_free(other);
	assert_int_equal(timed_calls_given_up(), 2);
	assert_int_equal(timed_calls_given_up(), 0);
	/* When it ends after all it cleans up after itself. */
	assert_int_equal(write(to, "x", 1), 1);
	while (g_atomic_int_get(&released) < begin + 3)
		g_usleep(1000);
	close(to);
}

static gpointer write_late(gpointer data)
{
	struct job *job = data;

	g_usleep(3 * WAIT_MS * 1000);
	assert_int_equal(write(job->pipes[1], "x", 1), 1);
	return NULL;
}

/* As of a busy process whose lock is held for longer than the limit. */
static void test_patience(void **state)
{
	struct job *job = job_new();
	GThread *writer = g_thread_new("writer", write_late, job);

	(void)state;
	timed_calls_be_patient(1);
	assert_true(timed_call(SOMEBODY, WAIT_MS, wait_for_byte, job, job_free));
	timed_calls_be_patient(0);
	assert_true(job->nested);
	g_thread_join(writer);
	job_free(job);
	assert_int_equal(timed_calls_given_up(), 0);
}

static gint64 given_up_after(int who, int *to)
{
	struct job *job = job_new();
	gint64 begun_us = g_get_monotonic_time();

	*to = dup(job->pipes[1]);
	assert_false(timed_call(who, WAIT_MS, wait_for_byte, job, job_free));
	return g_get_monotonic_time() - begun_us;
}

/* With one that never answers, and not with each. */
static void test_patience_ends(void **state)
{
	gint begin = g_atomic_int_get(&released);
	gint64 first_us;
	int to[2], i;

	(void)state;
	timed_calls_be_patient(1);
	first_us = given_up_after(LATER, &to[0]);
	assert_true(first_us >= TIMED_CALL_PATIENCE_MS * 1000);
	assert_true(given_up_after(LATER + 1, &to[1]) < first_us);
	timed_calls_be_patient(0);
	assert_int_equal(timed_calls_given_up(), 2);
	for (i = 0; i < 2; i++)
		assert_int_equal(write(to[i], "x", 1), 1);
	while (g_atomic_int_get(&released) < begin + 2)
		g_usleep(1000);
	for (i = 0; i < 2; i++)
		close(to[i]);
}

/* The same where nobody is patient, but the process it is about would run, had it a CPU. */
static void test_process_that_wants_a_cpu(void **state)
{
	struct job *job = job_new();
	GThread *writer = g_thread_new("writer", write_late, job);
	pid_t child = fork();

	(void)state;
	assert_int_not_equal(child, -1);
	if (!child)
		for (;;)
			;
	assert_true(timed_call(-child, WAIT_MS, wait_for_byte, job, job_free));
	assert_true(job->nested);
	g_thread_join(writer);
	job_free(job);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(timed_calls_given_up(), 0);
}

#define STEPS 61

static void wait_for_bytes(void *data)
{
	struct job *job = data;
	int steps = 0;
	char byte;

	while (steps < STEPS && read(job->pipes[0], &byte, 1) == 1)
		steps++;
	job->nested = steps == STEPS;
}

static gpointer write_slowly(gpointer data)
{
	struct job *job = data;
	int i;

	for (i = 0; i < STEPS; i++) {
		g_usleep(5 * WAIT_MS * 1000 / STEPS);
		assert_int_equal(write(job->pipes[1], "x", 1), 1);
	}
	return NULL;
}

/*
 * As of pages that a slow disk has: the call lasts five times as long as its limit, and no step of
 * it does. Tried again where the writer had no CPU for half the limit.
 */
static void test_call_that_gets_on(void **state)
{
	bool made = false;
	int i;

	(void)state;
	for (i = 0; i < 20 && !made; i++) {
		struct job *job = job_new();
		struct job writers = { .pipes = { -1, dup(job->pipes[1]) } };
		GThread *writer = g_thread_new("writer", write_slowly, &writers);

		made = timed_call(OTHERS + 1000 + i, WAIT_MS, wait_for_bytes, job, job_free);
		g_thread_join(writer);
		close(writers.pipes[1]);
		if (made)
			job_free(job);
	}
	assert_true(made);
	timed_calls_given_up();
}

/* Given up, it ends a moment later: the process is not left alone for as long as one that is stuck. */
static void test_end_soon_after(void **state)
{
	const gint64 rest_us = TIMED_CALL_REST_MS * 1000;
	struct job *job = job_new();
	gint64 begun = g_get_monotonic_time(), took;
	int to = dup(job->pipes[1]);
	bool made = false;

	(void)state;
	assert_false(timed_call(SOMEBODY + 1, WAIT_MS, wait_for_byte, job, job_free));
	assert_int_equal(write(to, "x", 1), 1);
	close(to);
	took = g_get_monotonic_time() - begun;
	while (!made) {
		struct job *next = job_new();

		made = timed_call(SOMEBODY + 1, WAIT_MS, note_thread, next, job_free);
		if (made)
			job_free(next);
		else
			g_usleep(10000);
	}
	/* Where the machine was that slow nothing can be told. */
	if (took < rest_us / 20)
		assert_true(g_get_monotonic_time() - begun < rest_us);
	assert_true(timed_calls_given_up() > 0);
}

static void test_limit_of_stuck_calls(void **state)
{
	int to[TIMED_CALL_STUCK_MAX], begin = g_atomic_int_get(&released), i;

	(void)state;
	for (i = 0; i < TIMED_CALL_STUCK_MAX; i++) {
		struct job *job = job_new();

		to[i] = dup(job->pipes[1]);
		assert_false(timed_call(OTHERS + 1 + i, WAIT_MS, wait_for_byte, job, job_free));
	}
	assert_false(timed_call(OTHERS, WAIT_MS, note_thread, job_new(), job_free));
	assert_int_equal(timed_calls_given_up(), TIMED_CALL_STUCK_MAX + 1);
	for (i = 0; i < TIMED_CALL_STUCK_MAX; i++) {
		assert_int_equal(write(to[i], "x", 1), 1);
		close(to[i]);
	}
	while (g_atomic_int_get(&released) < begin + TIMED_CALL_STUCK_MAX + 1)
		g_usleep(1000);
}

/* From here on the kernel makes no process and no thread: EAGAIN, as at a limit (clone(2)). */
static bool forbid_threads(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { G_N_ELEMENTS(filter), filter };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* In a child, which has none of the threads that this process has by now. */
static void test_without_threads(void **state)
{
	struct job *job = job_new();
	int status = -1, allowed;
	pid_t pid;

	(void)state;
	for (allowed = 0; allowed < 2; allowed++) {
		pid = fork();
		if (!pid) {
			if (!allowed && !forbid_threads())
				_exit(1);
			_exit(timed_call(SOMEBODY, WAIT_MS, note_thread, job, job_free) &&
					      !timed_calls_given_up() &&
					      (job->by == g_thread_self()) == !allowed ?
				      0 :
				      2);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	job_free(job);
}

static void stop_all(void *data)
{
	kill(getpid(), SIGSTOP);
	/* Not runnable when the caller looks. */
	g_usleep(5000);
	note_thread(data);
}

/* A process that was stopped has not waited. */
static void test_stopped_meanwhile(void **state)
{
	struct job *job = job_new();
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(!timed_call(SOMEBODY, TIMED_CALL_FILE_MS, stop_all, job, job_free));
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	g_usleep(2 * TIMED_CALL_FILE_MS * 1000);
	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	job_free(job);
}

enum { CALLERS = 5, ROUNDS = 3001 };

static void add_one(void *data)
{
	++*(int *)data;
}

static gpointer call_often(gpointer unused)
{
	int done = 0, i;

	for (i = 0; i < ROUNDS; i++)
		timed_call(SOMEBODY, WAIT_MS, add_one, &done, NULL);
	return GINT_TO_POINTER(done + (unused != NULL));
}

/* Each call is its caller's, whoever else calls. */
static void test_many_callers(void **state)
{
	GThread *callers[CALLERS];
	int i;

	(void)state;
	for (i = 0; i < CALLERS; i++)
		callers[i] = g_thread_new("caller", call_often, NULL);
	for (i = 0; i < CALLERS; i++)
		assert_int_equal(GPOINTER_TO_INT(g_thread_join(callers[i])), ROUNDS);
	assert_int_equal(timed_calls_given_up(), 0);
}

/* Ranges with holes between: what is there is read, wherever it stands. */
static void test_ranges(void **state)
{
	enum { RANGES = 3001 };
	static struct memory_range ranges[RANGES];
	static uint64_t values[RANGES];
	uint64_t *memory = mmap(NULL, RANGES * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		 value;
	size_t i;

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	for (i = 0; i < RANGES; i++) {
		uint64_t *page = memory + i * PAGE / sizeof(*memory);

		*page = i * i;
		ranges[i] = (struct memory_range){
			.address = (uintptr_t)page,
			.to = &values[i],
			.size = sizeof(values[i]),
		};
		if (i % 7 == 3)
			assert_int_equal(munmap(page, PAGE), 0);
	}
	assert_int_equal(target_memory_read_all(getpid(), ranges, RANGES), 0);
	for (i = 0; i < RANGES; i++) {
		assert_int_equal(ranges[i].read, i % 7 != 3);
		assert_int_equal(values[i], i % 7 == 3 ? 0 : i * i);
	}
	assert_int_equal(target_memory_read(getpid(), ranges[3].address, &value, 8), -EFAULT);
	assert_int_equal(target_memory_read(SOMEBODY + 1, ranges[0].address, &value, 8), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call_that_ends),
		cmocka_unit_test(test_stopped_meanwhile),
		cmocka_unit_test(test_many_callers),
		cmocka_unit_test(test_without_threads),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_patience),
		cmocka_unit_test(test_patience_ends),
		cmocka_unit_test(test_process_that_wants_a_cpu),
		cmocka_unit_test(test_call_that_gets_on),
		cmocka_unit_test(test_end_soon_after),
		cmocka_unit_test(test_blocked_call_is_given_up),
		cmocka_unit_test(test_limit_of_stuck_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
