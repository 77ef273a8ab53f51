// SPDX-License-Identifier: GPL-2.0
/* All jobs are done: by threads or, where none can be created, by the caller. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <glib.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "host/workqueue.h"

#define JOBS 101

static int done, elsewhere;
static GMutex gate;
static GThread *self;

static void work(void *what)
{
	g_mutex_lock(&gate);
	g_mutex_unlock(&gate);
	if (g_thread_self() != self)
		g_atomic_int_inc(&elsewhere);
	g_atomic_int_add(&done, GPOINTER_TO_INT(what));
}

static void push_all(struct workqueue *queue)
{
	int i;

	self = g_thread_self();
	done = 0;
	elsewhere = 0;
	for (i = 0; i < JOBS; i++)
		workqueue_push(queue, work, GINT_TO_POINTER(1));
}

static void test_threads(void **state)
{
	static struct workqueue queue;
	int round;

	(void)state;
	for (round = 0; round < 3; round++) {
		/* While the jobs are blocked, pushing does not wait. */
		g_mutex_lock(&gate);
		push_all(&queue);
		assert_true(workqueue_is_busy(&queue));
		g_mutex_unlock(&gate);
		workqueue_wait(&queue);
		assert_false(workqueue_is_busy(&queue));
		assert_int_equal(g_atomic_int_get(&done), JOBS);
		assert_int_equal(g_atomic_int_get(&elsewhere), JOBS);
	}
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

static void test_no_thread_can_be_made(void **state)
{
	static struct workqueue queue;
	int status = -1;
	pid_t pid;

	(void)state;
	pid = fork();
	if (!pid) {
		alarm(60);
		if (!forbid_threads())
			_exit(1);
		push_all(&queue);
		workqueue_wait(&queue);
		_exit(done == JOBS && !elsewhere && !workqueue_is_busy(&queue) ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_no_thread_can_be_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
