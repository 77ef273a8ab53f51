// SPDX-License-Identifier: GPL-2.0
/* Processes that come and go: when userspace is woken for them, and what they pay for it. */
#include "tests/bpf/native.h"

#define MS 1000000ULL

static bool wakes(__u64 (*event)(void))
{
	unsigned long long flags = 0;
	const __u32 *record;
	bool woken = false;

	event();
	while ((record = kernel_ring_take(&events, NULL, &flags)))
		if (*record == EVENT_PROCESS)
			woken = flags & BPF_RB_FORCE_WAKEUP;
	return woken;
}

static __u64 fork_once(void)
{
	static struct task_struct child;
	static __u32 pid = 20011;
	__u64 context[2] = { (__u64)&host.task, (__u64)&child };

	child = (struct task_struct){ .pid = (pid_t)++pid, .tgid = (pid_t)pid };
	process_fork(context);
	process_remove(pid);
	return 0;
}

static __u64 exec_once(void)
{
	__u64 context[2] = { (__u64)&host.task, TGID };

	process_exec(context);
	return 0;
}

/* As many as come at once, and then no more than one in five milliseconds; a new program always. */
static void test_wakes_for_few(void **state)
{
	int i, woken = 0;

	host_begin();
	woken_until_ns = 0;
	kernel.now_ns = 1000 * MS;
	for (i = 0; i < 1009; i++)
		woken += wakes(fork_once);
	assert_int_equal(woken, 64);
	assert_true(wakes(exec_once));
	kernel.now_ns += 5 * MS;
	assert_true(wakes(fork_once));
	assert_false(wakes(fork_once));
	assert_true(wakes(exec_once));
	kernel.now_ns += 1000 * MS;
	woken = 0;
	for (i = 0; i < 1009; i++)
		woken += wakes(fork_once);
	assert_int_equal(woken, 64);
}

/* What a fork pays is charged to who forks. */
static void test_forks_are_charged(void **state)
{
	host_begin();
	kernel.tick_ns = 331;
	fork_once();
	assert_true(host_rates()->thread_ns >= 331);
	kernel.tick_ns = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wakes_for_few),
		cmocka_unit_test(test_forks_are_charged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
