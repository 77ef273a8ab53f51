// SPDX-License-Identifier: GPL-2.0
/* The ledger: records in, facts out. Counts are prime; what goes in comes out exactly once. */
#include "host/mapped_files.h"
#include "ledger_records.h"

/* 23 blocks made and freed, 23 x 7 pages touched: all of it, and nothing twice. */
static void test_charges_what_falls_in(void **state)
{
	struct ledger *ledger = *state;
	struct facts facts;
	uint64_t i;

	for (i = 0; i < 23; i++) {
		struct memtoll_run run = sweep(0x100000, 7, i * 10 + 2);

		make(ledger, 0x100010, 31 * PAGE, i * 10, 0);
		ledger_run(ledger, &run);
		end(ledger, 0x100010, i * 10 + 5);
	}
	facts = drain(ledger);
	assert_int_equal(facts.charges->len, 1);
	assert_int_equal(charge_of(&facts, BLOCK_STACK)->pages, 23 * 7);
	assert_int_equal(charge_of(&facts, BLOCK_STACK)->faults, 23 * 7);
	assert_int_equal(charge_of(&facts, BLOCK_STACK)->allocated_fn, FN_CALLOC);
	assert_int_equal(only_life(&facts)->made, 23);
	assert_int_equal(only_life(&facts)->made_bytes, 23 * 31 * PAGE);
	assert_int_equal(only_life(&facts)->freed, 23);
	assert_int_equal(only_life(&facts)->freed_bytes, 23 * 31 * PAGE);
	forget(&facts);
	facts = drain(ledger);
	assert_int_equal(facts.charges->len, 0);
	assert_int_equal(facts.lives->len, 0);
	forget(&facts);
}

/* A sweep over two blocks and the gaps around them is divided, and its figures add up. */
static void test_divides_a_sweep(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run run = sweep(0x100000, 101, 100);
	const struct charge *owned, *unowned;
	struct facts facts;

	run.timed_faults = 53;
	run.timed_cpu_ns = 100003;
	run.timed_cpu_us2 = 211;
	run.blocked_ns = 7919;
	make(ledger, 0x100000 + 11 * PAGE, 17 * PAGE, 1, 0);
	make(ledger, 0x100000 + 47 * PAGE, 19 * PAGE, 2, 0);
	ledger_run(ledger, &run);
	facts = drain(ledger);
	assert_int_equal(facts.charges->len, 2);
	owned = charge_of(&facts, BLOCK_STACK);
	unowned = charge_of(&facts, 0);
	assert_int_equal(owned->pages, 17 + 19);
	assert_int_equal(unowned->pages, 101 - 17 - 19);
	assert_int_equal(owned->faults + unowned->faults, 101);
	assert_int_equal(owned->timed_faults + unowned->timed_faults, 53);
	assert_int_equal(owned->timed_cpu_ns + unowned->timed_cpu_ns, 100003);
	assert_int_equal(owned->timed_cpu_us2 + unowned->timed_cpu_us2, 211);
	assert_int_equal(owned->blocked_ns + unowned->blocked_ns, 7919);
	forget(&facts);
}

/* Faults inside a call come before the block that it returns, and wait for it. */
static void test_faults_inside_the_call(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run run = sweep(0x200000, 13, 51);
	struct facts facts;

	run.in_fn = FN_CALLOC;
	ledger_run(ledger, &run);
	make(ledger, 0x200010, 13 * PAGE - 16, 50, 0);
	facts = drain(ledger);
	assert_int_equal(charge_of(&facts, BLOCK_STACK)->pages, 13);
	assert_null(charge_of(&facts, 0));
	forget(&facts);
}

/* The last run of a call comes after its block: when that ends, it is known to be used. */
static void test_faults_told_after_the_call(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run run = sweep(0x200000, 13, 50);
	struct facts facts;

	make(ledger, 0x200010, 31 * PAGE - 16, 50, BLOCK_GLIBC | BLOCK_MMAPPED);
	run.in_fn = FN_CALLOC;
	run.last_ns = 51;
	ledger_run(ledger, &run);
	end(ledger, 0x200010, 60);
	facts = drain(ledger);
	assert_int_equal(charge_of(&facts, BLOCK_STACK)->pages, 13);
	assert_int_equal(only_life(&facts)->never_used_bytes, (31 - 13) * PAGE);
	forget(&facts);
}

/* Another block at the same place proves that the first was freed. */
static void test_overlap_ends_a_block(void **state)
{
	struct ledger *ledger = *state;
	struct facts facts;

	make(ledger, 0x300000, 29 * PAGE, 1, 0);
	make(ledger, 0x300000 + 5 * PAGE, 3 * PAGE, 2, 0);
	facts = drain(ledger);
	assert_int_equal(only_life(&facts)->made, 2);
	assert_int_equal(only_life(&facts)->freed, 1);
	assert_int_equal(only_life(&facts)->freed_bytes, 29 * PAGE);
	forget(&facts);
	/* The free of the first comes late: it is not the second's. */
	end(ledger, 0x300000, 3);
	assert_int_equal(ledger_unmatched_frees(ledger), 1);
	facts = drain(ledger);
	assert_int_equal(facts.lives->len, 0);
	forget(&facts);
}

/* A run of another thread that arrives after the free is still the block's, by its time. */
static void test_late_run(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run during = sweep(0x400000, 3, 15), after = sweep(0x400000, 5, 25);
	struct facts facts;

	make(ledger, 0x400000, 11 * PAGE, 10, 0);
	end(ledger, 0x400000, 20);
	ledger_run(ledger, &during);
	ledger_run(ledger, &after);
	facts = drain(ledger);
	assert_int_equal(charge_of(&facts, BLOCK_STACK)->pages, 3);
	assert_int_equal(charge_of(&facts, 0)->pages, 5);
	forget(&facts);
}

/* Of a freed block with its own mapping, what no fault touched was never used. */
static void test_never_used(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run run = sweep(0x500000, 7, 2);
	struct facts facts;

	make(ledger, 0x500010, 41 * PAGE - 16, 1, BLOCK_GLIBC | BLOCK_MMAPPED);
	ledger_run(ledger, &run);
	end(ledger, 0x500010, 3);
	/* Of a block from the heap nothing can be said. */
	make(ledger, 0x600010, 41 * PAGE - 16, 4, BLOCK_GLIBC);
	end(ledger, 0x600010, 5);
	facts = drain(ledger);
	assert_int_equal(only_life(&facts)->never_used_bytes, (41 - 7) * PAGE);
	forget(&facts);
}

static void realloc_block(struct ledger *ledger, uint64_t from, uint64_t to, uint64_t size,
			  uint64_t at_ns)
{
	ledger_block(ledger, &(struct memtoll_block){
				     .kind = EVENT_BLOCK,
				     .tgid = PID,
				     .tid = PID,
				     .fn = FN_REALLOC,
				     .addr = to,
				     .old_addr = from,
				     .size = size,
				     .start_ns = at_ns,
				     .end_ns = at_ns + 1,
				     .flags = to ? 0 : BLOCK_FAILED,
				     .stack_id = BLOCK_STACK + 1,
			     });
}

/* realloc ends one block and makes another; where it fails, the old one lives on. */
static void test_reallocation(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run run = sweep(0x700000, 2, 30);
	struct facts facts;
	uint64_t freed = 0, made = 0;
	guint i;

	make(ledger, 0x700000, 17 * PAGE, 1, 0);
	realloc_block(ledger, 0x700000, 0, 1ULL << 60, 10);
	ledger_run(ledger, &run);
	realloc_block(ledger, 0x700000, 0x900000, 19 * PAGE, 40);
	end(ledger, 0x900000, 50);
	facts = drain(ledger);
	assert_int_equal(charge_of(&facts, BLOCK_STACK)->pages, 2);
	for (i = 0; i < facts.lives->len; i++) {
		made += g_array_index(facts.lives, struct life, i).made;
		freed += g_array_index(facts.lives, struct life, i).freed;
	}
	assert_int_equal(made, 2);
	assert_int_equal(freed, 2);
	assert_int_equal(ledger_unmatched_frees(ledger), 0);
	forget(&facts);
}

/* A child has its parent's blocks: faults on them are named, their lives count in the parent. */
static void test_fork(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run run = sweep(0x800000, 5, 20);
	struct facts facts;

	make(ledger, 0x800000, 13 * PAGE, 1, 0);
	ledger_fork(ledger, PID, PID + 1);
	run.tgid = PID + 1;
	ledger_run(ledger, &run);
	ledger_block(ledger, &(struct memtoll_block){
				     .kind = EVENT_BLOCK,
				     .tgid = PID + 1,
				     .tid = PID + 1,
				     .fn = FN_FREE,
				     .old_addr = 0x800000,
				     .start_ns = 30,
				     .end_ns = 30,
			     });
	facts = drain(ledger);
	assert_int_equal(charge_of(&facts, BLOCK_STACK)->pid, PID + 1);
	assert_int_equal(charge_of(&facts, BLOCK_STACK)->pages, 5);
	assert_int_equal(only_life(&facts)->made, 1);
	assert_int_equal(only_life(&facts)->freed, 0);
	forget(&facts);
}

/* exec takes all memory; nothing of it was freed, and nothing new falls in it. */
static void test_exec(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run run = sweep(0x800000, 5, 20);
	struct facts facts;

	make(ledger, 0x800000, 13 * PAGE, 1, 0);
	ledger_exec(ledger, PID);
	ledger_run(ledger, &run);
	facts = drain(ledger);
	assert_int_equal(only_life(&facts)->freed, 0);
	assert_null(charge_of(&facts, BLOCK_STACK));
	assert_int_equal(charge_of(&facts, 0)->pages, 5);
	forget(&facts);
}

/* The program unmaps a block behind the allocator's back. */
static void test_munmap(void **state)
{
	struct ledger *ledger = *state;
	struct facts facts;

	make(ledger, 0xa00010, 7 * PAGE, 1, 0);
	ledger_mapping(ledger, &(struct memtoll_mapping){
				       .kind = EVENT_MAPPING,
				       .tgid = PID,
				       .tid = PID,
				       .map_fn = MAP_FN_MUNMAP,
				       .addr = 0xa00000,
				       .len = 16 * PAGE,
				       .start_ns = 2,
			       });
	facts = drain(ledger);
	assert_int_equal(only_life(&facts)->freed, 1);
	forget(&facts);
}

/* What waits for the end of a call when its process ends was done to what was there before. */
static void test_exit_in_call(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run run = sweep(POOL, 19, 5);
	struct facts facts;

	make(ledger, POOL, 23 * PAGE, 1, 0);
	run.in_fn = FN_MALLOC;
	ledger_run(ledger, &run);
	ledger_exit(ledger, PID);
	facts = drain(ledger);
	assert_int_equal(charge_of(&facts, BLOCK_STACK)->pages, 19);
	forget(&facts);
}

/* Two threads that free each other's blocks, each inside calls of its own. */
static void test_threads_free_for_each_other(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_block block = {
		.kind = EVENT_BLOCK,
		.tgid = PID,
		.fn = FN_CALLOC,
		.size = 31 * PAGE,
	};
	struct facts facts;
	unsigned int thread;
	int i;

	for (i = 0; i < 17; i++) {
		/* Both are inside calloc at once; faults and returns arrive in turn. */
		for (thread = 0; thread < 2; thread++) {
			struct memtoll_run run =
				sweep(POOL + thread * 64 * PAGE, 5 + 2 * thread, i * 100 + 2);

			run.tid = PID + thread;
			run.in_fn = FN_CALLOC;
			ledger_run(ledger, &run);
		}
		for (thread = 0; thread < 2; thread++) {
			block.tid = PID + thread;
			block.fn = FN_CALLOC;
			block.addr = POOL + thread * 64 * PAGE;
			block.old_addr = 0;
			block.start_ns = i * 100 + 1;
			block.end_ns = i * 100 + 9;
			block.stack_id = BLOCK_STACK + thread;
			ledger_block(ledger, &block);
		}
		for (thread = 0; thread < 2; thread++) {
			block.tid = PID + thread;
			block.fn = FN_FREE;
			block.addr = 0;
			block.old_addr = POOL + !thread * 64 * PAGE;
			block.start_ns = block.end_ns = i * 100 + 20 + thread;
			ledger_block(ledger, &block);
		}
	}
	facts = drain(ledger);
	for (thread = 0; thread < 2; thread++) {
		struct life life = life_of(&facts, FN_CALLOC, BLOCK_STACK + thread);

		assert_int_equal(pages_charged(&facts, PID, FN_CALLOC, BLOCK_STACK + thread),
				 17 * (5 + 2 * thread));
		assert_int_equal(life.made, 17);
		assert_int_equal(life.freed, 17);
	}
	assert_int_equal(ledger_unmatched_frees(ledger), 0);
	forget(&facts);
}

/*
 * Areas outside of allocations are distinguished by their file; inside it does not matter, but for
 * shared memory, which has a name beside its owner.
 */
static void test_charges_by_file(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run run = sweep(POOL, 3, 10);
	const struct charge *charge;
	struct facts facts;
	uint64_t pages[2] = {}, shared[2] = {};
	guint i;

	map_pool(ledger, POOL + 100 * PAGE, 23, 1);
	for (i = 0; i < 5; i++) {
		run.area = AREA_FILE;
		run.dev = 8 << 20 | 1;
		run.inode = i % 2 ? 1009 : 1013;
		run.address = POOL;
		ledger_run(ledger, &run);
		run.area = AREA_SHARED;
		run.address = POOL + 100 * PAGE;
		ledger_run(ledger, &run);
		run.area = AREA_ANON;
		ledger_run(ledger, &run);
	}
	facts = drain(ledger);
	assert_int_equal(facts.charges->len, 5);
	for (i = 0; i < facts.charges->len; i++) {
		charge = &g_array_index(facts.charges, struct charge, i);
		if (charge->area == AREA_ANON) {
			assert_int_equal(charge->allocated_stack, POOL_STACK);
			assert_int_equal(charge->pages, 5 * 3);
			assert_int_equal(charge->inode, 0);
			assert_int_equal(charge->dev, 0);
			continue;
		}
		assert_int_equal(charge->dev, 8 << 20 | 1);
		if (charge->area == AREA_SHARED) {
			assert_int_equal(charge->allocated_stack, POOL_STACK);
			shared[charge->inode == 1009] += charge->pages;
		} else {
			pages[charge->inode == 1009] += charge->pages;
		}
	}
	assert_int_equal(pages[0], 3 * 3);
	assert_int_equal(pages[1], 2 * 3);
	assert_int_equal(shared[0], 3 * 3);
	assert_int_equal(shared[1], 2 * 3);
	forget(&facts);
}

/* Each mapping of shared anonymous memory has a file of its own: they are one to who reads of it. */
static void test_zero_files_are_one(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run run = sweep(POOL, 3, 10);
	const struct charge *charge;
	struct facts facts;
	int i;

	run.area = AREA_SHARED;
	run.flags |= RUN_ZERO_FILE;
	run.dev = 1;
	for (i = 0; i < 1009; i++) {
		run.inode = 104729 + i;
		ledger_run(ledger, &run);
	}
	facts = drain(ledger);
	assert_int_equal(facts.charges->len, 1);
	charge = &g_array_index(facts.charges, struct charge, 0);
	assert_int_equal(charge->pages, 3 * 1009);
	assert_string_equal(mapped_files_path(NULL, charge->dev, charge->inode), "/dev/zero");
	forget(&facts);
}

static void on_run(void *context, const struct memtoll_run *run, uint64_t allocated_stack,
		   uint8_t allocated_fn)
{
	uint64_t *pages = context;

	assert_true(allocated_fn || !allocated_stack);
	pages[allocated_fn] += run->pages;
}

/* The callback has every part with its owner. */
static void test_run_callback(void **state)
{
	struct ledger *ledger = *state;
	uint64_t pages[256] = {};

	ledger_on_run(ledger, on_run, pages);
	map_pool(ledger, POOL, 101, 1);
	make(ledger, POOL + 11 * PAGE, 31 * PAGE, 2, 0);
	touch(ledger, POOL, 127, 10);
	assert_int_equal(pages[FN_NONE], 127 - 101);
	assert_int_equal(pages[FN_CALLOC], 31);
	assert_int_equal(pages[ALLOCATED_MMAP], 101 - 31);
}

/* Where faults may have been passed over, not even a block without any is known to be unused. */
static void test_never_used_is_unknown_of_some(void **state)
{
	struct ledger *ledger = *state;
	struct facts facts;

	ledger_thinned(ledger);
	make(ledger, 0x500010, 41 * PAGE - 16, 1, BLOCK_GLIBC | BLOCK_MMAPPED);
	end(ledger, 0x500010, 3);
	facts = drain(ledger);
	assert_int_equal(only_life(&facts)->never_used_bytes, 0);
	forget(&facts);
}

/* Faults for whom none has spoken are what those were that were seen, and all of them are there. */
static void test_unspoken_are_what_others_were(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run run = sweep(0x100000, 30, 100);
	const struct charge *owned, *unowned;
	struct facts facts;

	ledger_thinned(ledger);
	assert_false(ledger_unspoken(ledger, PID, 11, true));
	make(ledger, 0x100000 + 10 * PAGE, 20 * PAGE, 1, 0);
	ledger_run(ledger, &run);
	run.address = 0x900000;
	run.flags = RUN_MAJOR;
	ledger_run(ledger, &run);
	assert_true(ledger_unspoken(ledger, PID, 1009, false));
	facts = drain(ledger);
	assert_int_equal(facts.charges->len, 3);
	owned = charge_of(&facts, BLOCK_STACK);
	assert_in_range(owned->faults, 20 + 1009 * 20 / 30, 20 + 1009 * 20 / 30 + 1);
	assert_int_equal(owned->pages, owned->faults);
	assert_int_equal(owned->timed_faults, 0);
	unowned = &g_array_index(facts.charges, struct charge, 0);
	unowned += unowned == owned || unowned->major;
	unowned += unowned == owned || unowned->major;
	assert_int_equal(owned->faults + unowned->faults, 30 + 1009);
	forget(&facts);
	/* A slice in which none was seen: they are like those of the one before. */
	facts = drain(ledger);
	assert_int_equal(facts.charges->len, 0);
	forget(&facts);
	assert_true(ledger_unspoken(ledger, 0, 97, true));
	facts = drain(ledger);
	assert_int_equal(facts.charges->len, 2);
	owned = charge_of(&facts, BLOCK_STACK);
	assert_in_range(owned->faults, 97 * 20 / 30 - 1, 97 * 20 / 30 + 1);
	assert_int_equal(owned->timed_faults, 0);
	forget(&facts);
}

static uint64_t faults_of(const struct facts *facts, pid_t pid, uint8_t fault_class)
{
	uint64_t faults = 0;
	guint i;

	for (i = 0; i < facts->charges->len; i++) {
		const struct charge *charge = &g_array_index(facts->charges, struct charge, i);

		if (charge->pid == pid && charge->fault_class == fault_class)
			faults += charge->faults;
	}
	return faults;
}

/* Each process's are what its own were, and of those what the ones were that spoke for others. */
static void test_unspoken_of_each_process(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run start = sweep(0x100000, 307, 100), storm = sweep(0x900000, 11, 100);
	struct memtoll_run other = sweep(0x100000, 5003, 100);
	struct facts facts;

	ledger_thinned(ledger);
	start.fault_class = FAULT_FILE;
	storm.passed = 101;
	other.tgid = other.tid = PID + 1;
	other.fault_class = FAULT_COW;
	ledger_run(ledger, &start);
	ledger_run(ledger, &storm);
	ledger_run(ledger, &other);
	assert_true(ledger_unspoken(ledger, PID, 1009, false));
	facts = drain(ledger);
	assert_int_equal(faults_of(&facts, PID, FAULT_FILE), 307);
	assert_int_equal(faults_of(&facts, PID, FAULT_ZERO), 11 + 101 + 1009);
	assert_int_equal(faults_of(&facts, PID + 1, FAULT_COW), 5003);
	forget(&facts);
	/* Also when nothing has been seen of it for a while, and it is gone. */
	ledger_run(ledger, &other);
	facts = drain(ledger);
	forget(&facts);
	assert_true(ledger_unspoken(ledger, PID, 97, false));
	facts = drain(ledger);
	assert_int_equal(faults_of(&facts, PID, FAULT_ZERO), 97);
	forget(&facts);
	/* Of which nothing was seen: that may come yet, and at the end as all others. */
	assert_false(ledger_unspoken(ledger, PID + 2, 97, false));
	assert_false(ledger_unspoken(ledger, 0, 97, false));
	assert_true(ledger_unspoken(ledger, PID + 2, 97, true));
	facts = drain(ledger);
	assert_int_equal(faults_of(&facts, PID + 1, FAULT_COW), 97);
	forget(&facts);
	/* Or as those that have ended, now or in a slice before. */
	start.tgid = start.tid = PID + 3;
	ledger_run(ledger, &start);
	ledger_exit(ledger, PID + 3);
	facts = drain(ledger);
	forget(&facts);
	ledger_forget(ledger, PID + 3);
	ledger_run(ledger, &other);
	assert_true(ledger_unspoken(ledger, 0, 97, false));
	facts = drain(ledger);
	assert_int_equal(faults_of(&facts, PID + 3, FAULT_FILE), 97);
	forget(&facts);
}

/* What little a process does at its end says little of what it did. */
static void test_unspoken_are_not_the_last_few(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run storm = sweep(0x900000, 307, 100), end = sweep(0x100000, 1, 100);
	struct facts facts;

	ledger_thinned(ledger);
	storm.passed = 10007;
	end.passed = 101;
	end.fault_class = FAULT_COW;
	ledger_run(ledger, &storm);
	facts = drain(ledger);
	forget(&facts);
	ledger_run(ledger, &end);
	assert_true(ledger_unspoken(ledger, PID, 1009, false));
	facts = drain(ledger);
	assert_in_range(faults_of(&facts, PID, FAULT_COW), 1 + 101 + 1, 1 + 101 + 1009 / 25);
	assert_int_equal(faults_of(&facts, PID, FAULT_COW) + faults_of(&facts, PID, FAULT_ZERO),
			 1 + 101 + 1009);
	forget(&facts);
	/* Where it goes on in another way that is soon what it does. */
	end.passed = 10007;
	ledger_run(ledger, &end);
	facts = drain(ledger);
	forget(&facts);
	ledger_run(ledger, &end);
	assert_true(ledger_unspoken(ledger, PID, 1009, false));
	facts = drain(ledger);
	assert_in_range(faults_of(&facts, PID, FAULT_ZERO), 1, 1009 / 8);
	forget(&facts);
}

static uint64_t never_used_bytes(struct ledger *ledger)
{
	struct facts facts = drain(ledger);
	uint64_t bytes = 0;
	guint i;

	for (i = 0; i < facts.lives->len; i++)
		bytes += g_array_index(facts.lives, struct life, i).never_used_bytes;
	forget(&facts);
	return bytes;
}

static void resize_mmapped(struct ledger *ledger, uint64_t from, uint64_t to, uint64_t pages,
			   uint64_t at_ns)
{
	ledger_block(ledger, &(struct memtoll_block){
				     .kind = EVENT_BLOCK,
				     .tgid = PID,
				     .tid = PID,
				     .fn = FN_REALLOC,
				     .addr = to + 16,
				     .old_addr = from + 16,
				     .size = pages * PAGE - 16,
				     .start_ns = at_ns,
				     .end_ns = at_ns + 1,
				     .flags = BLOCK_GLIBC | BLOCK_MMAPPED,
				     .stack_id = BLOCK_STACK,
			     });
}

/* realloc moves pages that were touched: they have been used, and are not counted twice. */
static void test_realloc_keeps_pages(void **state)
{
	const uint64_t far = POOL + (1ULL << 36);
	struct ledger *ledger = *state;

	make(ledger, POOL + 16, 101 * PAGE - 16, 1, BLOCK_GLIBC | BLOCK_MMAPPED);
	touch(ledger, POOL, 89, 2);
	resize_mmapped(ledger, POOL, far, 199, 10);
	assert_int_equal(never_used_bytes(ledger), 0);
	touch(ledger, far + 101 * PAGE, 29, 12);
	end(ledger, far + 16, 20);
	assert_int_equal(never_used_bytes(ledger), (199 - 89 - 29) * PAGE);
	/* Cut to less than was touched: all that is left may have been used. */
	make(ledger, POOL + 16, 101 * PAGE - 16, 30, BLOCK_GLIBC | BLOCK_MMAPPED);
	touch(ledger, POOL, 89, 31);
	resize_mmapped(ledger, POOL, POOL, 41, 40);
	assert_int_equal(never_used_bytes(ledger), 0);
	end(ledger, POOL + 16, 50);
	assert_int_equal(never_used_bytes(ledger), 0);
	/* Cut by more than was touched. */
	make(ledger, POOL + 16, 101 * PAGE - 16, 60, BLOCK_GLIBC | BLOCK_MMAPPED);
	touch(ledger, POOL, 7, 61);
	resize_mmapped(ledger, POOL, far, 41, 70);
	assert_int_equal(never_used_bytes(ledger), (101 - 41 - 7) * PAGE);
	end(ledger, far + 16, 80);
	assert_int_equal(never_used_bytes(ledger), (41 - 7) * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_charges_what_falls_in, setup, teardown),
		cmocka_unit_test_setup_teardown(test_divides_a_sweep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_faults_inside_the_call, setup, teardown),
		cmocka_unit_test_setup_teardown(test_faults_told_after_the_call, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overlap_ends_a_block, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_never_used, setup, teardown),
		cmocka_unit_test_setup_teardown(test_never_used_is_unknown_of_some, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_unspoken_are_what_others_were, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_unspoken_of_each_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unspoken_are_not_the_last_few, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_reallocation, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec, setup, teardown),
		cmocka_unit_test_setup_teardown(test_munmap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exit_in_call, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads_free_for_each_other, setup, teardown),
		cmocka_unit_test_setup_teardown(test_charges_by_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_zero_files_are_one, setup, teardown),
		cmocka_unit_test_setup_teardown(test_run_callback, setup, teardown),
		cmocka_unit_test_setup_teardown(test_realloc_keeps_pages, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
