// SPDX-License-Identifier: GPL-2.0
/* When memtoll may come before others on the CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>
#include <glib.h>
#include <pthread.h>

#include "host/priority.h"

#define SECOND 1000000000ULL

static void test_wanted(void **state)
{
	struct priority priority = { .raised = true };
	unsigned int i;

	(void)state;
	for (i = 0; i < 211; i++)
		assert_true(priority_wanted(&priority, SECOND / 11, SECOND));
	/*
	 * A moment's work is none, however often; several threads may take more than there is time.
	 */
	for (i = 0; i < 211; i++)
		assert_true(priority_wanted(&priority, i % PRIORITY_PATIENCE ? 3 * SECOND : 0,
					    SECOND));
	for (i = 0; i + 1 < PRIORITY_PATIENCE; i++)
		assert_true(priority_wanted(&priority, SECOND / 9, SECOND));
	assert_false(priority_wanted(&priority, SECOND / 9, SECOND));
	/* Not back and forth at the border. */
	priority.raised = false;
	assert_false(priority_wanted(&priority, SECOND / 11, SECOND));
	assert_false(priority_wanted(&priority, SECOND / 19, SECOND));
	assert_true(priority_wanted(&priority, SECOND / 21, SECOND));
}

/* Whatever it was, it is afterwards; where it may not be raised, it stays. */
static void test_given_back(void **state)
{
	struct priority priority = {};
	int before = getpriority(PRIO_PROCESS, 0), raised;

	(void)state;
	priority_end(&priority);
	assert_int_equal(getpriority(PRIO_PROCESS, 0), before);
	priority_begin(&priority);
	raised = getpriority(PRIO_PROCESS, 0);
	assert_true(raised == PRIORITY_NICE || raised == before);
	priority_end(&priority);
	priority_end(&priority);
	assert_int_equal(getpriority(PRIO_PROCESS, 0), before);
}

static void pretend(struct priority *priority, uint64_t cpu_ns, uint64_t wall_ns)
{
	struct timespec cpu, now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	clock_gettime(CLOCK_MONOTONIC, &now);
	priority->cpu_ns = cpu.tv_sec * SECOND + cpu.tv_nsec - cpu_ns;
	priority->at_ns = now.tv_sec * SECOND + now.tv_nsec - wall_ns;
	priority_step(priority);
}

static void *wait_there(void *barrier)
{
	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	return NULL;
}

static bool all_have(int nice)
{
	GDir *tasks = g_dir_open("/proc/self/task", 0, NULL);
	unsigned int count = 0, alike = 0;
	const char *tid;

	while ((tid = g_dir_read_name(tasks))) {
		count++;
		alike += getpriority(PRIO_PROCESS, (id_t)atoi(tid)) == nice;
	}
	g_dir_close(tasks);
	return count >= 2 && alike == count;
}

/*
 * All threads step back in a storm that lasts, and come first again. Shares far from the border: it
 * takes some time itself, and is kept from running.
 */
static void test_step(void **state)
{
	struct priority priority = {};
	int before = getpriority(PRIO_PROCESS, 0), first, i;
	pthread_barrier_t barrier;
	pthread_t thread;

	(void)state;
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, wait_there, &barrier);
	pthread_barrier_wait(&barrier);
	priority_begin(&priority);
	first = getpriority(PRIO_PROCESS, 0);
	assert_true(all_have(first));
	for (i = 0; i + 1 < PRIORITY_PATIENCE; i++)
		pretend(&priority, 1000 * SECOND, SECOND);
	assert_true(all_have(first));
	pretend(&priority, 1000 * SECOND, SECOND);
	assert_false(priority.raised);
	assert_true(all_have(before));
	pretend(&priority, 0, 1000 * SECOND);
	assert_true(priority.raised);
	assert_true(all_have(first));
	priority_end(&priority);
	assert_true(all_have(before));
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wanted),
		cmocka_unit_test(test_given_back),
		cmocka_unit_test(test_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
