// SPDX-License-Identifier: GPL-2.0
/* The ledger: records in, facts out. Counts are prime; what goes in comes out exactly once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <glib.h>

#include "ledger.h"

#define PAGE 4096ULL
#define PID 4242
#define BLOCK_STACK 77ULL
#define TOUCH_STACK 99ULL

struct facts {
	GArray *charges;	/* struct charge */
	GArray *lives;		/* struct life */
};

static void on_charge(void *context, const struct charge *charge)
{
	g_array_append_val(((struct facts *)context)->charges, *charge);
}

static void on_life(void *context, const struct life *life)
{
	g_array_append_val(((struct facts *)context)->lives, *life);
}

static int setup(void **state)
{
	*state = ledger_new();
	return 0;
}

static int teardown(void **state)
{
	ledger_free(*state);
	return 0;
}

static struct facts drain(struct ledger *ledger)
{
	struct facts facts = {
		.charges = g_array_new(FALSE, FALSE, sizeof(struct charge)),
		.lives = g_array_new(FALSE, FALSE, sizeof(struct life)),
	};

	ledger_drain(ledger, on_charge, on_life, &facts);
	return facts;
}

static void forget(struct facts *facts)
{
	g_array_free(facts->charges, TRUE);
	g_array_free(facts->lives, TRUE);
}

static void make(struct ledger *ledger, uint64_t addr, uint64_t size, uint64_t at_ns,
		 unsigned int flags)
{
	ledger_block(ledger, &(struct memtoll_block){
		.kind = EVENT_BLOCK, .tgid = PID, .tid = PID, .fn = FN_CALLOC,
		.flags = flags, .addr = addr, .size = size, .start_ns = at_ns,
		.end_ns = at_ns + 1, .stack_id = BLOCK_STACK,
	});
}

static void end(struct ledger *ledger, uint64_t addr, uint64_t at_ns)
{
	ledger_block(ledger, &(struct memtoll_block){
		.kind = EVENT_BLOCK, .tgid = PID, .tid = PID, .fn = FN_FREE, .old_addr = addr,
		.start_ns = at_ns, .end_ns = at_ns,
	});
}

static struct memtoll_run sweep(uint64_t addr, uint64_t pages, uint64_t at_ns)
{
	return (struct memtoll_run){
		.kind = EVENT_RUN, .tgid = PID, .tid = PID, .fault_class = FAULT_ZERO,
		.area = AREA_ANON, .address = addr, .pages = pages, .faults = pages,
		.first_ns = at_ns, .last_ns = at_ns + 1, .stack_id = TOUCH_STACK,
	};
}

static const struct charge *charge_of(const struct facts *facts, uint64_t allocated_stack)
{
	const struct charge *found = NULL;
	guint i;

	for (i = 0; i < facts->charges->len; i++) {
		const struct charge *charge = &g_array_index(facts->charges, struct charge, i);

		if (charge->allocated_stack == allocated_stack) {
			assert_null(found);
			found = charge;
		}
	}
	return found;
}

static const struct life *only_life(const struct facts *facts)
{
	assert_int_equal(facts->lives->len, 1);
	return &g_array_index(facts->lives, struct life, 0);
}

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
		.kind = EVENT_BLOCK, .tgid = PID, .tid = PID, .fn = FN_REALLOC, .addr = to,
		.old_addr = from, .size = size, .start_ns = at_ns, .end_ns = at_ns + 1,
		.flags = to ? 0 : BLOCK_FAILED, .stack_id = BLOCK_STACK + 1,
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
		.kind = EVENT_BLOCK, .tgid = PID + 1, .tid = PID + 1, .fn = FN_FREE,
		.old_addr = 0x800000, .start_ns = 30, .end_ns = 30,
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
		.kind = EVENT_MAPPING, .tgid = PID, .tid = PID, .map_fn = MAP_FN_MUNMAP,
		.addr = 0xa00000, .len = 16 * PAGE, .start_ns = 2,
	});
	facts = drain(ledger);
	assert_int_equal(only_life(&facts)->freed, 1);
	forget(&facts);
}

/* malloc.c: freeing a mapping of at most 32 MiB raises the threshold to its size, never down. */
static void test_threshold(void **state)
{
	struct ledger *ledger = *state;
	struct threshold threshold;

	ledger_threshold(ledger, PID, &threshold);
	assert_int_equal(threshold.low, 0);
	make(ledger, 0x100010, 10485760, 1, BLOCK_GLIBC | BLOCK_MMAPPED);
	ledger_threshold(ledger, PID, &threshold);
	assert_int_equal(threshold.low, 0);
	assert_true(threshold.high >= 10485760);
	end(ledger, 0x100010, 2);
	ledger_threshold(ledger, PID, &threshold);
	/* 10 MiB, a header of two words, in whole pages. */
	assert_int_equal(threshold.low, 10489856);
	assert_int_equal(threshold.high, 10489856);
	make(ledger, 0x8000010, 33 << 20, 3, BLOCK_GLIBC | BLOCK_MMAPPED);
	end(ledger, 0x8000010, 4);
	ledger_threshold(ledger, PID, &threshold);
	assert_int_equal(threshold.low, 10489856);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_charges_what_falls_in, setup, teardown),
		cmocka_unit_test_setup_teardown(test_divides_a_sweep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_faults_inside_the_call, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overlap_ends_a_block, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_never_used, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reallocation, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec, setup, teardown),
		cmocka_unit_test_setup_teardown(test_munmap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threshold, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
