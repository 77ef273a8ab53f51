// SPDX-License-Identifier: GPL-2.0
#include "ledger/thresholds.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "base/ranges.h"

/* malloc.c, 64 bits: a chunk has a header of one word that counts, and is a multiple of 16. */
#define HEADER 8
#define CHUNK_BEFORE 16 /* the block begins so far into its chunk */
#define CHUNK_MIN 32
#define DEFAULT_VALUE (128ULL << 10)
#define DYNAMIC_MAX (32ULL << 20)
#define UNKNOWN ((struct bounds){ 0, UINT64_MAX })
#define ARENA_HEAP (64ULL << 20) /* HEAP_MAX_SIZE (malloc/arena.c), and aligned to it */

struct state {
	pid_t pid;
	bool glibc;
	bool reported;	  /* something of it */
	bool pinned;	  /* values do not move by themselves */
	bool read_pinned; /* as it was read */
	uint64_t start_ns;
	struct bounds bounds[THRESHOLD_NAMES];
	struct threshold_fact known[THRESHOLD_NAMES]; /* the latest, not yet reported */
	bool pending[THRESHOLD_NAMES];
	uint64_t read_ns;
	bool held;			       /* what was read last is not reported yet */
	struct bounds before[THRESHOLD_NAMES]; /* then: what was known until it was read */
	uint64_t freed_addr; /* block whose free is under way, since when, and in which thread */
	uint64_t freed_ns;
	uint32_t freed_tid;
	struct memtoll_mapping grew; /* the heap grew, in a call that has not returned */
};

struct thresholds {
	GHashTable *states; /* pid -> struct state */
	GArray *changes;    /* struct threshold_fact */
};

const char *threshold_name(enum threshold_name name)
{
	static const char *const names[] = { "mmap_threshold", "trim_threshold", "top_pad" };

	return name < THRESHOLD_NAMES ? names[name] : "";
}

const char *threshold_how_name(enum threshold_how how)
{
	static const char *const names[] = { "default", "tunable", "inherited", "freed", "mapped",
					     "grew",	"trimmed", "read",	"exec" };

	return how < THRESHOLD_HOWS ? names[how] : "";
}

struct thresholds *thresholds_new(void)
{
	struct thresholds *thresholds = g_new0(struct thresholds, 1);

	thresholds->states = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	thresholds->changes = g_array_new(FALSE, FALSE, sizeof(struct threshold_fact));
	return thresholds;
}

void thresholds_free(struct thresholds *thresholds)
{
	if (!thresholds)
		return;
	g_hash_table_destroy(thresholds->states);
	g_array_free(thresholds->changes, TRUE);
	g_free(thresholds);
}

static struct state *state_of(const struct thresholds *thresholds, pid_t pid)
{
	return g_hash_table_lookup(thresholds->states, GINT_TO_POINTER(pid));
}

/* ---- what is known ---- */

static void flush(struct thresholds *thresholds, struct state *state, enum threshold_name name)
{
	if (state->pending[name]) {
		g_array_append_val(thresholds->changes, state->known[name]);
		state->reported = true;
	}
	state->pending[name] = false;
}

static void flush_all(struct thresholds *thresholds, struct state *state)
{
	unsigned int i;

	for (i = 0; i < THRESHOLD_NAMES; i++)
		flush(thresholds, state, i);
	state->held = false;
}

static void set(struct state *state, enum threshold_name name, struct bounds bounds,
		enum threshold_how how, uint64_t time_ns, uint64_t stack_id, uint8_t fn)
{
	state->bounds[name] = bounds;
	state->known[name] = (struct threshold_fact){ .time_ns = time_ns,
						      .pid = state->pid,
						      .name = name,
						      .how = how,
						      .bounds = bounds,
						      .stack_id = stack_id,
						      .fn = fn };
	state->pending[name] = true;
}

/*
 * The value lies within these bounds. What contradicts that was changed by a call that is not seen
 * (mallopt), and then does not move any more.
 */
static void observe(struct thresholds *thresholds, struct state *state, enum threshold_name name,
		    struct bounds seen, enum threshold_how how,
		    const struct memtoll_mapping *mapping)
{
	struct bounds old = state->bounds[name];
	struct bounds both = { MAX(old.low, seen.low), MIN(old.high, seen.high) };

	/* What was read since is exact. */
	if (state->read_ns && mapping->start_ns <= state->read_ns)
		return;
	if (both.low == old.low && both.high == old.high)
		return;
	if (both.low > both.high) {
		flush(thresholds, state, name);
		state->pinned = true;
		both = seen;
	}
	set(state, name, both, how, mapping->start_ns, mapping->stack_id, mapping->in_fn);
}

/* ---- the beginning ---- */

static bool number_of(const char *text, uint64_t *value)
{
	char *end;
	uint64_t number = strtoull(text, &end, 0);

	if (end == text || *end)
		return false;
	*value = number;
	return true;
}

/*
 * A setting of the environment. GLIBC_TUNABLES goes before the older variable; of a tunable that is
 * there twice the second counts (parse_tunables(), elf/dl-tunables.c).
 */
static bool tunable(const char *tunables, const char *name, const char *variable, uint64_t *value)
{
	g_auto(GStrv) words = g_strsplit(tunables ? tunables : "", " ", -1);
	bool found = false, found_modern = false;
	size_t i, k;

	for (i = 0; words[i]; i++) {
		bool modern = g_str_has_prefix(words[i], "GLIBC_TUNABLES=");
		g_auto(GStrv) parts = modern ? g_strsplit(words[i] + 15, ":", -1) : NULL;

		for (k = 0; parts && parts[k]; k++) {
			if (!g_str_has_prefix(parts[k], name) || parts[k][strlen(name)] != '=')
				continue;
			found_modern |= number_of(parts[k] + strlen(name) + 1, value);
		}
		if (modern || found_modern || !g_str_has_prefix(words[i], variable) ||
		    words[i][strlen(variable)] != '=')
			continue;
		found |= number_of(words[i] + strlen(variable) + 1, value);
	}
	return found || found_modern;
}

static const char *const settings[][2] = {
	{ "glibc.malloc.mmap_threshold", "MALLOC_MMAP_THRESHOLD_" },
	{ "glibc.malloc.trim_threshold", "MALLOC_TRIM_THRESHOLD_" },
	{ "glibc.malloc.top_pad", "MALLOC_TOP_PAD_" },
	{ "glibc.malloc.mmap_max", "MALLOC_MMAP_MAX_" },
};

void thresholds_start(struct thresholds *thresholds, pid_t pid, uint64_t now_ns,
		      const char *tunables, bool from_start, pid_t parent)
{
	const struct state *from = parent ? state_of(thresholds, parent) : NULL;
	const struct state *before = state_of(thresholds, pid);
	struct state *state = g_new0(struct state, 1);
	uint64_t value;
	unsigned int i;

	state->pid = pid;
	state->start_ns = now_ns;
	for (i = 0; before && before->reported && i < THRESHOLD_NAMES; i++) {
		struct threshold_fact fact = { .time_ns = now_ns,
					       .pid = pid,
					       .name = i,
					       .how = THRESHOLD_EXEC,
					       .bounds = UNKNOWN };

		g_array_append_val(thresholds->changes, fact);
	}
	for (i = 0; i < THRESHOLD_NAMES; i++) {
		state->bounds[i] = UNKNOWN;
		if (from && (from->bounds[i].low || from->bounds[i].high != UINT64_MAX))
			set(state, i, from->bounds[i], THRESHOLD_INHERITED, now_ns, 0, FN_NONE);
		else if (!parent && tunable(tunables, settings[i][0], settings[i][1], &value))
			set(state, i, (struct bounds){ value, value }, THRESHOLD_TUNABLE, now_ns, 0,
			    FN_NONE);
		else if (!parent && from_start)
			set(state, i, (struct bounds){ DEFAULT_VALUE, DEFAULT_VALUE },
			    THRESHOLD_DEFAULT, now_ns, 0, FN_NONE);
	}
	for (i = 0; i < G_N_ELEMENTS(settings); i++)
		state->pinned |= tunable(tunables, settings[i][0], settings[i][1], &value);
	state->pinned |= from && from->pinned;
	g_hash_table_replace(thresholds->states, GINT_TO_POINTER(pid), state);
}

void thresholds_set_glibc(struct thresholds *thresholds, pid_t pid, bool glibc)
{
	struct state *state = state_of(thresholds, pid);

	if (state)
		state->glibc = glibc;
}

/* ---- records ---- */

/* What a request takes in the heap. */
static uint64_t chunk_size(uint64_t request)
{
	uint64_t size = (request + HEADER + 15) & ~15ULL;

	return MAX(size, CHUNK_MIN);
}

static bool is_free(uint8_t fn)
{
	return fn == FN_FREE || fn == FN_REALLOC || fn == FN_REALLOCARRAY;
}

/* Aligned blocks ask for more than the size that is seen. */
static bool is_plain(uint8_t fn)
{
	return fn == FN_MALLOC || fn == FN_CALLOC || fn == FN_REALLOC || fn == FN_REALLOCARRAY;
}

/* A free has raised the thresholds to these. */
static void raise_to(struct thresholds *thresholds, struct state *state, struct bounds map,
		     const struct memtoll_mapping *mapping)
{
	struct bounds trim = UNKNOWN;

	flush(thresholds, state, THRESHOLD_MMAP);
	flush(thresholds, state, THRESHOLD_TRIM);
	set(state, THRESHOLD_MMAP, map, THRESHOLD_FREED, mapping->start_ns, mapping->stack_id,
	    mapping->in_fn);
	if (map.low == map.high)
		trim = (struct bounds){ 2 * map.low, 2 * map.low };
	set(state, THRESHOLD_TRIM, trim, THRESHOLD_FREED, mapping->start_ns, mapping->stack_id,
	    mapping->in_fn);
}

/*
 * The record of a free comes after what it did has been read. It goes before what was read, and
 * takes the place of what it is the cause of. Where nothing was known before, it may have been so
 * already, and is nobody's doing.
 */
static void raised_before(struct thresholds *thresholds, struct state *state, uint64_t size,
			  const struct memtoll_mapping *mapping)
{
	struct bounds read[THRESHOLD_NAMES];
	struct threshold_fact known[THRESHOLD_NAMES];
	bool pending[THRESHOLD_NAMES], proved;
	unsigned int i;

	memcpy(read, state->bounds, sizeof(read));
	memcpy(known, state->known, sizeof(known));
	memcpy(pending, state->pending, sizeof(pending));
	proved = size == read[THRESHOLD_MMAP].low || 2 * size == read[THRESHOLD_TRIM].low;
	if (state->before[THRESHOLD_MMAP].high == UINT64_MAX ||
	    size <= state->before[THRESHOLD_MMAP].high || (state->pinned && !proved))
		return;
	state->pending[THRESHOLD_MMAP] = false;
	state->pending[THRESHOLD_TRIM] = false;
	raise_to(thresholds, state, (struct bounds){ size, size }, mapping);
	state->before[THRESHOLD_MMAP] = state->bounds[THRESHOLD_MMAP];
	state->before[THRESHOLD_TRIM] = state->bounds[THRESHOLD_TRIM];
	for (i = 0; i < THRESHOLD_NAMES; i++) {
		if (state->bounds[i].low == read[i].low)
			continue;
		flush(thresholds, state, i);
		state->bounds[i] = read[i];
		state->known[i] = known[i];
		state->pending[i] = pending[i];
	}
}

/* A block with a mapping of its own is freed: of its chunk's size, alignment before it left out. */
static void on_unmapped(struct thresholds *thresholds, struct state *state,
			const struct memtoll_mapping *mapping)
{
	uint64_t end = mapping->addr + PAGE_CEIL(mapping->len), size = end - mapping->addr;
	uint64_t chunk = state->freed_addr - CHUNK_BEFORE, began_ns = mapping->start_ns;
	const struct bounds *now = &state->bounds[THRESHOLD_MMAP];

	/* A heap that has become empty, with the last block in it: that moves no threshold. */
	if (size == ARENA_HEAP && !(mapping->addr % ARENA_HEAP))
		return;
	/* realloc frees where no bytes are asked; else it has copied, which moves nothing. */
	if (mapping->in_fn != FN_FREE && mapping->in_size)
		return;
	if (state->freed_tid == mapping->tid && chunk >= mapping->addr && chunk < end) {
		size = end - chunk;
		began_ns = state->freed_ns;
		state->freed_addr = 0;
	}
	/* Its flags count as well there: a chunk of just that size is too large. */
	if (size >= DYNAMIC_MAX)
		return;
	if (state->held && began_ns <= state->read_ns && (state->pinned || size <= now->low))
		raised_before(thresholds, state, size, mapping);
	else if (!state->pinned && size > now->low)
		raise_to(thresholds, state,
			 (struct bounds){ size, now->high == UINT64_MAX ? UINT64_MAX :
									  MAX(now->high, size) },
			 mapping);
}

static void on_brk(struct thresholds *thresholds, struct state *state,
		   const struct memtoll_mapping *mapping)
{
	uint64_t before = mapping->addr, after = mapping->result, block, pad;

	if (after > before && is_plain(mapping->in_fn)) {
		block = chunk_size(mapping->in_size);
		/*
		 * By block + top_pad + CHUNK_MIN - what was left, in whole pages. Less than that: a
		 * second call that mends the heap's alignment, or not for this block. A thread's
		 * first call also makes its cache, of less than a page.
		 */
		pad = after - before;
		if (pad < block)
			return;
		state->grew = *mapping;
		block += CHUNK_MIN + 2 * PAGE;
		observe(thresholds, state, THRESHOLD_TOP_PAD,
			(struct bounds){ pad > block ? pad - block : 0, pad }, THRESHOLD_GREW,
			mapping);
	} else if (after < before && is_free(mapping->in_fn)) {
		/* The top was what is gone, top_pad, the smallest chunk, and less than a page. */
		pad = state->bounds[THRESHOLD_TOP_PAD].high;
		if (pad != UINT64_MAX)
			observe(thresholds, state, THRESHOLD_TRIM,
				(struct bounds){ 0, before - after + pad + CHUNK_MIN + PAGE },
				THRESHOLD_TRIMMED, mapping);
	}
}

void thresholds_mapping(struct thresholds *thresholds, const struct memtoll_mapping *mapping)
{
	struct state *state = state_of(thresholds, mapping->tgid);

	/* Of the image before an exec. */
	if (!state || !state->glibc || mapping->start_ns < state->start_ns || mapping->result < 0)
		return;
	if (mapping->map_fn == MAP_FN_MUNMAP && is_free(mapping->in_fn))
		on_unmapped(thresholds, state, mapping);
	else if (mapping->map_fn == MAP_FN_BRK && mapping->result)
		on_brk(thresholds, state, mapping);
}

void thresholds_block(struct thresholds *thresholds, const struct memtoll_block *block)
{
	struct state *state = state_of(thresholds, block->tgid);
	const struct memtoll_mapping call = { .start_ns = block->start_ns,
					      .stack_id = block->stack_id,
					      .in_fn = block->fn };

	if (!state || block->start_ns < state->start_ns)
		return;
	if (block->fn == FN_FREE) {
		state->freed_addr = block->old_addr;
		state->freed_ns = block->start_ns;
		state->freed_tid = block->tid;
	}
	if (!state->glibc || !block->addr || !is_plain(block->fn) || block->old_addr ||
	    !(block->flags & BLOCK_GLIBC))
		return;
	if (block->flags & BLOCK_MMAPPED)
		observe(thresholds, state, THRESHOLD_MMAP,
			(struct bounds){ 0, chunk_size(block->size) }, THRESHOLD_MAPPED, &call);
	else if (!(block->flags & BLOCK_ARENA) && state->grew.tid == block->tid &&
		 state->grew.in_size == block->size && state->grew.start_ns >= block->start_ns)
		/* Larger than the top was, but not mapped by itself. */
		observe(thresholds, state, THRESHOLD_MMAP,
			(struct bounds){ chunk_size(block->size) + 1, UINT64_MAX }, THRESHOLD_GREW,
			&call);
}

/*
 * The values do not move any more: mallopt was called since they were last read, before or after
 * the frees that were seen meanwhile. What was after it moved nothing. A free that left what was
 * read now was before it, and so were those before that one.
 */
static void retract(struct thresholds *thresholds, pid_t pid, const uint64_t *values)
{
	const struct threshold_fact *fact;
	uint64_t proved_ns = 0;
	guint i;

	for (i = 0; i < thresholds->changes->len; i++) {
		fact = &g_array_index(thresholds->changes, struct threshold_fact, i);
		if (fact->pid == pid && fact->how == THRESHOLD_FREED &&
		    fact->bounds.low == values[fact->name])
			proved_ns = MAX(proved_ns, fact->time_ns);
	}
	while (i--) {
		fact = &g_array_index(thresholds->changes, struct threshold_fact, i);
		if (fact->pid == pid && fact->how == THRESHOLD_FREED && fact->time_ns > proved_ns)
			g_array_remove_index(thresholds->changes, i);
	}
}

void thresholds_read(struct thresholds *thresholds, pid_t pid, uint64_t now_ns,
		     const uint64_t *values, bool pinned)
{
	struct state *state = state_of(thresholds, pid);
	unsigned int i, untouched = 0;

	if (!state || !state->glibc)
		return;
	/* What a free has changed since is newer. */
	if (state->known[THRESHOLD_MMAP].how == THRESHOLD_FREED &&
	    state->known[THRESHOLD_MMAP].time_ns > now_ns)
		return;
	/* Before its first call glibc has not read the environment. */
	for (i = 0; i < THRESHOLD_NAMES; i++)
		untouched += values[i] == DEFAULT_VALUE;
	if (untouched == THRESHOLD_NAMES && state->pinned && !pinned)
		return;
	flush_all(thresholds, state);
	if (pinned && !state->read_pinned)
		retract(thresholds, pid, values);
	state->pinned |= pinned;
	state->read_pinned = pinned;
	state->read_ns = now_ns;
	memcpy(state->before, state->bounds, sizeof(state->before));
	for (i = 0; i < THRESHOLD_NAMES; i++) {
		const struct bounds *known = &state->bounds[i];

		if (known->low == values[i] && known->high == values[i])
			continue;
		set(state, i, (struct bounds){ values[i], values[i] }, THRESHOLD_READ, now_ns, 0,
		    FN_NONE);
		state->held = true;
	}
}

bool thresholds_get(const struct thresholds *thresholds, pid_t pid, enum threshold_name name,
		    struct bounds *bounds)
{
	const struct state *state = state_of(thresholds, pid);

	*bounds = UNKNOWN;
	if (!state || !state->glibc)
		return false;
	*bounds = state->bounds[name];
	return bounds->low || bounds->high != UINT64_MAX;
}

void thresholds_forget(struct thresholds *thresholds, pid_t pid)
{
	struct state *state = state_of(thresholds, pid);

	/* What was held back goes with the next. */
	if (state && state->glibc && state->held)
		flush_all(thresholds, state);
	g_hash_table_remove(thresholds->states, GINT_TO_POINTER(pid));
}

void thresholds_drain(struct thresholds *thresholds, bool last, threshold_fn *on_fact,
		      void *context)
{
	GHashTableIter iter;
	gpointer value;
	guint i;

	g_hash_table_iter_init(&iter, thresholds->states);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct state *state = value;

		for (i = 0; i < THRESHOLD_NAMES && state->glibc; i++)
			if (last || !state->held || state->known[i].how != THRESHOLD_READ)
				flush(thresholds, state, i);
	}
	for (i = 0; i < thresholds->changes->len; i++)
		on_fact(context, &g_array_index(thresholds->changes, struct threshold_fact, i));
	g_array_set_size(thresholds->changes, 0);
}
