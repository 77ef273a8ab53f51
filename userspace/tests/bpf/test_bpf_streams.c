// SPDX-License-Identifier: GPL-2.0
/*
 * Pages touched in order from a few places by turns: a place is known again without looking at its
 * stack, and looked at again when some time has gone by (probes/fault_streams.bpf.h).
 */
#include "tests/bpf/memory.h"

#define AREA_START 0x7f1201000000ULL
#define AT(page) (AREA_START + (page)*MEMTOLL_PAGE_SIZE)
#define IP(place) (0x401136ULL + 0x40 * (place))
#define STACK 0x7ffffffde000ULL
#define OUTER(place) (0x402000ULL + 0x40 * (place))

static struct vm_area_struct area;

static void begin(void)
{
	host_begin();
	tables_begin(4);
	add_area(&area, AREA_START, AT(4096), 0);
	set_entry(AREA_START, 1, 0);
}

/* The frame of each place has its caller behind the frame pointer. */
static void set_caller(unsigned place, __u64 caller)
{
	kernel_poke_word(USER, STACK + 0x100 * place + 0x40, 0);
	kernel_poke_word(USER, STACK + 0x100 * place + 0x48, caller);
}

static void touch(__u64 page, unsigned place, __u64 error)
{
	host.regs.sp = STACK + 0x100 * place;
	host.regs.bp = STACK + 0x100 * place + 0x40;
	fault_at(AT(page), IP(place), error);
	set_entry(AT(page), 1, page_entry(0x50000 + page));
	kernel.now_ns += 1000;
}

static __u64 walks_done(void)
{
	struct memtoll_walk_key key = { .tgid = TGID };
	const struct memtoll_walk_sum *sum = kernel_map_lookup(&walks, &key);

	return sum ? sum->walks : 0;
}

static __u64 caller_of(const struct memtoll_run *run)
{
	const struct memtoll_stack *stack = kernel_map_lookup(&stacks, &run->stack_id);

	assert_non_null(stack);
	assert_int_equal(stack->frames[0], run->ip);
	return stack->frames[1];
}

/* Each run has its own place's stack, and few were walked for that. */
static void check_turns(unsigned places, unsigned pages, __u64 least, __u64 most)
{
	struct memtoll_run run;
	unsigned i;

	begin();
	for (i = 0; i < places; i++)
		set_caller(i, OUTER(i));
	for (i = 0; i < pages; i++)
		touch(i, i % places, WRITES);
	drain();
	assert_in_range(walks_done(), least, most);
	for (i = 0; i < pages; i++) {
		run = next_run();
		assert_int_equal(run.address, AT(i));
		assert_int_equal(run.ip, IP(i % places));
		assert_int_equal(caller_of(&run), OUTER(i % places));
	}
	assert_no_event();
}

static void test_turns(void **state)
{
	/*
	 * Believed for 32 faults: 331 / 33 looks at each, and one more where it does not come out
	 * even.
	 */
	check_turns(2, 331, 2 * (331 / 34), 2 * (331 / 32 + 1));
	check_turns(4, 331, 4 * (331 / 36), 4 * (331 / 32 + 1));
}

/* More places than are kept: each is right all the same. */
static void test_more_places_than_are_kept(void **state)
{
	check_turns(7, 331, 331, 331);
}

/* A caller farther out has changed: after 32 faults at the latest that is seen. */
static void test_caller_changes(void **state)
{
	struct memtoll_run run;
	unsigned i, stale = 0;

	begin();
	set_caller(0, OUTER(0));
	set_caller(1, OUTER(1));
	for (i = 0; i < 101; i++) {
		if (i == 40)
			set_caller(0, OUTER(9));
		touch(i, i % 2, WRITES);
	}
	drain();
	for (i = 0; i < 101; i++) {
		run = next_run();
		if (i % 2)
			assert_int_equal(caller_of(&run), OUTER(1));
		else if (i < 40)
			assert_int_equal(caller_of(&run), OUTER(0));
		else if (i >= 40 + 32)
			assert_int_equal(caller_of(&run), OUTER(9));
		else
			stale += caller_of(&run) == OUTER(0);
	}
	assert_in_range(stale, 1, 16);
}

/* Out of order, drained, or at another depth: nothing is known of where it comes from. */
static void test_what_ends_belief(void **state)
{
	__u64 walked;

	begin();
	set_caller(0, OUTER(0));
	set_caller(1, OUTER(1));
	touch(0, 0, WRITES);
	touch(1, 1, WRITES);
	walked = walks_done();
	touch(2, 0, WRITES);
	touch(3, 1, WRITES);
	assert_int_equal(walks_done(), walked);
	touch(100, 0, WRITES);
	assert_int_equal(walks_done(), walked + 1);
	touch(101, 1, WRITES);
	assert_int_equal(walks_done(), walked + 2);
	touch(102, 0, WRITES);
	assert_int_equal(walks_done(), walked + 2);
	drain_epoch++;
	touch(103, 1, WRITES);
	assert_int_equal(walks_done(), walked + 3);
	touch(104, 0, WRITES);
	assert_int_equal(walks_done(), walked + 4);
	touch(105, 1, WRITES);
	assert_int_equal(walks_done(), walked + 4);
	/* The same instruction reads: another kind of access. */
	touch(106, 0, READS);
	assert_int_equal(walks_done(), walked + 5);
}

/* What a memset fills with may differ each time: it is looked at. */
static void test_memset(void **state)
{
	struct memtoll_target *target;
	struct memtoll_run run;
	__u32 tgid = TGID;
	unsigned i;

	begin();
	target = kernel_map_lookup(&processes, &tgid);
	target->memset_count = 1;
	target->memset[0] = (struct memtoll_range){ IP(0), IP(0) + 1 };
	set_caller(1, OUTER(1));
	kernel_poke_word(USER, STACK, OUTER(0));
	for (i = 0; i < 12; i++) {
		host.regs.si = i % 4 ? 0 : 0xa5;
		touch(i, i % 2, WRITES);
	}
	drain();
	for (i = 0; i < 12; i++) {
		run = next_run();
		assert_int_equal(run.flags, i % 2 ? RUN_WRITE :
					    i % 4 ? RUN_WRITE | RUN_MEMSET | RUN_FILL_ZERO :
						    RUN_WRITE | RUN_MEMSET);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_more_places_than_are_kept),
		cmocka_unit_test(test_caller_changes),
		cmocka_unit_test(test_what_ends_belief),
		cmocka_unit_test(test_memset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
