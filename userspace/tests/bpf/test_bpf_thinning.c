// SPDX-License-Identifier: GPL-2.0
/*
 * Where one fault, or small mapping call, in so many is looked at: who that is, and which of the
 * others it stands for.
 */
#include "tests/bpf/memory.h"

#define AREA_START 0x7f1200000000ULL
#define AREA_PAGES 4096
#define AT(page) (AREA_START + (page)*MEMTOLL_PAGE_SIZE)
#define IP 0x401136ULL
#define OTHER_IP 0x401777ULL

static struct vm_area_struct area;

static void begin(void)
{
	host_begin();
	fault_draw = ~0U;
	tables_begin(4);
	add_area(&area, AREA_START, AT(AREA_PAGES), 0);
	/* So that each fault finds the last table, and is no candidate for a huge page. */
	set_entry(AREA_START, 1, 0);
}

/* A write: the fault begins, and the kernel maps a page. */
static void touch_by(__u64 page, __u64 ip)
{
	fault_at(AT(page) + 0x18, ip, WRITES);
	set_entry(AT(page), 1, page_entry(0x50000 + page));
	kernel.now_ns += 1000;
	host.task.min_flt++;
}

static void touch(__u64 page)
{
	touch_by(page, IP);
}

/* Pages in no order: 1009 and 331 are primes. */
static void scatter(__u64 from, __u64 count)
{
	for (__u64 i = from; i < from + count; i++)
		touch(1 + i * 331 % 1009);
}

static __u64 looked_at(__u64 *passed)
{
	const struct memtoll_rates *now = host_rates();

	*passed = now->passed_faults;
	return now->faults;
}

/* Nearly as many as are drawn, and together with those they stand for, as many as there were. */
static void test_one_in_some_is_looked_at(void **state)
{
	struct memtoll_run run;
	__u64 passed, seen, faults = 0, stood_for = 0;

	begin();
	fault_draw = ~0U / 8;
	scatter(0, 1009);
	seen = looked_at(&passed);
	assert_in_range(seen, 1009 / 8 - 3, 1009 / 8 + 3);
	assert_int_equal(seen + passed, 1009);
	drain();
	while (faults < seen) {
		run = next_run();
		faults += run.faults;
		stood_for += run.passed;
		assert_in_range(run.passed, 0, 16);
	}
	assert_int_equal(faults + stood_for + host_rates()->passed_open, 1009);
	fault_draw = ~0U;
	touch(2000);
	drain();
	run = next_run();
	assert_int_equal(run.faults, 1);
	assert_int_equal(faults + stood_for + run.passed, 1009);
}

/* A major one that was passed over is told as lost, and the next ones are all looked at. */
static void test_major_among_those_passed_over(void **state)
{
	__u64 passed, seen, before;

	begin();
	fault_draw = 0;
	touch(2000);
	host_thread()->read.read_fn = READ_FN_READ;
	host_rates()->passed_open = host_rates()->passed_faults = 0;
	host_thread()->read.faults = 0;
	scatter(0, 11);
	assert_int_equal(looked_at(&passed), 0);
	assert_int_equal(passed, 11);
	fault_end_major(NULL);
	assert_lost_only(LOST_FAULTS_PASSED, 1);
	assert_int_equal(host_rates()->passed_open, 10);
	assert_int_equal(host_thread()->read.faults, 10);
	host_thread()->read.read_fn = READ_FN_NONE;
	before = looked_at(&passed);
	scatter(11, 331);
	seen = looked_at(&passed);
	assert_int_equal(seen - before, 331);
	assert_int_equal(passed, 11);
}

/* One that is looked at in any case, or is a major one, says nothing of those passed over. */
static void test_who_speaks_for_those_passed_over(void **state)
{
	struct memtoll_run run;

	begin();
	fault_draw = 0;
	scatter(0, 11);
	host_thread()->in_fn = FN_MALLOC;
	touch(2000);
	host_thread()->in_fn = FN_NONE;
	host_thread()->careful = 2;
	touch(2010);
	touch(2020);
	drain();
	assert_int_equal(host_rates()->faults, 3);
	assert_int_equal(host_rates()->passed_open, 11);
	while (host_rates()->faults == 3) {
		fault_draw = ~0U / 2;
		touch_by(2030 + 10 * host_rates()->passed_faults, OTHER_IP);
	}
	/* The drawn one took them all, and gives them back. */
	assert_int_equal(host_rates()->passed_open, 0);
	fault_end_major(NULL);
	assert_int_equal(host_rates()->passed_open, host_rates()->passed_faults);
	drain();
	do {
		run = next_run();
		assert_int_equal(run.passed, 0);
	} while (run.ip != OTHER_IP);
	assert_int_equal(run.flags & RUN_MAJOR, RUN_MAJOR);
}

/* Of reads of what is no file those that were only counted are told apart: they cost less. */
static void test_reads_of_no_file(void **state)
{
	__u64 context[2] = { (__u64)&host.regs, 0 };
	const struct thread *thread;
	int i;

	begin();
	fault_draw = ~0U / 8;
	for (i = 0; i < 331; i++)
		read_enter(context);
	thread = host_thread();
	assert_in_range(thread->passes, 331 / 8 - 3, 331 / 8 + 3);
	assert_int_equal(thread->passed,
			 host_rates()->passed_reads - host_rates()->passed_reads_open);
	assert_int_equal(thread->passes + host_rates()->passed_reads, 331);
	fault_draw = ~0U;
}

/* A mapping call that takes so long; the kernel's answer is 0, which is a mapping like any other. */
static void map_once(__s32 nr, __u64 length, __u64 took_ns)
{
	__u64 context[2] = { (__u64)&host.regs, (__u64)nr };

	host.regs.di = AT(0);
	host.regs.si = length;
	host.regs.r10 = MAP_ANONYMOUS;
	map_enter(context);
	kernel.now_ns += took_ns;
	context[1] = 0;
	map_exit(context);
}

/* Outside of the allocator, at this place. */
static struct memtoll_map_sum mapped(__u32 map_fn, __u64 stack_id)
{
	struct memtoll_map_key key = { .tgid = TGID, .map_fn = map_fn, .stack_id = stack_id };
	struct memtoll_map_sum sum;

	add_rows(&sum, sizeof(sum), &map_calls, &map_calls_shared, &key);
	return sum;
}

static __u64 next_mapping(__u32 map_fn)
{
	const struct memtoll_mapping *mapping = next_event(EVENT_MAPPING);

	assert_int_equal(mapping->map_fn, map_fn);
	assert_int_not_equal(mapping->stack_id, 0);
	return mapping->stack_id;
}

/* Each is told, all are counted, and the time is as much as if all had been looked at. */
static void test_small_mapping_calls(void **state)
{
	struct memtoll_map_sum sum;
	__u64 stack_id = 0;
	int i;

	begin();
	fault_draw = ~0U / 8;
	for (i = 0; i < 1009; i++) {
		map_once(NR_MMAP, MEMTOLL_PAGE_SIZE, 700);
		stack_id = next_mapping(MAP_FN_MMAP);
		map_once(NR_MUNMAP, 3 * MEMTOLL_PAGE_SIZE, 300);
		assert_int_equal(next_mapping(MAP_FN_MUNMAP), stack_id);
	}
	assert_in_range(host_rates()->drawn_maps, 2018 / 8 - 5, 2018 / 8 + 5);
	assert_int_equal(host_rates()->drawn_maps + host_rates()->passed_maps, 2018);
	maps_settle(host_thread(), TGID);
	sum = mapped(MAP_FN_MMAP, stack_id);
	assert_int_equal(sum.calls, 1009);
	assert_int_equal(sum.bytes, 1009 * MEMTOLL_PAGE_SIZE);
	assert_int_equal(sum.cpu_ns, 1009 * 700);
	sum = mapped(MAP_FN_MUNMAP, stack_id);
	assert_int_equal(sum.calls, 1009);
	assert_int_equal(sum.bytes, 3 * 1009 * MEMTOLL_PAGE_SIZE);
	assert_int_equal(sum.cpu_ns, 1009 * 300);
	fault_draw = ~0U;
}

/* What may take long is timed each time; so is what the allocator does, and a thread's first. */
static void test_mapping_calls_that_are_all_looked_at(void **state)
{
	__u64 stack_id;
	int i;

	begin();
	fault_draw = 0;
	map_once(NR_MMAP, MEMTOLL_PAGE_SIZE, 700);
	stack_id = next_mapping(MAP_FN_MMAP);
	for (i = 0; i < 11; i++) {
		map_once(NR_MMAP, 65536, 700);
		map_once(NR_MADVISE, MEMTOLL_PAGE_SIZE, 900);
		host_thread()->in_fn = FN_MALLOC;
		map_once(NR_MMAP, MEMTOLL_PAGE_SIZE, 700);
		host_thread()->in_fn = FN_NONE;
	}
	assert_int_equal(host_rates()->passed_maps, 0);
	assert_int_equal(mapped(MAP_FN_MMAP, stack_id).cpu_ns, 12 * 700);
	assert_int_equal(mapped(MAP_FN_MADVISE, stack_id).cpu_ns, 11 * 900);
	map_once(NR_MMAP, MEMTOLL_PAGE_SIZE, 700);
	assert_int_equal(host_rates()->passed_maps, 1);
	assert_int_equal(mapped(MAP_FN_MMAP, stack_id).calls, 12);
	/* A slice has those of before its end, where the thread does anything else. */
	touch(2000);
	assert_int_equal(mapped(MAP_FN_MMAP, stack_id).calls, 12);
	drain_epoch++;
	host_thread()->careful = 1;
	touch(2010);
	assert_int_equal(mapped(MAP_FN_MMAP, stack_id).calls, 13);
	map_once(NR_MMAP, MEMTOLL_PAGE_SIZE, 700);
	assert_int_equal(host_rates()->passed_maps, 2);
	fault_draw = ~0U;
}

/* Of two places in turn: a call is counted where the memory's owner is. */
static void test_places_of_small_mapping_calls(void **state)
{
	__u64 first, stack_id, calls = 0;
	int i;

	begin();
	fault_draw = ~0U / 8;
	host.regs.ip = IP;
	map_once(NR_MMAP, MEMTOLL_PAGE_SIZE, 700);
	first = next_mapping(MAP_FN_MMAP);
	for (i = 1; i < 1009; i++) {
		host.regs.ip = i % 3 ? IP : OTHER_IP;
		map_once(NR_MMAP, MEMTOLL_PAGE_SIZE, i % 3 ? 700 : 500);
		stack_id = next_mapping(MAP_FN_MMAP);
		calls += stack_id == first;
	}
	maps_settle(host_thread(), TGID);
	assert_in_range(calls, 500, 900);
	assert_int_equal(mapped(MAP_FN_MMAP, first).calls, 1 + calls);
	assert_int_equal(mapped(MAP_FN_MMAP, first).cpu_ns, (1 + calls) * 700);
	fault_draw = ~0U;
}

/* What their programs took, by those that were timed, of 4009 faults of so many threads. */
static __u64 timed_ns(int threads)
{
	__u64 ns;
	int i;

	begin();
	kernel.tick_ns = 101;
	for (i = 0; i < threads; i++) {
		host.task.pid = TGID + i;
		host.task.min_flt = 0;
		scatter(i * (4009 / threads), 4009 / threads);
	}
	kernel.tick_ns = 0;
	ns = host_rates()->fault_ns;
	drain();
	while (kernel_ring_take(&events, NULL, NULL))
		;
	return ns;
}

/* One in 64 is timed also where no thread lives so long. */
static void test_short_threads_are_timed(void **state)
{
	__u64 one = timed_ns(1), many = timed_ns(211);

	assert_true(one > 0);
	assert_in_range(many, one / 2, one * 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_in_some_is_looked_at),
		cmocka_unit_test(test_major_among_those_passed_over),
		cmocka_unit_test(test_who_speaks_for_those_passed_over),
		cmocka_unit_test(test_reads_of_no_file),
		cmocka_unit_test(test_small_mapping_calls),
		cmocka_unit_test(test_mapping_calls_that_are_all_looked_at),
		cmocka_unit_test(test_places_of_small_mapping_calls),
		cmocka_unit_test(test_short_threads_are_timed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
