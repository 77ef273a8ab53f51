// SPDX-License-Identifier: GPL-2.0
/*
 * --sample: which blocks are chosen, and what of the others is counted; what calloc has cleared;
 * and latencies in buckets.
 */
#include "tests/bpf/calls.h"

#define LARGE 65536ULL
#define MEAN 8192ULL
#define BLOCK 0x7f5600000010ULL

static void begin(void)
{
	static __u32 logs[SAMPLING_LOG_ENTRIES];
	int i;

	/* log2(1 + i / 128) in units of 2^-24. */
	for (i = 0; i < SAMPLING_LOG_ENTRIES; i++)
		logs[i] = __builtin_log2(1 + i / 128.0) * (1 << 24) + 0.5;
	calls_begin();
	kernel_set(&cfg_sampling_log, logs, sizeof(logs));
	KNOB(cfg_sample, MEAN);
}

/* So many calls, each of a block of its own that stays. */
static unsigned chosen_of(__u32 fn, unsigned calls, __u64 size)
{
	const struct memtoll_block *block;
	unsigned i, chosen = 0;

	for (i = 0; i < calls; i++) {
		call_once((struct call){ .fn = fn,
					 .sp = STACK_TOP,
					 .args = { fn == FN_CALLOC ? 1 : size, size } },
			  50, BLOCK + i * 0x100000);
		while ((block = kernel_ring_take(&events, NULL, NULL))) {
			if (block->kind != EVENT_BLOCK)
				continue;
			assert_int_equal(block->flags, size < LARGE ? BLOCK_SAMPLED : 0);
			assert_int_equal(block->addr, BLOCK + i * 0x100000);
			chosen++;
		}
	}
	return chosen;
}

/* 1 - exp(-size / mean) of them: within five standard deviations. */
static void test_probability(void **state)
{
	static const __u64 sizes[] = { 16, 1024, MEAN, 3 * MEAN };
	const unsigned calls = 10007;
	double expected, deviation;
	unsigned chosen;
	size_t i;

	for (i = 0; i < 4; i++) {
		begin();
		expected = 1 - __builtin_exp(-(double)sizes[i] / MEAN);
		deviation = __builtin_sqrt(calls * expected * (1 - expected));
		chosen = chosen_of(FN_MALLOC, calls, sizes[i]);
		if (chosen < calls * expected - 5 * deviation ||
		    chosen > calls * expected + 5 * deviation)
			fail_msg("of size %llu: %u chosen, not %f", sizes[i], chosen,
				 calls * expected);
		/* The others are counted all the same, with their bytes. */
		assert_int_equal(timed_calls(FN_MALLOC), chosen);
		assert_int_equal(sums_of(FN_MALLOC).sum.untimed_calls, calls - chosen);
		assert_int_equal(sums_of(FN_MALLOC).sum.bytes, calls * sizes[i]);
		assert_lost_only(0, 0);
	}
}

/* Large ones are followed in any case, and leave the next point where it was. */
static void test_large_are_not_sampled(void **state)
{
	__s64 left;

	begin();
	chosen_of(FN_MALLOC, 1, 16);
	left = host_thread()->sample_left;
	assert_int_equal(chosen_of(FN_MALLOC, 101, LARGE), 101);
	assert_int_equal(host_thread()->sample_left, left);
	chosen_of(FN_MALLOC, 1, 48);
	assert_in_range(left - host_thread()->sample_left, 48, 48);
}

/* calloc goes the whole way, since what it clears is seen at its return. */
static void test_calloc_is_timed(void **state)
{
	unsigned chosen;

	begin();
	chosen = chosen_of(FN_CALLOC, 1009, 1024);
	assert_in_range(chosen, 1, 1008);
	assert_int_equal(timed_calls(FN_CALLOC), 1009);
}

/* Of frees those of chosen blocks are told, each once. */
static void test_frees(void **state)
{
	unsigned i, chosen, told = 0;
	const __u32 *record;

	begin();
	chosen = chosen_of(FN_MALLOC, 1009, 1024);
	for (i = 0; i < 1009; i++)
		call_once((struct call){ .fn = FN_FREE,
					 .sp = STACK_TOP,
					 .args = { BLOCK + i * 0x100000 } },
			  50, 0);
	while ((record = kernel_ring_take(&events, NULL, NULL)))
		told += *record == EVENT_BLOCK;
	assert_int_equal(told, chosen);
	assert_int_equal(kernel_map_count(&blocks), 0);
	assert_int_equal(timed_calls(FN_FREE), chosen);
	assert_int_equal(sums_of(FN_FREE).sum.untimed_calls, 1009 - chosen);
}

/* ---- what calloc cleared: __libc_calloc() of glibc ---- */

#define IS_MMAPPED 2
#define NON_MAIN_ARENA 4
#define PREV_INUSE 1

/*
 * A calloc that gives this chunk; `top`, the break before the call. What its site says was cleared.
 */
static __u64 cleared(__u64 addr, __u64 chunk_size, __u64 bits, __u64 fresh_from)
{
	struct call call = {
		.fn = FN_CALLOC,
		.sp = STACK_TOP,
		.args = { 1, chunk_size - 8 },
		.cookie = COOKIE_GLIBC,
	};
	__u64 before = sums_of(FN_CALLOC).sum.cleared_bytes;

	enter(&call);
	kernel_poke_word(USER, addr - 8, chunk_size | bits);
	host_thread()->call.fresh_from = fresh_from;
	leave(&call, addr);
	return sums_of(FN_CALLOC).sum.cleared_bytes - before;
}

static void test_cleared(void **state)
{
	const __u64 arena = 0x7f5604000000ULL;

	calls_begin();
	/* csz - SIZE_SZ of a chunk that was in use before. */
	assert_int_equal(cleared(HEAP + 0x1010, 0x4010, PREV_INUSE, 0), 0x4008);
	/* A mapping of its own comes cleared. */
	assert_int_equal(cleared(BLOCK, 0x41000, IS_MMAPPED, 0), 0);
	assert_int_equal(sums_of(FN_CALLOC).sum.mmapped_calls, 1);
	/* Cut from a top that grew: only oldtopsize, less the header. */
	assert_int_equal(cleared(HEAP_TOP - 0x2000 + 0x10, 0x9010, PREV_INUSE, 0), 0x2000 - 8);
	/* The first of the heap, or behind what another took by sbrk(): not from the old top. */
	assert_int_equal(cleared(HEAP_TOP + 0x10, 0x9010, PREV_INUSE, 0), 0x9008);
	/* In a mapping that serves as the heap, where the break cannot grow. */
	assert_int_equal(cleared(BLOCK, 0x9010, PREV_INUSE, 0), 0x9008);
	/* In another arena the new part begins where mprotect() opened it. */
	assert_int_equal(cleared(arena + 0x10010, 0x8010, NON_MAIN_ARENA | PREV_INUSE, 0), 0x8008);
	assert_int_equal(cleared(arena + 0x10010, 0x8010, NON_MAIN_ARENA, arena + 0x13000),
			 0x3000 - 8);
	assert_int_equal(cleared(arena + 0x10010, 0x8010, NON_MAIN_ARENA, arena + 0x90000), 0x8008);
	assert_lost_only(0, 0);
}

/* malloc clears nothing, and of another allocator than glibc nothing is known. */
static void test_not_cleared(void **state)
{
	calls_begin();
	kernel_poke_word(USER, BLOCK - 8, LARGE + 0x10);
	call_once((struct call){ .fn = FN_MALLOC,
				 .sp = STACK_TOP,
				 .args = { LARGE },
				 .cookie = COOKIE_GLIBC },
		  50, BLOCK);
	assert_int_equal(sums_of(FN_MALLOC).sum.cleared_bytes, 0);
	assert_int_equal(sums_of(FN_MALLOC).sum.foreign_calls, 0);
	call_once((struct call){ .fn = FN_CALLOC, .sp = STACK_TOP, .args = { 1, LARGE } }, 50,
		  BLOCK);
	assert_int_equal(sums_of(FN_CALLOC).sum.cleared_bytes, 0);
	assert_int_equal(sums_of(FN_CALLOC).sum.foreign_calls, 1);
	/* A header that is not readable. */
	call_once((struct call){ .fn = FN_CALLOC,
				 .sp = STACK_TOP,
				 .args = { 1, 100 },
				 .cookie = COOKIE_GLIBC },
		  50, 0x7f0000000010);
	assert_lost_only(LOST_HEADER_UNREADABLE, 1);
}

/* ---- latency ---- */

/* Each power of two from 2^5 on in four equal parts; the last bucket has no upper end. */
static void test_buckets(void **state)
{
	__u64 width, from;
	unsigned log, part, bucket = 1;

	assert_int_equal(latency_bucket(0), 0);
	assert_int_equal(latency_bucket(31), 0);
	for (log = 5; log < 32; log++) {
		width = (1ULL << log) / 4;
		for (part = 0; part < 4; part++, bucket++) {
			from = (1ULL << log) + part * width;
			assert_int_equal(latency_bucket(from), bucket);
			assert_int_equal(latency_bucket(from + width - 1), bucket);
		}
	}
	assert_int_equal(latency_bucket(1ULL << 40), LATENCY_BUCKETS - 1);
	assert_int_equal(latency_bucket(~0ULL), LATENCY_BUCKETS - 1);
	assert_true(bucket <= LATENCY_BUCKETS);
}

/* More call sites than there is room for: no call is lost, only its place. */
static void test_more_sites_than_rows(void **state)
{
	struct memtoll_call_key anywhere = { TGID, FN_MALLOC, 0 };
	static const struct memtoll_call none;
	const struct memtoll_call *rest;
	unsigned i;

	calls_begin();
	kernel_map_update(&calls, &anywhere, &none, BPF_NOEXIST);
	kernel_map_rows(&calls, 1);
	kernel_map_rows(&calls_shared, 0);
	for (i = 0; i < 1009; i++)
		call_once((struct call){ .fn = FN_MALLOC,
					 .sp = STACK_TOP,
					 .args = { 100 },
					 .caller = CALLER + i * 0x40 },
			  50, BLOCK);
	rest = kernel_map_lookup(&calls, &anywhere);
	assert_in_range(timed_calls(FN_MALLOC), 1, CALL_PLACES);
	assert_int_equal(lost(LOST_CALL_SITES), 1009 - timed_calls(FN_MALLOC));
	assert_int_equal(sums_of(FN_MALLOC).sum.bytes + rest->sum.bytes, 1009 * 100);
	assert_int_equal(sums_of(FN_MALLOC).sum.cpu_ns + rest->sum.cpu_ns, 1009 * 50);
	assert_lost_only(LOST_CALL_SITES, lost(LOST_CALL_SITES));
}

/* Not even that has room: each call is counted as lost. */
static void test_no_room_at_all(void **state)
{
	unsigned i;

	calls_begin();
	kernel_map_rows(&calls, 0);
	kernel_map_rows(&calls_shared, 0);
	for (i = 0; i < CALL_PLACES; i++)
		((struct memtoll_call_place *)kernel_map_lookup(&call_places, &i))->state =
			PLACE_BEING_TAKEN;
	for (i = 0; i < 101; i++)
		call_once((struct call){ .fn = FN_MALLOC, .sp = STACK_TOP, .args = { 100 } }, 50,
			  BLOCK);
	assert_int_equal(lost(LOST_CALLS_FULL), 101);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probability),
		cmocka_unit_test(test_large_are_not_sampled),
		cmocka_unit_test(test_calloc_is_timed),
		cmocka_unit_test(test_frees),
		cmocka_unit_test(test_cleared),
		cmocka_unit_test(test_not_cleared),
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_more_sites_than_rows),
		cmocka_unit_test(test_no_room_at_all),
	};

	by_session = 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
