// SPDX-License-Identifier: GPL-2.0
/* Memory given back and got again: how, by whom, how much. Counts are prime. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <glib.h>

#include "ledger/giveback.h"

#define PAGE 4096ULL
#define PID 4242
#define HEAP 0x55aa00000000ULL
#define POOL 0x7faa00000000ULL
#define GAVE 71ULL
#define GOT 73ULL
#define TOUCH 79ULL

static int setup(void **state)
{
	*state = giveback_new();
	return 0;
}

static int teardown(void **state)
{
	giveback_free(*state);
	return 0;
}

static void collect(void *context, const struct giveback_sum *sum)
{
	g_array_append_val((GArray *)context, *sum);
}

/* All rows of one way since the last call: what was given, and what came again. */
static struct giveback_sum total_of(struct giveback *giveback, uint8_t how)
{
	GArray *sums = g_array_new(FALSE, FALSE, sizeof(struct giveback_sum));
	struct giveback_sum total = { .how = how };
	guint i;

	giveback_drain(giveback, collect, sums);
	for (i = 0; i < sums->len; i++) {
		const struct giveback_sum *sum = &g_array_index(sums, struct giveback_sum, i);

		if (sum->how != how)
			continue;
		total.calls += sum->calls;
		total.thread_calls += sum->thread_calls;
		total.gave_pages += sum->gave_pages;
		total.largest_bytes = MAX(total.largest_bytes, sum->largest_bytes);
		total.span_bytes = MAX(total.span_bytes, sum->span_bytes);
		total.again_pages += sum->again_pages;
		total.again_faults += sum->again_faults;
		total.twice_pages += sum->twice_pages;
		if (sum->again_pages) {
			total.gave_stack = sum->gave_stack;
			total.gave_fn = sum->gave_fn;
			total.got_stack = sum->got_stack;
			total.got_fn = sum->got_fn;
		}
	}
	g_array_free(sums, TRUE);
	return total;
}

static void call(struct giveback *giveback, uint8_t map_fn, uint8_t in_fn, uint64_t stack,
		 uint64_t addr, uint64_t len, uint64_t arg, uint64_t result, uint64_t at_ns)
{
	giveback_mapping(giveback, &(struct memtoll_mapping){
					   .kind = EVENT_MAPPING,
					   .tgid = PID,
					   .tid = PID,
					   .map_fn = map_fn,
					   .in_fn = in_fn,
					   .flags = map_fn == MAP_FN_MMAP ? MAPPING_ANONYMOUS : 0,
					   .addr = addr,
					   .len = len,
					   .arg = arg,
					   .result = (int64_t)result,
					   .start_ns = at_ns,
					   .stack_id = stack,
				   });
}

static void set_break(struct giveback *giveback, uint64_t from, uint64_t to, uint64_t at_ns)
{
	call(giveback, MAP_FN_BRK, to < from ? FN_FREE : FN_MALLOC, to < from ? GAVE : GOT, from,
	     to, 0, to, at_ns);
}

static void map(struct giveback *giveback, uint64_t addr, uint64_t pages, uint64_t at_ns)
{
	call(giveback, MAP_FN_MMAP, FN_MALLOC, GOT, 0, pages * PAGE, 3, addr, at_ns);
}

static void unmap(struct giveback *giveback, uint64_t addr, uint64_t pages, uint64_t at_ns)
{
	call(giveback, MAP_FN_MUNMAP, FN_FREE, GAVE, addr, pages * PAGE, 0, 0, at_ns);
}

static void advise(struct giveback *giveback, uint64_t addr, uint64_t pages, uint64_t advice,
		   uint64_t at_ns)
{
	call(giveback, MAP_FN_MADVISE, FN_NONE, GAVE, addr, pages * PAGE, advice, 0, at_ns);
}

static void fault(struct giveback *giveback, uint8_t class, uint64_t addr, uint64_t pages,
		  uint64_t at_ns)
{
	giveback_run(giveback,
		     &(struct memtoll_run){ .kind = EVENT_RUN,
					    .tgid = PID,
					    .tid = PID,
					    .fault_class = class,
					    .area = AREA_ANON,
					    .flags = RUN_WRITE,
					    .address = addr,
					    .pages = pages,
					    .faults = pages,
					    .first_ns = at_ns,
					    .last_ns = at_ns,
					    .stack_id = TOUCH },
		     0, 0);
}

static void touch(struct giveback *giveback, uint64_t addr, uint64_t pages, uint64_t at_ns)
{
	fault(giveback, FAULT_ZERO, addr, pages, at_ns);
}

/* The break goes down over pages in use and pages that never were, and up again. */
static void test_brk(void **state)
{
	struct giveback *giveback = *state;
	struct giveback_sum sum;

	set_break(giveback, HEAP, HEAP + 401 * PAGE, 1);
	touch(giveback, HEAP, 307, 2);
	set_break(giveback, HEAP + 401 * PAGE, HEAP + 101 * PAGE, 3);
	sum = total_of(giveback, GIVEBACK_BRK);
	assert_int_equal(sum.calls, 1);
	assert_int_equal(sum.gave_pages, 307 - 101);
	assert_int_equal(sum.largest_bytes, 300 * PAGE);
	assert_int_equal(sum.span_bytes, 300 * PAGE);
	assert_int_equal(sum.again_pages, 0);
	set_break(giveback, HEAP + 101 * PAGE, HEAP + 151 * PAGE, 4);
	set_break(giveback, HEAP + 151 * PAGE, HEAP + 501 * PAGE, 5);
	/* What was never away, what is back, and what is in use for the first time. */
	touch(giveback, HEAP + 101 * PAGE, 397, 6);
	sum = total_of(giveback, GIVEBACK_BRK);
	assert_int_equal(sum.again_pages, 307 - 101);
	assert_int_equal(sum.again_faults, 307 - 101);
	assert_int_equal(sum.gave_stack, GAVE);
	assert_int_equal(sum.gave_fn, FN_FREE);
	assert_int_equal(sum.got_stack, GOT);
	assert_int_equal(sum.got_fn, FN_MALLOC);
	assert_int_equal(sum.gave_pages, 0);
	/* They are in use now: faults of other kinds on them bring nothing back. */
	fault(giveback, FAULT_COW, HEAP + 101 * PAGE, 11, 7);
	fault(giveback, FAULT_ZERO_UPGRADE, HEAP + 101 * PAGE, 11, 8);
	touch(giveback, HEAP + 101 * PAGE, 13, 9);
	assert_int_equal(total_of(giveback, GIVEBACK_BRK).again_pages, 0);
}

/* Rounds: each gives back and gets again the same, in steps that fit together differently. */
static void test_ping_pong(void **state)
{
	struct giveback *giveback = *state;
	struct giveback_sum sum;
	uint64_t round, step, at = 1;

	set_break(giveback, HEAP, HEAP + 37 * PAGE, at++);
	for (round = 0; round < 13; round++) {
		for (step = 0; step < 7; step++)
			set_break(giveback, HEAP + (37 + step * 23) * PAGE,
				  HEAP + (37 + (step + 1) * 23) * PAGE, at++);
		for (step = 0; step < 23; step++)
			touch(giveback, HEAP + (37 + step * 7) * PAGE, 7, at++);
		for (step = 161; step; step--)
			set_break(giveback, HEAP + (37 + step) * PAGE,
				  HEAP + (37 + step - 1) * PAGE, at++);
	}
	sum = total_of(giveback, GIVEBACK_BRK);
	assert_int_equal(sum.calls, 13 * 161);
	assert_int_equal(sum.gave_pages, 13 * 161);
	assert_int_equal(sum.again_pages, 12 * 161);
	assert_int_equal(sum.largest_bytes, PAGE);
	assert_int_equal(sum.span_bytes, 161 * PAGE);
}

/* What was there before the first fall does not belong to the span. */
static void test_span(void **state)
{
	struct giveback *giveback = *state;
	uint64_t top = HEAP + 1012 * PAGE, slice;
	struct giveback_sum sum;

	set_break(giveback, HEAP, HEAP + 1009 * PAGE, 1);
	touch(giveback, HEAP, 1009, 2);
	set_break(giveback, HEAP + 1009 * PAGE, HEAP + 998 * PAGE, 3);
	set_break(giveback, HEAP + 998 * PAGE, HEAP + 1015 * PAGE, 4);
	sum = total_of(giveback, GIVEBACK_BRK);
	assert_int_equal(sum.span_bytes, 17 * PAGE);
	set_break(giveback, HEAP + 1015 * PAGE, HEAP + 1012 * PAGE, 5);
	/* Whenever it came again: the 11 pages of before. */
	assert_int_equal(total_of(giveback, GIVEBACK_BRK).span_bytes, 11 * PAGE);
	/* In five slices it falls, in five more it rises. */
	for (slice = 0; slice < 5; slice++) {
		set_break(giveback, top, top - 101 * PAGE, 10 + slice);
		top -= 101 * PAGE;
		assert_int_equal(total_of(giveback, GIVEBACK_BRK).span_bytes, 101 * PAGE);
	}
	for (; slice < 10; slice++) {
		set_break(giveback, top, top + 101 * PAGE, 10 + slice);
		top += 101 * PAGE;
		total_of(giveback, GIVEBACK_BRK);
	}
	set_break(giveback, top, top - 7 * PAGE, 30);
	assert_int_equal(total_of(giveback, GIVEBACK_BRK).span_bytes, 505 * PAGE);
	/* A process that ends leaves its figures. */
	set_break(giveback, HEAP + 1005 * PAGE, HEAP + 498 * PAGE, 31);
	giveback_restart(giveback, PID);
	assert_int_equal(total_of(giveback, GIVEBACK_BRK).span_bytes, 507 * PAGE);
}

/* Nothing comes again: two steps down within a slice are one fall. */
static void test_span_of_steps(void **state)
{
	struct giveback *giveback = *state;

	set_break(giveback, HEAP, HEAP + 1009 * PAGE, 1);
	touch(giveback, HEAP, 1009, 2);
	set_break(giveback, HEAP + 1009 * PAGE, HEAP + 998 * PAGE, 3);
	set_break(giveback, HEAP + 998 * PAGE, HEAP + 985 * PAGE, 4);
	assert_int_equal(total_of(giveback, GIVEBACK_BRK).span_bytes, 24 * PAGE);
}

/* Each mapping lies elsewhere: it is the same call that gets them, of about the same size. */
static void test_munmap(void **state)
{
	struct giveback *giveback = *state;
	struct giveback_sum sum;
	uint64_t round;

	for (round = 0; round < 17; round++) {
		uint64_t addr = POOL + round * 4096 * PAGE;

		map(giveback, addr, 1031 + round, 10 * round + 1);
		touch(giveback, addr, 503, 10 * round + 2);
		unmap(giveback, addr, 1031 + round, 10 * round + 3);
	}
	sum = total_of(giveback, GIVEBACK_MUNMAP);
	assert_int_equal(sum.calls, 17);
	assert_int_equal(sum.gave_pages, 17 * 503);
	assert_int_equal(sum.again_pages, 16 * 503);
	assert_int_equal(sum.largest_bytes, 1047 * PAGE);
	assert_int_equal(sum.span_bytes, 1047 * PAGE);
	assert_int_equal(sum.gave_fn, FN_FREE);
	assert_int_equal(sum.got_stack, GOT);
	/* Twice the size is another class; so is another call. */
	map(giveback, POOL, 2048, 1000);
	touch(giveback, POOL, 101, 1001);
	call(giveback, MAP_FN_MMAP, FN_CALLOC, GOT, 0, 1031 * PAGE, 3, POOL + 8192 * PAGE, 1002);
	touch(giveback, POOL + 8192 * PAGE, 101, 1003);
	assert_int_equal(total_of(giveback, GIVEBACK_MUNMAP).again_pages, 0);
	/* No more comes again than was given back. */
	map(giveback, POOL + 100 * 4096 * PAGE, 1031, 2000);
	touch(giveback, POOL + 100 * 4096 * PAGE, 1031, 2001);
	assert_int_equal(total_of(giveback, GIVEBACK_MUNMAP).again_pages, 503);
}

/*
 * glibc cuts the first heap from twice as much, and gets the next ones where that was. A block as
 * large is none, nor is one that is not aligned.
 */
static void test_heap_of_an_arena(void **state)
{
	const uint64_t heap = 16384, at = 0x7f0004000000ULL; /* 64 MiB in pages; aligned to it */
	struct giveback *giveback = *state;
	struct giveback_sum sum;
	uint64_t round;

	call(giveback, MAP_FN_MMAP, FN_MALLOC, GOT, 0, 2 * heap * PAGE, 0, at - 4096 * PAGE, 1);
	call(giveback, MAP_FN_MUNMAP, FN_MALLOC, GOT, at - 4096 * PAGE, 4096 * PAGE, 0, 0, 2);
	call(giveback, MAP_FN_MUNMAP, FN_MALLOC, GOT, at + heap * PAGE, (heap - 4096) * PAGE, 0, 0,
	     3);
	touch(giveback, at, 103, 4);
	for (round = 1; round < 13; round++) {
		unmap(giveback, at, heap, 10 * round);
		call(giveback, MAP_FN_MMAP, FN_MALLOC, GOT, 0, heap * PAGE, 0, at, 10 * round + 1);
		touch(giveback, at, 733, 10 * round + 2);
	}
	sum = total_of(giveback, GIVEBACK_HEAP);
	assert_int_equal(sum.calls, 12);
	assert_int_equal(sum.thread_calls, 0);
	assert_int_equal(sum.gave_pages, 103 + 11 * 733);
	assert_int_equal(sum.again_pages, 103 + 11 * 733); /* the first is as good as the next */
	assert_int_equal(sum.largest_bytes, heap * PAGE);
	/* By another thread; with access from the start; and cut in the middle. */
	giveback_mapping(giveback, &(struct memtoll_mapping){ .kind = EVENT_MAPPING,
							      .tgid = PID,
							      .tid = PID + 1,
							      .map_fn = MAP_FN_MUNMAP,
							      .addr = at,
							      .len = heap * PAGE,
							      .start_ns = 900 });
	map(giveback, at, heap, 1000);
	unmap(giveback, at, heap, 1001);
	call(giveback, MAP_FN_MMAP, FN_MALLOC, GOT, 0, heap * PAGE, 0, at + PAGE, 1002);
	unmap(giveback, at + PAGE, heap, 1003);
	sum = total_of(giveback, GIVEBACK_HEAP);
	assert_int_equal(sum.calls, 1);
	assert_int_equal(sum.thread_calls, 1);
}

/* One page, looked at for itself and nine that are passed over. */
static void touch_tenth(struct giveback *giveback, uint64_t addr, uint64_t at_ns)
{
	giveback_run(giveback,
		     &(struct memtoll_run){ .kind = EVENT_RUN,
					    .tgid = PID,
					    .tid = PID,
					    .fault_class = FAULT_ZERO,
					    .area = AREA_ANON,
					    .flags = RUN_WRITE,
					    .address = addr,
					    .pages = 1,
					    .faults = 1,
					    .passed = 9,
					    .first_ns = at_ns,
					    .last_ns = at_ns,
					    .stack_id = TOUCH },
		     0, 0);
}

/*
 * Nine of ten faults are passed over, and of those that are looked at none is where one was before.
 * used: of 1,000 pages so many are used each time; what had been is told by what was seen.
 */
static uint64_t again_of_tenths(struct giveback *giveback, uint64_t used)
{
	uint64_t round, page, at = 1;

	giveback_restart(giveback, PID);
	total_of(giveback, GIVEBACK_BRK);
	for (round = 0; round < 2; round++) {
		set_break(giveback, HEAP, HEAP + 1000 * PAGE, at++);
		for (page = round; page < used; page += 10)
			touch_tenth(giveback, HEAP + page * PAGE, at++);
		if (!round)
			set_break(giveback, HEAP + 1000 * PAGE, HEAP, at++);
	}
	return total_of(giveback, GIVEBACK_BRK).again_pages;
}

static void test_faults_that_are_passed_over(void **state)
{
	const uint64_t reserved = 0x7f1000000000ULL;
	struct giveback *giveback = *state;
	uint64_t page;

	assert_int_equal(again_of_tenths(giveback, 1000), 1000);
	/* Half of what goes was in use: so is half of what is used then, as nobody knows which. */
	assert_int_equal(again_of_tenths(giveback, 500), 250);
	/* Mapped anew over what was never used, as runtimes do that reserve first. */
	call(giveback, MAP_FN_MMAP, FN_NONE, GOT, 0, 1009 * PAGE, 0, reserved, 5000);
	for (page = 0; page < 100; page++)
		touch_tenth(giveback, HEAP + 2000 * PAGE + page * PAGE, 5001);
	giveback_mapping(giveback,
			 &(struct memtoll_mapping){ .kind = EVENT_MAPPING,
						    .tgid = PID,
						    .tid = PID,
						    .map_fn = MAP_FN_MMAP,
						    .flags = MAPPING_ANONYMOUS | MAPPING_FIXED,
						    .len = 1009 * PAGE,
						    .result = (int64_t)reserved,
						    .start_ns = 5002,
						    .stack_id = GAVE });
	for (page = 0; page < 1009; page += 10)
		touch_tenth(giveback, reserved + page * PAGE, 5003);
	assert_int_equal(total_of(giveback, GIVEBACK_FIXED).again_pages, 0);
}

/*
 * Faults of which nothing is known but how many there were: as many as of those that were seen come
 * again, of this slice and of those before, also of a process that has ended.
 */
static void test_faults_for_whom_none_has_spoken(void **state)
{
	const struct memtoll_run part = {
		.tgid = PID, .fault_class = FAULT_ZERO, .faults = 2018, .pages = 2018
	};
	struct memtoll_run other = part;
	struct giveback *giveback = *state;
	struct giveback_sum sum;
	int round;

	for (round = 0; round < 2; round++) {
		set_break(giveback, HEAP, HEAP + 1009 * PAGE, 10 * round + 1);
		touch(giveback, HEAP, 1009, 10 * round + 2);
		if (!round)
			set_break(giveback, HEAP + 1009 * PAGE, HEAP, 3);
	}
	giveback_unspoken(giveback, &part);
	sum = total_of(giveback, GIVEBACK_BRK);
	assert_int_equal(sum.again_pages, 1009 + 1009);
	assert_int_equal(sum.again_faults, 1009 + 1009);
	giveback_restart(giveback, PID);
	giveback_unspoken(giveback, &part);
	sum = total_of(giveback, GIVEBACK_BRK);
	/* Halves are rounded down. */
	assert_in_range(sum.again_pages, 1009 - 2, 1009);
	other.tgid = PID + 1;
	giveback_unspoken(giveback, &other);
	other = part;
	other.fault_class = FAULT_ZERO_HUGE;
	giveback_unspoken(giveback, &other);
	other.fault_class = FAULT_FILE;
	giveback_unspoken(giveback, &other);
	assert_int_equal(total_of(giveback, GIVEBACK_BRK).again_pages, 0);
}

/* The top of a heap is given back, then all of the heap goes; another call needs the next heap. */
static void test_heap_that_was_trimmed(void **state)
{
	const uint64_t heap = 16384, at = 0x7f0004000000ULL;
	struct giveback *giveback = *state;
	struct giveback_sum sum;
	uint64_t round;

	for (round = 0; round < 7; round++) {
		call(giveback, MAP_FN_MMAP, FN_MALLOC, GOT + round, 0, heap * PAGE, 0, at,
		     100 * round + 1);
		touch(giveback, at, 1009, 100 * round + 2);
		call(giveback, MAP_FN_MADVISE, FN_FREE, GAVE, at + 106 * PAGE, 903 * PAGE, 4, 0,
		     100 * round + 3);
		unmap(giveback, at, heap, 100 * round + 4);
	}
	sum = total_of(giveback, GIVEBACK_DONTNEED);
	assert_int_equal(sum.gave_pages, 7 * 903);
	assert_int_equal(sum.again_pages, 6 * 903);
}

static void stack_call(struct giveback *giveback, uint8_t map_fn, uint64_t pages, uint64_t arg,
		       uint64_t at_ns)
{
	giveback_mapping(giveback, &(struct memtoll_mapping){
					   .kind = EVENT_MAPPING,
					   .tgid = PID,
					   .map_fn = map_fn,
					   .flags = MAPPING_STACK | MAPPING_ANONYMOUS,
					   .addr = map_fn == MAP_FN_MMAP ? 0 : POOL,
					   .len = pages * PAGE,
					   .arg = arg,
					   .result = map_fn == MAP_FN_MMAP ? (int64_t)POOL : 0,
					   .start_ns = at_ns,
					   .stack_id = map_fn == MAP_FN_MMAP ? GOT : GAVE,
				   });
}

/* A thread's: most of it goes at the thread's end, the rest if the stack is not kept. */
static void test_stack_of_a_thread_comes_again(void **state)
{
	struct giveback *giveback = *state;
	struct giveback_sum sum;

	stack_call(giveback, MAP_FN_MMAP, 2048, 0, 1);
	touch(giveback, POOL + 1024 * PAGE, 1024, 2);
	stack_call(giveback, MAP_FN_MADVISE, 2043, 4, 3);
	touch(giveback, POOL + 1940 * PAGE, 103, 4);
	stack_call(giveback, MAP_FN_MADVISE, 2043, 4, 5);
	stack_call(giveback, MAP_FN_MUNMAP, 2048, 0, 6);
	stack_call(giveback, MAP_FN_MMAP, 2048, 0, 7);
	touch(giveback, POOL + 1541 * PAGE, 507, 8);
	sum = total_of(giveback, GIVEBACK_STACK);
	assert_int_equal(sum.calls, 2);
	assert_int_equal(sum.gave_pages, 1019 + 103);
	/* The 5 pages that a thread keeps went with the mapping, last. */
	assert_int_equal(sum.again_pages, 103 + 502);
	/* The code that uses the stack, not who made the thread. */
	assert_int_equal(sum.got_stack, TOUCH);
}

/* By the call that gave back: [1] of the other. */
static void by_releaser(struct giveback *giveback, uint64_t other, uint64_t gave[2],
			uint64_t again[2])
{
	GArray *sums = g_array_new(FALSE, FALSE, sizeof(struct giveback_sum));
	guint i;

	memset(gave, 0, 2 * sizeof(*gave));
	memset(again, 0, 2 * sizeof(*again));
	giveback_drain(giveback, collect, sums);
	for (i = 0; i < sums->len; i++) {
		const struct giveback_sum *sum = &g_array_index(sums, struct giveback_sum, i);

		gave[sum->gave_stack == other] += sum->gave_pages;
		again[sum->gave_stack == other] += sum->again_pages;
	}
	g_array_free(sums, TRUE);
}

/* One call maps, two release: each is charged what came again of its own pages, and no more. */
static void test_two_releasers(void **state)
{
	const uint64_t other = GAVE + 1;
	struct giveback *giveback = *state;
	uint64_t gave[2], again[2];

	map(giveback, POOL, 1031, 1);
	map(giveback, POOL + 4096 * PAGE, 1031, 2);
	touch(giveback, POOL, 503, 3);
	touch(giveback, POOL + 4096 * PAGE, 11, 4);
	unmap(giveback, POOL, 1031, 5);
	call(giveback, MAP_FN_MUNMAP, FN_FREE, other, POOL + 4096 * PAGE, 1031 * PAGE, 0, 0, 6);
	map(giveback, POOL + 8192 * PAGE, 1031, 7);
	touch(giveback, POOL + 8192 * PAGE, 401, 8);
	by_releaser(giveback, other, gave, again);
	assert_int_equal(gave[0], 503);
	assert_int_equal(gave[1], 11);
	/* The last to give comes first. */
	assert_int_equal(again[1], 11);
	assert_int_equal(again[0], 401 - 11);
}

/* The heap falls, rises, is used in part and falls at another place: pages away are the first's. */
static void test_two_places_trim(void **state)
{
	const uint64_t other = GAVE + 1;
	struct giveback *giveback = *state;
	uint64_t gave[2], again[2];

	set_break(giveback, HEAP, HEAP + 1049 * PAGE, 1);
	touch(giveback, HEAP, 1049, 2);
	set_break(giveback, HEAP + 1049 * PAGE, HEAP + 7 * PAGE, 3);
	set_break(giveback, HEAP + 7 * PAGE, HEAP + 1049 * PAGE, 4);
	touch(giveback, HEAP + 7 * PAGE, 401, 5);
	touch(giveback, HEAP + 500 * PAGE, 416, 6);
	call(giveback, MAP_FN_BRK, FN_FREE, other, HEAP + 1049 * PAGE, HEAP + 7 * PAGE, 0,
	     HEAP + 7 * PAGE, 7);
	by_releaser(giveback, other, gave, again);
	assert_int_equal(gave[0], 1042);
	assert_int_equal(again[0], 817);
	assert_int_equal(gave[1], 817);
	assert_int_equal(again[1], 0);
	set_break(giveback, HEAP + 7 * PAGE, HEAP + 1049 * PAGE, 8);
	touch(giveback, HEAP + 7 * PAGE, 1042, 9);
	by_releaser(giveback, other, gave, again);
	assert_int_equal(again[0], 1042 - 817);
	assert_int_equal(again[1], 817);
	/* All is of the first again. */
	set_break(giveback, HEAP + 1049 * PAGE, HEAP + 7 * PAGE, 10);
	set_break(giveback, HEAP + 7 * PAGE, HEAP + 1049 * PAGE, 11);
	touch(giveback, HEAP + 7 * PAGE, 1042, 12);
	by_releaser(giveback, other, gave, again);
	assert_int_equal(gave[0], 1042);
	assert_int_equal(again[0], 1042);
	assert_int_equal(again[1], 0);
}

/* News of pages used between two that gave: back from the first, given by the second. */
static void test_two_releasers_and_late_news(void **state)
{
	const uint64_t other = GAVE + 1;
	struct giveback *giveback = *state;
	uint64_t gave[2], again[2];

	call(giveback, MAP_FN_MMAP, FN_NONE, GOT, 0, 211 * PAGE, 3, POOL, 10);
	touch(giveback, POOL, 101, 20);
	advise(giveback, POOL, 211, 4, 30);
	call(giveback, MAP_FN_MADVISE, FN_NONE, other, POOL, 211 * PAGE, 8, 0, 50);
	touch(giveback, POOL + 90 * PAGE, 23, 40);
	by_releaser(giveback, other, gave, again);
	assert_int_equal(gave[0], 101);
	assert_int_equal(again[0], 11);
	assert_int_equal(gave[1], 23);
	assert_int_equal(again[1], 0);
	touch(giveback, POOL, 211, 60);
	by_releaser(giveback, other, gave, again);
	assert_int_equal(again[0], 90);
	assert_int_equal(again[1], 23);
}

static void test_madvise(void **state)
{
	struct giveback *giveback = *state;
	struct giveback_sum sum;

	call(giveback, MAP_FN_MMAP, FN_NONE, GOT, 0, 211 * PAGE, 3, POOL, 1);
	touch(giveback, POOL, 101, 2);
	advise(giveback, POOL, 211, 4, 3);
	touch(giveback, POOL + 50 * PAGE, 61, 4);
	sum = total_of(giveback, GIVEBACK_DONTNEED);
	assert_int_equal(sum.gave_pages, 101);
	assert_int_equal(sum.again_pages, 51);
	/* Nobody got it from the kernel, so it is who touched it. */
	assert_int_equal(sum.got_stack, TOUCH);
	/* Advice that gives nothing back. */
	advise(giveback, POOL, 211, 14, 5);
	advise(giveback, POOL, 211, 3, 6);
	touch(giveback, POOL + 150 * PAGE, 3, 7);
	assert_int_equal(total_of(giveback, GIVEBACK_DONTNEED).again_pages, 0);
	advise(giveback, POOL + 60 * PAGE, 19, 8, 8);
	touch(giveback, POOL + 60 * PAGE, 7, 9);
	sum = total_of(giveback, GIVEBACK_FREE);
	assert_int_equal(sum.gave_pages, 19);
	assert_int_equal(sum.again_pages, 7);
	/* What is away is not given back a second time with the mapping. */
	call(giveback, MAP_FN_MUNMAP, FN_NONE, GAVE, POOL, 211 * PAGE, 0, 0, 10);
	assert_int_equal(total_of(giveback, GIVEBACK_MUNMAP).gave_pages, 61 + 3 - 19 + 7);
}

/* A known block: whoever made it got the memory again. */
static void test_owner(void **state)
{
	struct giveback *giveback = *state;
	struct memtoll_run run = {
		.kind = EVENT_RUN,
		.tgid = PID,
		.tid = PID,
		.fault_class = FAULT_ZERO,
		.area = AREA_ANON,
		.address = POOL,
		.pages = 29,
		.faults = 29,
		.first_ns = 4,
		.last_ns = 5,
		.stack_id = TOUCH,
		.in_fn = FN_CALLOC,
		.flags = RUN_WRITE | RUN_MEMSET | RUN_FILL_ZERO,
	};
	struct giveback_sum sum;

	map(giveback, POOL, 101, 1);
	touch(giveback, POOL, 101, 2);
	advise(giveback, POOL, 101, 4, 3);
	giveback_run(giveback, &run, 97, FN_REALLOC);
	sum = total_of(giveback, GIVEBACK_DONTNEED);
	assert_int_equal(sum.got_stack, 97);
	assert_int_equal(sum.got_fn, FN_REALLOC);
	assert_int_equal(sum.twice_pages, 29);
	/* One huge page: one fault. */
	run.address = POOL + 29 * PAGE;
	run.pages = 64;
	run.faults = 1;
	run.fault_class = FAULT_ZERO_MTHP;
	run.flags = RUN_WRITE;
	giveback_run(giveback, &run, 0, 0);
	sum = total_of(giveback, GIVEBACK_DONTNEED);
	assert_int_equal(sum.again_pages, 64);
	assert_int_equal(sum.again_faults, 1);
	assert_int_equal(sum.twice_pages, 0);
	assert_int_equal(sum.got_fn, FN_CALLOC);
}

/* In each round another thread's sweep is reported after the memory was released. */
static void test_late_runs(void **state)
{
	struct giveback *giveback = *state;
	struct giveback_sum sum;
	uint64_t round;

	for (round = 0; round < 11; round++) {
		map(giveback, POOL, 401, 100 * round + 1);
		unmap(giveback, POOL, 401, 100 * round + 50);
		touch(giveback, POOL, 307, 100 * round + 20);
	}
	sum = total_of(giveback, GIVEBACK_MUNMAP);
	assert_int_equal(sum.gave_pages, 11 * 307);
	assert_int_equal(sum.again_pages, 10 * 307);
	set_break(giveback, HEAP, HEAP + 401 * PAGE, 2000);
	for (round = 0; round < 11; round++) {
		set_break(giveback, HEAP + 401 * PAGE, HEAP + 1 * PAGE, 2100 + 100 * round);
		touch(giveback, HEAP + 1 * PAGE, 307, 2050 + 100 * round);
		set_break(giveback, HEAP + 1 * PAGE, HEAP + 401 * PAGE, 2110 + 100 * round);
	}
	sum = total_of(giveback, GIVEBACK_BRK);
	assert_int_equal(sum.gave_pages, 11 * 307);
	assert_int_equal(sum.again_pages, 10 * 307);
}

/* Two threads take turns: what one used is told when the other uses it again, after a release. */
static void test_late_runs_of_memory_in_use(void **state)
{
	struct giveback *giveback = *state;
	struct giveback_sum sum;
	uint64_t round;

	map(giveback, POOL, 401, 1);
	for (round = 1; round <= 11; round++) {
		/* Of odd rounds only after the use in the next one, but for the last. */
		if (round % 2 == 0 || round == 11)
			touch(giveback, POOL, 307, 100 * round + 20);
		if (round % 2 == 0)
			touch(giveback, POOL, 307, 100 * (round - 1) + 20);
		advise(giveback, POOL, 401, 4, 100 * round + 50);
	}
	sum = total_of(giveback, GIVEBACK_DONTNEED);
	assert_int_equal(sum.gave_pages, 11 * 307);
	assert_int_equal(sum.again_pages, 10 * 307);
}

/* realloc moves and shrinks mappings: nothing is given back but what is cut off. */
static void test_mremap(void **state)
{
	struct giveback *giveback = *state;
	struct giveback_sum sum;

	map(giveback, POOL, 401, 1);
	touch(giveback, POOL, 401, 2);
	call(giveback, MAP_FN_MREMAP, FN_REALLOC, GAVE, POOL, 401 * PAGE, 809 * PAGE,
	     POOL + 65536 * PAGE, 3);
	assert_int_equal(total_of(giveback, GIVEBACK_MUNMAP).gave_pages, 0);
	touch(giveback, POOL + 65536 * PAGE + 401 * PAGE, 101, 4);
	call(giveback, MAP_FN_MREMAP, FN_REALLOC, GAVE, POOL + 65536 * PAGE, 809 * PAGE, 0, 0, 5);
	unmap(giveback, POOL + 65536 * PAGE, 809, 6);
	sum = total_of(giveback, GIVEBACK_MUNMAP);
	assert_int_equal(sum.gave_pages, 401 + 101);
	assert_int_equal(sum.calls, 1);
}

/* Something else lies at the address afterwards: a fault there brings nothing back. */
static void test_new_memory(void **state)
{
	struct giveback *giveback = *state;

	call(giveback, MAP_FN_MMAP, FN_NONE, GOT, 0, 101 * PAGE, 3, POOL, 1);
	touch(giveback, POOL, 101, 2);
	advise(giveback, POOL, 101, 4, 3);
	call(giveback, MAP_FN_MUNMAP, FN_NONE, GAVE, POOL, 101 * PAGE, 0, 0, 4);
	call(giveback, MAP_FN_MMAP, FN_MALLOC, 101, 0, 101 * PAGE, 3, POOL, 5);
	touch(giveback, POOL, 101, 6);
	assert_int_equal(total_of(giveback, GIVEBACK_DONTNEED).again_pages, 0);
	giveback_restart(giveback, PID);
	touch(giveback, POOL, 101, 7);
	assert_int_equal(total_of(giveback, GIVEBACK_MUNMAP).again_pages, 0);
}

/* Reserved terabytes, gone over in no time; records that the kernel cannot have written. */
static void test_hostile(void **state)
{
	struct giveback *giveback = *state;
	uint64_t i;

	map(giveback, POOL, 1ULL << 30, 1);
	touch(giveback, POOL + 12345 * PAGE, 11, 2);
	for (i = 0; i < 1009; i++)
		call(giveback, MAP_FN_MADVISE, FN_NONE, GAVE + i % 2, POOL, 1ULL << 42, 4, 0,
		     3 + i);
	touch(giveback, POOL + 12345 * PAGE, 11, 5000);
	assert_int_equal(total_of(giveback, GIVEBACK_DONTNEED).again_pages, 11);
	call(giveback, MAP_FN_MUNMAP, 0, 1, 5, 3, 0, 0, 6);
	call(giveback, MAP_FN_MUNMAP, 0, 1, ~0ULL << 12, ~0ULL, 0, 0, 6);
	call(giveback, MAP_FN_MREMAP, 0, 1, POOL, ~0ULL, ~0ULL, POOL, 6);
	call(giveback, MAP_FN_MADVISE, 0, 1, ~0ULL << 12, PAGE, 4, 0, 6);
	call(giveback, MAP_FN_MMAP, 0, 1, 0, 0, 3, POOL, 6);
	fault(giveback, FAULT_ZERO, ~0ULL << 12, 1ULL << 40, 7);
	unmap(giveback, POOL, 1ULL << 30, 8);
	assert_int_equal(giveback_unfollowed(giveback), 0);
}

/* More released ranges than are kept: the rest is counted, and none is reported as used again. */
static void test_bounds(void **state)
{
	struct giveback *giveback = *state;
	uint64_t i, given = 0, kept;

	for (i = 0; i < 140009; i++) {
		touch(giveback, POOL + i * 2 * PAGE, 1, 1);
		advise(giveback, POOL + i * 2 * PAGE, 1, 4, 2);
		given++;
	}
	kept = given - giveback_unfollowed(giveback);
	assert_in_range(kept, 100000, 140008);
	for (i = 0; i < 140009; i++)
		touch(giveback, POOL + i * 2 * PAGE, 1, 3);
	assert_int_equal(total_of(giveback, GIVEBACK_DONTNEED).again_pages, kept);
	/* What is back makes room. */
	advise(giveback, POOL, 1, 4, 4);
	touch(giveback, POOL, 1, 5);
	assert_int_equal(total_of(giveback, GIVEBACK_DONTNEED).again_pages, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_brk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ping_pong, setup, teardown),
		cmocka_unit_test_setup_teardown(test_span, setup, teardown),
		cmocka_unit_test_setup_teardown(test_span_of_steps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_munmap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_faults_that_are_passed_over, setup, teardown),
		cmocka_unit_test_setup_teardown(test_faults_for_whom_none_has_spoken, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_heap_of_an_arena, setup, teardown),
		cmocka_unit_test_setup_teardown(test_heap_that_was_trimmed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stack_of_a_thread_comes_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_two_releasers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_places_trim, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_releasers_and_late_news, setup, teardown),
		cmocka_unit_test_setup_teardown(test_madvise, setup, teardown),
		cmocka_unit_test_setup_teardown(test_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_runs_of_memory_in_use, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mremap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_new_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
	};

	return cmocka_run_group_tests_name("giveback", tests, NULL, NULL);
}
