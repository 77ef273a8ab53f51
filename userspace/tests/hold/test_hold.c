// SPDX-License-Identifier: GPL-2.0
/* Live processes: one at rest, one that has ended, none. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "hold/hold.h"
#include "hold/hold_verdict.h"

#define BLOCKS 500
#define SIZE 100000

/* A child with so many blocks more than we have; it writes a byte when it has them. */
static pid_t start_child(int *ready)
{
	int ends[2];
	pid_t child;
	char got;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		char *block;
		int i;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (i = 0; i < BLOCKS; i++) {
			block = malloc(SIZE);
			memset(block, 1, SIZE);
		}
		if (write(ends[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_true(child > 0);
	close(ends[1]);
	assert_int_equal(read(ends[0], &got, 1), 1);
	*ready = ends[0];
	return child;
}

static void test_a_child(void **state)
{
	struct hold_process process;
	struct hold_sum sum = { 0 };
	uint64_t parts = 0;
	pid_t child;
	int ready;
	size_t i;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	skip(); /* its malloc is another */
#endif
	child = start_child(&ready);
	assert_int_equal(hold_read(child, false, &process), 0);
	assert_true(process.has_heaps);
	assert_true(process.heaps.all.bytes[CHUNK_LIVE].bytes + process.mapped.bytes.bytes >=
		    BLOCKS * SIZE);
	assert_false(hold_is_partial(&process));
	hold_sum_add(&sum, &process, false);
	assert_int_equal(hold_sum_most(&sum), PART_LIVE);
	for (i = 0; i < HOLD_PARTS; i++)
		parts += sum.parts[i];
	assert_in_range(parts, sum.rss - sum.rss / 50, sum.rss + sum.rss / 50);
	hold_free(&process);
	kill(child, SIGKILL);
	close(ready);
	assert_int_equal(waitpid(child, NULL, 0), child);
	/* Nobody has that number any more. */
	assert_int_equal(hold_read(child, false, &process), -ESRCH);
	hold_free(&process);
}

static void test_a_zombie(void **state)
{
	struct hold_process process;
	siginfo_t info;
	pid_t child = fork();

	(void)state;
	if (!child)
		_exit(0);
	assert_int_equal(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(hold_read(child, false, &process), -ESRCH);
	hold_free(&process);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_child),
		cmocka_unit_test(test_a_zombie),
	};

	alarm(100); /* a hang is a failure */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
