// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of the allocator: which of them count, as what, and which blocks are followed. Each test
 * runs with either kind of link.
 */
#include "tests/bpf/calls.h"

#define LARGE 65536ULL /* cfg_min_size, as it comes */
#define BLOCK 0x7f5600000010ULL
#define OTHER_BLOCK 0x7f5700000010ULL

static const struct memtoll_block *next_block(__u32 fn, __u64 addr, __u64 old_addr, __u64 size)
{
	const struct memtoll_block *block = next_event(EVENT_BLOCK);

	assert_int_equal(block->fn, fn);
	assert_int_equal(block->addr, addr);
	assert_int_equal(block->old_addr, old_addr);
	assert_int_equal(block->size, size);
	assert_int_equal(block->tgid, TGID);
	return block;
}

static void small_malloc(__u64 sp, __u64 size)
{
	call_once((struct call){ .fn = FN_MALLOC, .sp = sp, .args = { size } }, 100, BLOCK);
}

/* Each entry counts for the governor, whatever it was. */
static void test_small_call(void **state)
{
	struct memtoll_call all;

	calls_begin();
	small_malloc(STACK_TOP, 101);
	small_malloc(STACK_TOP - 64, 211);
	all = sums_of(FN_MALLOC);
	assert_int_equal(timed_calls(FN_MALLOC), 2);
	assert_int_equal(all.sum.bytes, 312);
	assert_int_equal(all.sum.cpu_ns, 200);
	assert_int_equal(all.sum.failed, 0);
	assert_int_equal(all.sum.nested_calls, 0);
	assert_int_equal(all.sum.foreign_calls, 2);
	assert_int_equal(entries_counted(FN_MALLOC), 2);
	assert_no_event();
	assert_lost_only(0, 0);
}

/* ---- blocks ---- */

static void test_threshold(void **state)
{
	static const __u64 thresholds[] = { LARGE, 1, 4099 };
	const struct memtoll_block *block;
	size_t i;

	for (i = 0; i < 3; i++) {
		__u64 began_ns;

		calls_begin();
		KNOB(cfg_min_size, thresholds[i]);
		small_malloc(STACK_TOP, thresholds[i] - 1);
		assert_no_event();
		began_ns = kernel.now_ns;
		call_once((struct call){ .fn = FN_MALLOC,
					 .sp = STACK_TOP,
					 .args = { thresholds[i] } },
			  777, OTHER_BLOCK);
		block = next_block(FN_MALLOC, OTHER_BLOCK, 0, thresholds[i]);
		assert_int_equal(block->start_ns, began_ns);
		assert_int_equal(block->end_ns, began_ns + 777);
		assert_int_not_equal(block->stack_id, 0);
		assert_int_equal(block->flags, 0);
		/* Of the two, only the followed one's free is recorded. */
		call_once((struct call){ .fn = FN_FREE, .sp = STACK_TOP, .args = { BLOCK } }, 50,
			  0);
		assert_no_event();
		call_once((struct call){ .fn = FN_FREE, .sp = STACK_TOP, .args = { OTHER_BLOCK } },
			  50, 0);
		next_block(FN_FREE, 0, OTHER_BLOCK, 0);
		call_once((struct call){ .fn = FN_FREE, .sp = STACK_TOP, .args = { OTHER_BLOCK } },
			  50, 0);
		assert_no_event();
		assert_int_equal(timed_calls(FN_FREE), 3);
		assert_lost_only(0, 0);
	}
}

/* Its free is recorded before the allocator can hand it out again: at the entry. */
static void test_free_is_told_at_once(void **state)
{
	struct call call = { .fn = FN_FREE, .sp = STACK_TOP, .args = { BLOCK } };

	calls_begin();
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { LARGE } }, 100, BLOCK);
	next_block(FN_MALLOC, BLOCK, 0, LARGE);
	enter(&call);
	next_block(FN_FREE, 0, BLOCK, 0);
	leave(&call, 0);
	assert_no_event();
}

static void test_realloc_of_a_followed_block(void **state)
{
	calls_begin();
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { LARGE } }, 100, BLOCK);
	next_block(FN_MALLOC, BLOCK, 0, LARGE);
	/* It moves. */
	call_once((struct call){ .fn = FN_REALLOC, .sp = STACK_TOP, .args = { BLOCK, 3 * LARGE } },
		  100, OTHER_BLOCK);
	next_block(FN_REALLOC, OTHER_BLOCK, BLOCK, 3 * LARGE);
	call_once((struct call){ .fn = FN_FREE, .sp = STACK_TOP, .args = { BLOCK } }, 50, 0);
	assert_no_event();
	/* It fails: the old block is still there. */
	call_once((struct call){ .fn = FN_REALLOC,
				 .sp = STACK_TOP,
				 .args = { OTHER_BLOCK, 1ULL << 60 } },
		  100, 0);
	assert_int_equal(next_block(FN_REALLOC, 0, OTHER_BLOCK, 1ULL << 60)->flags, BLOCK_FAILED);
	/* It becomes small: recorded, and not followed any more. */
	call_once((struct call){ .fn = FN_REALLOC, .sp = STACK_TOP, .args = { OTHER_BLOCK, 100 } },
		  100, OTHER_BLOCK);
	next_block(FN_REALLOC, OTHER_BLOCK, OTHER_BLOCK, 100);
	call_once((struct call){ .fn = FN_FREE, .sp = STACK_TOP, .args = { OTHER_BLOCK } }, 50, 0);
	assert_no_event();
	assert_int_equal(sums_of(FN_REALLOC).sum.failed, 1);
	assert_int_equal(sums_of(FN_REALLOC).sum.bytes, 3 * LARGE + 100);
	assert_lost_only(0, 0);
}

/* realloc(block, 0) frees it, and says NULL: no failure. */
static void test_realloc_to_nothing(void **state)
{
	calls_begin();
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { LARGE } }, 100, BLOCK);
	next_block(FN_MALLOC, BLOCK, 0, LARGE);
	call_once((struct call){ .fn = FN_REALLOC, .sp = STACK_TOP, .args = { BLOCK, 0 } }, 100, 0);
	next_block(FN_REALLOC, 0, BLOCK, 0);
	call_once((struct call){ .fn = FN_FREE, .sp = STACK_TOP, .args = { BLOCK } }, 50, 0);
	assert_no_event();
	assert_int_equal(sums_of(FN_REALLOC).sum.failed, 0);
}

/* The same address again, whose free was not seen: it is one block, which is freed once. */
static void test_free_not_seen(void **state)
{
	calls_begin();
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { LARGE } }, 100, BLOCK);
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { LARGE } }, 100, BLOCK);
	assert_int_equal(kernel_map_count(&blocks), 1);
	call_once((struct call){ .fn = FN_FREE, .sp = STACK_TOP, .args = { BLOCK } }, 50, 0);
	assert_int_equal(kernel_map_count(&blocks), 0);
	assert_int_equal(*block_counter(TGID, BLOCK), 0);
	assert_lost_only(0, 0);
}

static void test_blocks_full(void **state)
{
	calls_begin();
	kernel_map_rows(&blocks, 1);
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { LARGE } }, 100, BLOCK);
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { LARGE } }, 100,
		  OTHER_BLOCK);
	assert_lost_only(LOST_BLOCKS_FULL, 1);
	assert_int_equal(*block_counter(TGID, OTHER_BLOCK), 0);
	assert_int_equal(*block_counter(TGID, BLOCK), 1);
}

static void test_ring_full(void **state)
{
	calls_begin();
	kernel.ring_bytes = 0;
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { LARGE } }, 100, BLOCK);
	call_once((struct call){ .fn = FN_FREE, .sp = STACK_TOP, .args = { BLOCK } }, 50, 0);
	assert_lost_only(LOST_RING_BLOCK, 2);
}

static void test_failures(void **state)
{
	calls_begin();
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { 100 } }, 100, 0);
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { 0 } }, 100, 0);
	assert_int_equal(sums_of(FN_MALLOC).sum.failed, 1);
	assert_int_equal(sums_of(FN_MALLOC).sum.bytes, 0);
	assert_no_event();
	call_once((struct call){ .fn = FN_CALLOC, .sp = STACK_TOP, .args = { 1 << 20, 1 << 20 } },
		  100, 0);
	assert_int_equal(next_block(FN_CALLOC, 0, 0, 1ULL << 40)->flags, BLOCK_FAILED);
	assert_int_equal(kernel_map_count(&blocks), 0);
}

/* ---- what is asked ---- */

static void test_arguments(void **state)
{
	const __u64 where = STACK_TOP + 0x100;
	const struct memtoll_block *block;

	calls_begin();
	call_once((struct call){ .fn = FN_CALLOC, .sp = STACK_TOP, .args = { 1009, 997 } }, 9,
		  BLOCK);
	next_block(FN_CALLOC, BLOCK, 0, 1009 * 997);
	call_once((struct call){ .fn = FN_REALLOCARRAY, .sp = STACK_TOP, .args = { 0, 1013, 991 } },
		  9, OTHER_BLOCK);
	next_block(FN_REALLOCARRAY, OTHER_BLOCK, 0, 1013 * 991);
	call_once(
		(struct call){ .fn = FN_ALIGNED_ALLOC, .sp = STACK_TOP, .args = { 64, 3 * LARGE } },
		9, 0x7f5800000040);
	next_block(FN_ALIGNED_ALLOC, 0x7f5800000040, 0, 3 * LARGE);
	call_once((struct call){ .fn = FN_MEMALIGN, .sp = STACK_TOP, .args = { 64, 5 * LARGE } }, 9,
		  0x7f5900000040);
	next_block(FN_MEMALIGN, 0x7f5900000040, 0, 5 * LARGE);
	/* The result is where the first argument says; that of the function is an error number. */
	kernel_poke_word(USER, where, 0x7f5a00000040);
	call_once((struct call){ .fn = FN_POSIX_MEMALIGN,
				 .sp = STACK_TOP,
				 .args = { where, 64, 7 * LARGE } },
		  9, 0);
	next_block(FN_POSIX_MEMALIGN, 0x7f5a00000040, 0, 7 * LARGE);
	call_once((struct call){ .fn = FN_POSIX_MEMALIGN,
				 .sp = STACK_TOP,
				 .args = { where, 64, 7 * LARGE } },
		  9, 12);
	block = next_block(FN_POSIX_MEMALIGN, 0, 0, 7 * LARGE);
	assert_int_equal(block->flags, BLOCK_FAILED);
	assert_int_equal(kernel_map_count(&blocks), 5);
}

/* Behind the entry: the stack pointer has moved, and arguments are in other registers. */
static void test_probe_behind_the_entry(void **state)
{
	struct call call = {
		.fn = FN_CALLOC,
		.sp = STACK_TOP,
		/* The first is in r12, the second in rbx; 24 bytes were pushed. */
		.cookie = 24ULL << COOKIE_SP_SHIFT | 13ULL << COOKIE_ARGUMENT_SHIFT |
			  4ULL << (COOKIE_ARGUMENT_SHIFT + COOKIE_ARGUMENT_BITS),
	};
	struct pt_regs regs = {
		.ip = FUNCTION(FN_CALLOC), .sp = STACK_TOP - 24, .r12 = 1009, .bx = 997
	};

	calls_begin();
	kernel_poke_word(USER, STACK_TOP, CALLER);
	kernel.cookie = call.fn | call.cookie;
	kernel.function = regs.ip;
	entry_cookies[regs.ip % MEMTOLL_PAGE_SIZE] = kernel.cookie;
	assert_int_equal(by_session ? alloc_session(&regs) : alloc_entry(&regs), 0);
	call.wanted = 1;
	leave(&call, BLOCK);
	next_block(FN_CALLOC, BLOCK, 0, 1009 * 997);
	assert_lost_only(0, 0);
}

static void test_entry_only(void **state)
{
	calls_begin();
	call_once((struct call){ .fn = FN_FREE,
				 .sp = STACK_TOP,
				 .args = { BLOCK },
				 .cookie = COOKIE_ENTRY_ONLY },
		  9, 0);
	small_malloc(STACK_TOP, 100);
	assert_int_equal(sums_of(FN_FREE).sum.untimed_calls, 1);
	assert_int_equal(timed_calls(FN_FREE), 0);
	assert_int_equal(timed_calls(FN_MALLOC), 1);
	assert_lost_only(0, 0);
}

/* ---- nesting ---- */

/* malloc inside calloc: one call, of calloc. */
static void test_nested(void **state)
{
	struct call outer = { .fn = FN_CALLOC, .sp = STACK_TOP, .args = { 1, LARGE } };
	const struct memtoll_block *block;

	calls_begin();
	enter(&outer);
	kernel.now_ns += 300;
	call_once((struct call){ .fn = FN_MALLOC,
				 .sp = STACK_TOP - 72,
				 .args = { LARGE },
				 .caller = FUNCTION(FN_CALLOC) + 0x31 },
		  500, BLOCK);
	kernel.now_ns += 200;
	assert_no_event();
	leave(&outer, BLOCK);
	block = next_block(FN_CALLOC, BLOCK, 0, LARGE);
	assert_int_equal(block->end_ns - block->start_ns, 1000);
	assert_no_event();
	assert_int_equal(timed_calls(FN_CALLOC), 1);
	assert_int_equal(timed_calls(FN_MALLOC), 0);
	assert_int_equal(sums_of(FN_MALLOC).sum.nested_calls, 1);
	assert_int_equal(sums_of(FN_MALLOC).sum.bytes, 0);
	assert_int_equal(sums_of(FN_CALLOC).sum.cpu_ns, 1000);
	assert_lost_only(0, 0);
}

/* What realloc copies: at another place, if mremap has not moved it there; never more than there was. */
static void test_growth(void **state)
{
	struct call moved = { .fn = FN_REALLOC, .sp = STACK_TOP, .args = { BLOCK, 3 * LARGE } };
	struct memtoll_call_sum sum;

	calls_begin();
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { LARGE } }, 100, BLOCK);
	/* In place. */
	call_once((struct call){ .fn = FN_REALLOC, .sp = STACK_TOP, .args = { BLOCK, LARGE + 7 } },
		  100, BLOCK);
	/* By mremap. */
	enter(&moved);
	host_thread()->call.remapped = 1;
	leave(&moved, OTHER_BLOCK);
	sum = sums_of(FN_REALLOC).sum;
	assert_int_equal(sum.grown_calls, 2);
	assert_int_equal(sum.grown_bytes, 2 * LARGE);
	assert_int_equal(sum.copied_calls, 0);
	/* Smaller, by a copy. */
	call_once((struct call){ .fn = FN_REALLOC, .sp = STACK_TOP, .args = { OTHER_BLOCK, 101 } },
		  100, BLOCK);
	/* A block whose size is not known. */
	call_once((struct call){ .fn = FN_REALLOC, .sp = STACK_TOP, .args = { BLOCK, LARGE } }, 100,
		  OTHER_BLOCK);
	/* One that cannot be had. */
	call_once((struct call){ .fn = FN_REALLOC,
				 .sp = STACK_TOP,
				 .args = { OTHER_BLOCK, 1ULL << 60 } },
		  100, 0);
	sum = sums_of(FN_REALLOC).sum;
	assert_int_equal(sum.grown_calls, 2);
	assert_int_equal(sum.copied_calls, 1);
	assert_int_equal(sum.copied_bytes, 101);
}

/* realloc as malloc, copy, free: the block's end is realloc's to tell, and the inner free's not. */
static void test_realloc_by_parts(void **state)
{
	struct call outer = { .fn = FN_REALLOC, .sp = STACK_TOP, .args = { BLOCK, 3 * LARGE } };

	calls_begin();
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { LARGE } }, 100, BLOCK);
	next_block(FN_MALLOC, BLOCK, 0, LARGE);
	enter(&outer);
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP - 72, .args = { 3 * LARGE } }, 10,
		  OTHER_BLOCK);
	call_once((struct call){ .fn = FN_FREE, .sp = STACK_TOP - 72, .args = { BLOCK } }, 10, 0);
	leave(&outer, OTHER_BLOCK);
	next_block(FN_REALLOC, OTHER_BLOCK, BLOCK, 3 * LARGE);
	assert_no_event();
	assert_int_equal(kernel_map_count(&blocks), 1);
	assert_int_equal(sums_of(FN_FREE).sum.nested_calls, 1);
}

/* A callback in which the program allocates, which calls back in its turn: all inside the first. */
static void test_callbacks(void **state)
{
	struct call calls[5];
	int i;

	calls_begin();
	for (i = 0; i < 5; i++) {
		calls[i] =
			(struct call){ .fn = FN_MALLOC, .sp = STACK_TOP - 208 * i, .args = { 31 } };
		enter(&calls[i]);
	}
	for (i = 4; i >= 0; i--)
		leave(&calls[i], BLOCK);
	assert_int_equal(timed_calls(FN_MALLOC), 1);
	assert_int_equal(sums_of(FN_MALLOC).sum.nested_calls, 4);
	assert_int_equal(entries_counted(FN_MALLOC), 5);
	small_malloc(STACK_TOP - 416, 31);
	assert_int_equal(timed_calls(FN_MALLOC), 2);
	assert_lost_only(0, 0);
}

/*
 * aligned_alloc that jumps to memalign: same place on the stack, the return address is the probe's.
 */
static void test_tail_call(void **state)
{
	struct call outer = { .fn = FN_ALIGNED_ALLOC, .sp = STACK_TOP, .args = { 64, LARGE } };
	struct call inner = { .fn = FN_MEMALIGN, .sp = STACK_TOP, .args = { 64, LARGE } };

	calls_begin();
	enter(&outer);
	enter(&inner);
	if (by_session)
		assert_false(inner.wanted);
	/* Both return at once, the inner one first. */
	leave(&inner, BLOCK);
	if (by_session)
		leave(&outer, BLOCK);
	next_block(FN_ALIGNED_ALLOC, BLOCK, 0, LARGE);
	assert_no_event();
	assert_int_equal(sums_of(FN_MEMALIGN).sum.nested_calls, 1);
	assert_lost_only(0, 0);
}

/* ---- returns that are missed ---- */

static void test_longjmp(void **state)
{
	struct call left = { .fn = FN_CALLOC, .sp = STACK_TOP - 512, .args = { 1, LARGE } };

	calls_begin();
	enter(&left);
	/*
	 * Out of a signal's handler, say. The kernel drops what lies below when the next probe is
	 * hit.
	 */
	uprobe_task.return_instances = NULL;
	kernel_poke_word(USER, left.sp, 0x401999);
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP - 64, .args = { LARGE } }, 100,
		  BLOCK);
	next_block(FN_MALLOC, BLOCK, 0, LARGE);
	assert_no_event();
	assert_int_equal(timed_calls(FN_CALLOC), 0);
	assert_int_equal(timed_calls(FN_MALLOC), 1);
	assert_int_equal(sums_of(FN_MALLOC).sum.nested_calls, 0);
	assert_lost_only(LOST_RETURN_MISSED, 1);
}

/* The next call is at the very same place on the stack. */
static void test_longjmp_to_the_same_depth(void **state)
{
	struct call left = { .fn = FN_CALLOC, .sp = STACK_TOP, .args = { 1, LARGE } };

	calls_begin();
	enter(&left);
	uprobe_task.return_instances = NULL;
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { 100 } }, 100, BLOCK);
	assert_int_equal(timed_calls(FN_MALLOC), 1);
	assert_int_equal(sums_of(FN_MALLOC).sum.nested_calls, 0);
	assert_lost_only(LOST_RETURN_MISSED, 1);
}

/* After a call that was left, those that return are as they always are. */
static void test_after_longjmp(void **state)
{
	struct call left = { .fn = FN_CALLOC, .sp = STACK_TOP - 512, .args = { 1, LARGE } };
	int i;

	calls_begin();
	enter(&left);
	uprobe_task.return_instances = NULL;
	for (i = 0; i < 101; i++)
		small_malloc(STACK_TOP - 8 * (i % 7), 100);
	assert_int_equal(timed_calls(FN_MALLOC), 101);
	assert_lost_only(LOST_RETURN_MISSED, 1);
}

/*
 * A thread that changes its stack: the open call is given up, and returns all the same, to an
 * instruction that lies in its page where a probed function begins in its own.
 */
static void test_return_of_a_call_given_up(void **state)
{
	struct call given_up = {
		.fn = FN_CALLOC,
		.sp = STACK_TOP - 0x100000,
		.args = { 1, 100 },
		.caller = 0x401000 + FUNCTION(FN_MALLOC) % MEMTOLL_PAGE_SIZE,
	};

	calls_begin();
	enter(&given_up);
	uprobe_task.return_instances = NULL;
	small_malloc(STACK_TOP, 100);
	leave(&given_up, BLOCK);
	assert_int_equal(entries_counted(FN_MALLOC), 1);
	assert_int_equal(host_thread()->in_fn, FN_NONE);
	assert_int_equal(timed_calls(FN_CALLOC), 0);
	small_malloc(STACK_TOP, 100);
	assert_int_equal(timed_calls(FN_MALLOC), 2);
	assert_lost_only(LOST_RETURN_MISSED, 1);
}

/* The probe was detached while a call was open: distinguished from a call left by longjmp. */
static void test_probe_taken_away(void **state)
{
	struct call cut = { .fn = FN_CALLOC, .sp = STACK_TOP, .args = { 1, LARGE } };

	calls_begin();
	enter(&cut);
	kernel.now_ns += 1000;
	detached_ns[FN_CALLOC] = kernel.now_ns;
	uprobe_task.return_instances = NULL;
	kernel.now_ns += 1000;
	small_malloc(STACK_TOP - 256, 100);
	assert_int_equal(timed_calls(FN_MALLOC), 1);
	assert_int_equal(sums_of(FN_MALLOC).sum.nested_calls, 0);
	assert_lost_only(LOST_WINDOW_CUT, 1);
}

static void test_exit_inside(void **state)
{
	struct call open = { .fn = FN_MALLOC, .sp = STACK_TOP, .args = { 100 } };
	static struct signal_struct signal;
	__u64 context[1] = { (__u64)&host.task }, walked_ns;

	calls_begin();
	signal.live.counter = 1;
	host.task.signal = &signal;
	enter(&open);
	walked_ns = host_rates()->walk_ns;
	host_thread()->made_ns = 30011;
	process_exit(context);
	assert_lost_only(LOST_RETURN_MISSED, 1);
	/* What it paid for its state and its end is charged, and is no stack's. */
	assert_true(host_rates()->thread_ns >= 30011);
	assert_int_equal(host_rates()->walk_ns, walked_ns);
}

/* Stacks of mapping calls that a thread holds are of the program that it ran. */
static void test_exec_holds_no_stack(void **state)
{
	unsigned i;

	calls_begin();
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { 100 } }, 100, BLOCK);
	for (i = 0; i < HELD_STACKS; i++)
		host_thread()->held[i].ip = 0x401136 + i;
	on_exec(&host.task, process_get(TGID), host_thread(), TGID);
	for (i = 0; i < HELD_STACKS; i++)
		assert_int_equal(host_thread()->held[i].ip, 0);
}

/* ---- budget ---- */

/* While its window is closed a call is only counted; the count is sent now and then. */
static void test_closed_window(void **state)
{
	__u32 zero = 0;
	int i;

	calls_begin();
	idle_fns = 1U << FN_MALLOC;
	for (i = 0; i < 3 * 64 + 17; i++)
		call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { LARGE } }, 100,
			  BLOCK);
	assert_no_event();
	assert_int_equal(timed_calls(FN_MALLOC), 0);
	assert_int_equal(sums_of(FN_NONE).sum.untimed_calls, 3 * 64);
	assert_int_equal(entries_counted(FN_MALLOC), 0);
	assert_int_equal(
		((struct memtoll_rates *)kernel_map_lookup(&rates, &zero))->idle[FN_MALLOC],
		3 * 64 + 17);
	/* Others are not concerned. */
	call_once((struct call){ .fn = FN_CALLOC, .sp = STACK_TOP, .args = { 1, LARGE } }, 100,
		  BLOCK);
	next_block(FN_CALLOC, BLOCK, 0, LARGE);
	idle_fns = 0;
	small_malloc(STACK_TOP, 100);
	assert_int_equal(timed_calls(FN_MALLOC), 1);
	assert_lost_only(0, 0);
}

/* Userspace has not moved the end of the window on: it closes itself. */
static void test_window_past_its_end(void **state)
{
	calls_begin();
	open_until_ns = kernel.now_ns + 1000;
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { 100 } }, 2000, BLOCK);
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { 100 } }, 100, BLOCK);
	assert_int_equal(timed_calls(FN_MALLOC), 1);
	open_until_ns = kernel.now_ns + 1000;
	call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { 100 } }, 100, BLOCK);
	assert_int_equal(timed_calls(FN_MALLOC), 2);
}

static int sessions(void **state)
{
	by_session = 1;
	return 0;
}

static int programs_of_each_side(void **state)
{
	by_session = 0;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_call),
		cmocka_unit_test(test_threshold),
		cmocka_unit_test(test_free_is_told_at_once),
		cmocka_unit_test(test_realloc_of_a_followed_block),
		cmocka_unit_test(test_realloc_to_nothing),
		cmocka_unit_test(test_free_not_seen),
		cmocka_unit_test(test_blocks_full),
		cmocka_unit_test(test_ring_full),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_probe_behind_the_entry),
		cmocka_unit_test(test_entry_only),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_realloc_by_parts),
		cmocka_unit_test(test_callbacks),
		cmocka_unit_test(test_tail_call),
		cmocka_unit_test(test_longjmp),
		cmocka_unit_test(test_longjmp_to_the_same_depth),
		cmocka_unit_test(test_after_longjmp),
		cmocka_unit_test(test_return_of_a_call_given_up),
		cmocka_unit_test(test_probe_taken_away),
		cmocka_unit_test(test_exit_inside),
		cmocka_unit_test(test_exec_holds_no_stack),
		cmocka_unit_test(test_closed_window),
		cmocka_unit_test(test_window_past_its_end),
	};

	return cmocka_run_group_tests_name("programs_of_each_side", tests, programs_of_each_side,
					   NULL) +
	       cmocka_run_group_tests_name("session", tests, sessions, NULL);
}
