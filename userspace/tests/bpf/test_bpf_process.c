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

/* Whether the record of the next fork says that the child is brief. */
static bool is_brief(void)
{
	unsigned long long flags = 0;
	const struct memtoll_process *record;
	bool brief = false;

	fork_once();
	while ((record = kernel_ring_take(&events, NULL, &flags)))
		if (record->kind == EVENT_PROCESS && record->what == PROCESS_FORK)
			brief = record->brief;
	return brief;
}

static int brief_of(int count, __u64 apart_ns)
{
	int brief = 0;

	for (int i = 0; i < count; i++, kernel.now_ns += apart_ns)
		brief += is_brief();
	return brief;
}

/* A burst is looked at, and of a storm one in so long; what comes slowly is no storm. */
static void test_storms_are_brief(void **state)
{
	host_begin();
	starts_until_ns = storm_look_ns = 0;
	start_every_ns = 25 * MS;
	kernel.now_ns = 1000 * MS;
	assert_int_equal(brief_of(997, 1000 * MS / 30), 0);
	kernel.now_ns += 10000 * MS;
	assert_int_equal(brief_of(64, 0), 0);
	/* The first after that is looked at, and one each 100 ms. */
	assert_int_equal(brief_of(1001, MS), 1001 - 11);
	kernel.now_ns += 5000 * MS;
	assert_false(is_brief());
	start_every_ns = 0;
	assert_int_equal(brief_of(997, 0), 0);
}

/* Its stacks have no names as long as nobody has looked at it: none is walked. */
static void test_new_programs_of_storms_have_no_stacks(void **state)
{
	struct memtoll_target row = { .brief = 1, .unwind_table = 7 };
	__u32 tgid = 20011;

	host_begin();
	process_add(tgid, &row, true);
	briefs_seen = 1;
	assert_false(process_is_nameless(tgid));
	((struct memtoll_target *)bpf_map_lookup_elem(&processes, &tgid))->unwind_table = 0;
	assert_true(process_is_nameless(tgid));
	((struct memtoll_target *)bpf_map_lookup_elem(&processes, &tgid))->brief = 0;
	assert_false(process_is_nameless(tgid));
	process_remove(tgid);
	briefs_seen = 0;
}

/* In the place of one that ended, which has left all there is in its state: but for scratch it is new. */
static void test_state_of_a_new_thread(void **state)
{
	const size_t scratch = offsetof(struct thread, stack);
	struct thread *thread;
	size_t i;

	host_begin();
	thread_create(&host.task);
	thread = host_thread();
	memset(thread, 0xa5, sizeof(*thread));
	thread_clear(thread);
	for (i = 0; i < scratch; i++)
		assert_int_equal(((const unsigned char *)thread)[i], 0);
	assert_int_equal(thread->stack.tgid, 0xa5a5a5a5);
	assert_int_equal(thread->python.state, 0);
	assert_int_equal(thread->sample_python.state, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wakes_for_few),
		cmocka_unit_test(test_forks_are_charged),
		cmocka_unit_test(test_storms_are_brief),
		cmocka_unit_test(test_new_programs_of_storms_have_no_stacks),
		cmocka_unit_test(test_state_of_a_new_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
