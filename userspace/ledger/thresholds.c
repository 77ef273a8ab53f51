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

struct state {
	pid_t pid;
	bool glibc;
	bool reported; /* something of it */
	bool pinned;   /* values do not move by themselves */
	uint64_t start_ns;
	struct bounds bounds[THRESHOLD_NAMES];
	struct threshold_fact known[THRESHOLD_NAMES]; /* the latest, not yet reported */
	bool pending[THRESHOLD_NAMES];
	enum threshold_how how[THRESHOLD_NAMES]; /* of the latest, reported or not */
	uint64_t read_ns;
	uint64_t freed_addr; /* block whose free is under way, and in which thread */
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

static void set(struct state *state, enum threshold_name name, struct bounds bounds,
		enum threshold_how how, uint64_t time_ns, uint64_t stack_id, uint8_t fn)
{
	state->bounds[name] = bounds;
	state->how[name] = how;
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

/* A setting of the environment. GLIBC_TUNABLES goes before the older variable. */
static bool tunable(const char *tunables, const char *name, const char *variable, uint64_t *value)
{
	g_auto(GStrv) words = g_strsplit(tunables ? tunables : "", " ", -1);
	bool found = false;
	char *end;
	size_t i, k;

	for (i = 0; words[i]; i++) {
		bool modern = g_str_has_prefix(words[i], "GLIBC_TUNABLES=");
		g_auto(GStrv) parts = modern ? g_strsplit(words[i] + 15, ":", -1) : NULL;

		for (k = 0; parts && parts[k]; k++) {
			if (!g_str_has_prefix(parts[k], name) || parts[k][strlen(name)] != '=')
				continue;
			*value = strtoull(parts[k] + strlen(name) + 1, &end, 0);
			if (end > parts[k] + strlen(name) + 1 && !*end)
				return true;
		}
		if (modern || !g_str_has_prefix(words[i], variable) ||
		    words[i][strlen(variable)] != '=')
			continue;
		*value = strtoull(words[i] + strlen(variable) + 1, &end, 0);
		found = end > words[i] + strlen(variable) + 1 && !*end;
	}
	return found;
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

/* A block with a mapping of its own is freed: of its chunk's size, alignment before it left out. */
static void on_unmapped(struct thresholds *thresholds, struct state *state,
			const struct memtoll_mapping *mapping)
{
	uint64_t end = mapping->addr + PAGE_CEIL(mapping->len), size = end - mapping->addr;
	struct bounds *now = &state->bounds[THRESHOLD_MMAP], moved;
	uint64_t chunk = state->freed_addr - CHUNK_BEFORE;

	if (state->freed_tid == mapping->tid && chunk > mapping->addr && chunk < end)
		size = end - chunk;
	if (state->pinned || size > DYNAMIC_MAX)
		return;
	if (size <= now->low) {
		/* What was read a moment ago was set by this call. */
		if (state->how[THRESHOLD_MMAP] != THRESHOLD_READ || size != now->low ||
		    now->high != now->low || mapping->start_ns > state->read_ns)
			return;
		state->pending[THRESHOLD_MMAP] = false;
		state->pending[THRESHOLD_TRIM] = false;
	}
	moved = (struct bounds){ MAX(now->low, size),
				 now->high == UINT64_MAX ? UINT64_MAX : MAX(now->high, size) };
	flush(thresholds, state, THRESHOLD_MMAP);
	flush(thresholds, state, THRESHOLD_TRIM);
	set(state, THRESHOLD_MMAP, moved, THRESHOLD_FREED, mapping->start_ns, mapping->stack_id,
	    mapping->in_fn);
	if (moved.low != moved.high)
		moved = UNKNOWN;
	set(state, THRESHOLD_TRIM,
	    (struct bounds){ 2 * moved.low,
			     moved.high == UINT64_MAX ? UINT64_MAX : 2 * moved.high },
	    THRESHOLD_FREED, mapping->start_ns, mapping->stack_id, mapping->in_fn);
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

void thresholds_read(struct thresholds *thresholds, pid_t pid, uint64_t now_ns,
		     const uint64_t *values)
{
	struct state *state = state_of(thresholds, pid);
	unsigned int i, untouched = 0;

	if (!state || !state->glibc)
		return;
	/* Before its first call glibc has not read the environment. */
	for (i = 0; i < THRESHOLD_NAMES; i++)
		untouched += values[i] == DEFAULT_VALUE;
	if (untouched == THRESHOLD_NAMES && state->pinned)
		return;
	state->read_ns = now_ns;
	for (i = 0; i < THRESHOLD_NAMES; i++) {
		const struct bounds *known = &state->bounds[i];

		if (known->low == values[i] && known->high == values[i])
			continue;
		if (values[i] < known->low || values[i] > known->high)
			flush(thresholds, state, i);
		set(state, i, (struct bounds){ values[i], values[i] }, THRESHOLD_READ, now_ns, 0,
		    FN_NONE);
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
	g_hash_table_remove(thresholds->states, GINT_TO_POINTER(pid));
}

void thresholds_drain(struct thresholds *thresholds, threshold_fn *on_fact, void *context)
{
	GHashTableIter iter;
	gpointer value;
	guint i;

	g_hash_table_iter_init(&iter, thresholds->states);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct state *state = value;

		for (i = 0; i < THRESHOLD_NAMES && state->glibc; i++)
			flush(thresholds, state, i);
	}
	for (i = 0; i < thresholds->changes->len; i++)
		on_fact(context, &g_array_index(thresholds->changes, struct threshold_fact, i));
	g_array_set_size(thresholds->changes, 0);
}
