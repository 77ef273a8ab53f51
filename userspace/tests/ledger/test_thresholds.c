// SPDX-License-Identifier: GPL-2.0
/* glibc's thresholds deduced from what its calls do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib.h>

#include "ledger/thresholds.h"

#define PAGE 4096ULL
#define KIB 1024ULL
#define MIB (1024 * KIB)
#define PID 4242
#define POOL 0x7faa00000000ULL
#define HEAP 0x55aa00000000ULL
#define SITE 71ULL

static int setup(void **state)
{
	*state = thresholds_new();
	thresholds_start(*state, PID, 100, "", true, 0);
	thresholds_set_glibc(*state, PID, true);
	return 0;
}

static int teardown(void **state)
{
	thresholds_free(*state);
	return 0;
}

static void map_call(struct thresholds *thresholds, uint8_t map_fn, uint8_t fn, uint64_t asked,
		     uint64_t addr, uint64_t len, uint64_t result, uint64_t at_ns)
{
	thresholds_mapping(thresholds, &(struct memtoll_mapping){ .kind = EVENT_MAPPING,
								  .tgid = PID,
								  .tid = PID,
								  .map_fn = map_fn,
								  .in_fn = fn,
								  .in_size = asked,
								  .addr = addr,
								  .len = len,
								  .result = (int64_t)result,
								  .start_ns = at_ns,
								  .stack_id = SITE });
}

static void block(struct thresholds *thresholds, uint64_t addr, uint64_t size, uint16_t flags,
		  uint64_t at_ns)
{
	thresholds_block(thresholds, &(struct memtoll_block){ .kind = EVENT_BLOCK,
							      .tgid = PID,
							      .tid = PID,
							      .fn = FN_MALLOC,
							      .addr = addr,
							      .size = size,
							      .flags = BLOCK_GLIBC | flags,
							      .start_ns = at_ns,
							      .end_ns = at_ns + 5,
							      .stack_id = SITE });
}

/* A block with a mapping of its own, as glibc makes it, is freed. */
static void free_mapped(struct thresholds *thresholds, uint64_t size, uint64_t at_ns)
{
	uint64_t bytes = (size + 16 + PAGE - 1) & ~(PAGE - 1);

	thresholds_block(thresholds, &(struct memtoll_block){ .kind = EVENT_BLOCK,
							      .tgid = PID,
							      .tid = PID,
							      .fn = FN_FREE,
							      .old_addr = POOL + 16,
							      .start_ns = at_ns,
							      .end_ns = at_ns });
	map_call(thresholds, MAP_FN_MUNMAP, FN_FREE, 0, POOL, bytes, 0, at_ns + 1);
}

static void assert_bounds(struct thresholds *thresholds, enum threshold_name name, uint64_t low,
			  uint64_t high)
{
	struct bounds bounds;

	assert_true(thresholds_get(thresholds, PID, name, &bounds));
	assert_int_equal(bounds.low, low);
	assert_int_equal(bounds.high, high);
}

static void collect(void *context, const struct threshold_fact *fact)
{
	g_array_append_val((GArray *)context, *fact);
}

static GArray *drain(struct thresholds *thresholds)
{
	GArray *facts = g_array_new(FALSE, FALSE, sizeof(struct threshold_fact));

	thresholds_drain(thresholds, false, collect, facts);
	return facts;
}

#define FACT(facts, i) g_array_index(facts, struct threshold_fact, i)

static void test_defaults(void **state)
{
	GArray *facts = drain(*state);

	assert_int_equal(facts->len, 3);
	assert_int_equal(FACT(facts, 0).how, THRESHOLD_DEFAULT);
	assert_int_equal(FACT(facts, 0).time_ns, 100);
	g_array_free(facts, TRUE);
	assert_bounds(*state, THRESHOLD_MMAP, 128 * KIB, 128 * KIB);
	/* Reported once. */
	facts = drain(*state);
	assert_int_equal(facts->len, 0);
	g_array_free(facts, TRUE);
	/*
	 * Nothing is reported of other allocators, nor known of a process that was attached late.
	 */
	thresholds_set_glibc(*state, PID, false);
	assert_false(thresholds_get(*state, PID, THRESHOLD_MMAP, &(struct bounds){}));
	thresholds_start(*state, PID, 100, "", false, 0);
	thresholds_set_glibc(*state, PID, true);
	assert_false(thresholds_get(*state, PID, THRESHOLD_MMAP, &(struct bounds){}));
}

/*
 * The first free raises both, to the size of the mapping and twice that; up to 32 MiB, never down.
 */
static void test_dynamic(void **state)
{
	struct thresholds *thresholds = *state;
	GArray *facts;

	block(thresholds, POOL + 16, 10 * MIB, BLOCK_MMAPPED, 200);
	free_mapped(thresholds, 10 * MIB, 300);
	assert_bounds(thresholds, THRESHOLD_MMAP, 10489856, 10489856);
	assert_bounds(thresholds, THRESHOLD_TRIM, 20979712, 20979712);
	assert_bounds(thresholds, THRESHOLD_TOP_PAD, 128 * KIB, 128 * KIB);
	free_mapped(thresholds, 1 * MIB, 400);
	free_mapped(thresholds, 32 * MIB, 500);
	assert_bounds(thresholds, THRESHOLD_MMAP, 10489856, 10489856);
	facts = drain(thresholds);
	assert_int_equal(facts->len, 5);
	assert_int_equal(FACT(facts, 2).name, THRESHOLD_MMAP);
	assert_int_equal(FACT(facts, 2).how, THRESHOLD_FREED);
	assert_int_equal(FACT(facts, 2).time_ns, 301);
	assert_int_equal(FACT(facts, 2).stack_id, SITE);
	assert_int_equal(FACT(facts, 2).fn, FN_FREE);
	g_array_free(facts, TRUE);
	free_mapped(thresholds, 32 * MIB - PAGE - 16, 600);
	assert_bounds(thresholds, THRESHOLD_MMAP, 32 * MIB - PAGE, 32 * MIB - PAGE);
	/* The program's own munmap, and events of the image before an exec, move nothing. */
	thresholds_start(thresholds, PID, 1000, "", true, 0);
	thresholds_set_glibc(thresholds, PID, true);
	free_mapped(thresholds, 2 * MIB, 900);
	map_call(thresholds, MAP_FN_MUNMAP, FN_NONE, 0, POOL, 2 * MIB, 0, 1100);
	assert_bounds(thresholds, THRESHOLD_MMAP, 128 * KIB, 128 * KIB);
}

/* The chunk begins after what alignment left before it: its size counts. */
static void test_aligned(void **state)
{
	thresholds_block(*state, &(struct memtoll_block){ .kind = EVENT_BLOCK,
							  .tgid = PID,
							  .tid = PID,
							  .fn = FN_FREE,
							  .old_addr = POOL + MIB,
							  .start_ns = 300,
							  .end_ns = 300 });
	map_call(*state, MAP_FN_MUNMAP, FN_FREE, 0, POOL, 3 * MIB, 0, 301);
	assert_bounds(*state, THRESHOLD_MMAP, 2 * MIB + 16, 2 * MIB + 16);
}

/* The last block of an arena's heap is freed, which is unmapped whole. */
static void test_heap_of_an_arena(void **state)
{
	const uint64_t heap = 0x7f0004000000ULL;

	thresholds_block(*state, &(struct memtoll_block){ .kind = EVENT_BLOCK,
							  .tgid = PID,
							  .tid = PID,
							  .fn = FN_FREE,
							  .old_addr = heap + 61 * MIB,
							  .start_ns = 300,
							  .end_ns = 300 });
	map_call(*state, MAP_FN_MUNMAP, FN_FREE, 0, heap, 64 * MIB, 0, 301);
	assert_bounds(*state, THRESHOLD_MMAP, 128 * KIB, 128 * KIB);
	/* A block as large that is aligned to less is none. */
	map_call(*state, MAP_FN_MUNMAP, FN_FREE, 0, heap + MIB, 64 * MIB, 0, 302);
	assert_bounds(*state, THRESHOLD_MMAP, 4 * MIB + 16, 4 * MIB + 16);
}

static void test_tunables(void **state)
{
	static const struct {
		const char *tunables;
		uint64_t mmap, trim, pad;
	} cases[] = {
		{ "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=262144", 262144, 131072, 131072 },
		{ "GLIBC_TUNABLES=glibc.malloc.check=1:glibc.malloc.trim_threshold=0x10000", 131072,
		  65536, 131072 },
		{ "MALLOC_TOP_PAD_=4096 MALLOC_MMAP_THRESHOLD_=8192", 8192, 131072, 4096 },
		{ "MALLOC_MMAP_THRESHOLD_=8192 GLIBC_TUNABLES=glibc.malloc.mmap_threshold=16384",
		  16384, 131072, 131072 },
		/* Of two of a name the second counts. */
		{ "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=8192:glibc.malloc.mmap_threshold=16384 "
		  "MALLOC_MMAP_THRESHOLD_=4096",
		  16384, 131072, 131072 },
		{ "GLIBC_TUNABLES=glibc.malloc.mmap_thresholds=7:glibc.malloc.top_pad=x MALLOC_CONF=a:b",
		  131072, 131072, 131072 },
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(cases); i++) {
		thresholds_start(*state, PID, 100, cases[i].tunables, true, 0);
		thresholds_set_glibc(*state, PID, true);
		assert_bounds(*state, THRESHOLD_MMAP, cases[i].mmap, cases[i].mmap);
		assert_bounds(*state, THRESHOLD_TRIM, cases[i].trim, cases[i].trim);
		assert_bounds(*state, THRESHOLD_TOP_PAD, cases[i].pad, cases[i].pad);
		/* One that is set pins them all; the last line sets none. */
		free_mapped(*state, 2 * MIB, 200);
		if (i < G_N_ELEMENTS(cases) - 1)
			assert_bounds(*state, THRESHOLD_MMAP, cases[i].mmap, cases[i].mmap);
		else
			assert_bounds(*state, THRESHOLD_MMAP, 2 * MIB + PAGE, 2 * MIB + PAGE);
	}
}

/* mallopt is not seen, but what comes of it is. */
static void test_contradictions(void **state)
{
	struct thresholds *thresholds = *state;
	struct bounds bounds;

	block(thresholds, POOL + 16, 64 * KIB, BLOCK_MMAPPED, 200);
	assert_bounds(thresholds, THRESHOLD_MMAP, 0, 64 * KIB + 16);
	free_mapped(thresholds, 64 * KIB, 300);
	free_mapped(thresholds, 2 * MIB, 300);
	assert_bounds(thresholds, THRESHOLD_MMAP, 0, 64 * KIB + 16);
	block(thresholds, POOL + 16, 48 * KIB, BLOCK_MMAPPED, 400);
	assert_bounds(thresholds, THRESHOLD_MMAP, 0, 48 * KIB + 16);
	/* The heap grew for a block of 1 MiB, which came from it. */
	map_call(thresholds, MAP_FN_BRK, FN_MALLOC, MIB, HEAP, 0, HEAP + MIB + 33 * PAGE, 502);
	block(thresholds, HEAP + 16, MIB, 0, 500);
	thresholds_get(thresholds, PID, THRESHOLD_MMAP, &bounds);
	assert_int_equal(bounds.low, MIB + 17);
	assert_int_equal(bounds.high, UINT64_MAX);
}

/* The first call makes the thread's cache in the heap, though its block gets a mapping. */
static void test_growth_for_another(void **state)
{
	map_call(*state, MAP_FN_BRK, FN_MALLOC, 132000, HEAP, 0, HEAP + 33 * PAGE, 202);
	block(*state, POOL + 16, 132000, BLOCK_MMAPPED, 200);
	assert_bounds(*state, THRESHOLD_MMAP, 128 * KIB, 128 * KIB);
	assert_bounds(*state, THRESHOLD_TOP_PAD, 128 * KIB, 128 * KIB);
}

static void test_top_pad_and_trim(void **state)
{
	struct thresholds *thresholds = *state;
	struct bounds bounds;

	/* mallopt(M_TOP_PAD, 1 MiB): the heap grows by that and the block. */
	map_call(thresholds, MAP_FN_BRK, FN_MALLOC, 1000, HEAP, 0, HEAP + MIB + PAGE, 200);
	thresholds_get(thresholds, PID, THRESHOLD_TOP_PAD, &bounds);
	assert_in_range(MIB, bounds.low, bounds.high);
	assert_in_range(bounds.high - bounds.low, 0, 4 * PAGE);
	/* Trimmed of 8 pages: the top was not larger than that and the pad. */
	thresholds_start(thresholds, PID, 100, "GLIBC_TUNABLES=glibc.malloc.top_pad=4096", true, 0);
	thresholds_set_glibc(thresholds, PID, true);
	map_call(thresholds, MAP_FN_BRK, FN_FREE, 0, HEAP + 99 * PAGE, 0, HEAP + 91 * PAGE, 300);
	assert_bounds(thresholds, THRESHOLD_TRIM, 0, 10 * PAGE + 32);
	/* malloc_trim, by the program itself, says nothing. */
	map_call(thresholds, MAP_FN_BRK, FN_NONE, 0, HEAP + 91 * PAGE, 0, HEAP + 90 * PAGE, 400);
	assert_bounds(thresholds, THRESHOLD_TRIM, 0, 10 * PAGE + 32);
}

static void test_read(void **state)
{
	struct thresholds *thresholds = *state;
	uint64_t values[THRESHOLD_NAMES] = { 128 * KIB, 128 * KIB, 128 * KIB };
	GArray *facts = drain(thresholds);

	g_array_free(facts, TRUE);
	thresholds_read(thresholds, PID, 500, values, false);
	facts = drain(thresholds);
	assert_int_equal(facts->len, 0);
	g_array_free(facts, TRUE);
	values[THRESHOLD_TOP_PAD] = 7 * PAGE;
	thresholds_read(thresholds, PID, 600, values, false);
	assert_bounds(thresholds, THRESHOLD_TOP_PAD, 7 * PAGE, 7 * PAGE);
	/* Read, and then the record of the free that had done it arrives. */
	values[THRESHOLD_MMAP] = 2 * MIB + PAGE;
	values[THRESHOLD_TRIM] = 4 * MIB + 2 * PAGE;
	thresholds_read(thresholds, PID, 700, values, false);
	free_mapped(thresholds, 2 * MIB, 650);
	facts = drain(thresholds);
	assert_int_equal(facts->len, 3);
	assert_int_equal(FACT(facts, 0).how, THRESHOLD_READ);
	assert_int_equal(FACT(facts, 0).time_ns, 600);
	assert_int_equal(FACT(facts, 1).how, THRESHOLD_FREED);
	assert_int_equal(FACT(facts, 1).time_ns, 651);
	assert_int_equal(FACT(facts, 2).how, THRESHOLD_FREED);
	assert_bounds(thresholds, THRESHOLD_TRIM, 4 * MIB + 2 * PAGE, 4 * MIB + 2 * PAGE);
	g_array_free(facts, TRUE);
}

/* As glibc would leave it after the free of a block of so many bytes. */
static void read_after(struct thresholds *thresholds, uint64_t size, uint64_t at_ns, bool pinned)
{
	uint64_t bytes = (size + 16 + PAGE - 1) & ~(PAGE - 1);
	uint64_t values[THRESHOLD_NAMES] = { 0 };

	values[THRESHOLD_MMAP] = bytes;
	values[THRESHOLD_TRIM] = 2 * bytes;
	values[THRESHOLD_TOP_PAD] = 128 * KIB;
	thresholds_read(thresholds, PID, at_ns, values, pinned);
}

static void assert_fact(GArray *facts, guint i, enum threshold_name name, enum threshold_how how,
			uint64_t low, uint64_t time_ns)
{
	assert_true(i < facts->len);
	assert_int_equal(FACT(facts, i).name, name);
	assert_int_equal(FACT(facts, i).how, how);
	assert_int_equal(FACT(facts, i).bounds.low, low);
	assert_int_equal(FACT(facts, i).time_ns, time_ns);
}

/* Records of two frees come after what both did was read, one of them after a drain. */
static void test_records_after_read(void **state)
{
	struct thresholds *thresholds = *state;
	GArray *facts = drain(thresholds);

	g_array_free(facts, TRUE);
	read_after(thresholds, 3 * MIB, 500, false);
	/* Older than what was read: it says nothing. */
	block(thresholds, POOL + 16, 200 * KIB, BLOCK_MMAPPED, 300);
	free_mapped(thresholds, 1 * MIB, 400);
	facts = drain(thresholds);
	assert_int_equal(facts->len, 2);
	assert_fact(facts, 0, THRESHOLD_MMAP, THRESHOLD_FREED, 1 * MIB + PAGE, 401);
	assert_fact(facts, 1, THRESHOLD_TRIM, THRESHOLD_FREED, 2 * (1 * MIB + PAGE), 401);
	g_array_free(facts, TRUE);
	/* Neither larger than the one before, nor begun before it was read. */
	free_mapped(thresholds, 512 * KIB, 420);
	free_mapped(thresholds, 3 * MIB, 510);
	/* The cause. Its munmap came after the values were read, its call before. */
	free_mapped(thresholds, 3 * MIB, 500);
	facts = drain(thresholds);
	assert_int_equal(facts->len, 2);
	assert_fact(facts, 0, THRESHOLD_MMAP, THRESHOLD_FREED, 3 * MIB + PAGE, 501);
	g_array_free(facts, TRUE);
	/* Where no record comes, nobody has done it; reported a drain later, or with the last. */
	read_after(thresholds, 5 * MIB, 600, false);
	facts = drain(thresholds);
	assert_int_equal(facts->len, 0);
	read_after(thresholds, 5 * MIB, 700, false);
	thresholds_drain(thresholds, false, collect, facts);
	assert_int_equal(facts->len, 2);
	assert_fact(facts, 0, THRESHOLD_MMAP, THRESHOLD_READ, 5 * MIB + PAGE, 600);
	read_after(thresholds, 6 * MIB, 800, false);
	thresholds_drain(thresholds, true, collect, facts);
	assert_int_equal(facts->len, 4);
	/* And of a process that has gone. */
	read_after(thresholds, 7 * MIB, 900, false);
	thresholds_drain(thresholds, false, collect, facts);
	thresholds_forget(thresholds, PID);
	thresholds_drain(thresholds, false, collect, facts);
	assert_int_equal(facts->len, 6);
	g_array_free(facts, TRUE);
}

/* A free is newer than what was read before it and is handed in after it. */
static void test_read_of_before(void **state)
{
	struct thresholds *thresholds = *state;

	free_mapped(thresholds, 3 * MIB, 400);
	read_after(thresholds, 2 * MIB, 300, false);
	assert_bounds(thresholds, THRESHOLD_MMAP, 3 * MIB + PAGE, 3 * MIB + PAGE);
}

/* Attached late: what it had by then is nobody's doing, also where a free would have done the same. */
static void test_late(void **state)
{
	struct thresholds *thresholds = *state;
	GArray *facts;

	thresholds_start(thresholds, PID, 1000, "", false, 0);
	thresholds_set_glibc(thresholds, PID, true);
	read_after(thresholds, 3 * MIB, 1100, false);
	free_mapped(thresholds, 3 * MIB, 1050);
	free_mapped(thresholds, 2 * MIB, 1060);
	free_mapped(thresholds, 3 * MIB, 1200);
	free_mapped(thresholds, 4 * MIB, 1300);
	facts = drain(thresholds);
	assert_int_equal(facts->len, 4);
	assert_fact(facts, 0, THRESHOLD_MMAP, THRESHOLD_READ, 3 * MIB + PAGE, 1100);
	assert_fact(facts, 1, THRESHOLD_TRIM, THRESHOLD_READ, 2 * (3 * MIB + PAGE), 1100);
	assert_fact(facts, 2, THRESHOLD_MMAP, THRESHOLD_FREED, 4 * MIB + PAGE, 1301);
	g_array_free(facts, TRUE);
	/* One whose program had set them: no free moves them. */
	thresholds_start(thresholds, PID, 2000, "", false, 0);
	thresholds_set_glibc(thresholds, PID, true);
	read_after(thresholds, 1 * MIB, 2100, true);
	free_mapped(thresholds, 3 * MIB, 2200);
	assert_bounds(thresholds, THRESHOLD_MMAP, 1 * MIB + PAGE, 1 * MIB + PAGE);
}

/* mallopt between frees: those after it have moved nothing, which shows when the values are read. */
static void test_set_between(void **state)
{
	struct thresholds *thresholds = *state;
	uint64_t values[THRESHOLD_NAMES];
	GArray *facts = drain(thresholds);

	g_array_free(facts, TRUE);
	free_mapped(thresholds, 1 * MIB, 200);
	free_mapped(thresholds, 3 * MIB, 300);
	free_mapped(thresholds, 4 * MIB, 400);
	/* Contradicts it: nothing of this kind is needed, but there may be. */
	block(thresholds, POOL + 16, 2 * MIB, BLOCK_MMAPPED, 450);
	/* M_MMAP_THRESHOLD alone was set, after the second: trim_threshold proves it. */
	values[THRESHOLD_MMAP] = 2 * MIB;
	values[THRESHOLD_TRIM] = 2 * (3 * MIB + PAGE);
	values[THRESHOLD_TOP_PAD] = 128 * KIB;
	thresholds_read(thresholds, PID, 500, values, true);
	facts = drain(thresholds);
	thresholds_drain(thresholds, true, collect, facts);
	assert_fact(facts, 0, THRESHOLD_MMAP, THRESHOLD_FREED, 1 * MIB + PAGE, 201);
	assert_fact(facts, 2, THRESHOLD_MMAP, THRESHOLD_FREED, 3 * MIB + PAGE, 301);
	assert_fact(facts, 3, THRESHOLD_TRIM, THRESHOLD_FREED, 2 * (3 * MIB + PAGE), 301);
	assert_fact(facts, 4, THRESHOLD_MMAP, THRESHOLD_MAPPED, 0, 450);
	assert_fact(facts, 5, THRESHOLD_MMAP, THRESHOLD_READ, 2 * MIB, 500);
	assert_int_equal(facts->len, 7);
	g_array_free(facts, TRUE);
	assert_bounds(thresholds, THRESHOLD_TRIM, 2 * (3 * MIB + PAGE), 2 * (3 * MIB + PAGE));
	/* A free whose record came after them. */
	free_mapped(thresholds, 5 * MIB, 480);
	free_mapped(thresholds, 5 * MIB, 600);
	assert_bounds(thresholds, THRESHOLD_MMAP, 2 * MIB, 2 * MIB);
	/* Set before all of them. */
	thresholds_start(thresholds, PID, 1000, "", true, 0);
	thresholds_set_glibc(thresholds, PID, true);
	free_mapped(thresholds, 3 * MIB, 1100);
	read_after(thresholds, 1 * MIB, 1200, true);
	facts = drain(thresholds);
	thresholds_drain(thresholds, true, collect, facts);
	for (guint i = 0; i < facts->len; i++)
		assert_int_not_equal(FACT(facts, i).how, THRESHOLD_FREED);
	g_array_free(facts, TRUE);
	assert_bounds(thresholds, THRESHOLD_MMAP, 1 * MIB + PAGE, 1 * MIB + PAGE);
	/* M_TRIM_THRESHOLD alone, after all: mmap_threshold proves the last, and all that it did. */
	thresholds_start(thresholds, PID, 2000, "", true, 0);
	thresholds_set_glibc(thresholds, PID, true);
	free_mapped(thresholds, 3 * MIB, 2100);
	values[THRESHOLD_MMAP] = 3 * MIB + PAGE;
	values[THRESHOLD_TRIM] = 1 * MIB;
	thresholds_read(thresholds, PID, 2200, values, true);
	facts = g_array_new(FALSE, FALSE, sizeof(struct threshold_fact));
	thresholds_drain(thresholds, true, collect, facts);
	assert_int_equal(facts->len, 9); /* three of the exec, three as glibc begins */
	assert_fact(facts, 5, THRESHOLD_MMAP, THRESHOLD_FREED, 3 * MIB + PAGE, 2101);
	assert_fact(facts, 6, THRESHOLD_TRIM, THRESHOLD_FREED, 2 * (3 * MIB + PAGE), 2101);
	assert_fact(facts, 8, THRESHOLD_TRIM, THRESHOLD_READ, 1 * MIB, 2200);
	g_array_free(facts, TRUE);
}

/* realloc frees where no bytes are asked; where it copies it moves nothing. */
static void test_realloc_copies(void **state)
{
	map_call(*state, MAP_FN_MUNMAP, FN_REALLOC, 4 * MIB, POOL, 3 * MIB, 0, 200);
	map_call(*state, MAP_FN_MUNMAP, FN_REALLOCARRAY, 4 * MIB, POOL, 3 * MIB, 0, 210);
	assert_bounds(*state, THRESHOLD_MMAP, 128 * KIB, 128 * KIB);
	map_call(*state, MAP_FN_MUNMAP, FN_REALLOC, 0, POOL, 2 * MIB, 0, 300);
	assert_bounds(*state, THRESHOLD_MMAP, 2 * MIB, 2 * MIB);
}

/* DEFAULT_MMAP_THRESHOLD_MAX: the chunk's flags are compared with it, too. */
static void test_largest(void **state)
{
	free_mapped(*state, 32 * MIB - 16, 200);
	assert_bounds(*state, THRESHOLD_MMAP, 128 * KIB, 128 * KIB);
	free_mapped(*state, 32 * MIB - PAGE - 16, 300);
	assert_bounds(*state, THRESHOLD_MMAP, 32 * MIB - PAGE, 32 * MIB - PAGE);
}

/* A child has a copy of its parent's; a free raises it in the one alone. */
static void test_fork(void **state)
{
	struct bounds bounds;

	free_mapped(*state, 3 * MIB, 200);
	thresholds_start(*state, PID + 1, 300, "", true, PID);
	thresholds_set_glibc(*state, PID + 1, true);
	free_mapped(*state, 5 * MIB, 400);
	thresholds_get(*state, PID + 1, THRESHOLD_MMAP, &bounds);
	assert_int_equal(bounds.low, 3 * MIB + PAGE);
	thresholds_forget(*state, PID + 1);
	assert_false(thresholds_get(*state, PID + 1, THRESHOLD_MMAP, &bounds));
	assert_bounds(*state, THRESHOLD_MMAP, 5 * MIB + PAGE, 5 * MIB + PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_defaults, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dynamic, setup, teardown),
		cmocka_unit_test_setup_teardown(test_aligned, setup, teardown),
		cmocka_unit_test_setup_teardown(test_heap_of_an_arena, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tunables, setup, teardown),
		cmocka_unit_test_setup_teardown(test_contradictions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_growth_for_another, setup, teardown),
		cmocka_unit_test_setup_teardown(test_top_pad_and_trim, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_records_after_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read_of_before, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_set_between, setup, teardown),
		cmocka_unit_test_setup_teardown(test_realloc_copies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_largest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork, setup, teardown),
	};

	return cmocka_run_group_tests_name("thresholds", tests, NULL, NULL);
}
