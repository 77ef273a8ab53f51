// SPDX-License-Identifier: GPL-2.0
#include "session/cpu_samples.h"

#include <glib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "bpf/wire/pages.h"
#include "events/names.h"
#include "events/syscall_names.h"
#include "host/target_memory.h"
#include "ledger/ledger.h"
#include "ledger/sampled.h"
#include "session/allocator_stacks.h"
#include "session/look_budget.h"
#include "session/sample_place.h"
#include "session/store_area.h"
#include "session/store_code.h"
#include "session/store_spread.h"

/* Blocks that a loop was seen to write to, per stack: for the samples that do not tell. */
#define OWNERS_MAX 65536
#define HELD_MAX 16384		/* samples: 5 MiB */
#define LENGTH_MAX (1ULL << 40) /* more is no length, but a register that has another use by then */
/* Faults of one instruction in a row: fewer are no loop over memory that is worth a look. */
#define LOOP_PAGES 8

/* No holes: it is hashed and compared as bytes. */
struct sample_key {
	uint32_t pid;
	uint16_t place;
	uint16_t in_fn; /* of PLACE_POPULATE and PLACE_PAGES: number of the system call */
	uint64_t stack_id;
	uint64_t allocated_stack;
	uint32_t allocated_fn;
	uint32_t bytes_per_16_cycles;
};

G_STATIC_ASSERT(sizeof(struct sample_key) == 32);

struct sample_count {
	struct sample_key key;
	uint64_t samples;
	uint64_t clearing; /* of PLACE_FAULT: in the code that clears a page */
	uint64_t spread;   /* where store_spread.c has it; the same for all samples of a stack */
	struct store_area area;
	uint64_t lengths; /* of fillings: sum, and of how many samples */
	uint64_t measured;
};

struct owner {
	uint64_t stack_id;
	uint32_t pid;
	uint8_t fn; /* FN_NONE: none */
	struct store_area area;
};

/* A sample that is not judged at once. */
struct held {
	struct memtoll_sample sample;
	struct stored_by by;
	struct owner owner;
	bool unnamed; /* the function follows from its stack */
	bool in_allocator;
};

/* A loop, or a row of stores, and what its samples have said. */
struct loop {
	struct memtoll_store_key head;
	uint64_t zero;
	uint64_t other;
	/* What was found where it had been: older evidence, since others may have written there. */
	uint64_t looked_zero;
	uint64_t looked_other;
};

struct cpu_samples {
	const struct ledger *ledger;
	const struct sampled *sampled;
	struct store_code *code;
	struct store_areas *areas;
	struct sample_judge judge;
	GHashTable *counts; /* struct sample_count -> itself */
	GArray *held;	    /* of struct held, until the slice is written, or they are too many */
	GHashTable *loops;  /* struct loop -> itself */
	GHashTable *owners; /* stack id -> struct owner: of what it wrote to last */
	struct store_spread *spread;
	struct allocator_stacks *stacks;
	struct look_budget looks;
};

static guint sample_hash(gconstpointer data)
{
	const struct sample_key *key = data;

	return key16_hash(key) ^ 31 * key16_hash(&key->allocated_stack);
}

static gboolean sample_equal(gconstpointer a, gconstpointer b)
{
	return !memcmp(a, b, sizeof(struct sample_key));
}

struct cpu_samples *cpu_samples_new(int stacks_fd, int loops_fd, struct symbolizer *symbolizer,
				    const struct ledger *ledger, const struct sampled *sampled)
{
	struct cpu_samples *samples = g_new0(struct cpu_samples, 1);

	samples->stacks = allocator_stacks_new(stacks_fd, symbolizer);
	samples->ledger = ledger;
	samples->sampled = sampled;
	samples->areas = store_areas_new();
	samples->code = store_code_new(loops_fd);
	samples->counts = g_hash_table_new_full(sample_hash, sample_equal, NULL, g_free);
	samples->held = g_array_new(false, false, sizeof(struct held));
	samples->loops = g_hash_table_new_full(key16_hash, key16_equal, NULL, g_free);
	samples->owners = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	samples->spread = store_spread_new();
	sample_judge_prepare(&samples->judge);
	return samples;
}

void cpu_samples_free(struct cpu_samples *samples)
{
	if (!samples)
		return;
	store_code_free(samples->code);
	store_areas_free(samples->areas);
	g_hash_table_destroy(samples->counts);
	g_array_unref(samples->held);
	g_hash_table_destroy(samples->loops);
	g_hash_table_destroy(samples->owners);
	store_spread_free(samples->spread);
	allocator_stacks_free(samples->stacks);
	g_free(samples);
}

void cpu_samples_called(struct cpu_samples *samples, unsigned int fn, uint64_t stack_id)
{
	allocator_stacks_learn(samples->stacks, fn, stack_id);
}

void cpu_samples_forget_stack(struct cpu_samples *samples, uint64_t id)
{
	allocator_stacks_forget(samples->stacks, id);
	g_hash_table_remove(samples->owners, &id);
}

static gboolean loop_is_of(gpointer head, gpointer loop, gpointer pid)
{
	(void)loop;
	return ((const struct memtoll_store_key *)head)->tgid == GPOINTER_TO_UINT(pid);
}

static gboolean owner_is_of(gpointer id, gpointer owner, gpointer pid)
{
	(void)id;
	return ((const struct owner *)owner)->pid == GPOINTER_TO_UINT(pid);
}

void cpu_samples_executed(struct cpu_samples *samples, pid_t pid)
{
	struct held *held;
	guint i;

	/* Their addresses mean other code from now on: no name is better than a wrong one. */
	for (i = 0; i < samples->held->len; i++) {
		held = &g_array_index(samples->held, struct held, i);
		if (held->sample.tgid == (uint32_t)pid)
			held->unnamed = false;
	}
	g_hash_table_foreach_remove(samples->loops, loop_is_of, GINT_TO_POINTER(pid));
	g_hash_table_foreach_remove(samples->owners, owner_is_of, GINT_TO_POINTER(pid));
	store_code_forget(samples->code, pid);
	store_areas_forget(samples->areas, pid);
	allocator_stacks_forget_process(samples->stacks, pid);
}

/* ---- what is stored ---- */

static struct loop *loop_of(struct cpu_samples *samples, const struct stored_by *by, uint32_t tgid)
{
	struct memtoll_store_key head = { .ip = by->head, .tgid = tgid };
	struct loop *loop = g_hash_table_lookup(samples->loops, &head);

	if (!loop) {
		loop = g_new0(struct loop, 1);
		loop->head = head;
		g_hash_table_insert(samples->loops, &loop->head, loop);
	}
	return loop;
}

/*
 * By a register's value, or by what lies in memory behind the store. memset's own byte is older
 * evidence: behind the first stores of a block may be anything.
 */
static enum stored stored_sampled(const struct memtoll_sample *sample)
{
	if (sample->stores & STORES_REGISTER_ZERO)
		return STORED_ZERO;
	if (sample->stores & STORES_REGISTER_OTHER)
		return STORED_OTHER;
	if (sample->stores & STORES_MEMORY_ZERO)
		return STORED_ZERO;
	if (sample->flags & SAMPLE_MEMSET)
		return sample->flags & SAMPLE_FILL ? STORED_OTHER : STORED_ZERO;
	return sample->stores & STORES_MEMORY_OTHER ? STORED_OTHER : STORED_NOTHING;
}

/* STORED_NOTHING of code that fills: this sample does not tell with what. */
static enum stored stored_at(const struct held *held)
{
	const struct memtoll_sample *sample = &held->sample;

	if (!(sample->flags & SAMPLE_USER) || sample->flags & SAMPLE_PROBE)
		return STORED_NOTHING;
	if (held->by.kind == STORE_COPY)
		return STORED_COPY;
	if (held->by.kind == STORE_FILL && held->by.value != VALUE_SAMPLED)
		return held->by.value == VALUE_ZERO ? STORED_ZERO : STORED_OTHER;
	if (held->by.kind == STORE_FILL || sample->flags & SAMPLE_MEMSET)
		return stored_sampled(sample);
	return sample->flags & SAMPLE_MEMCPY ? STORED_COPY : STORED_NOTHING;
}

/* What other samples of the same loop say. */
static enum stored stored_elsewhere(struct cpu_samples *samples, const struct stored_by *by,
				    uint32_t tgid)
{
	const struct loop *loop = loop_of(samples, by, tgid);

	if (loop->zero + loop->other == 0)
		return STORED_NOTHING;
	return loop->zero > loop->other ? STORED_ZERO : STORED_OTHER;
}

static bool owner_at(const struct cpu_samples *samples, uint32_t pid, uint64_t address,
		     struct owner *owner)
{
	return ledger_owner(samples->ledger, (pid_t)pid, address, &owner->stack_id, &owner->fn) ||
	       sampled_owner(samples->sampled, (pid_t)pid, address, &owner->stack_id, &owner->fn);
}

static void find_owner(struct cpu_samples *samples, struct held *held)
{
	const struct memtoll_sample *sample = &held->sample;
	uint64_t store = sample->store;

	if (!store)
		return;
	/* What was stored last, before what is stored next: that may be the end of the block. */
	if (!owner_at(samples, sample->tgid, store - 1, &held->owner) &&
	    !owner_at(samples, sample->tgid, store, &held->owner))
		held->owner.area = store_areas_find(samples->areas, sample);
	if (!held->owner.stack_id && !*held->owner.area.area)
		return;
	if (g_hash_table_size(samples->owners) >= OWNERS_MAX)
		g_hash_table_remove_all(samples->owners);
	g_hash_table_insert(samples->owners, g_memdup2(&sample->stack_id, sizeof(sample->stack_id)),
			    g_memdup2(&held->owner, sizeof(held->owner)));
}

/*
 * Stores by one loop to the blocks of one place, or to one area, are spread over the same memory. A stack would be
 * one of the loop's instructions, too.
 */
static uint64_t spread_of(const struct held *held)
{
	struct memtoll_store_key head = { .ip = held->by.head, .tgid = held->sample.tgid };

	return held->owner.stack_id ^ ((uint64_t)key16_hash(&head) << 32 | (uint32_t)head.ip) ^
	       HASH_GOLDEN *
		       (g_str_hash(held->owner.area.area) ^ 31 * g_str_hash(held->owner.area.name));
}

/* What is there now, where nothing else tells: a filling leaves the same everywhere. */
static bool is_zero(const struct memtoll_run *run)
{
	uint64_t words[8], any = 0;
	size_t i;

	/* A handler in user mode would be asked for the page, and others' memory may be on swap. */
	if (run->fault_class == FAULT_USER || run->area == AREA_SHARED)
		return false;
	if (target_memory_read((pid_t)run->tgid, run->address + run->pages / 2 * MEMTOLL_PAGE_SIZE,
			       words, sizeof(words)))
		return false;
	for (i = 0; i < G_N_ELEMENTS(words); i++)
		any |= words[i];
	return !any;
}

/* Where none may be made, what the earlier looks at what this loop stored have found. */
static bool looks_zero(struct cpu_samples *samples, const struct stored_by *by,
		       const struct memtoll_run *run)
{
	struct loop *loop = loop_of(samples, by, run->tgid);
	uint64_t begin = now_ns();
	bool zero;

	if (!look_is_allowed(&samples->looks, begin))
		return loop->looked_zero > loop->looked_other;
	zero = is_zero(run);
	look_was_made(&samples->looks, begin, now_ns());
	loop->looked_zero += zero;
	loop->looked_other += !zero;
	return zero;
}

bool cpu_samples_clears(struct cpu_samples *samples, const struct memtoll_run *run)
{
	struct stored_by by;
	enum stored stored;

	if (!(run->flags & RUN_WRITE) || run->flags & (RUN_KERNEL_MODE | RUN_POPULATED) ||
	    run->pages < LOOP_PAGES)
		return false;
	by = store_code_of(samples->code, run);
	if (by.kind != STORE_FILL || by.value == VALUE_OTHER)
		return false;
	if (by.value == VALUE_ZERO)
		return true;
	stored = stored_elsewhere(samples, &by, run->tgid);
	return stored == STORED_NOTHING ? looks_zero(samples, &by, run) : stored == STORED_ZERO;
}

/* ---- counting ---- */

static bool names_syscall(enum place place)
{
	return place == PLACE_POPULATE || place == PLACE_PAGES || place == PLACE_CLEAR;
}

/*
 * Bytes of the filling, or the copy, that a sample is in; 0: not known. Samples come at any time of
 * it: on average half is left.
 */
static uint64_t length_of(const struct held *held)
{
	if (held->by.length)
		return held->by.length;
	return held->sample.left < LENGTH_MAX ? 2 * held->sample.left : 0;
}

static void add_judged(struct cpu_samples *samples, const struct held *held, enum stored stored)
{
	struct sample_key key = {
		.pid = held->sample.tgid,
		.place = sample_place(&samples->judge, &held->sample, stored, held->in_allocator),
		.in_fn = held->sample.in_fn,
		.stack_id = held->sample.stack_id,
	};
	struct sample_count *count;
	uint64_t length;

	if (key.place == PLACE_MEMSET || key.place == PLACE_COPY) {
		key.allocated_stack = held->owner.stack_id;
		key.allocated_fn = held->owner.fn;
		key.bytes_per_16_cycles = held->by.bytes_per_16_cycles;
	}
	if (names_syscall(key.place))
		key.in_fn = held->sample.syscall;
	count = g_hash_table_lookup(samples->counts, &key);
	if (!count) {
		count = g_new0(struct sample_count, 1);
		count->key = key;
		count->spread = spread_of(held);
		count->area = held->owner.area;
		g_hash_table_insert(samples->counts, &count->key, count);
	}
	count->samples++;
	count->clearing +=
		key.place == PLACE_FAULT && sample_clears_page(&samples->judge, &held->sample);
	length = length_of(held);
	count->lengths += length;
	count->measured += length != 0;
}

static void judge_held(struct cpu_samples *samples, const struct targets *targets)
{
	struct allocator_code code;
	const struct owner *owner;
	enum stored stored;
	guint i;

	for (i = 0; i < samples->held->len; i++) {
		struct held *held = &g_array_index(samples->held, struct held, i);

		if (held->unnamed) {
			code = allocator_stacks_judge(samples->stacks, targets,
						      held->sample.stack_id,
						      held->sample.flags & SAMPLE_MEMSET);
			held->sample.in_fn = code.fn;
			held->in_allocator = code.in_allocator;
		}
		stored = stored_at(held);
		if (held->by.kind == STORE_FILL && stored == STORED_NOTHING)
			stored = stored_elsewhere(samples, &held->by, held->sample.tgid);
		owner = held->sample.store ?
				NULL :
				g_hash_table_lookup(samples->owners, &held->sample.stack_id);
		if (owner)
			held->owner = *owner;
		add_judged(samples, held, stored);
	}
	g_array_set_size(samples->held, 0);
	if (g_hash_table_size(samples->loops) >= OWNERS_MAX)
		g_hash_table_remove_all(samples->loops);
}

/* Most samples are of stacks that there were before: they need not be held until the slice ends. */
static void name_if_known(const struct cpu_samples *samples, struct held *held)
{
	struct allocator_code code;

	held->unnamed = !allocator_stacks_known(samples->stacks, held->sample.stack_id,
						held->sample.flags & SAMPLE_MEMSET, &code);
	if (held->unnamed)
		return;
	held->sample.in_fn = code.fn;
	held->in_allocator = code.in_allocator;
}

void cpu_samples_add(struct cpu_samples *samples, const struct targets *targets,
		     const struct memtoll_sample *sample)
{
	struct held held = { .sample = *sample,
			     .in_allocator = sample->in_fn != FN_NONE,
			     .owner = { .pid = sample->tgid, .area = { "", "" } } };
	enum stored stored;

	if (!sample->in_fn)
		name_if_known(samples, &held);
	if (sample->flags & SAMPLE_USER && !(sample->flags & SAMPLE_PROBE))
		held.by = store_code_at(samples->code, sample);
	stored = stored_at(&held);
	if (held.by.kind == STORE_FILL && stored == STORED_ZERO)
		loop_of(samples, &held.by, sample->tgid)->zero++;
	else if (held.by.kind == STORE_FILL && stored == STORED_OTHER)
		loop_of(samples, &held.by, sample->tgid)->other++;
	if (stored == STORED_ZERO || stored == STORED_COPY)
		find_owner(samples, &held);
	if ((stored == STORED_ZERO || stored == STORED_COPY) && sample->store &&
	    held.by.kind != STORE_NONE)
		store_spread_add(samples->spread, spread_of(&held), sample->store);
	/* A library's names take a tenth of a second to read: not while a window may be open. */
	if (held.unnamed || (held.by.kind == STORE_FILL && stored == STORED_NOTHING) ||
	    ((stored == STORED_ZERO || stored == STORED_COPY) && !sample->store))
		g_array_append_val(samples->held, held);
	else
		add_judged(samples, &held, stored);
	/* Slices may be long, and processors many: then by what is known so far. */
	if (samples->held->len >= HELD_MAX)
		judge_held(samples, targets);
}

static void tell_stores(const struct cpu_samples *samples, const struct sample_count *count,
			struct sample_fact *fact)
{
	fact->spread_bytes = store_spread_bytes(samples->spread, count->spread);
	if (count->measured)
		fact->length_bytes = count->lengths / count->measured;
	if (count->key.allocated_stack)
		return;
	fact->area = count->area.area;
	fact->area_name = count->area.name;
}

int cpu_samples_commit(struct cpu_samples *samples, const struct targets *targets,
		       struct recording *recording, void (*on_stack)(void *context, uint64_t id),
		       void *context)
{
	GHashTableIter iter;
	gpointer value;
	int err = 0;

	judge_held(samples, targets);
	g_hash_table_iter_init(&iter, samples->counts);
	while (g_hash_table_iter_next(&iter, NULL, &value) && !err) {
		const struct sample_count *count = value;
		const struct sample_key *key = &count->key;
		struct sample_fact fact = {
			.pid = (pid_t)key->pid,
			.place = sample_place_name(key->place),
			.in_call = names_syscall(key->place) ? syscall_name((int16_t)key->in_fn) :
							       fn_name(key->in_fn),
			.stack_id = key->stack_id,
			.allocated_stack = key->allocated_stack,
			.allocated_call = key->allocated_fn == ALLOCATED_MMAP ?
						  map_fn_name(MAP_FN_MMAP) :
						  fn_name(key->allocated_fn),
			.bytes_per_16_cycles = key->bytes_per_16_cycles,
			.samples = count->samples,
			.area = "",
			.area_name = "",
			.clearing = count->clearing,
		};

		if (key->place == PLACE_MEMSET || key->place == PLACE_COPY)
			tell_stores(samples, count, &fact);
		on_stack(context, key->stack_id);
		on_stack(context, key->allocated_stack);
		err = recording_sample(recording, &fact);
		g_hash_table_iter_remove(&iter);
	}
	store_spread_next(samples->spread);
	return err;
}
