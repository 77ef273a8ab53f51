// SPDX-License-Identifier: GPL-2.0
/*
 * ledger.c. Live ranges are kept in GLib's balanced tree: nothing in it is special to us, and
 * 2.68 has the search for the nearest key that a range lookup needs.
 */
#include "ledger.h"

#include <glib.h>
#include <string.h>

#define PAGE MEMTOLL_PAGE_SIZE
#define PAGE_FLOOR(x) ((x) & ~(PAGE - 1))
#define PAGE_CEIL(x) PAGE_FLOOR((x) + PAGE - 1)

/*
 * glibc (malloc.c): a chunk of its own mapping holds a header of two words; the mmap threshold
 * starts at 128 KiB and moves up to the size of a freed mapping, 32 MiB at most.
 */
#define CHUNK_HEADER 16
#define THRESHOLD_MAX (32ULL << 20)

/* Ended ranges are remembered for runs of other threads that arrive late. */
#define ENDED_KEPT 256

struct range {
	uint64_t start;
	uint64_t end;
	uint64_t made_ns;
	uint64_t ended_ns;
	uint64_t stack_id;
	uint64_t zero_pages;	/* pages the kernel cleared in it */
	uint16_t flags;		/* BLOCK_* */
	uint8_t fn;
	bool inherited;		/* came with a fork: its life is counted in the parent */
};

struct process_ledger {
	pid_t pid;
	GTree *live;			/* start -> struct range */
	struct range ended[ENDED_KEPT];
	unsigned int ended_next;
	struct threshold threshold;
};

struct ledger {
	GHashTable *processes;		/* pid -> struct process_ledger */
	GHashTable *charges;		/* struct charge -> itself */
	GHashTable *lives;		/* struct life -> itself */
	GHashTable *pending;		/* tid -> GArray of runs inside an open call */
	uint64_t unmatched_frees;
	run_fn *on_run;
	void *on_run_context;
};

static gint compare_addresses(gconstpointer a, gconstpointer b, gpointer unused)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	(void)unused;
	return x < y ? -1 : x > y;
}

static guint hash_words(const uint64_t *words, size_t count)
{
	uint64_t hash = 0x9e3779b97f4a7c15ULL;
	size_t i;

	for (i = 0; i < count; i++)
		hash = (hash ^ words[i]) * 0xff51afd7ed558ccdULL + (hash >> 29);
	return hash ^ (hash >> 32);
}

static guint charge_hash(gconstpointer key)
{
	const struct charge *c = key;
	uint64_t words[3] = { c->allocated_stack, c->touched_stack,
			      (uint64_t)c->pid << 32 | (uint32_t)c->fault_class << 24 |
			      c->area << 16 | c->in_fn << 8 | c->allocated_fn << 2 |
			      c->major << 1 | c->memset };

	return hash_words(words, 3);
}

static gboolean charge_equal(gconstpointer a, gconstpointer b)
{
	const struct charge *x = a, *y = b;

	return x->pid == y->pid && x->allocated_stack == y->allocated_stack &&
	       x->touched_stack == y->touched_stack && x->allocated_fn == y->allocated_fn &&
	       x->fault_class == y->fault_class && x->area == y->area && x->in_fn == y->in_fn &&
	       x->major == y->major && x->memset == y->memset;
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

	g_tree_destroy(process->live);
	g_free(process);
}

static void runs_free(gpointer data)
{
	g_array_free(data, TRUE);
}

struct ledger *ledger_new(void)
{
	struct ledger *ledger = g_new0(struct ledger, 1);

	ledger->processes = g_hash_table_new_full(NULL, NULL, NULL, process_free);
	ledger->charges = g_hash_table_new_full(charge_hash, charge_equal, NULL, g_free);
	ledger->lives = g_hash_table_new_full(life_hash, life_equal, NULL, g_free);
	ledger->pending = g_hash_table_new_full(NULL, NULL, NULL, runs_free);
	return ledger;
}

void ledger_free(struct ledger *ledger)
{
	if (!ledger)
		return;
	g_hash_table_destroy(ledger->processes);
	g_hash_table_destroy(ledger->charges);
	g_hash_table_destroy(ledger->lives);
	g_hash_table_destroy(ledger->pending);
	g_free(ledger);
}

void ledger_on_run(struct ledger *ledger, run_fn *callback, void *context)
{
	ledger->on_run = callback;
	ledger->on_run_context = context;
}

static struct process_ledger *process_get(struct ledger *ledger, pid_t pid)
{
	struct process_ledger *process;

	process = g_hash_table_lookup(ledger->processes, GINT_TO_POINTER(pid));
	if (!process) {
		process = g_new0(struct process_ledger, 1);
		process->pid = pid;
		process->live = g_tree_new_full(compare_addresses, NULL, NULL, g_free);
		g_hash_table_insert(ledger->processes, GINT_TO_POINTER(pid), process);
	}
	return process;
}

static struct life *life_get(struct ledger *ledger, pid_t pid, uint8_t fn, uint64_t stack_id)
{
	struct life key = { .pid = pid, .fn = fn, .stack_id = stack_id };
	struct life *life = g_hash_table_lookup(ledger->lives, &key);

	if (!life) {
		life = g_memdup2(&key, sizeof(key));
		g_hash_table_insert(ledger->lives, life, life);
	}
	return life;
}

/* The live range with the greatest start at or below address, if it reaches beyond it. */
static struct range *range_at(struct process_ledger *process, uint64_t address)
{
	GTreeNode *above = g_tree_upper_bound(process->live, &address);
	GTreeNode *node = above ? g_tree_node_previous(above) : g_tree_node_last(process->live);
	struct range *range = node ? g_tree_node_value(node) : NULL;

	return range && range->end > address ? range : NULL;
}

/* The first live range that holds a byte of [start, end). */
static struct range *range_overlapping(struct process_ledger *process, uint64_t start,
				       uint64_t end)
{
	struct range *range = range_at(process, start);
	GTreeNode *node;

	if (range)
		return range;
	node = g_tree_lower_bound(process->live, &start);
	range = node ? g_tree_node_value(node) : NULL;
	return range && range->start < end ? range : NULL;
}

/* Pages of a block with its own mapping that no fault ever touched were never used. */
static uint64_t never_used(const struct range *range)
{
	uint64_t pages;

	if (!(range->flags & BLOCK_MMAPPED))
		return 0;
	pages = (PAGE_CEIL(range->end) - PAGE_FLOOR(range->start)) / PAGE;
	return pages > range->zero_pages ? (pages - range->zero_pages) * PAGE : 0;
}

/* Freeing a mapping of glibc's raises its threshold to the size of that mapping. */
static void threshold_on_free(struct process_ledger *process, const struct range *range)
{
	uint64_t size = PAGE_CEIL(range->end + 8 - (range->start - CHUNK_HEADER));

	if (!(range->flags & BLOCK_MMAPPED) || size > THRESHOLD_MAX)
		return;
	if (size > process->threshold.low) {
		process->threshold.low = size;
		process->threshold.high = size;
	}
}

static void range_end(struct ledger *ledger, struct process_ledger *process, struct range *range,
		      uint64_t ended_ns)
{
	struct range *kept = &process->ended[process->ended_next++ % ENDED_KEPT];

	if (!range->inherited) {
		struct life *life = life_get(ledger, process->pid, range->fn, range->stack_id);

		life->freed++;
		life->freed_bytes += range->end - range->start;
		life->never_used_bytes += never_used(range);
	}
	if (range->flags & BLOCK_GLIBC)
		threshold_on_free(process, range);
	*kept = *range;
	kept->ended_ns = ended_ns;
	g_tree_remove(process->live, &range->start);
}

static struct charge *charge_get(struct ledger *ledger, const struct memtoll_run *run,
				 const struct range *range)
{
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
	};

	charge = g_hash_table_lookup(ledger->charges, &key);
	if (!charge) {
		charge = g_memdup2(&key, sizeof(key));
		g_hash_table_insert(ledger->charges, charge, charge);
	}
	return charge;
}

static bool clears_page(uint8_t fault_class)
{
	return fault_class == FAULT_ZERO || fault_class == FAULT_ZERO_HUGE ||
	       fault_class == FAULT_ZERO_UPGRADE;
}

/* Charge a run, or a part of one, to a range or, with NULL, to no block. */
static void charge_part(struct ledger *ledger, const struct memtoll_run *run, struct range *range)
{
	struct charge *charge = charge_get(ledger, run, range);

	charge->faults += run->faults;
	charge->pages += run->pages;
	charge->timed_faults += run->timed_faults;
	charge->timed_cpu_ns += run->timed_cpu_ns;
	charge->timed_cpu_us2 += run->timed_cpu_us2;
	charge->blocked_ns += run->blocked_ns;
	if (range && clears_page(run->fault_class))
		range->zero_pages += run->pages;
	if (ledger->on_run)
		ledger->on_run(ledger->on_run_context, run, range ? range->stack_id : 0);
}

/* Split the first `pages` pages off *run; figures are divided in proportion, nothing is lost. */
static struct memtoll_run split_run(struct memtoll_run *run, uint64_t pages)
{
	struct memtoll_run part = *run;
	__u64 *whole[] = { &run->faults, &run->timed_faults, &run->timed_cpu_ns,
			      &run->timed_cpu_us2, &run->blocked_ns };
	__u64 *share[] = { &part.faults, &part.timed_faults, &part.timed_cpu_ns,
			      &part.timed_cpu_us2, &part.blocked_ns };
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
	run->pages -= pages;
	run->address += pages * PAGE;
	return part;
}

/* A range that ended while another thread's run on it was still on its way here. */
static struct range *ended_range(struct process_ledger *process, const struct memtoll_run *run)
{
	unsigned int i, count = MIN(process->ended_next, ENDED_KEPT);

	for (i = 1; i <= count; i++) {
		struct range *range = &process->ended[(process->ended_next - i) % ENDED_KEPT];

		if (run->address + PAGE > range->start && run->address < range->end &&
		    run->last_ns >= range->made_ns && run->first_ns <= range->ended_ns)
			return range;
	}
	return NULL;
}

static void charge_run(struct ledger *ledger, struct memtoll_run run)
{
	struct process_ledger *process = process_get(ledger, run.tgid);

	while (run.pages) {
		uint64_t run_end = run.address + run.pages * PAGE, pages = run.pages;
		struct range *range = range_overlapping(process, run.address, run_end);
		struct memtoll_run part;

		if (range && range->made_ns > run.last_ns)
			range = NULL;	/* made later, where something else was before */
		if (!range) {
			range = ended_range(process, &run);
			charge_part(ledger, &run, range);
			return;
		}
		if (PAGE_FLOOR(range->start) > run.address) {
			/* Pages before the block belong to nobody. */
			part = split_run(&run, (PAGE_FLOOR(range->start) - run.address) / PAGE);
			charge_part(ledger, &part, NULL);
			continue;
		}
		if (PAGE_CEIL(range->end) < run_end)
			pages = (PAGE_CEIL(range->end) - run.address) / PAGE;
		part = split_run(&run, pages);
		charge_part(ledger, &part, range);
	}
}

/* Runs inside an allocator call wait for the block that the call returns. */
void ledger_run(struct ledger *ledger, const struct memtoll_run *run)
{
	GArray *runs;

	if (!run->in_fn) {
		charge_run(ledger, *run);
		return;
	}
	runs = g_hash_table_lookup(ledger->pending, GUINT_TO_POINTER(run->tid));
	if (!runs) {
		runs = g_array_new(FALSE, FALSE, sizeof(*run));
		g_hash_table_insert(ledger->pending, GUINT_TO_POINTER(run->tid), runs);
	}
	g_array_append_val(runs, *run);
}

static void charge_pending(struct ledger *ledger, uint32_t tid)
{
	GArray *runs = g_hash_table_lookup(ledger->pending, GUINT_TO_POINTER(tid));
	guint i;

	if (!runs)
		return;
	for (i = 0; i < runs->len; i++)
		charge_run(ledger, g_array_index(runs, struct memtoll_run, i));
	g_hash_table_remove(ledger->pending, GUINT_TO_POINTER(tid));
}

static void end_old_block(struct ledger *ledger, struct process_ledger *process,
			  const struct memtoll_block *block)
{
	struct range *range = g_tree_lookup(process->live, &block->old_addr);

	/* A younger range at this address: the free was implied when that one was made. */
	if (range && range->made_ns <= block->start_ns)
		range_end(ledger, process, range, block->end_ns);
	else if (!range)
		ledger->unmatched_frees++;
}

static void make_block(struct ledger *ledger, struct process_ledger *process,
		       const struct memtoll_block *block)
{
	uint64_t end = block->addr + block->size;
	struct range *range;
	struct life *life;

	while ((range = range_overlapping(process, block->addr, end)))
		range_end(ledger, process, range, block->end_ns);
	range = g_new0(struct range, 1);
	range->start = block->addr;
	range->end = end;
	range->made_ns = block->start_ns;
	range->stack_id = block->stack_id;
	range->flags = block->flags;
	range->fn = block->fn;
	g_tree_insert(process->live, &range->start, range);
	life = life_get(ledger, process->pid, block->fn, block->stack_id);
	life->made++;
	life->made_bytes += block->size;
}

/* A block with a mapping of its own shows that the threshold is not above its size. */
static void threshold_on_made(struct process_ledger *process, const struct memtoll_block *block)
{
	struct threshold *threshold = &process->threshold;

	if (!(block->flags & BLOCK_GLIBC) || !(block->flags & BLOCK_MMAPPED))
		return;
	if (!threshold->high || block->size + CHUNK_HEADER < threshold->high)
		threshold->high = MAX(block->size + CHUNK_HEADER, threshold->low);
}

void ledger_block(struct ledger *ledger, const struct memtoll_block *block)
{
	struct process_ledger *process = process_get(ledger, block->tgid);
	bool moved = block->fn == FN_REALLOC || block->fn == FN_REALLOCARRAY;

	if (block->old_addr && !(moved && !block->addr && block->size)) {
		struct range *old = g_tree_lookup(process->live, &block->old_addr);

		/* realloc of a small block, or of one older than the recording: no range to end. */
		if (old || block->fn == FN_FREE)
			end_old_block(ledger, process, block);
	}
	if (block->addr && block->size) {
		make_block(ledger, process, block);
		threshold_on_made(process, block);
	}
	charge_pending(ledger, block->tid);
}

/* The program unmapped memory itself: blocks inside are gone. */
void ledger_mapping(struct ledger *ledger, const struct memtoll_mapping *mapping)
{
	struct process_ledger *process = process_get(ledger, mapping->tgid);
	uint64_t end = mapping->addr + mapping->len;
	struct range *range;

	if (mapping->map_fn != MAP_FN_MUNMAP || mapping->in_fn)
		return;
	while ((range = range_overlapping(process, mapping->addr, end)))
		range_end(ledger, process, range, mapping->start_ns);
}

static gboolean copy_range(gpointer key, gpointer value, gpointer data)
{
	struct process_ledger *child = data;
	struct range *range = g_memdup2(value, sizeof(struct range));

	(void)key;
	range->inherited = true;
	g_tree_insert(child->live, &range->start, range);
	return FALSE;
}

void ledger_fork(struct ledger *ledger, pid_t parent, pid_t child)
{
	struct process_ledger *from = process_get(ledger, parent);
	struct process_ledger *to = process_get(ledger, child);

	g_tree_foreach(from->live, copy_range, to);
	to->threshold = from->threshold;
}

static gboolean collect_start(gpointer key, gpointer value, gpointer data)
{
	(void)key;
	g_array_append_val((GArray *)data, ((struct range *)value)->start);
	return FALSE;
}

/* The old image's memory is gone, all at once. It was not freed: lives end without a free. */
void ledger_exec(struct ledger *ledger, pid_t pid)
{
	struct process_ledger *process = process_get(ledger, pid);
	GArray *starts = g_array_new(FALSE, FALSE, sizeof(uint64_t));
	guint i;

	g_tree_foreach(process->live, collect_start, starts);
	for (i = 0; i < starts->len; i++)
		g_tree_remove(process->live, &g_array_index(starts, uint64_t, i));
	g_array_free(starts, TRUE);
	process->ended_next = 0;
	memset(&process->threshold, 0, sizeof(process->threshold));
}

void ledger_drain(struct ledger *ledger, charge_fn *on_charge, life_fn *on_life, void *context)
{
	GHashTableIter iter;
	gpointer key, value;

	g_hash_table_iter_init(&iter, ledger->pending);
	while (g_hash_table_iter_next(&iter, &key, &value)) {
		GArray *runs = value;
		guint i;

		for (i = 0; i < runs->len; i++)
			charge_run(ledger, g_array_index(runs, struct memtoll_run, i));
		g_hash_table_iter_remove(&iter);
	}
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

uint64_t ledger_unmatched_frees(const struct ledger *ledger)
{
	return ledger->unmatched_frees;
}

void ledger_threshold(const struct ledger *ledger, pid_t pid, struct threshold *threshold)
{
	const struct process_ledger *process;

	process = g_hash_table_lookup(ledger->processes, GINT_TO_POINTER(pid));
	memset(threshold, 0, sizeof(*threshold));
	if (process)
		*threshold = process->threshold;
}
