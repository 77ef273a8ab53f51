// SPDX-License-Identifier: GPL-2.0
/*
 * Faults become runs, and runs become series: one run for what one instruction touches page after
 * page, exact in pages, faults and bounds, however it was counted on the way (doc/architecture.md).
 */
#include "tests/bpf/memory.h"

#define AREA_START 0x7f1200000000ULL
#define AREA_PAGES 4096
#define AT(page) (AREA_START + (page)*MEMTOLL_PAGE_SIZE)
#define IP 0x401136ULL
#define OTHER_IP 0x401777ULL
#define ZERO_FRAME 0x2a3fULL
#define STEP_NS 1000ULL

static struct vm_area_struct area, second_area;

static void begin(void)
{
	host_begin();
	fault_draw = ~0U;
	tables_begin(4);
	KNOB(cfg_zero_pfn, ZERO_FRAME);
	add_area(&area, AREA_START, AT(AREA_PAGES), 0);
	/* So that each fault finds the last table, and is no candidate for a huge page. */
	set_entry(AREA_START, 1, 0);
}

/* A write: the fault begins, and the kernel maps a page. */
static void touch_by(__u64 page, __u64 ip)
{
	fault_at(AT(page) + 0x18, ip, WRITES);
	set_entry(AT(page), 1, page_entry(0x50000 + page));
	kernel.now_ns += STEP_NS;
}

static void touch(__u64 page)
{
	touch_by(page, IP);
}

static void sweep(__u64 from, __u64 to)
{
	for (; from < to; from++)
		touch(from);
}

static void assert_run(const struct memtoll_run *run, __u64 page, __u64 pages)
{
	assert_int_equal(run->address, AT(page));
	assert_int_equal(run->pages, pages);
	assert_int_equal(run->faults, pages);
	assert_int_equal(run->tgid, TGID);
}

static void assert_next(__u64 page, __u64 pages, int class, __u64 ip)
{
	struct memtoll_run run = next_run();

	assert_run(&run, page, pages);
	assert_int_equal(run.fault_class, class);
	assert_int_equal(run.ip, ip);
}

static void assert_no_more(void)
{
	assert_ptr_equal(reading.series, NULL);
	assert_no_event();
}

/* ---- runs ---- */

static void test_one_sweep_is_one_run(void **state)
{
	__u64 began_ns;
	struct memtoll_run run;

	begin();
	began_ns = kernel.now_ns;
	sweep(3, 3 + 1009);
	drain();
	assert_int_equal(kernel_ring_count(&events), 2); /* with its stack's */
	run = next_run();
	assert_run(&run, 3, 1009);
	assert_int_equal(run.fault_class, FAULT_ZERO);
	assert_int_equal(run.area, AREA_ANON);
	assert_int_equal(run.flags, RUN_WRITE);
	assert_int_equal(run.first_ns, began_ns);
	/* The last one's time may be that of up to 15 faults before. */
	assert_in_range(run.last_ns, began_ns + (1008 - 15) * STEP_NS, began_ns + 1008 * STEP_NS);
	assert_no_more();
	assert_lost_only(0, 0);
	assert_int_equal(host_rates()->faults, 1009);
}

/* Most faults of a sweep read no clock. */
static void test_clock_is_spared(void **state)
{
	__u64 reads;

	begin();
	sweep(0, 31);
	reads = kernel.clock_reads;
	sweep(31, 31 + 331);
	/* One in 16, and of one in 64 how long its program takes: two reads. */
	assert_in_range(kernel.clock_reads - reads, 331 / 16, 331 / 16 + 1 + 2 * (331 / 64 + 1));
}

/* At each length the open fault and those that followed it are counted, and none twice. */
static void test_every_length(void **state)
{
	__u64 pages;

	for (pages = 1; pages < 53; pages++) {
		begin();
		sweep(7, 7 + pages);
		drain();
		assert_next(7, pages, FAULT_ZERO, IP);
		assert_no_more();
		assert_int_equal(host_rates()->faults, pages);
	}
}

static void test_what_ends_a_run(void **state)
{
	begin();
	sweep(0, 7);
	sweep(8, 19); /* a page is left out */
	touch(18);    /* the same once more, present by now: another class */
	touch_by(19, OTHER_IP);
	sweep(20, 23);
	set_entry(AT(23), 1, page_entry(ZERO_FRAME) & ~RW);
	sweep(23, 24);
	sweep(24, 29);
	fault_at(AT(29), IP, READS);
	drain();
	assert_next(0, 7, FAULT_ZERO, IP);
	assert_next(8, 11, FAULT_ZERO, IP);
	assert_next(18, 1, FAULT_REUSE, IP);
	assert_next(19, 1, FAULT_ZERO, OTHER_IP);
	assert_next(20, 3, FAULT_ZERO, IP);
	assert_next(23, 1, FAULT_ZERO_UPGRADE, IP);
	assert_next(24, 5, FAULT_ZERO, IP);
	assert_next(29, 1, FAULT_ZERO_READ, IP);
	assert_no_more();
}

/* Downwards no page is the next. */
static void test_downwards(void **state)
{
	int page;

	begin();
	for (page = 12; page >= 0; page--)
		touch(page);
	drain();
	for (page = 12; page >= 0; page--)
		assert_next(page, 1, FAULT_ZERO, IP);
	assert_no_more();
}

/* Given back and touched again: a page of the run that is open, but none that continues it. */
static void test_touched_again(void **state)
{
	begin();
	sweep(10, 16);
	set_entry(AT(13), 1, 0);
	touch(13);
	touch(16);
	drain();
	assert_next(10, 6, FAULT_ZERO, IP);
	assert_next(13, 1, FAULT_ZERO, IP);
	assert_next(16, 1, FAULT_ZERO, IP);
	assert_no_more();
}

/* In a call of the allocator, and after it: separate runs, as they are charged differently. */
static void test_inside_the_allocator(void **state)
{
	struct thread *thread;
	struct memtoll_run run;

	begin();
	sweep(0, 5);
	thread = host_thread();
	thread->in_fn = FN_CALLOC;
	thread->call.caller = 0x401000;
	sweep(5, 12);
	thread->in_fn = FN_NONE;
	sweep(12, 15);
	drain();
	assert_next(0, 5, FAULT_ZERO, IP);
	run = *(const struct memtoll_run *)next_event(EVENT_RUN);
	assert_run(&run, 5, 7);
	assert_int_equal(run.in_fn, FN_CALLOC);
	assert_int_equal(thread->call.faults, 7);
	assert_int_equal(thread->call.inside.faults[FAULT_KIND_ZERO], 7);
	assert_next(12, 3, FAULT_ZERO, IP);
	assert_no_more();
}

/* ---- ends that are seen ---- */

static void end_after(__u64 ns, int major)
{
	kernel.now_ns += ns;
	if (major)
		fault_end_major(NULL);
	else
		fault_end_minor(NULL);
}

static void test_timed(void **state)
{
	struct memtoll_run run;
	__u64 page;

	begin();
	touch(3); /* asks for the area, whose time is not a fault's */
	ends_seen = 1;
	for (page = 4; page < 11; page++) {
		fault_at(AT(page), IP, WRITES);
		set_entry(AT(page), 1, page_entry(0x50000 + page));
		end_after(3701, 0);
	}
	drain();
	run = *(const struct memtoll_run *)next_event(EVENT_RUN);
	assert_run(&run, 3, 8);
	assert_int_equal(run.timed_faults, 7);
	assert_int_equal(run.timed_cpu_ns, 7 * 3701);
	assert_int_equal(run.timed_cpu_us2, 7 * 3 * 3);
	assert_int_equal(run.blocked_ns, 0);
	assert_int_equal(run.flags, RUN_WRITE);
	assert_no_more();
}

/* A fault that has slept: time on the CPU by the scheduler's account, the rest asleep. */
static void test_slept(void **state)
{
	struct memtoll_run run;

	begin();
	host.task.se.sum_exec_runtime = 5000011;
	host.task.se.exec_start = kernel.now_ns - 100;
	set_entry(AT(5), 1, swap_entry(1, 99));
	fault_at(AT(5), IP, WRITES);
	kernel.now_ns += 2000000;
	/*
	 * Until it slept it ran for 7000 ns since exec_start, 6900 of them in the fault; then for
	 * 3000.
	 */
	host.task.se.sum_exec_runtime += 7000;
	host.task.se.exec_start = kernel.now_ns;
	host.task.nvcsw++;
	end_after(3000, 1);
	drain();
	run = *(const struct memtoll_run *)next_event(EVENT_RUN);
	assert_run(&run, 5, 1);
	assert_int_equal(run.fault_class, FAULT_SWAP);
	assert_int_equal(run.flags, RUN_WRITE | RUN_MAJOR);
	assert_int_equal(run.timed_cpu_ns, 9900);
	assert_int_equal(run.blocked_ns, 2003000 - 9900);
}

/*
 * Preempted, not asleep: the other task's time is nobody's here. And reclaim has a toll of its own.
 */
static void test_preempted_and_reclaiming(void **state)
{
	struct memtoll_run run;

	begin();
	host.task.se.exec_start = kernel.now_ns;
	set_entry(AT(5), 1, swap_entry(1, 99));
	fault_at(AT(5), IP, WRITES);
	kernel.now_ns += 50000;
	host.task.se.sum_exec_runtime += 11000;
	host.task.se.exec_start = kernel.now_ns;
	host.task.nivcsw++;
	host_thread()->fault.reclaim_cpu_ns = 1700;
	end_after(1000, 1);
	drain();
	run = *(const struct memtoll_run *)next_event(EVENT_RUN);
	assert_int_equal(run.timed_cpu_ns, 12000 - 1700);
	assert_int_equal(run.blocked_ns, 0);
}

/* Preempted, and moved: what the CPUs' clocks differ by is no time of its own. */
static void test_moved(void **state)
{
	struct memtoll_run run;

	begin();
	host.task.se.exec_start = kernel.now_ns - 1000;
	set_entry(AT(5), 1, swap_entry(1, 99));
	fault_at(AT(5), IP, WRITES);
	kernel.now_ns += 90000000;
	host.task.se.sum_exec_runtime += 5000017;
	host.task.se.exec_start = kernel.now_ns - 70000000;
	host.task.nivcsw++;
	kernel.cpu = 1;
	end_after(1000, 1);
	kernel.cpu = 0;
	drain();
	run = *(const struct memtoll_run *)next_event(EVENT_RUN);
	assert_int_equal(run.timed_cpu_ns, 5000017);
	assert_int_equal(run.blocked_ns, 0);
}

/* The last of those in order turns out to be major: it is one by itself, and not counted twice. */
static void test_major_at_the_end_of_an_order(void **state)
{
	struct memtoll_run run;

	begin();
	sweep(0, 11);
	end_after(500, 1);
	sweep(11, 17);
	drain();
	assert_next(0, 10, FAULT_ZERO, IP);
	run = *(const struct memtoll_run *)next_event(EVENT_RUN);
	assert_run(&run, 10, 1);
	assert_int_equal(run.flags, RUN_WRITE | RUN_MAJOR);
	assert_next(11, 6, FAULT_ZERO, IP);
	assert_no_more();
	assert_int_equal(host_rates()->faults, 17);
}

/* ---- what may change between two faults in order ---- */

static void test_drained_in_between(void **state)
{
	begin();
	sweep(0, 7);
	drain_epoch++;
	sweep(7, 18);
	assert_next(0, 7, FAULT_ZERO, IP);
	assert_no_more();
	drain();
	assert_next(7, 11, FAULT_ZERO, IP);
}

/* Another thread has mapped something else over the rest: the area is asked for anew. */
static void test_mappings_changed(void **state)
{
	begin();
	sweep(0, 7);
	memset(&area, 0, sizeof(area));
	area.vm_mm = &host.mm;
	area.vm_start = AREA_START;
	area.vm_end = AT(AREA_PAGES);
	memcpy((void *)&area.vm_flags, &(__u64){ VM_HUGETLB_FLAG | 3 }, 8);
	area_generation++;
	touch(7);
	drain();
	assert_next(0, 7, FAULT_ZERO, IP);
	assert_next(7, 1, FAULT_ZERO_HUGE, IP);
}

/*
 * From a block that is made or freed on, faults have a time of their own: who owns them goes by it.
 */
static void test_block_told(void **state)
{
	struct memtoll_run run;
	__u64 told_ns;

	begin();
	sweep(0, 3);
	block_generation++;
	told_ns = kernel.now_ns;
	touch(3);
	drain();
	run = next_run();
	assert_run(&run, 0, 4);
	assert_true(run.last_ns >= told_ns);
}

/* Another thread was there first. */
static void test_page_is_there_already(void **state)
{
	begin();
	sweep(0, 5);
	set_entry(AT(5), 1, page_entry(0x77777));
	fault_at(AT(5), IP, WRITES);
	sweep(6, 8);
	drain();
	assert_next(0, 5, FAULT_ZERO, IP);
	assert_next(5, 1, FAULT_REUSE, IP);
	assert_next(6, 2, FAULT_ZERO, IP);
	assert_no_more();
}

/* Where the area ends another kind of memory begins. */
static void test_end_of_the_area(void **state)
{
	host_begin();
	tables_begin(4);
	/* In the middle of a page table. */
	add_area(&area, AREA_START, AT(107), 0);
	add_area(&second_area, AT(107), AT(AREA_PAGES), VM_HUGETLB_FLAG);
	set_entry(AREA_START, 1, 0);
	sweep(101, 107);
	fault_at(AT(107), IP, WRITES);
	drain();
	assert_next(101, 6, FAULT_ZERO, IP);
	assert_next(107, 1, FAULT_ZERO_HUGE, IP);
	assert_no_more();
}

/* Where the page table ends there may be room for a huge page. */
static void test_end_of_the_table(void **state)
{
	struct memtoll_run run;

	begin();
	sweep(505, 512);
	fault_at(AT(512), IP, WRITES);
	set_entry(AT(512), 2, page_entry(0x14000) | PS);
	fault_at(AT(1024), IP, WRITES);
	set_entry(AT(1024), 2, page_entry(0x14200) | PS);
	drain();
	assert_next(505, 7, FAULT_ZERO, IP);
	run = *(const struct memtoll_run *)next_event(EVENT_RUN);
	assert_int_equal(run.fault_class, FAULT_ZERO_HUGE);
	assert_int_equal(run.address, AT(512));
	assert_int_equal(run.faults, 2);
	assert_int_equal(run.pages, 1024);
	assert_no_more();
}

/* ---- series ---- */

/* Two instructions alternately: 37 runs of a page or two, sixteen to a record. */
static void test_series(void **state)
{
	static const unsigned counts[] = { 16, 16, 5 };
	const struct memtoll_series *series;
	__u64 page = 0, next = 0;
	unsigned i, run;

	begin();
	for (i = 0; i < 37; i++) {
		touch_by(page++, i % 2 ? OTHER_IP : IP);
		if (i % 3 == 0)
			touch_by(page++, i % 2 ? OTHER_IP : IP);
	}
	drain();
	for (i = 0, run = 0; i < 3; i++) {
		series = next_event(EVENT_SERIES);
		assert_int_equal(series->count, counts[i]);
		assert_int_equal(series->address, AT(next));
		assert_int_equal(series->fault_class, FAULT_ZERO);
		for (unsigned at = 0; at < series->count; at++, run++) {
			assert_int_equal(series->runs[at].pages, run % 3 ? 1 : 2);
			assert_int_equal(series->runs[at].ip, run % 2 ? OTHER_IP : IP);
			assert_int_equal(series->runs[at].flags, RUN_WRITE);
			next += series->runs[at].pages;
		}
		assert_int_equal(series->address + series->pages * MEMTOLL_PAGE_SIZE, AT(next));
	}
	assert_int_equal(next, page);
	assert_no_more();
}

/* As long as its count says and no longer. */
static void test_series_record_ends_with_its_last_run(void **state)
{
	const __u32 *record;
	unsigned long long bytes = 0;

	begin();
	touch_by(0, IP);
	touch_by(1, OTHER_IP);
	touch_by(2, IP);
	drain();
	do
		record = kernel_ring_take(&events, &bytes, NULL);
	while (*record != EVENT_SERIES);
	assert_int_equal(bytes, offsetof(struct memtoll_series, runs) +
					3 * sizeof(struct memtoll_plain_run));
}

/* What a series cannot tell goes by itself, in its place among the others. */
static void test_no_plain_run_in_between(void **state)
{
	struct memtoll_run run;

	begin();
	touch_by(0, IP);
	touch_by(1, OTHER_IP);
	ends_seen = 1;
	fault_at(AT(2), IP, WRITES);
	set_entry(AT(2), 1, page_entry(0x50002));
	end_after(3701, 0);
	ends_seen = 0;
	touch_by(3, OTHER_IP);
	drain();
	assert_next(0, 1, FAULT_ZERO, IP);
	assert_next(1, 1, FAULT_ZERO, OTHER_IP);
	run = *(const struct memtoll_run *)next_event(EVENT_RUN);
	assert_run(&run, 2, 1);
	assert_int_equal(run.timed_faults, 1);
	assert_next(3, 1, FAULT_ZERO, OTHER_IP);
	assert_no_more();
}

/* Times in a series are of 32 bits, from its beginning on: four seconds. */
static void test_series_that_lasts(void **state)
{
	const __u64 began = 1000000007, later = began + 5000000000ULL;
	struct memtoll_run run;

	begin();
	touch_by(0, IP);
	kernel.now_ns = later;
	touch_by(1, OTHER_IP);
	/* A run of which each fault has a time, and that lasts too long itself. */
	touch_by(9, IP);
	kernel.now_ns += 5000000000ULL;
	block_generation++;
	touch_by(10, IP);
	drain();
	run = next_run();
	assert_int_equal(run.first_ns, began);
	assert_int_equal(run.last_ns, began);
	run = next_run();
	assert_int_equal(run.first_ns, later);
	assert_int_equal(run.last_ns, later);
	run = *(const struct memtoll_run *)next_event(EVENT_RUN);
	assert_run(&run, 9, 2);
	assert_int_equal(run.last_ns - run.first_ns, 5000000000ULL + STEP_NS);
}

/* Each fault is in a record, or counted as lost. */
static void test_full_ring(void **state)
{
	begin();
	touch(0);
	drain();
	assert_next(0, 1, FAULT_ZERO, IP);
	kernel.ring_bytes = 0;
	sweep(1, 1 + 101);
	touch_by(102, OTHER_IP);
	drain();
	assert_int_equal(lost(LOST_RING_FAULTS), 102);
	set_entry(AT(200), 1, swap_entry(1, 99));
	fault_at(AT(200), IP, WRITES);
	end_after(10, 1);
	drain();
	assert_int_equal(lost(LOST_RING_FAULTS), 103);
}

/* When the recording is over, no more. */
static void test_stopped(void **state)
{
	begin();
	sweep(0, 7);
	stopped = 1;
	sweep(7, 11);
	sweep(13, 17);
	drain();
	assert_next(0, 7, FAULT_ZERO, IP);
	assert_no_more();
}

/* ---- one in so many is looked at ---- */

/* Whatever follows in order is counted at the same price. */
static void test_order_is_not_thinned(void **state)
{
	begin();
	touch(3);
	fault_draw = 0;
	sweep(4, 14);
	drain();
	assert_int_equal(host_rates()->faults, 11);
	assert_int_equal(host_rates()->passed_faults, 0);
	assert_next(3, 11, FAULT_ZERO, IP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_sweep_is_one_run),
		cmocka_unit_test(test_clock_is_spared),
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_what_ends_a_run),
		cmocka_unit_test(test_downwards),
		cmocka_unit_test(test_touched_again),
		cmocka_unit_test(test_inside_the_allocator),
		cmocka_unit_test(test_timed),
		cmocka_unit_test(test_slept),
		cmocka_unit_test(test_preempted_and_reclaiming),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_major_at_the_end_of_an_order),
		cmocka_unit_test(test_drained_in_between),
		cmocka_unit_test(test_mappings_changed),
		cmocka_unit_test(test_block_told),
		cmocka_unit_test(test_page_is_there_already),
		cmocka_unit_test(test_end_of_the_area),
		cmocka_unit_test(test_end_of_the_table),
		cmocka_unit_test(test_series),
		cmocka_unit_test(test_series_record_ends_with_its_last_run),
		cmocka_unit_test(test_no_plain_run_in_between),
		cmocka_unit_test(test_series_that_lasts),
		cmocka_unit_test(test_full_ring),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_order_is_not_thinned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
