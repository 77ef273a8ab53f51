/* SPDX-License-Identifier: GPL-2.0 */
/* Records for the ledger, and its facts. */
#ifndef MEMTOLL_LEDGER_RECORDS_H
#define MEMTOLL_LEDGER_RECORDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <glib.h>

#include "ledger/ledger.h"

#define PAGE 4096ULL
#define PID 4242
#define BLOCK_STACK 77ULL
#define TOUCH_STACK 99ULL

struct facts {
	GArray *charges; /* struct charge */
	GArray *lives;	 /* struct life */
};

static inline void on_charge(void *context, const struct charge *charge)
{
	g_array_append_val(((struct facts *)context)->charges, *charge);
}

static inline void on_life(void *context, const struct life *life)
{
	g_array_append_val(((struct facts *)context)->lives, *life);
}

static inline int setup(void **state)
{
	*state = ledger_new();
	return 0;
}

static inline int teardown(void **state)
{
	ledger_free(*state);
	return 0;
}

static inline struct facts drain(struct ledger *ledger)
{
	struct facts facts = {
		.charges = g_array_new(FALSE, FALSE, sizeof(struct charge)),
		.lives = g_array_new(FALSE, FALSE, sizeof(struct life)),
	};

	ledger_drain(ledger, on_charge, on_life, &facts);
	return facts;
}

static inline void forget(struct facts *facts)
{
	g_array_free(facts->charges, TRUE);
	g_array_free(facts->lives, TRUE);
}

static inline void make(struct ledger *ledger, uint64_t addr, uint64_t size, uint64_t at_ns,
			unsigned int flags)
{
	ledger_block(ledger, &(struct memtoll_block){
				     .kind = EVENT_BLOCK,
				     .tgid = PID,
				     .tid = PID,
				     .fn = FN_CALLOC,
				     .flags = flags,
				     .addr = addr,
				     .size = size,
				     .start_ns = at_ns,
				     .end_ns = at_ns + 1,
				     .stack_id = BLOCK_STACK,
			     });
}

static inline void end(struct ledger *ledger, uint64_t addr, uint64_t at_ns)
{
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

static inline struct memtoll_run sweep(uint64_t addr, uint64_t pages, uint64_t at_ns)
{
	return (struct memtoll_run){
		.kind = EVENT_RUN,
		.tgid = PID,
		.tid = PID,
		.fault_class = FAULT_ZERO,
		.area = AREA_ANON,
		.address = addr,
		.pages = pages,
		.faults = pages,
		.first_ns = at_ns,
		.last_ns = at_ns + 1,
		.stack_id = TOUCH_STACK,
	};
}

static inline const struct charge *charge_of(const struct facts *facts, uint64_t allocated_stack)
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

static inline const struct life *only_life(const struct facts *facts)
{
	assert_int_equal(facts->lives->len, 1);
	return &g_array_index(facts->lives, struct life, 0);
}

#define POOL 0x7f1000000000ULL
#define POOL_STACK 131ULL
#define REMAP_STACK 139ULL

static inline void map_as(struct ledger *ledger, const struct memtoll_mapping *mapping)
{
	struct memtoll_mapping full = *mapping;

	full.kind = EVENT_MAPPING;
	if (!full.tgid)
		full.tgid = PID;
	if (!full.tid)
		full.tid = full.tgid;
	full.stack_id = full.stack_id ? full.stack_id : POOL_STACK;
	ledger_mapping(ledger, &full);
}

static inline void map_pool(struct ledger *ledger, uint64_t addr, uint64_t pages, uint64_t at_ns)
{
	map_as(ledger, &(struct memtoll_mapping){
			       .map_fn = MAP_FN_MMAP,
			       .flags = MAPPING_ANONYMOUS,
			       .len = pages * PAGE,
			       .result = addr,
			       .start_ns = at_ns,
		       });
}

static inline void unmap(struct ledger *ledger, uint64_t addr, uint64_t pages, uint64_t at_ns)
{
	map_as(ledger, &(struct memtoll_mapping){
			       .map_fn = MAP_FN_MUNMAP,
			       .addr = addr,
			       .len = pages * PAGE,
			       .start_ns = at_ns,
		       });
}

static inline void remap(struct ledger *ledger, uint64_t from, uint64_t pages, uint64_t new_pages,
			 uint64_t to, uint64_t at_ns)
{
	map_as(ledger, &(struct memtoll_mapping){
			       .map_fn = MAP_FN_MREMAP,
			       .addr = from,
			       .len = pages * PAGE,
			       .arg = new_pages * PAGE,
			       .result = to,
			       .start_ns = at_ns,
			       .stack_id = REMAP_STACK,
		       });
}

static inline void touch(struct ledger *ledger, uint64_t addr, uint64_t pages, uint64_t at_ns)
{
	struct memtoll_run run = sweep(addr, pages, at_ns);

	ledger_run(ledger, &run);
}

/* Pages charged to an allocation since the last drain, in all areas and classes. */
static inline uint64_t pages_charged(const struct facts *facts, pid_t pid, uint8_t fn,
				     uint64_t stack)
{
	uint64_t pages = 0;
	guint i;

	for (i = 0; i < facts->charges->len; i++) {
		const struct charge *charge = &g_array_index(facts->charges, struct charge, i);

		if (charge->pid == pid && charge->allocated_fn == fn &&
		    charge->allocated_stack == stack)
			pages += charge->pages;
	}
	return pages;
}

static inline uint64_t pool_pages(struct ledger *ledger)
{
	struct facts facts = drain(ledger);
	uint64_t pages = pages_charged(&facts, PID, ALLOCATED_MMAP, POOL_STACK);

	forget(&facts);
	return pages;
}

static inline struct life life_of(const struct facts *facts, uint8_t fn, uint64_t stack)
{
	struct life none = {};
	guint i;

	for (i = 0; i < facts->lives->len; i++) {
		const struct life *life = &g_array_index(facts->lives, struct life, i);

		if (life->fn == fn && life->stack_id == stack)
			return *life;
	}
	return none;
}

static inline struct life pool_life(struct ledger *ledger)
{
	struct facts facts = drain(ledger);
	struct life life = life_of(&facts, ALLOCATED_MMAP, POOL_STACK);

	forget(&facts);
	return life;
}

#endif /* MEMTOLL_LEDGER_RECORDS_H */
