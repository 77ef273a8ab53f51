// SPDX-License-Identifier: GPL-2.0
/* How pages are used: sweeps and random order, and how often a page was swapped in again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "events/refined.h"
#include "ledger/page_access.h"
#include "ledger/ledger.h"

#define PAGE 4096ULL
#define PID 4243
#define SITE 71ULL
#define BASE 0x7f0000000000ULL

/* What one call of ledger_each_access() reported. */
struct sites {
	struct access site[64];
	unsigned int count;
};

static void on_access(void *context, const struct access *access)
{
	struct sites *sites = context;

	assert_true(sites->count < 64);
	sites->site[sites->count++] = *access;
}

static struct sites collect(struct ledger *ledger)
{
	struct sites sites = {};

	ledger_each_access(ledger, on_access, &sites);
	return sites;
}

static struct access only_site(struct ledger *ledger)
{
	struct sites sites = collect(ledger);

	assert_int_equal(sites.count, 1);
	return sites.site[0];
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

/* Each record is later than the one before it. */
static uint64_t now(void)
{
	static uint64_t ns = 1000;

	return ns += 10;
}

static void make(struct ledger *ledger, uint64_t addr, uint64_t pages)
{
	uint64_t at_ns = now();

	ledger_block(ledger, &(struct memtoll_block){
				     .kind = EVENT_BLOCK,
				     .tgid = PID,
				     .tid = PID,
				     .fn = FN_MALLOC,
				     .addr = addr,
				     .size = pages * PAGE,
				     .start_ns = at_ns,
				     .end_ns = at_ns,
				     .stack_id = SITE,
			     });
}

static void end(struct ledger *ledger, uint64_t addr)
{
	uint64_t at_ns = now();

	ledger_block(ledger, &(struct memtoll_block){
				     .kind = EVENT_BLOCK,
				     .tgid = PID,
				     .tid = PID,
				     .fn = FN_FREE,
				     .old_addr = addr,
				     .start_ns = at_ns,
				     .end_ns = at_ns,
			     });
}

static void reallocate(struct ledger *ledger, uint64_t from, uint64_t to, uint64_t pages,
		       unsigned int flags)
{
	uint64_t at_ns = now();

	ledger_block(ledger, &(struct memtoll_block){
				     .kind = EVENT_BLOCK,
				     .tgid = PID,
				     .tid = PID,
				     .fn = FN_REALLOC,
				     .addr = to,
				     .old_addr = from,
				     .size = pages * PAGE,
				     .start_ns = at_ns,
				     .end_ns = at_ns,
				     .stack_id = SITE,
				     .flags = flags,
			     });
}

static void map_call(struct ledger *ledger, uint8_t map_fn, uint8_t in_fn, uint64_t addr,
		     uint64_t pages, uint64_t new_pages, uint64_t result)
{
	ledger_mapping(ledger, &(struct memtoll_mapping){
				       .kind = EVENT_MAPPING,
				       .tgid = PID,
				       .tid = PID,
				       .map_fn = map_fn,
				       .in_fn = in_fn,
				       .flags = map_fn == MAP_FN_MMAP ? MAPPING_ANONYMOUS : 0,
				       .addr = addr,
				       .len = pages * PAGE,
				       .arg = new_pages * PAGE,
				       .result = result,
				       .start_ns = now(),
				       .stack_id = SITE,
			       });
}

static void fault_in(struct ledger *ledger, pid_t pid, uint64_t addr, uint64_t pages,
		     uint8_t fault_class, bool major)
{
	uint64_t at_ns = now();

	ledger_run(ledger, &(struct memtoll_run){
				   .kind = EVENT_RUN,
				   .tgid = pid,
				   .tid = pid,
				   .fault_class = fault_class,
				   .area = AREA_ANON,
				   .flags = major ? RUN_MAJOR : 0,
				   .address = addr,
				   .pages = pages,
				   .faults = pages,
				   .first_ns = at_ns,
				   .last_ns = at_ns,
			   });
}

static void fault(struct ledger *ledger, uint64_t addr, uint64_t pages, uint8_t fault_class)
{
	fault_in(ledger, PID, addr, pages, fault_class, false);
}

/* Read-ahead of 8: a major fault, then seven minor ones. */
static void sweep_with_readahead(struct ledger *ledger, uint64_t addr, uint64_t pages)
{
	uint64_t page;

	for (page = 0; page < pages; page += 8) {
		fault_in(ledger, PID, addr + page * PAGE, 1, FAULT_SWAP, true);
		if (page + 1 < pages)
			fault(ledger, addr + (page + 1) * PAGE,
			      pages - page - 1 < 7 ? pages - page - 1 : 7, FAULT_SWAP);
	}
}

/* A permutation that is the same on every machine. */
static void shuffle(uint64_t *pages, uint64_t count, uint64_t seed)
{
	uint64_t i, other, kept;

	for (i = 0; i < count; i++)
		pages[i] = i;
	for (i = count; i > 1; i--) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		other = (seed >> 33) % i;
		kept = pages[i - 1];
		pages[i - 1] = pages[other];
		pages[other] = kept;
	}
}

/* Touched once, in one sweep: all but its first page are sequential, nothing comes back. */
static void test_one_pass(void **state)
{
	struct ledger *ledger = *state;
	struct access site;
	uint64_t page;

	make(ledger, BASE, 1013);
	for (page = 0; page < 1013; page++)
		fault(ledger, BASE + page * PAGE, 1, FAULT_ZERO);
	site = only_site(ledger);
	assert_int_equal(site.pid, PID);
	assert_int_equal(site.allocated_fn, FN_MALLOC);
	assert_int_equal(site.allocated_stack, SITE);
	assert_int_equal(site.area, 0);
	assert_int_equal(site.first_pages, 1013);
	assert_int_equal(site.first_sequential_pages, 1012);
	assert_int_equal(site.in_pages, 0);
	assert_int_equal(site.distinct_pages, 0);
	assert_int_equal(site.max_returns, 0);
	/* Reported once; again only if something has changed. */
	assert_int_equal(collect(ledger).count, 0);
	fault(ledger, BASE, 1, FAULT_SWAP);
	assert_int_equal(only_site(ledger).in_pages, 1);
}

/* Of the classes of zeroing, the read that maps the shared zero page is no first touch. */
static void test_first_touch_classes(void **state)
{
	struct ledger *ledger = *state;
	struct access site;

	make(ledger, BASE, 4096);
	fault(ledger, BASE, 3, FAULT_ZERO_READ);
	fault(ledger, BASE, 7, FAULT_COW);
	fault(ledger, BASE, 7, FAULT_FILE);
	assert_int_equal(collect(ledger).count, 0);
	fault(ledger, BASE, 3, FAULT_ZERO_UPGRADE);
	fault(ledger, BASE + 1024 * PAGE, 16, FAULT_ZERO_MTHP);
	fault(ledger, BASE + 2048 * PAGE, 512, FAULT_ZERO_HUGE);
	fault(ledger, BASE + 3 * PAGE, 5, FAULT_ZERO);
	site = only_site(ledger);
	assert_int_equal(site.first_pages, 3 + 16 + 512 + 5);
	assert_int_equal(site.in_pages, 0);
}

/* The pages of one huge fault came at once: they are no sweep, huge pages one by one are. */
static void test_huge_faults(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run run = {
		.kind = EVENT_RUN,
		.tgid = PID,
		.tid = PID,
		.fault_class = FAULT_ZERO_HUGE,
		.area = AREA_ANON,
		.pages = 512,
		.faults = 1,
		.address = BASE + (96ULL << 21),
	};
	struct access site;

	make(ledger, BASE, 97 * 512);
	run.first_ns = run.last_ns = now();
	ledger_run(ledger, &run);
	site = only_site(ledger);
	assert_int_equal(site.first_pages, 512);
	assert_int_equal(site.first_sequential_pages, 0);
	run.address = BASE;
	run.faults = 13;
	run.pages = 13 * 512;
	ledger_run(ledger, &run);
	site = only_site(ledger);
	assert_int_equal(site.first_pages, 14 * 512);
	assert_int_equal(site.first_sequential_pages, 12 * 512);
}

/* Casebook 4, B: every page comes back exactly three times, in sweeps. */
static void test_cyclic_sweep(void **state)
{
	struct ledger *ledger = *state;
	struct access site;
	int pass;

	make(ledger, BASE, 2053);
	fault(ledger, BASE, 2053, FAULT_ZERO);
	for (pass = 0; pass < 3; pass++)
		sweep_with_readahead(ledger, BASE, 2053);
	site = only_site(ledger);
	assert_int_equal(site.first_pages, 2053);
	assert_int_equal(site.in_pages, 3 * 2053);
	assert_int_equal(site.distinct_pages, 2053);
	assert_int_equal(site.max_returns, 3);
	assert_int_equal(site.untracked_pages, 0);
	assert_true(site.in_sequential_pages >= 3 * 2053 - 3 * 8);
	assert_true(site.in_sequential_pages <= 3 * 2053);
}

/* Whatever the source, major or minor, a page that comes back is one. */
static void test_swap_classes(void **state)
{
	struct ledger *ledger = *state;
	struct access site;

	make(ledger, BASE, 101);
	fault_in(ledger, PID, BASE, 11, FAULT_SWAP, true);
	fault_in(ledger, PID, BASE, 7, FAULT_SWAP_ZSWAP, true);
	fault_in(ledger, PID, BASE, 5, FAULT_SWAP_ZERO, true);
	fault_in(ledger, PID, BASE, 3, FAULT_SWAP_ZRAM, true);
	fault_in(ledger, PID, BASE, 2, FAULT_SWAP, false);
	site = only_site(ledger);
	assert_int_equal(site.in_pages, 11 + 7 + 5 + 3 + 2);
	assert_int_equal(site.distinct_pages, 11);
	assert_int_equal(site.max_returns, 5);
}

/* Two threads, one block, towards each other; their faults arrive in turn. */
static void test_opposite_threads(void **state)
{
	struct ledger *ledger = *state;
	struct access site;
	uint64_t page;

	make(ledger, BASE, 2003);
	for (page = 0; page < 1001; page++) {
		fault(ledger, BASE + page * PAGE, 1, FAULT_SWAP);
		fault(ledger, BASE + (2002 - page) * PAGE, 1, FAULT_SWAP);
	}
	site = only_site(ledger);
	assert_int_equal(site.in_pages, 2002);
	assert_int_equal(site.in_sequential_pages, 2000);
	assert_int_equal(site.distinct_pages, 2002);
	assert_int_equal(site.max_returns, 1);
}

/* Seven threads with read-ahead, each in its own part: seven sweeps at a time. */
static void test_seven_threads(void **state)
{
	struct ledger *ledger = *state;
	struct access site;
	uint64_t page, thread;

	make(ledger, BASE, 7 * 1009);
	for (page = 0; page + 8 <= 1009; page += 8)
		for (thread = 0; thread < 7; thread++)
			sweep_with_readahead(ledger, BASE + (thread * 1009 + page) * PAGE, 8);
	site = only_site(ledger);
	assert_int_equal(site.in_pages, 7 * 1008);
	assert_true(site.in_sequential_pages >= 7 * 1008 - 7 * 2);
}

/* Two pages stay resident in every 31: the sweep goes on behind them, up and down. */
static void test_gaps(void **state)
{
	struct ledger *ledger = *state;
	struct access site;
	uint64_t page;

	make(ledger, BASE, 97 * 31);
	for (page = 0; page < 97; page++)
		fault(ledger, BASE + page * 31 * PAGE, 29, FAULT_SWAP);
	site = only_site(ledger);
	assert_int_equal(site.in_pages, 97 * 29);
	assert_true(site.in_sequential_pages >= 97 * 29 - 2);
	for (page = 97 * 31; page; page--)
		if (page % 31)
			fault(ledger, BASE + page * PAGE, 1, FAULT_SWAP);
	assert_true(only_site(ledger).in_sequential_pages >= 97 * (29 + 30) - 5);
}

/* Every 61st page of a large block, one at a time: a sweep, 64 pages away at most. */
static void test_stride(void **state)
{
	struct ledger *ledger = *state;
	struct access site;
	uint64_t page;

	make(ledger, BASE, 40961);
	fault(ledger, BASE, 40961, FAULT_ZERO);
	for (page = 0; page < 40961; page += 61)
		fault(ledger, BASE + page * PAGE, 1, FAULT_SWAP);
	site = only_site(ledger);
	assert_int_equal(site.in_pages, 672);
	assert_int_equal(site.in_sequential_pages, 671);
	/* 67 pages are too far. */
	for (page = 0; page < 40961; page += 67)
		fault(ledger, BASE + page * PAGE, 1, FAULT_SWAP);
	site = only_site(ledger);
	assert_int_equal(site.in_pages, 672 + 612);
	assert_int_equal(site.in_sequential_pages, 671);
}

/* Pages of `count` touched one by one in no order, in pieces of `chunk` pages: sequential ones. */
static uint64_t random_order(uint64_t count, uint64_t chunk, uint64_t seed)
{
	static uint64_t pages[40961];
	struct ledger *ledger = ledger_new();
	struct access site;
	uint64_t k;

	make(ledger, BASE, 1ULL << 30);
	shuffle(pages, count, seed);
	for (k = 0; k < count; k++)
		fault(ledger, BASE + (pages[k] / chunk * 9973 + pages[k] % chunk) * PAGE, 1,
		      seed & 1 ? FAULT_ZERO : FAULT_SWAP);
	site = only_site(ledger);
	assert_int_equal(site.first_pages + site.in_pages, count);
	ledger_free(ledger);
	return site.first_sequential_pages + site.in_sequential_pages;
}

/*
 * In no order, in one block or in pieces far apart: less than a tenth is sequential. A hundred
 * pages are too few for chance to be ruled out in every order: there it holds for the mean of them.
 */
static void test_random_order(void **state)
{
	static const uint64_t counts[] = { 251, 503, 1009, 2053, 10007, 40961 };
	uint64_t seed, chunk, found, small[3] = {};
	size_t i, k;

	(void)state;
	for (seed = 0; seed < 61; seed++) {
		for (k = 0; k < 3; k++) {
			chunk = k == 0 ? 17 : k == 1 ? 1009 : 40961;
			small[k] += random_order(101, chunk, seed);
			/* The large ones take long, and vary little. */
			for (i = 0; i < (seed < 5 ? 6 : 4); i++) {
				found = random_order(counts[i], chunk, seed);
				if (found * 10 >= counts[i])
					fail_msg("%lu of %lu pages, chunk %lu, seed %lu",
						 (unsigned long)found, (unsigned long)counts[i],
						 (unsigned long)chunk, (unsigned long)seed);
			}
		}
	}
	for (k = 0; k < 3; k++)
		assert_true(small[k] * 10 < 61 * 101);
}

/* Freed and allocated again at the same address: its pages have not come back yet. */
static void test_reused_address(void **state)
{
	struct ledger *ledger = *state;
	struct access site;
	int i;

	for (i = 0; i < 5; i++) {
		make(ledger, BASE + 16, 1021);
		fault(ledger, BASE, 1021, FAULT_SWAP);
		fault(ledger, BASE, 13, FAULT_SWAP);
		end(ledger, BASE + 16);
	}
	site = only_site(ledger);
	assert_int_equal(site.in_pages, 5 * (1021 + 13));
	assert_int_equal(site.distinct_pages, 5 * 1021);
	assert_int_equal(site.max_returns, 2);
	/* The free was not seen: the next block shows it. */
	for (i = 0; i < 3; i++) {
		make(ledger, BASE + 64 * PAGE, 31);
		fault(ledger, BASE + 64 * PAGE, 31, FAULT_SWAP);
	}
	site = only_site(ledger);
	assert_int_equal(site.distinct_pages, 5 * 1021 + 3 * 31);
	assert_int_equal(site.max_returns, 2);
}

/* What came back outside of any block before counts neither for the block made there. */
static void test_made_over_area(void **state)
{
	struct ledger *ledger = *state;
	struct sites sites;

	fault(ledger, BASE, 37, FAULT_SWAP);
	fault(ledger, BASE, 37, FAULT_SWAP);
	make(ledger, BASE, 37);
	fault(ledger, BASE, 37, FAULT_SWAP);
	sites = collect(ledger);
	assert_int_equal(sites.count, 2);
	assert_int_equal(sites.site[0].area, AREA_ANON);
	assert_int_equal(sites.site[0].allocated_fn, FN_NONE);
	assert_int_equal(sites.site[0].max_returns, 2);
	assert_int_equal(sites.site[1].allocated_fn, FN_MALLOC);
	assert_int_equal(sites.site[1].max_returns, 1);
	assert_int_equal(sites.site[1].distinct_pages, 37);
}

/* munmap of the middle, and a smaller heap: those pages begin anew, the others do not. */
static void test_unmapped_pages(void **state)
{
	struct ledger *ledger = *state;
	struct access site;

	fault(ledger, BASE, 1511, FAULT_SWAP);
	map_call(ledger, MAP_FN_MUNMAP, 0, BASE + 11 * PAGE, 601, 0, 0);
	map_call(ledger, MAP_FN_BRK, FN_FREE, BASE + 1511 * PAGE, 0, 0, BASE + 1501 * PAGE);
	fault(ledger, BASE, 1511, FAULT_SWAP);
	site = only_site(ledger);
	assert_int_equal(site.area, AREA_ANON);
	assert_int_equal(site.distinct_pages, 1511 + 601 + 10);
	assert_int_equal(site.max_returns, 2);
}

/* Pages that mremap moves have come back before; to a place that is aligned alike, and not. */
static void test_moved_pages(void **state)
{
	static const uint64_t places[] = { 0x600000000000ULL, 0x600000000000ULL + 7 * PAGE };
	struct ledger *ledger = *state;
	struct access site;
	size_t i;

	for (i = 0; i < 2; i++) {
		uint64_t from = BASE + (i << 40), to = places[i] + (i << 40);

		map_call(ledger, MAP_FN_MMAP, 0, 0, 1549, 0, from);
		fault(ledger, from, 1549, FAULT_SWAP);
		fault(ledger, from + 1031 * PAGE, 5, FAULT_SWAP);
		map_call(ledger, MAP_FN_MREMAP, 0, from, 1549, 1607, to);
		fault(ledger, to, 1607, FAULT_SWAP);
		site = only_site(ledger);
		assert_int_equal(site.allocated_fn, ALLOCATED_MMAP);
		assert_int_equal(site.in_pages, (i + 1) * (1549 + 5 + 1607));
		assert_int_equal(site.distinct_pages, (i + 1) * 1607);
		assert_int_equal(site.max_returns, 3);
	}
}

/* A page that moves on and on is one page, and leaves no tables behind. */
static void test_wandering_page(void **state)
{
	struct ledger *ledger = *state;
	uint64_t at = BASE, to, i;
	struct access site;

	map_call(ledger, MAP_FN_MMAP, 0, 0, 16, 0, at);
	fault(ledger, at, 1, FAULT_SWAP);
	for (i = 0; i < RETURN_TABLES_MAX + 13; i++) {
		to = at + (1 << 21) + (i % 2 ? 3 * PAGE : -3 * PAGE);
		map_call(ledger, MAP_FN_MREMAP, 0, at, 16, 16, to);
		at = to;
	}
	fault(ledger, at, 1, FAULT_SWAP);
	fault(ledger, BASE, 1, FAULT_SWAP);
	site = collect(ledger).site[0];
	assert_int_equal(site.distinct_pages, 1);
	assert_int_equal(site.max_returns, 2);
	assert_int_equal(ledger_untracked_returns(ledger), 0);
	/* All tables but those two are free. */
	for (i = 2; i < RETURN_TABLES_MAX; i++)
		fault(ledger, i << 21, 1, FAULT_SWAP);
	assert_int_equal(ledger_untracked_returns(ledger), 0);
	fault(ledger, i << 21, 1, FAULT_SWAP);
	assert_int_equal(ledger_untracked_returns(ledger), 1);
}

/* realloc of a block with its own mapping moves its pages; one that copies does not. */
static void test_reallocated_pages(void **state)
{
	struct ledger *ledger = *state;
	const uint64_t from = BASE + 16, to = BASE + (1ULL << 40) + 16;
	struct access site;

	reallocate(ledger, 0, from, 701, BLOCK_GLIBC | BLOCK_MMAPPED);
	fault(ledger, BASE, 701, FAULT_SWAP);
	map_call(ledger, MAP_FN_MREMAP, FN_REALLOC, BASE, 702, 809, to - 16);
	reallocate(ledger, from, to, 808, BLOCK_GLIBC | BLOCK_MMAPPED);
	fault(ledger, to - 16, 701, FAULT_SWAP);
	site = only_site(ledger);
	assert_int_equal(site.distinct_pages, 701);
	assert_int_equal(site.max_returns, 2);
	/* In place, it grows: only the new pages are new. */
	reallocate(ledger, to, to, 907, BLOCK_GLIBC | BLOCK_MMAPPED);
	fault(ledger, to - 16, 907, FAULT_SWAP);
	site = only_site(ledger);
	assert_int_equal(site.distinct_pages, 907);
	assert_int_equal(site.max_returns, 3);
	/* Copied to the heap: no page of it has come back. */
	reallocate(ledger, to, from, 907, BLOCK_GLIBC);
	fault(ledger, BASE, 907, FAULT_SWAP);
	site = only_site(ledger);
	assert_int_equal(site.distinct_pages, 2 * 907);
	assert_int_equal(site.max_returns, 3);
}

/* A child's and a new image's pages have not come back; the parent's go on. */
static void test_fork_and_exec(void **state)
{
	struct ledger *ledger = *state;
	struct sites sites;

	make(ledger, BASE, 211);
	fault(ledger, BASE, 211, FAULT_SWAP);
	fault(ledger, BASE, 211, FAULT_SWAP);
	ledger_fork(ledger, PID, PID + 1);
	fault_in(ledger, PID + 1, BASE, 199, FAULT_SWAP, true);
	fault(ledger, BASE, 211, FAULT_SWAP);
	sites = collect(ledger);
	assert_int_equal(sites.count, 2);
	assert_int_equal(sites.site[0].pid, PID);
	assert_int_equal(sites.site[0].max_returns, 3);
	assert_int_equal(sites.site[0].distinct_pages, 211);
	assert_int_equal(sites.site[1].pid, PID + 1);
	assert_int_equal(sites.site[1].max_returns, 1);
	assert_int_equal(sites.site[1].distinct_pages, 199);
	assert_int_equal(sites.site[1].allocated_stack, SITE);
	ledger_exec(ledger, PID);
	make(ledger, BASE, 211);
	fault(ledger, BASE, 211, FAULT_SWAP);
	assert_int_equal(only_site(ledger).distinct_pages, 2 * 211);
}

static void fault_shared(struct ledger *ledger, pid_t pid, uint64_t inode, uint64_t address,
			 uint64_t page, uint64_t pages)
{
	struct memtoll_run run = {
		.tgid = pid,
		.fault_class = FAULT_SWAP,
		.area = AREA_SHARED,
		.inode = inode,
		.dev = 1,
		.address = address,
		.file_page = page,
		.pages = pages,
		.faults = pages,
	};

	run.first_ns = run.last_ns = now();
	ledger_run(ledger, &run);
}

/* A page of shared memory is one page, whichever process brings it back, and wherever it has it. */
static void test_shared_memory(void **state)
{
	struct ledger *ledger = *state;
	const uint64_t elsewhere = BASE + (7919ULL << 21) + 13 * PAGE;
	struct sites sites;

	fault_shared(ledger, PID, 7919, BASE, 0, 211);
	fault_shared(ledger, PID + 1, 7919, elsewhere, 0, 211);
	fault_shared(ledger, PID, 7919, BASE, 0, 307);
	sites = collect(ledger);
	assert_int_equal(sites.count, 2);
	assert_int_equal(sites.site[0].in_pages, 211 + 307);
	assert_int_equal(sites.site[0].distinct_pages, 307);
	assert_int_equal(sites.site[0].max_returns, 3);
	assert_int_equal(sites.site[1].in_pages, 211);
	assert_int_equal(sites.site[1].distinct_pages, 0);
	assert_int_equal(sites.site[1].max_returns, 2);
	/* Whoever unmaps it leaves the pages there, and may map them again elsewhere. */
	map_call(ledger, MAP_FN_MUNMAP, 0, BASE, 307, 0, 0);
	map_call(ledger, MAP_FN_MUNMAP, 0, elsewhere, 307, 0, 0);
	fault_shared(ledger, PID + 1, 7919, BASE, 210, 1);
	assert_int_equal(only_site(ledger).max_returns, 4);
	ledger_exit(ledger, PID);
	collect(ledger);
	fault_shared(ledger, PID + 1, 7919, BASE, 210, 1);
	assert_int_equal(only_site(ledger).max_returns, 5);
	/* The last one: then they are others. */
	ledger_exit(ledger, PID + 1);
	collect(ledger);
	fault_shared(ledger, PID + 2, 7919, BASE, 210, 1);
	assert_int_equal(only_site(ledger).max_returns, 1);
}

/* Other pages of it at the same address, other memory, and System V's, whose inode may be 0. */
static void test_shared_memory_is_told_apart(void **state)
{
	struct ledger *ledger = *state;

	fault_shared(ledger, PID, 0, BASE, 0, 211);
	fault_shared(ledger, PID, 0, BASE, 211, 307);
	assert_int_equal(only_site(ledger).distinct_pages, 211 + 307);
	fault_shared(ledger, PID + 1, 0, BASE + (7919ULL << 21), 0, 13);
	assert_int_equal(only_site(ledger).distinct_pages, 0);
	fault_shared(ledger, PID + 1, 7919, BASE, 0, 17);
	assert_int_equal(only_site(ledger).distinct_pages, 17);
}

/* A part of a run that another owner has begins further on in the file, too. */
static void test_parts_of_shared_memory(void **state)
{
	struct ledger *ledger = *state;
	struct sites sites;

	make(ledger, BASE + 101 * PAGE, 997);
	fault_shared(ledger, PID, 7919, BASE, 0, 211);
	sites = collect(ledger);
	assert_int_equal(sites.count, 2);
	assert_int_equal(sites.site[0].distinct_pages + sites.site[1].distinct_pages, 211);
	fault_shared(ledger, PID, 7919, BASE, 0, 211);
	sites = collect(ledger);
	assert_int_equal(sites.site[0].distinct_pages + sites.site[1].distinct_pages, 211);
}

/* A process that has exited is reported once more, and its tables are freed. */
static void test_exit(void **state)
{
	struct ledger *ledger = *state;
	struct access site;
	uint64_t i;

	for (i = 0; i < RETURN_TABLES_MAX; i++)
		fault(ledger, i << 21, 1, FAULT_SWAP);
	ledger_exit(ledger, PID);
	site = only_site(ledger);
	assert_int_equal(site.distinct_pages, RETURN_TABLES_MAX);
	assert_int_equal(site.untracked_pages, 0);
	fault_in(ledger, PID + 1, BASE, 7, FAULT_SWAP, false);
	site = only_site(ledger);
	assert_int_equal(site.pid, PID + 1);
	assert_int_equal(site.distinct_pages, 7);
	assert_int_equal(site.untracked_pages, 0);
	/* The same id again: another process. */
	fault(ledger, BASE, 3, FAULT_SWAP);
	assert_int_equal(only_site(ledger).in_pages, 3);
	/* And again, before anybody has asked: it is not forgotten with the one that ended. */
	ledger_exit(ledger, PID);
	ledger_fork(ledger, PID + 1, PID);
	fault(ledger, BASE, 5, FAULT_SWAP);
	assert_int_equal(only_site(ledger).max_returns, 1);
	fault(ledger, BASE, 5, FAULT_SWAP);
	site = only_site(ledger);
	assert_int_equal(site.max_returns, 2);
	assert_int_equal(site.in_pages, 3 + 5 + 5);
}

/* Memory is bounded: what cannot be followed is counted as such; what is unmapped makes room. */
static void test_memory_bound(void **state)
{
	struct ledger *ledger = *state;
	struct access site;
	uint64_t i;

	for (i = 0; i < RETURN_TABLES_MAX; i++)
		fault(ledger, i << 21, 1, FAULT_SWAP);
	assert_int_equal(ledger_untracked_returns(ledger), 0);
	for (i = 0; i < 13; i++)
		fault(ledger, BASE + (i << 21), 17, FAULT_SWAP);
	site = only_site(ledger);
	assert_int_equal(site.in_pages, RETURN_TABLES_MAX + 13 * 17);
	assert_int_equal(site.distinct_pages, RETURN_TABLES_MAX);
	assert_int_equal(site.untracked_pages, 13 * 17);
	assert_int_equal(ledger_untracked_returns(ledger), 13 * 17);
	/* Pages that are followed go on being so. */
	fault(ledger, 0, 1, FAULT_SWAP);
	assert_int_equal(only_site(ledger).max_returns, 2);
	map_call(ledger, MAP_FN_MUNMAP, 0, 1 << 21, 512 * 13, 0, 0);
	for (i = 0; i < 13; i++)
		fault(ledger, BASE + (i << 21), 17, FAULT_SWAP);
	site = only_site(ledger);
	assert_int_equal(site.untracked_pages, 13 * 17);
	assert_int_equal(site.distinct_pages, RETURN_TABLES_MAX + 13 * 17);
	assert_int_equal(ledger_untracked_returns(ledger), 13 * 17);
}

/* A page's count ends at what its table can hold; the sums go on. */
static void test_many_returns(void **state)
{
	struct ledger *ledger = *state;
	struct access site;
	int i;

	for (i = 0; i < 65537; i++)
		fault(ledger, BASE, 1, FAULT_SWAP);
	site = only_site(ledger);
	assert_int_equal(site.in_pages, 65537);
	assert_int_equal(site.distinct_pages, 1);
	assert_int_equal(site.max_returns, UINT16_MAX);
}

/* Outside of allocations each area is a site: by kind and by file. */
static void test_areas(void **state)
{
	struct ledger *ledger = *state;
	struct memtoll_run run = {
		.kind = EVENT_RUN,
		.tgid = PID,
		.tid = PID,
		.fault_class = FAULT_SWAP,
		.area = AREA_HEAP,
		.address = BASE,
		.pages = 3,
		.faults = 3,
	};
	struct sites sites;
	int i;

	for (i = 0; i < 2; i++) {
		run.first_ns = run.last_ns = now();
		ledger_run(ledger, &run);
	}
	run.area = AREA_FILE;
	run.inode = 1009;
	run.dev = 17;
	ledger_run(ledger, &run);
	run.inode = 1013;
	ledger_run(ledger, &run);
	sites = collect(ledger);
	assert_int_equal(sites.count, 3);
	assert_int_equal(sites.site[0].area, AREA_HEAP);
	assert_int_equal(sites.site[0].in_pages, 6);
	assert_int_equal(sites.site[1].area, AREA_FILE);
	assert_int_equal(sites.site[1].inode, 1009);
	assert_int_equal(sites.site[1].dev, 17);
	assert_int_equal(sites.site[2].inode, 1013);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one_pass),
		TEST(test_first_touch_classes),
		TEST(test_huge_faults),
		TEST(test_cyclic_sweep),
		TEST(test_swap_classes),
		TEST(test_opposite_threads),
		TEST(test_seven_threads),
		TEST(test_gaps),
		TEST(test_stride),
		TEST(test_random_order),
		TEST(test_reused_address),
		TEST(test_made_over_area),
		TEST(test_unmapped_pages),
		TEST(test_moved_pages),
		TEST(test_wandering_page),
		TEST(test_reallocated_pages),
		TEST(test_fork_and_exec),
		TEST(test_exit),
		TEST(test_memory_bound),
		TEST(test_many_returns),
		TEST(test_areas),
		TEST(test_shared_memory),
		TEST(test_shared_memory_is_told_apart),
		TEST(test_parts_of_shared_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
