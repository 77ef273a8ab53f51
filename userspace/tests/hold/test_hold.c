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

static void write_blocks(void)
{
	char *block;
	int i;

	for (i = 0; i < BLOCKS; i++) {
		block = malloc(SIZE);
		memset(block, 1, SIZE);
	}
}

/* Memory that was never written, and is there all the same: of the page of zeros. */
static void read_zeros(void)
{
	const volatile char *block = calloc(BLOCKS, SIZE);
	size_t at;

	for (at = 0; at < BLOCKS * (size_t)SIZE; at += 4096)
		if (block[at])
			_exit(1);
}

/* A child that does so; it writes a byte when it has. */
static pid_t start_child(void (*what)(void), int *ready)
{
	int ends[2];
	pid_t child;
	char got;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		what();
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
	child = start_child(write_blocks, &ready);
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

/* What is not resident to the kernel is no part of what is. */
static void test_zeros(void **state)
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
	child = start_child(read_zeros, &ready);
	assert_int_equal(hold_read(child, false, &process), 0);
	assert_true(process.mapped.bytes.resident >= BLOCKS * (uint64_t)SIZE / 2);
	hold_sum_add(&sum, &process, false);
	for (i = 0; i < HOLD_PARTS; i++)
		parts += sum.parts[i];
	assert_in_range(parts, sum.rss - sum.rss / 50, sum.rss + sum.rss / 50);
	hold_free(&process);
	kill(child, SIGKILL);
	close(ready);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Of so many processes with these mappings. Freed by the caller. */
static char *sentence_of_mappings(const char *smaps, unsigned int processes)
{
	struct hold_process process = { 0 };
	struct hold_sum sum = { 0 };
	FILE *file = fmemopen((void *)smaps, strlen(smaps), "r");
	char *sentence;

	assert_non_null(file);
	process.allocators = g_array_new(FALSE, TRUE, sizeof(struct hold_allocator));
	residents_init(&process.residents);
	residents_parse(file, NULL, &process.residents);
	fclose(file);
	while (processes--)
		hold_sum_add(&sum, &process, false);
	sentence = hold_sentence(&sum);
	residents_free(&process.residents);
	g_array_unref(process.allocators);
	return sentence;
}

/* Shared memory has a name, too, and is no file. */
static void test_the_largest_file(void **state)
{
	g_autofree char *many = NULL, *one = NULL, *shared = NULL;

	(void)state;
	many = sentence_of_mappings("7f0000000000-7f0000800000 rw-s 0 00:01 3 /dev/zero (deleted)\n"
				    "Rss: 7000 kB\n"
				    "7f0001000000-7f0001800000 r-xp 0 08:01 4 /bin/postgres\n"
				    "Rss: 4096 kB\n"
				    "7f0002000000-7f0002800000 r-xp 0 08:01 5 /lib/libc.so\n"
				    "Rss: 3072 kB\n"
				    "7f0003000000-7f0003800000 r-xp 0 08:01 6 /lib/libm.so\n"
				    "Rss: 2048 kB\n",
				    1);
	assert_non_null(strstr(many, "9.00 MiB of 15.8 MiB"));
	assert_non_null(strstr(many, "are file mappings, the largest 4.00 MiB of /bin/postgres."));
	one = sentence_of_mappings("7f0001000000-7f0001800000 r-xp 0 08:01 4 /bin/postgres\n"
				   "Rss: 4096 kB\n",
				   1);
	assert_non_null(strstr(one, "are file mappings, most of it of /bin/postgres."));
	shared = sentence_of_mappings("7f0001000000-7f0001800000 r-xp 0 08:01 4 /bin/postgres\n"
				      "Rss: 4096 kB\nPss: 1024 kB\n",
				      2);
	assert_non_null(strstr(shared,
			       "are file mappings, the largest of one process /bin/postgres."));
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
		cmocka_unit_test(test_zeros),
		cmocka_unit_test(test_the_largest_file),
		cmocka_unit_test(test_a_zombie),
	};

	alarm(100); /* a hang is a failure */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
