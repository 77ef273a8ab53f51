// SPDX-License-Identifier: GPL-2.0
/*
 * ledger.c: blocks, and runs charged to their owners. Hash tables are GLib's.
 */
#include "ledger/ledger_internal.h"

#include <string.h>

#include "base/hash.h"
#include "events/passed.h"
#include "events/refined.h"
#include "events/run_file.h"

/* A thread and the allocator: runs taken inside a call belong to the block that it returns. */
struct caller {
	pid_t pid;
	uint64_t returned_ns; /* when the last call known of returned */
	GArray *runs;	      /* of a call whose block is not known yet */
};

static guint hash_words(const uint64_t *words, size_t count)
{
	uint64_t hash = HASH_GOLDEN;
	size_t i;

	for (i = 0; i < count; i++)
		hash = (hash ^ words[i]) * HASH_FACTOR + (hash >> 29);
	return hash ^ (hash >> 32);
}

static guint charge_hash(gconstpointer key)
{
	const struct charge *c = key;
	uint64_t words[5] = { c->allocated_stack, c->touched_stack, c->inode,
			      (uint64_t)c->pid << 32 | c->dev,
			      (uint64_t)c->allocated_fn << 32 | (uint32_t)c->fault_class << 24 |
				      c->area << 16 | c->in_fn << 8 | c->major << 1 | c->memset };

	return hash_words(words, G_N_ELEMENTS(words));
}

static gboolean charge_equal(gconstpointer a, gconstpointer b)
{
	const struct charge *x = a, *y = b;

	return x->pid == y->pid && x->allocated_stack == y->allocated_stack &&
	       x->touched_stack == y->touched_stack && x->allocated_fn == y->allocated_fn &&
	       x->fault_class == y->fault_class && x->area == y->area && x->in_fn == y->in_fn &&
	       x->major == y->major && x->memset == y->memset && x->inode == y->inode &&
	       x->dev == y->dev;
}

static guint life_hash(gconstpointer key)
{
	const struct life *life = key;
	uint64_t words[2] = { life->stack_id, (uint64_t)life->pid << 8 | life->fn };

	return hash_words(words, 2);
}

static gboolean life_equal(gconstpointer a, gconstpointer b)
{
	const struct life *x = a, *y = b;

	return x->pid == y->pid && x->fn == y->fn && x->stack_id == y->stack_id;
}

static void process_free(gpointer data)
{
	struct process_ledger *process = data;

	g_tree_destroy(process->blocks);
	g_tree_destroy(process->regions);
	g_free(process->ended);
	g_free(process);
}

static void caller_free(gpointer data)
{
	struct caller *caller = data;

	g_array_free(caller->runs, TRUE);
	g_free(caller);
}

void ledger_thinned(struct ledger *ledger)
{
	ledger->thinned = true;
}

struct ledger *ledger_new(void)
{
	struct ledger *ledger = g_new0(struct ledger, 1);

	ledger->processes = g_hash_table_new_full(NULL, NULL, NULL, process_free);
	ledger->charges = g_hash_table_new_full(charge_hash, charge_equal, NULL, g_free);
	ledger->seen = unspoken_new();
	ledger->lives = g_hash_table_new_full(life_hash, life_equal, NULL, g_free);
	ledger->callers = g_hash_table_new_full(NULL, NULL, NULL, caller_free);
	ledger->accesses = accesses_new();
	ledger->min_size = LEDGER_MIN_SIZE;
	return ledger;
}

void ledger_free(struct ledger *ledger)
{
	if (!ledger)
		return;
	g_hash_table_destroy(ledger->processes);
	g_hash_table_destroy(ledger->charges);
	g_hash_table_destroy(ledger->seen);
	g_hash_table_destroy(ledger->lives);
	g_hash_table_destroy(ledger->callers);
	accesses_free(ledger->accesses);
	g_free(ledger);
}

void ledger_set_min_size(struct ledger *ledger, uint64_t bytes)
{
	ledger->min_size = bytes;
}

void ledger_on_run(struct ledger *ledger, run_fn *callback, void *context)
{
	ledger->on_run = callback;
	ledger->on_run_context = context;
}

void ledger_on_unspoken(struct ledger *ledger, unspoken_fn *callback, void *context)
{
	ledger->on_unspoken = callback;
	ledger->on_unspoken_context = context;
}

static struct process_ledger *process_get(struct ledger *ledger, pid_t pid)
{
	struct process_ledger *process;

	process = g_hash_table_lookup(ledger->processes, GINT_TO_POINTER(pid));
	if (!process) {
		process = g_new0(struct process_ledger, 1);
		process->pid = pid;
		process->blocks = ranges_new(g_free);
		process->regions = regions_new();
		g_hash_table_insert(ledger->processes, GINT_TO_POINTER(pid), process);
	}
	return process;
}

struct life *ledger_life(struct ledger *ledger, pid_t pid, uint8_t fn, uint64_t stack_id)
{
	struct life key = { .pid = pid, .fn = fn, .stack_id = stack_id };
	struct life *life = g_hash_table_lookup(ledger->lives, &key);

	if (!life) {
		life = g_memdup2(&key, sizeof(key));
		g_hash_table_insert(ledger->lives, life, life);
	}
	return life;
}

static uint64_t pages_of(const struct range *range)
{
	return (PAGE_CEIL(range->end) - PAGE_FLOOR(range->start)) / PAGE;
}

/*
 * Of the last `pages` pages of a block with its own mapping: those that no fault can have touched
 * were never used.
 */
static uint64_t never_used(const struct ledger *ledger, const struct range *block, uint64_t pages)
{
	if (!(block->flags & BLOCK_MMAPPED) || ledger->thinned)
		return 0;
	return pages > block->zero_pages ? (pages - block->zero_pages) * PAGE : 0;
}

void ledger_remember(struct process_ledger *process, const struct range *range, uint64_t ended_ns)
{
	struct range *kept;

	if (!process->ended)
		process->ended = g_new0(struct range, ENDED_KEPT);
	kept = &process->ended[process->ended_next++ % ENDED_KEPT];
	*kept = *range;
	kept->ended_ns = ended_ns;
	process->last_ended_ns = MAX(process->last_ended_ns, ended_ns);
}

static void forget_ended(struct process_ledger *process)
{
	g_free(process->ended);
	process->ended = NULL;
	process->ended_next = 0;
	process->last_ended_ns = 0;
}

/* Its pages' returns are not forgotten here: realloc may keep the pages. */
static void end_block(struct ledger *ledger, struct process_ledger *process, struct range *block,
		      uint64_t never_used_bytes, uint64_t ended_ns)
{
	if (!block->inherited) {
		struct life *life = ledger_life(ledger, process->pid, block->fn, block->stack_id);

		life->freed++;
		life->freed_bytes += block->end - block->start;
		life->never_used_bytes += never_used_bytes;
	}
	ledger_remember(process, block, ended_ns);
	g_tree_remove(process->blocks, &block->start);
}

void ledger_end_block(struct ledger *ledger, struct process_ledger *process, struct range *block,
		      uint64_t ended_ns)
{
	accesses_forget(ledger->accesses, process->pid, PAGE_FLOOR(block->start),
			PAGE_CEIL(block->end));
	end_block(ledger, process, block, never_used(ledger, block, pages_of(block)), ended_ns);
}

static struct charge *charge_get(struct ledger *ledger, const struct memtoll_run *run,
				 const struct range *range)
{
	/* A segment of shared memory has a name beside its owner. */
	bool named = !range || run->area == AREA_SHARED;
	struct charge *charge, key = {
		.pid = run->tgid,
		.allocated_stack = range ? range->stack_id : 0,
		.touched_stack = run->stack_id,
		.allocated_fn = range ? range->fn : FN_NONE,
		.fault_class = run->fault_class,
		.area = run->area,
		.in_fn = run->in_fn,
		.major = run->flags & RUN_MAJOR,
		.memset = (run->flags & RUN_MEMSET) && (run->flags & RUN_FILL_ZERO),
		.inode = named ? run_file_inode(run) : 0,
		.dev = named ? run->dev : 0,
	};

	charge = g_hash_table_lookup(ledger->charges, &key);
	if (!charge) {
		charge = g_memdup2(&key, sizeof(key));
		g_hash_table_insert(ledger->charges, charge, charge);
	}
	return charge;
}

/* Each page of a block is used so once, or more often where it is shared and was pushed out. */
static bool uses_page(uint8_t fault_class)
{
	return fault_clears(fault_class) || fault_class == FAULT_SHARED;
}

/* Charge a run, or a part of one, to a range or, with NULL, to no allocation. */
static void charge_part(struct ledger *ledger, const struct memtoll_run *run, struct range *range)
{
	struct charge *charge = charge_get(ledger, run, range);
	uint64_t stack_id = range ? range->stack_id : 0;
	uint8_t fn = range ? range->fn : FN_NONE;

	ledger->charged = true;
	charge->faults += run->faults + run->passed;
	charge->spoken += run->passed;
	charge->pages += with_passed(run, run->pages);
	charge->timed_faults += run->timed_faults;
	charge->timed_cpu_ns += run->timed_cpu_ns;
	charge->timed_cpu_us2 += run->timed_cpu_us2;
	charge->blocked_ns += run->blocked_ns;
	if (range && uses_page(run->fault_class))
		range->zero_pages += with_passed(run, run->pages);
	accesses_charge(ledger->accesses, run, fn, stack_id);
	if (ledger->on_run)
		ledger->on_run(ledger->on_run_context, run, stack_id, fn);
}

/* Split the first `pages` pages off *run; figures are divided in proportion, nothing is lost. */
static struct memtoll_run split_run(struct memtoll_run *run, uint64_t pages)
{
	struct memtoll_run part = *run;
	__u64 *whole[] = { &run->faults,	&run->timed_faults, &run->timed_cpu_ns,
			   &run->timed_cpu_us2, &run->blocked_ns,   &run->passed };
	__u64 *share[] = { &part.faults,	&part.timed_faults, &part.timed_cpu_ns,
			   &part.timed_cpu_us2, &part.blocked_ns,   &part.passed };
	size_t i;

	if (pages >= run->pages) {
		run->pages = 0;
		return part;
	}
	for (i = 0; i < G_N_ELEMENTS(whole); i++) {
		*share[i] = (uint64_t)((unsigned __int128)*whole[i] * pages / run->pages);
		*whole[i] -= *share[i];
	}
	part.pages = pages;
	run->flags &= ~RUN_INTERRUPTED;
	run->pages -= pages;
	run->address += pages * PAGE;
	run->file_page += pages;
	return part;
}

/*
 * When a range began to be the owner of what is touched in it. While its call lasted only the call
 * itself touched it; others' faults there belong to what was at its address before.
 */
static uint64_t owned_from(const struct range *range, const struct memtoll_run *run)
{
	return run->in_fn || !range->ready_ns ? range->made_ns : range->ready_ns;
}

/*
 * The range that held the run's first page and ended while the run was still on its way here;
 * blocks before regions, the latest first. *limit: where another such range may begin to hold it.
 */
static struct range *ended_owner(struct process_ledger *process, const struct memtoll_run *run,
				 uint64_t *limit)
{
	unsigned int i, count = MIN(process->ended_next, ENDED_KEPT);
	struct range *found = NULL;

	if (run->first_ns > process->last_ended_ns)
		return NULL;
	for (i = 1; i <= count; i++) {
		struct range *range = &process->ended[(process->ended_next - i) % ENDED_KEPT];
		bool region = range->fn == ALLOCATED_MMAP;

		if (PAGE_CEIL(range->end) <= run->address || range->start >= *limit ||
		    run->last_ns < owned_from(range, run) || run->first_ns > range->ended_ns ||
		    (region && !region_area(run->area)))
			continue;
		if (PAGE_FLOOR(range->start) > run->address)
			*limit = PAGE_FLOOR(range->start);
		else if (!found || (found->fn == ALLOCATED_MMAP && !region))
			found = range;
	}
	if (found)
		*limit = MIN(*limit, PAGE_CEIL(found->end));
	return found;
}

/* Who owns the run's first page, NULL for nobody, and all pages after it up to *limit. */
static struct range *owner_of(struct process_ledger *process, const struct memtoll_run *run,
			      uint64_t *limit)
{
	struct range *block = range_overlapping(process->blocks, run->address, *limit);
	struct range *region, *ended;

	if (block && PAGE_FLOOR(block->start) > run->address) {
		*limit = PAGE_FLOOR(block->start);
	} else if (block) {
		*limit = MIN(*limit, PAGE_CEIL(block->end));
		/* Else made later, where something else was before. */
		if (owned_from(block, run) <= run->last_ns)
			return block;
	}
	ended = ended_owner(process, run, limit);
	if (ended && ended->fn != ALLOCATED_MMAP)
		return ended;
	region = range_overlapping(process->regions, run->address, *limit);
	if (region && region->start > run->address) {
		*limit = region->start;
	} else if (region) {
		*limit = MIN(*limit, region->end);
		if (region_owns(region, run->area) && region->made_ns <= run->last_ns)
			return region;
	}
	return ended;
}

static void charge_run(struct ledger *ledger, struct memtoll_run run)
{
	struct process_ledger *process = process_get(ledger, run.tgid);

	run.address = PAGE_FLOOR(run.address);
	while (run.pages) {
		uint64_t limit = run.address + run.pages * PAGE;
		struct range *owner = owner_of(process, &run, &limit);
		struct memtoll_run part = split_run(&run, (limit - run.address) / PAGE);

		charge_part(ledger, &part, owner);
	}
}

static struct caller *caller_get(struct ledger *ledger, pid_t pid, uint32_t tid)
{
	struct caller *caller = g_hash_table_lookup(ledger->callers, GUINT_TO_POINTER(tid));

	if (!caller) {
		caller = g_new0(struct caller, 1);
		caller->runs = g_array_new(FALSE, FALSE, sizeof(struct memtoll_run));
		g_hash_table_insert(ledger->callers, GUINT_TO_POINTER(tid), caller);
	}
	caller->pid = pid;
	return caller;
}

/*
 * Runs inside an allocator call wait for the block that the call returns. The last run of a call
 * comes after its block, and waits no longer: the block's figures must be complete when it ends.
 */
void ledger_run(struct ledger *ledger, const struct memtoll_run *run)
{
	struct caller *caller;

	if (run->in_fn) {
		caller = caller_get(ledger, run->tgid, run->tid);
		if (run->last_ns > caller->returned_ns) {
			g_array_append_val(caller->runs, *run);
			return;
		}
	}
	charge_run(ledger, *run);
}

static void charge_waiting(struct ledger *ledger, struct caller *caller)
{
	guint i;

	for (i = 0; i < caller->runs->len; i++)
		charge_run(ledger, g_array_index(caller->runs, struct memtoll_run, i));
	g_array_set_size(caller->runs, 0);
}

/* The runs in open calls of a process, or with 0 of all, wait no longer. */
static void charge_callers(struct ledger *ledger, pid_t pid)
{
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, ledger->callers);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct caller *caller = value;

		if (pid && caller->pid != pid)
			continue;
		charge_waiting(ledger, caller);
		g_hash_table_iter_remove(&iter);
	}
}

/*
 * Did a reallocated block keep its pages? At the same address, or with a mapping of its own before
 * and after (mremap, malloc.c); else it was copied.
 */
static bool keeps_pages(const struct range *old, const struct memtoll_block *block)
{
	return block->addr == block->old_addr || (old->flags & block->flags & BLOCK_MMAPPED);
}

/* The block at old_addr ends, unless a younger one is there: that implied the end. */
static void end_old_block(struct ledger *ledger, struct process_ledger *process,
			  const struct memtoll_block *block)
{
	struct range *range = g_tree_lookup(process->blocks, &block->old_addr);

	if (range && range->made_ns <= block->start_ns)
		ledger_end_block(ledger, process, range, block->end_ns);
	else if (!range)
		ledger->unmatched_frees++;
}

static struct range *make_block(struct ledger *ledger, struct process_ledger *process,
				const struct memtoll_block *block)
{
	uint64_t end = block->addr + block->size;
	struct range *range;
	struct life *life;

	while ((range = range_overlapping(process->blocks, block->addr, end)))
		ledger_end_block(ledger, process, range, block->end_ns);
	range = g_new0(struct range, 1);
	range->start = block->addr;
	range->end = end;
	range->made_ns = block->start_ns;
	range->ready_ns = block->end_ns;
	range->stack_id = block->stack_id;
	range->flags = block->flags;
	range->fn = block->fn;
	ranges_add(process->blocks, range);
	life = ledger_life(ledger, process->pid, block->fn, block->stack_id);
	life->made++;
	life->made_bytes += block->size;
	return range;
}

/*
 * realloc that kept the pages: what they have seen goes on in the new block. Of a block that
 * shrank it is not known which pages were used: those cut off are called never used only as far as
 * all used ones may lie among them. (The record of mremap, which moved the pages, came before.)
 */
static void remake_block(struct ledger *ledger, struct process_ledger *process, struct range *old,
			 const struct memtoll_block *block)
{
	uint64_t old_pages = pages_of(old), zero_pages = old->zero_pages, pages;
	uint64_t old_start = PAGE_FLOOR(old->start), old_end = PAGE_CEIL(old->end), kept_end;
	struct range *range;

	pages = (PAGE_CEIL(block->addr + block->size) - PAGE_FLOOR(block->addr)) / PAGE;
	end_block(ledger, process, old,
		  never_used(ledger, old, old_pages > pages ? old_pages - pages : 0),
		  block->end_ns);
	range = make_block(ledger, process, block);
	range->zero_pages = MIN(zero_pages, pages);
	if (block->addr != block->old_addr)
		accesses_forget(ledger->accesses, process->pid, old_start, old_end);
	kept_end = PAGE_FLOOR(range->start) + MIN(pages, old_pages) * PAGE;
	accesses_forget(ledger->accesses, process->pid, kept_end,
			PAGE_FLOOR(range->start) + MAX(pages, old_pages) * PAGE);
}

void ledger_block(struct ledger *ledger, const struct memtoll_block *block)
{
	struct process_ledger *process = process_get(ledger, block->tgid);
	bool moves = block->fn == FN_REALLOC || block->fn == FN_REALLOCARRAY;
	bool makes = block->addr && block->addr + block->size > block->addr;
	struct range *old = NULL;
	struct caller *caller;

	if (block->old_addr && !(moves && !block->addr && block->size))
		old = g_tree_lookup(process->blocks, &block->old_addr);
	if (old && makes && moves && old->made_ns <= block->start_ns && keeps_pages(old, block)) {
		remake_block(ledger, process, old, block);
	} else {
		/* realloc of a small block, or of one older than the recording: none to end. */
		if (old || (block->old_addr && block->fn == FN_FREE))
			end_old_block(ledger, process, block);
		if (makes) {
			struct range *range = make_block(ledger, process, block);

			accesses_forget(ledger->accesses, process->pid, PAGE_FLOOR(range->start),
					PAGE_CEIL(range->end));
		}
	}
	caller = caller_get(ledger, block->tgid, block->tid);
	caller->returned_ns = block->end_ns;
	charge_waiting(ledger, caller);
}

void ledger_mapping(struct ledger *ledger, const struct memtoll_mapping *mapping)
{
	regions_change(ledger, process_get(ledger, mapping->tgid), mapping);
}

static gboolean copy_block(gpointer key, gpointer value, gpointer data)
{
	struct range *range = g_memdup2(value, sizeof(struct range));

	(void)key;
	range->inherited = true;
	ranges_add(data, range);
	return FALSE;
}

static void clear_process(struct process_ledger *process)
{
	ranges_clear(process->blocks);
	ranges_clear(process->regions);
	forget_ended(process);
	process->exited = false;
}

void ledger_fork(struct ledger *ledger, pid_t parent, pid_t child)
{
	struct process_ledger *from = process_get(ledger, parent);
	struct process_ledger *to = process_get(ledger, child);

	if (from == to)
		return;
	/* The id may have been another process's. */
	clear_process(to);
	accesses_restart(ledger->accesses, child);
	g_tree_foreach(from->blocks, copy_block, to->blocks);
	regions_inherit(from->regions, to->regions);
}

/* The old image's memory is gone, all at once. It was not freed: lives end without a free. */
void ledger_exec(struct ledger *ledger, pid_t pid)
{
	struct process_ledger *process = process_get(ledger, pid);

	charge_callers(ledger, pid);
	clear_process(process);
	accesses_restart(ledger->accesses, pid);
}

void ledger_exit(struct ledger *ledger, pid_t pid)
{
	struct process_ledger *process = process_get(ledger, pid);

	charge_callers(ledger, pid);
	clear_process(process);
	process->exited = true;
	accesses_exit(ledger->accesses, pid);
}

void ledger_forget(struct ledger *ledger, pid_t pid)
{
	g_hash_table_remove(ledger->processes, GINT_TO_POINTER(pid));
}

void ledger_drain(struct ledger *ledger, charge_fn *on_charge, life_fn *on_life, void *context)
{
	GHashTableIter iter;
	gpointer value;

	charge_callers(ledger, 0);
	unspoken_keep(ledger);
	ledger->drains++;
	g_hash_table_iter_init(&iter, ledger->charges);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		on_charge(context, value);
		g_hash_table_iter_remove(&iter);
	}
	g_hash_table_iter_init(&iter, ledger->lives);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		on_life(context, value);
		g_hash_table_iter_remove(&iter);
	}
}

void ledger_each_access(struct ledger *ledger, access_fn *on_access, void *context)
{
	accesses_each(ledger->accesses, on_access, context);
}

uint64_t ledger_untracked_returns(const struct ledger *ledger)
{
	return accesses_untracked(ledger->accesses);
}

uint64_t ledger_unmatched_frees(const struct ledger *ledger)
{
	return ledger->unmatched_frees;
}

bool ledger_block_of(const struct ledger *ledger, const struct memtoll_run *run, uint64_t *stack_id,
		     uint8_t *fn)
{
	uint64_t start = PAGE_FLOOR(run->address);
	const struct process_ledger *process;
	const struct range *range;

	process = g_hash_table_lookup(ledger->processes, GINT_TO_POINTER((pid_t)run->tgid));
	range = process ? range_overlapping(process->blocks, start, start + run->pages * PAGE) :
			  NULL;
	if (!range || range->made_ns > run->last_ns)
		return false;
	*stack_id = range->stack_id;
	*fn = range->fn;
	return true;
}

bool ledger_owner(const struct ledger *ledger, pid_t pid, uint64_t address, uint64_t *stack_id,
		  uint8_t *fn)
{
	const struct process_ledger *process =
		g_hash_table_lookup(ledger->processes, GINT_TO_POINTER(pid));
	const struct range *range = process ? range_at(process->blocks, address) : NULL;

	if (!range && process) {
		range = range_at(process->regions, address);
		if (range && !region_owns(range, AREA_ANON))
			range = NULL;
	}
	if (!range)
		return false;
	*stack_id = range->stack_id;
	*fn = range->fn;
	return true;
}
