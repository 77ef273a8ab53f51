// SPDX-License-Identifier: GPL-2.0
/* Mappings as allocations: cut, moved, grown and replaced. Counts are prime. */
#include "ledger_records.h"

#include "events/refined.h"

/* The program's own mapping is an allocation; faults of other kinds of areas are not its. */
static void test_region(void **state)
{
	static const uint8_t others[] = { AREA_STACK, AREA_FILE, AREA_LIBRARY, AREA_HEAP,
					  AREA_ARENA };
	static const uint8_t own[] = { AREA_ANON, AREA_SHARED, AREA_UNKNOWN };
	struct ledger *ledger = *state;
	struct facts facts;
	size_t i;

	map_pool(ledger, POOL, 1009, 10);
	for (i = 0; i < G_N_ELEMENTS(own); i++) {
		struct memtoll_run run = sweep(POOL, 13, 20);

		run.area = own[i];
		ledger_run(ledger, &run);
	}
	for (i = 0; i < G_N_ELEMENTS(others); i++) {
		struct memtoll_run run = sweep(POOL, 7, 20);

		run.area = others[i];
		ledger_run(ledger, &run);
	}
	/* Before it was made, something else was there. */
	touch(ledger, POOL, 3, 1);
	touch(ledger, POOL + 1000 * PAGE, 11, 30);
	facts = drain(ledger);
	assert_int_equal(pages_charged(&facts, PID, ALLOCATED_MMAP, POOL_STACK), 3 * 13 + 9);
	assert_int_equal(pages_charged(&facts, PID, FN_NONE, 0), 5 * 7 + 3 + 2);
	assert_int_equal(only_life(&facts)->fn, ALLOCATED_MMAP);
	assert_int_equal(only_life(&facts)->made, 1);
	assert_int_equal(only_life(&facts)->made_bytes, 1009 * PAGE);
	assert_int_equal(only_life(&facts)->freed, 0);
	forget(&facts);
}

/* Mappings of the allocator, of files, and small ones are no allocations. */
static void test_no_region(void **state)
{
	struct ledger *ledger = *state;
	struct facts facts;

	map_as(ledger, &(struct memtoll_mapping){
			       .map_fn = MAP_FN_MMAP,
			       .in_fn = FN_MALLOC,
			       .flags = MAPPING_ANONYMOUS,
			       .len = 101 * PAGE,
			       .result = POOL,
			       .start_ns = 1,
		       });
	map_as(ledger, &(struct memtoll_mapping){
			       .map_fn = MAP_FN_MMAP,
			       .len = 101 * PAGE,
			       .result = POOL + 200 * PAGE,
			       .start_ns = 2,
		       });
	map_pool(ledger, POOL + 400 * PAGE, 15, 3);
	touch(ledger, POOL, 601, 10);
	facts = drain(ledger);
	assert_int_equal(facts.lives->len, 0);
	assert_int_equal(charge_of(&facts, 0)->pages, 601);
	forget(&facts);
	/* Exactly 64 KiB is one; where the minimum is smaller, less is. */
	map_pool(ledger, POOL + 400 * PAGE, 16, 20);
	assert_int_equal(pool_life(ledger).made, 1);
	ledger_set_min_size(ledger, 3 * PAGE);
	map_pool(ledger, POOL + 500 * PAGE, 3, 21);
	map_pool(ledger, POOL + 504 * PAGE, 2, 22);
	assert_int_equal(pool_life(ledger).made_bytes, 3 * PAGE);
}

/* A sweep over a region, a block in it and what lies around is divided; its figures add up. */
static void test_block_in_region(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run run = sweep(POOL - 5 * PAGE, 211, 100);
	struct facts facts;
	uint64_t cpu_ns = 0;
	guint i;

	run.timed_faults = 211;
	run.timed_cpu_ns = 1000003;
	map_pool(ledger, POOL, 101, 1);
	make(ledger, POOL + 11 * PAGE, 31 * PAGE, 2, 0);
	ledger_run(ledger, &run);
	facts = drain(ledger);
	assert_int_equal(pages_charged(&facts, PID, FN_CALLOC, BLOCK_STACK), 31);
	assert_int_equal(pages_charged(&facts, PID, ALLOCATED_MMAP, POOL_STACK), 101 - 31);
	assert_int_equal(pages_charged(&facts, PID, FN_NONE, 0), 211 - 101);
	for (i = 0; i < facts.charges->len; i++)
		cpu_ns += g_array_index(facts.charges, struct charge, i).timed_cpu_ns;
	assert_int_equal(cpu_ns, 1000003);
	forget(&facts);
	/* The block goes, the region stays: but what happened before the end is the block's. */
	end(ledger, POOL + 11 * PAGE, 200);
	touch(ledger, POOL + 11 * PAGE, 3, 150);
	touch(ledger, POOL + 11 * PAGE, 7, 201);
	facts = drain(ledger);
	assert_int_equal(pages_charged(&facts, PID, FN_CALLOC, BLOCK_STACK), 3);
	assert_int_equal(pages_charged(&facts, PID, ALLOCATED_MMAP, POOL_STACK), 7);
	forget(&facts);
}

/* A hole in the middle: two parts of one allocation remain, which is freed with the last. */
static void test_unmap_middle(void **state)
{
	struct ledger *ledger = *state;
	struct facts facts;
	struct life life;

	map_pool(ledger, POOL, 499, 1);
	unmap(ledger, POOL + 101 * PAGE, 97, 10);
	touch(ledger, POOL, 499, 20);
	facts = drain(ledger);
	assert_int_equal(pages_charged(&facts, PID, ALLOCATED_MMAP, POOL_STACK), 499 - 97);
	assert_int_equal(pages_charged(&facts, PID, FN_NONE, 0), 97);
	life = life_of(&facts, ALLOCATED_MMAP, POOL_STACK);
	assert_int_equal(life.made, 1);
	assert_int_equal(life.freed, 0);
	assert_int_equal(life.freed_bytes, 97 * PAGE);
	forget(&facts);
	unmap(ledger, POOL - 50 * PAGE, 151, 30);
	life = pool_life(ledger);
	assert_int_equal(life.freed, 0);
	assert_int_equal(life.freed_bytes, 101 * PAGE);
	/* A run that was on its way still belongs to it, a later one does not. */
	touch(ledger, POOL, 5, 25);
	touch(ledger, POOL, 7, 35);
	assert_int_equal(pool_pages(ledger), 5);
	unmap(ledger, POOL, 499, 40);
	life = pool_life(ledger);
	assert_int_equal(life.freed, 1);
	assert_int_equal(life.freed_bytes, (499 - 101 - 97) * PAGE);
	assert_int_equal(life.never_used_bytes, 0);
}

/* MAP_FIXED over a part of a region: another allocation, and what it covers is gone. */
static void test_fixed_over(void **state)
{
	struct ledger *ledger = *state;
	struct facts facts;

	map_pool(ledger, POOL, 307, 1);
	make(ledger, POOL + 103 * PAGE, 17 * PAGE, 2, 0);
	map_as(ledger, &(struct memtoll_mapping){
			       .map_fn = MAP_FN_MMAP,
			       .flags = MAPPING_ANONYMOUS | MAPPING_FIXED,
			       .addr = POOL + 101 * PAGE,
			       .len = 53 * PAGE,
			       .result = POOL + 101 * PAGE,
			       .start_ns = 10,
			       .stack_id = POOL_STACK + 1,
		       });
	touch(ledger, POOL, 307, 20);
	facts = drain(ledger);
	assert_int_equal(pages_charged(&facts, PID, ALLOCATED_MMAP, POOL_STACK), 307 - 53);
	assert_int_equal(pages_charged(&facts, PID, ALLOCATED_MMAP, POOL_STACK + 1), 53);
	assert_int_equal(life_of(&facts, ALLOCATED_MMAP, POOL_STACK).freed_bytes, 53 * PAGE);
	assert_int_equal(life_of(&facts, ALLOCATED_MMAP, POOL_STACK + 1).made, 1);
	assert_int_equal(life_of(&facts, FN_CALLOC, BLOCK_STACK).freed, 1);
	forget(&facts);
	/* A file over it ends that part, for nobody. */
	map_as(ledger, &(struct memtoll_mapping){
			       .map_fn = MAP_FN_MMAP,
			       .flags = MAPPING_FIXED,
			       .addr = POOL,
			       .len = 11 * PAGE,
			       .result = POOL,
			       .start_ns = 30,
		       });
	touch(ledger, POOL, 307, 40);
	facts = drain(ledger);
	assert_int_equal(pages_charged(&facts, PID, ALLOCATED_MMAP, POOL_STACK), 307 - 53 - 11);
	assert_int_equal(pages_charged(&facts, PID, FN_NONE, 0), 11);
	forget(&facts);
}

/* The loader's way: the whole span from the file, its segments over it, then the bss. */
static void test_library_bss(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_mapping file = {
		.map_fn = MAP_FN_MMAP,
		.len = 401 * PAGE,
		.result = POOL,
		.start_ns = 1,
	};
	struct memtoll_mapping bss = {
		.map_fn = MAP_FN_MMAP,
		.flags = MAPPING_ANONYMOUS | MAPPING_FIXED,
		.addr = POOL + 211 * PAGE,
		.len = 190 * PAGE,
		.result = POOL + 211 * PAGE,
		.start_ns = 4,
	};
	struct facts facts;

	map_as(ledger, &file);
	file.flags = MAPPING_FIXED;
	file.addr = file.result = POOL + 199 * PAGE;
	file.len = 23 * PAGE;
	file.start_ns = 2;
	map_as(ledger, &file);
	map_as(ledger, &bss);
	touch(ledger, POOL + 199 * PAGE, 202, 10);
	facts = drain(ledger);
	assert_int_equal(facts.lives->len, 0);
	assert_int_equal(charge_of(&facts, 0)->pages, 202);
	forget(&facts);
	/* Once the library is unmapped the same call is an allocation. */
	unmap(ledger, POOL, 401, 20);
	bss.start_ns = 21;
	map_as(ledger, &bss);
	assert_int_equal(pool_life(ledger).made_bytes, 190 * PAGE);
	/* So is one that reaches beyond the file. */
	map_as(ledger, &(struct memtoll_mapping){
			       .map_fn = MAP_FN_MMAP,
			       .len = 29 * PAGE,
			       .result = POOL + 900 * PAGE,
			       .start_ns = 30,
		       });
	bss.addr = bss.result = POOL + 910 * PAGE;
	bss.len = 20 * PAGE;
	bss.start_ns = 31;
	map_as(ledger, &bss);
	assert_int_equal(pool_life(ledger).made_bytes, 20 * PAGE);
}

/* Pages charged to the pool since the last time; what its life has come to is added to *sum. */
static uint64_t pool_pages_and_life(struct ledger *ledger, struct life *sum)
{
	struct facts facts = drain(ledger);
	uint64_t pages = pages_charged(&facts, PID, ALLOCATED_MMAP, POOL_STACK);
	struct life life = life_of(&facts, ALLOCATED_MMAP, POOL_STACK);

	sum->made += life.made;
	sum->made_bytes += life.made_bytes;
	sum->freed += life.freed;
	sum->freed_bytes += life.freed_bytes;
	forget(&facts);
	return pages;
}

/* mremap: grown where it is, moved and grown, cut, its middle moved. It is one allocation. */
static void test_remap(void **state)
{
	const uint64_t far = POOL + (1ULL << 36);
	struct ledger *ledger = *state;
	struct life life = {};

	map_pool(ledger, POOL, 101, 1);
	remap(ledger, POOL, 101, 151, POOL, 10);
	touch(ledger, POOL, 199, 11);
	assert_int_equal(pool_pages_and_life(ledger, &life), 151);
	assert_int_equal(life.made_bytes, 151 * PAGE);
	remap(ledger, POOL, 151, 307, far, 20);
	touch(ledger, POOL, 7, 15);
	touch(ledger, POOL, 11, 22);
	assert_int_equal(pool_pages_and_life(ledger, &life), 7);
	touch(ledger, far, 401, 23);
	assert_int_equal(pool_pages_and_life(ledger, &life), 307);
	assert_int_equal(life.made, 1);
	assert_int_equal(life.made_bytes, 307 * PAGE);
	assert_int_equal(life.freed_bytes, 0);
	remap(ledger, far, 307, 53, far, 30);
	touch(ledger, far, 307, 32);
	assert_int_equal(pool_pages_and_life(ledger, &life), 53);
	assert_int_equal(life.freed_bytes, (307 - 53) * PAGE);
	/* Of the middle, and smaller than what it takes. */
	remap(ledger, far + 11 * PAGE, 23, 13, POOL, 40);
	touch(ledger, far, 53, 42);
	assert_int_equal(pool_pages_and_life(ledger, &life), 53 - 23);
	touch(ledger, POOL, 53, 43);
	assert_int_equal(pool_pages_and_life(ledger, &life), 13);
	unmap(ledger, far, 53, 50);
	assert_int_equal(pool_pages_and_life(ledger, &life), 0);
	assert_int_equal(life.freed, 0);
	assert_int_equal(life.freed_bytes, (307 - 13) * PAGE);
	unmap(ledger, POOL, 53, 51);
	assert_int_equal(pool_pages_and_life(ledger, &life), 0);
	assert_int_equal(life.made, 1);
	assert_int_equal(life.freed, 1);
	assert_int_equal(life.freed_bytes, life.made_bytes);
}

/* In one sum: all that was mapped is unmapped, whatever became of it between. */
static void test_remap_adds_up(void **state)
{
	struct ledger *ledger = *state;
	struct life life;

	map_pool(ledger, POOL, 101, 1);
	map_pool(ledger, POOL + 101 * PAGE, 103, 2);
	/* Two neighbours are one area to the kernel, and move as one. */
	remap(ledger, POOL, 204, 251, POOL + 1000 * PAGE, 3);
	/* Over what is there. */
	map_pool(ledger, POOL, 59, 4);
	remap(ledger, POOL + 1000 * PAGE, 251, 47, POOL, 5);
	unmap(ledger, POOL, 2000, 6);
	life = pool_life(ledger);
	assert_int_equal(life.made, 3);
	assert_int_equal(life.freed, 3);
	assert_int_equal(life.made_bytes, (101 + 103 + 47 + 59) * PAGE);
	assert_int_equal(life.freed_bytes, life.made_bytes);
}

/* A small mapping is an allocation once mremap has made it large. */
static void test_small_grows(void **state)
{
	struct ledger *ledger = *state;
	struct life life;

	map_pool(ledger, POOL, 1, 1);
	remap(ledger, POOL, 1, 11, POOL, 2);
	touch(ledger, POOL, 11, 3);
	assert_int_equal(pool_pages(ledger), 0);
	remap(ledger, POOL, 11, 101, POOL + 500 * PAGE, 4);
	touch(ledger, POOL + 500 * PAGE, 101, 5);
	life = pool_life(ledger);
	assert_int_equal(life.made, 1);
	assert_int_equal(life.made_bytes, 101 * PAGE);
	touch(ledger, POOL + 500 * PAGE, 101, 6);
	assert_int_equal(pool_pages(ledger), 101);
}

/* mremap of length 0 shows shared pages a second time. */
static void test_remap_duplicates(void **state)
{
	struct ledger *ledger = *state;

	map_pool(ledger, POOL, 37, 1);
	remap(ledger, POOL, 0, 37, POOL + 100 * PAGE, 2);
	touch(ledger, POOL, 37, 3);
	touch(ledger, POOL + 100 * PAGE, 37, 4);
	assert_int_equal(pool_pages(ledger), 2 * 37);
}

/* Blocks in memory that the program moves go with it; one that is torn ends. */
static void test_remap_moves_blocks(void **state)
{
	const uint64_t far = POOL + (1ULL << 36);
	struct ledger *ledger = *state;
	struct facts facts;

	map_pool(ledger, POOL, 307, 1);
	make(ledger, POOL + 11 * PAGE, 101 * PAGE, 2, 0);
	make(ledger, POOL + 200 * PAGE, 31 * PAGE, 3, 0);
	remap(ledger, POOL, 211, 211, far, 10);
	touch(ledger, far, 211, 20);
	facts = drain(ledger);
	assert_int_equal(pages_charged(&facts, PID, FN_CALLOC, BLOCK_STACK), 101);
	assert_int_equal(pages_charged(&facts, PID, ALLOCATED_MMAP, POOL_STACK), 211 - 101);
	assert_int_equal(life_of(&facts, FN_CALLOC, BLOCK_STACK).freed, 1);
	assert_int_equal(life_of(&facts, FN_CALLOC, BLOCK_STACK).freed_bytes, 31 * PAGE);
	forget(&facts);
	end(ledger, far + 11 * PAGE, 30);
	assert_int_equal(ledger_unmatched_frees(ledger), 0);
	facts = drain(ledger);
	assert_int_equal(life_of(&facts, FN_CALLOC, BLOCK_STACK).freed_bytes, 101 * PAGE);
	forget(&facts);
}

/* Mapping calls of the allocator are not counted: its blocks are. */
static void test_calls_in_allocator(void **state)
{
	static const uint8_t calls[] = { MAP_FN_MUNMAP, MAP_FN_MREMAP, MAP_FN_MADVISE };
	struct ledger *ledger = *state;
	struct facts facts;
	size_t i;

	make(ledger, POOL + 16, 101 * PAGE, 1, BLOCK_GLIBC | BLOCK_MMAPPED);
	for (i = 0; i < G_N_ELEMENTS(calls); i++)
		map_as(ledger, &(struct memtoll_mapping){
				       .map_fn = calls[i],
				       .in_fn = FN_REALLOC,
				       .addr = POOL,
				       .len = 102 * PAGE,
				       .arg = 150 * PAGE,
				       .result = POOL + 500 * PAGE,
				       .start_ns = 10 + i,
			       });
	touch(ledger, POOL, 101, 20);
	facts = drain(ledger);
	assert_int_equal(pages_charged(&facts, PID, FN_CALLOC, BLOCK_STACK), 101);
	assert_int_equal(only_life(&facts)->freed, 0);
	forget(&facts);
	/* madvise of the program's own changes nothing either. */
	map_pool(ledger, POOL + 500 * PAGE, 29, 30);
	map_as(ledger, &(struct memtoll_mapping){
			       .map_fn = MAP_FN_MADVISE,
			       .addr = POOL,
			       .len = 600 * PAGE,
			       .arg = 4,
			       .start_ns = 31,
		       });
	touch(ledger, POOL, 600, 40);
	facts = drain(ledger);
	assert_int_equal(pages_charged(&facts, PID, FN_CALLOC, BLOCK_STACK), 102);
	assert_int_equal(pages_charged(&facts, PID, ALLOCATED_MMAP, POOL_STACK), 29);
	forget(&facts);
}

/* A record that comes late does not unmap what another thread has mapped there since. */
static void test_late_unmap(void **state)
{
	struct ledger *ledger = *state;

	map_pool(ledger, POOL, 101, 1);
	map_pool(ledger, POOL, 89, 20);
	unmap(ledger, POOL, 101, 10);
	touch(ledger, POOL, 101, 30);
	assert_int_equal(pool_pages(ledger), 89);
}

/* The child's faults fall in what was the parent's; each unmaps for itself, the parent's counts. */
static void test_fork_regions(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run run = sweep(POOL, 307, 20);
	struct facts facts;
	guint i;

	map_pool(ledger, POOL, 211, 1);
	unmap(ledger, POOL + 100 * PAGE, 11, 2);
	/* The id was another process's before. */
	map_as(ledger, &(struct memtoll_mapping){
			       .tgid = PID + 1,
			       .map_fn = MAP_FN_MMAP,
			       .flags = MAPPING_ANONYMOUS,
			       .len = 401 * PAGE,
			       .result = POOL + 211 * PAGE,
			       .start_ns = 1,
		       });
	ledger_fork(ledger, PID, PID + 1);
	facts = drain(ledger);
	forget(&facts);
	touch(ledger, POOL, 31, 20);
	run.tgid = PID + 1;
	ledger_run(ledger, &run);
	map_as(ledger, &(struct memtoll_mapping){
			       .tgid = PID + 1,
			       .map_fn = MAP_FN_MUNMAP,
			       .addr = POOL,
			       .len = 211 * PAGE,
			       .start_ns = 30,
		       });
	touch(ledger, POOL, 37, 40);
	facts = drain(ledger);
	assert_int_equal(pages_charged(&facts, PID, ALLOCATED_MMAP, POOL_STACK), 31 + 37);
	assert_int_equal(pages_charged(&facts, PID + 1, ALLOCATED_MMAP, POOL_STACK), 200);
	assert_int_equal(pages_charged(&facts, PID + 1, FN_NONE, 0), 11 + 307 - 211);
	for (i = 0; i < facts.lives->len; i++)
		assert_int_not_equal(g_array_index(facts.lives, struct life, i).freed_bytes,
				     200 * PAGE);
	forget(&facts);
	unmap(ledger, POOL, 211, 50);
	assert_int_equal(pool_life(ledger).freed_bytes, 200 * PAGE);
}

/* exec and exit take regions too, and free none. */
static void test_exec_and_exit_regions(void **state)
{
	struct ledger *ledger = *state;
	struct life life;
	int i;

	for (i = 0; i < 2; i++) {
		map_pool(ledger, POOL, 101, 1);
		touch(ledger, POOL, 7, 5);
		if (i)
			ledger_exit(ledger, PID);
		else
			ledger_exec(ledger, PID);
		touch(ledger, POOL, 11, 6);
		life = pool_life(ledger);
		assert_int_equal(life.made, 1);
		assert_int_equal(life.freed, 0);
		touch(ledger, POOL, 13, 7);
		assert_int_equal(pool_pages(ledger), 0);
	}
}

/* Records that no kernel writes change nothing much, and end. */
static void test_absurd_mappings(void **state)
{
	static const uint64_t odd[] = { 0,	    1,		4095,	    POOL,
					1ULL << 47, 1ULL << 57, 1ULL << 63, UINT64_MAX - 4095,
					UINT64_MAX };
	struct ledger *ledger = *state;
	struct facts facts;
	size_t a, b, c;
	int call;

	map_pool(ledger, POOL, 101, 1);
	make(ledger, POOL + PAGE, 31 * PAGE, 2, 0);
	for (call = 0; call < MAP_FN_COUNT; call++)
		for (a = 0; a < G_N_ELEMENTS(odd); a++)
			for (b = 0; b < G_N_ELEMENTS(odd); b++)
				for (c = 0; c < G_N_ELEMENTS(odd); c++)
					map_as(ledger, &(struct memtoll_mapping){
							       .map_fn = call,
							       .addr = odd[a],
							       .len = odd[b],
							       .arg = odd[c],
							       .result = odd[(a + c) % 9],
							       .flags = (a + b + c) & 7,
							       .start_ns = 10,
						       });
	touch(ledger, POOL, 211, 20);
	facts = drain(ledger);
	assert_int_equal(pages_charged(&facts, PID, ALLOCATED_MMAP, POOL_STACK) +
				 pages_charged(&facts, PID, FN_CALLOC, BLOCK_STACK) +
				 pages_charged(&facts, PID, FN_NONE, 0),
			 211);
	forget(&facts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_region, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_region, setup, teardown),
		cmocka_unit_test_setup_teardown(test_block_in_region, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unmap_middle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fixed_over, setup, teardown),
		cmocka_unit_test_setup_teardown(test_library_bss, setup, teardown),
		cmocka_unit_test_setup_teardown(test_remap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_remap_adds_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_small_grows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_remap_duplicates, setup, teardown),
		cmocka_unit_test_setup_teardown(test_remap_moves_blocks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_calls_in_allocator, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_unmap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork_regions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec_and_exit_regions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_absurd_mappings, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
