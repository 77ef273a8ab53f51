// SPDX-License-Identifier: GPL-2.0
/*
 * slow_path_free.c: the way past the thread's cache in free. A block that goes into the cache is
 * stored in a list of it, so code from which that store can still be reached has not passed it.
 * Since 2.41 free stores it itself and calls what takes all others (_int_free_chunk); before, every
 * block goes to _int_free, and the place is an instruction of that.
 */
#include <glib.h>
#include <string.h>

#include "allocators/slow_path_internal.h"

/* The ways through a function, as bits of each offset. */
#define KEEPS (1U << 0)	     /* stores the block in memory: in the list of the cache */
#define MAY_KEEP (1U << 1)   /* from here that may still be reached */
#define MAY_RETURN (1U << 2) /* from here the end may be reached */
#define HAS_KEPT (1U << 3)   /* the store may have been before */
#define ENDS (1U << 4)

struct ways {
	struct flow flow;
	uint8_t *bits;
	size_t len;
	uint64_t avoided; /* a function whose call is no way on */
};

static size_t next_of(const struct ways *ways, const struct instruction *one, size_t next[2])
{
	bool is_call;
	uint64_t target;

	if (ways->avoided && flow_leaves(&ways->flow, one, &target, &is_call) &&
	    target == ways->avoided)
		return 0;
	return flow_next(&ways->flow, one, 0, next);
}

/* One round over all instructions: true if some bit was new. */
static bool spread(struct ways *ways)
{
	struct instruction one;
	bool changed = false;
	size_t next[2];

	for (size_t i = ways->len; i-- > 0;) {
		uint8_t bits = ways->bits[i];
		size_t count;

		if (!flow_at(&ways->flow, i, &one))
			continue;
		count = next_of(ways, &one, next);
		for (size_t n = 0; n < count; n++) {
			uint8_t *behind = &ways->bits[next[n]];

			bits |= *behind & (MAY_KEEP | MAY_RETURN);
			if ((bits & (KEEPS | HAS_KEPT)) && !(*behind & HAS_KEPT)) {
				*behind |= HAS_KEPT;
				changed = true;
			}
		}
		changed |= bits != ways->bits[i];
		ways->bits[i] = bits;
	}
	return changed;
}

static void ways_find(struct ways *ways, uint64_t avoided)
{
	struct instruction one;

	ways->avoided = avoided;
	ways->len = ways->flow.end - ways->flow.start;
	g_free(ways->bits);
	ways->bits = g_new0(uint8_t, ways->len);
	for (size_t i = 0; i < ways->len; i++) {
		const struct flow_state *state = flow_at(&ways->flow, i, &one);
		const struct flow_value *stored = state ? flow_stored(state, &one) : NULL;

		if (stored && stored->may == FLOW_BLOCK)
			ways->bits[i] |= KEEPS | MAY_KEEP;
		if (state && one.insn.meta.category == ZYDIS_CATEGORY_RET)
			ways->bits[i] |= ENDS | MAY_RETURN;
	}
	while (spread(ways))
		;
}

static void ways_free(struct ways *ways)
{
	flow_free(&ways->flow);
	g_free(ways->bits);
}

/* Does some way store the block and then return? */
static bool keeps(const struct ways *ways)
{
	for (size_t i = 0; i < ways->len; i++)
		if ((ways->bits[i] & (KEEPS | MAY_RETURN)) == (KEEPS | MAY_RETURN))
			return true;
	return false;
}

static bool is_past(const struct ways *ways, size_t offset)
{
	return ways->flow.states[offset] && (ways->bits[offset] & MAY_RETURN) &&
	       !(ways->bits[offset] & (MAY_KEEP | HAS_KEPT));
}

/* Does a function call another one, or go there? */
static bool goes_to(struct slow_search *search, uint64_t address, uint64_t where)
{
	struct flow_state state;
	struct instruction one;
	struct flow flow;
	bool found = false;
	bool is_call;
	uint64_t target;

	flow_entry(&state);
	if (!where || !flow_run(&search->code, address, &state, 0, &flow))
		return false;
	for (size_t i = 0; i < flow.end - flow.start && !found; i++)
		found = flow_at(&flow, i, &one) && flow_leaves(&flow, &one, &target, &is_call) &&
			target == where;
	flow_free(&flow);
	return found;
}

/* What free hands the chunk to. */
struct handed {
	struct flow_state state; /* at the place where it is */
	uint64_t target;
	size_t offset;
	bool is_call;
};

/* With the arena, and the one of them that unmaps it. Targets are 0 where there is none. */
static bool find_handed(struct slow_search *search, const struct flow *flow,
			struct handed *released, struct handed *unmapped)
{
	struct instruction one;

	released->target = 0;
	unmapped->target = 0;
	for (size_t i = 0; i < flow->end - flow->start; i++) {
		const struct flow_state *state = flow_at(flow, i, &one);
		struct handed handed = { .offset = i };
		const struct flow_value *registers;
		struct handed *into = NULL;

		if (!state || !flow_leaves(flow, &one, &handed.target, &handed.is_call))
			continue;
		registers = state->registers;
		handed.state = *state;
		if (registers[FLOW_RSI].may == FLOW_CHUNK &&
		    (registers[FLOW_RDI].may & FLOW_DATA) &&
		    slow_is_arena(search, &registers[FLOW_RDI]))
			into = released;
		else if (registers[FLOW_RDI].may == FLOW_CHUNK &&
			 goes_to(search, handed.target, search->library->munmap))
			into = unmapped;
		if (!into)
			continue;
		/* A second place would have to be told apart from a second call. */
		if (into->target)
			return false;
		*into = handed;
	}
	return true;
}

/* target: of what leaves the function there; 0: it goes on in it. */
static bool add_site(struct slow_search *search, const struct flow *flow, size_t offset,
		     int8_t number, enum slow_value value, uint64_t target)
{
	struct slow_path *path = &search->paths->functions[FN_FREE];
	struct slow_site *site = &path->sites[path->site_count];
	struct instruction one;
	const struct flow_state *state = flow_at(flow, offset, &one);

	if (!state || path->site_count == SLOW_SITES_MAX ||
	    !slow_site_fill(state, &one, &search->code, site))
		return false;
	site->number = number;
	site->target = target;
	site->value = value;
	path->site_count++;
	return true;
}

/* The only instruction past the cache to which a way from before leads; false: not one. */
static bool first_past(const struct ways *ways, size_t *offset)
{
	struct instruction one;
	bool found = false;
	size_t next[2];

	for (size_t i = 0; i < ways->len; i++) {
		size_t count;

		if (!flow_at(&ways->flow, i, &one) || !(ways->bits[i] & MAY_KEEP))
			continue;
		count = next_of(ways, &one, next);
		for (size_t n = 0; n < count; n++) {
			if (!is_past(ways, next[n]) || (found && *offset == next[n]))
				continue;
			if (found)
				return false;
			*offset = next[n];
			found = true;
		}
	}
	return found;
}

/* Whether the ways on from an instruction lead back to it. */
static bool is_repeated(const struct ways *ways, size_t offset)
{
	g_autofree bool *seen = g_new0(bool, ways->len);
	g_autoptr(GArray) open = g_array_new(FALSE, FALSE, sizeof(size_t));
	struct instruction one;
	size_t at = offset, next[2], count;

	g_array_append_val(open, at);
	while (open->len) {
		at = g_array_index(open, size_t, open->len - 1);
		g_array_set_size(open, open->len - 1);
		if (!flow_at(&ways->flow, at, &one))
			continue;
		count = next_of(ways, &one, next);
		for (size_t n = 0; n < count; n++) {
			if (next[n] == offset)
				return true;
			if (!seen[next[n]])
				g_array_append_val(open, next[n]);
			seen[next[n]] = true;
		}
	}
	return false;
}

/* On the straight way from there, an instruction that is emulated, and a register with the chunk. */
static bool place_behind(struct slow_search *search, const struct ways *ways, size_t offset)
{
	struct instruction one;
	const struct flow_state *state;
	size_t next[2];

	while (is_past(ways, offset) && (state = flow_at(&ways->flow, offset, &one))) {
		if (slow_is_emulated(search->code.code.bytes + one.at, one.insn.length)) {
			for (int8_t reg = 0; reg < FLOW_REGISTERS; reg++) {
				uint32_t may = state->registers[reg].may;

				if (may == FLOW_CHUNK || may == FLOW_BLOCK)
					return !is_repeated(ways, offset) &&
					       add_site(search, &ways->flow, offset, reg,
							may == FLOW_CHUNK ? SLOW_CHUNK : SLOW_BLOCK,
							0);
			}
			return false;
		}
		if (next_of(ways, &one, next) != 1)
			return false;
		offset = next[0];
	}
	return false;
}

/*
 * Everything that calls it. Whatever else is among it, by bytes that look like a call, nobody
 * returns to. False: too many.
 */
static bool find_others(struct slow_search *search)
{
	struct slow_paths *paths = search->paths;
	const uint8_t *bytes = search->code.code.bytes;
	size_t len = search->code.code.len;
	int32_t distance;

	for (size_t i = 0; i + 5 <= len; i++) {
		uint64_t next = search->code.address + i + 5;

		if (bytes[i] != 0xe8)
			continue;
		memcpy(&distance, bytes + i + 1, sizeof(distance));
		if (next + (uint64_t)(int64_t)distance != paths->release)
			continue;
		if (paths->other_count == SLOW_OTHERS_MAX)
			return false;
		paths->others[paths->other_count++] = next;
	}
	return true;
}

/* Other functions hand chunks on to it, too: how free is told from these. */
static bool tell_apart(struct slow_search *search, const struct flow *flow,
		       const struct handed *released)
{
	struct slow_path *path = &search->paths->functions[FN_FREE];
	struct slow_site *site = &path->sites[path->site_count - 1];
	struct instruction one;
	uint32_t depth;

	if (!flow_at(flow, released->offset, &one) || !flow_depth(&released->state, &depth))
		return false;
	site->shared = true;
	if (released->is_call) {
		depth += 8;
		site->returns_to = flow->start + released->offset + one.insn.length;
	} else if (!find_others(search)) {
		return false;
	}
	site->returns_at = site->depth - depth;
	return true;
}

/* The cache is asked by the function that every block is handed to. */
static void find_in_release(struct slow_search *search, const struct flow *flow,
			    const struct handed *released)
{
	struct slow_path *path = &search->paths->functions[FN_FREE];
	struct flow_state state;
	struct ways ways = {};
	size_t offset;

	slow_enter(&released->state, released->is_call, &state);
	if (!flow_run(&search->code, released->target, &state, 0, &ways.flow)) {
		slow_refuse(path, "the function that free hands its blocks to cannot be followed");
		return;
	}
	ways_find(&ways, 0);
	if (!keeps(&ways))
		slow_refuse(path, "no cache of the thread is found that free asks first");
	else if (!first_past(&ways, &offset) || !place_behind(search, &ways, offset))
		slow_refuse(path, "every block is handed on before the thread's cache is asked, and"
				  " behind that is no emulated place");
	else if (!tell_apart(search, flow, released))
		slow_refuse(path, "free cannot be told from others that hand chunks on");
	else
		path->found = path->bypassed = true;
	ways_free(&ways);
}

static void find_in_free(struct slow_search *search, struct ways *ways)
{
	struct slow_path *path = &search->paths->functions[FN_FREE];
	struct handed released, unmapped;

	if (!find_handed(search, &ways->flow, &released, &unmapped)) {
		slow_refuse(path, "free hands blocks on at more than one place");
		return;
	}
	if (!released.target) {
		slow_refuse(path, "free hands no function an arena and the chunk");
		return;
	}
	search->paths->release = released.target;
	ways_find(ways, released.target);
	if (!keeps(ways)) {
		find_in_release(search, &ways->flow, &released);
	} else if (ways->bits[released.offset] & (MAY_KEEP | HAS_KEPT)) {
		slow_refuse(path,
			    "free may put a block into the thread's cache and hand it on, too");
	} else {
		path->found = add_site(search, &ways->flow, released.offset, FLOW_RSI, SLOW_CHUNK,
				       released.target);
		path->bypassed = path->found;
		if (!path->found)
			slow_refuse(path,
				    "the kernel would single-step where free hands a block on");
	}
	if (path->found && unmapped.target &&
	    add_site(search, &ways->flow, unmapped.offset, FLOW_RDI, SLOW_CHUNK, unmapped.target))
		path->sites[path->site_count - 1].mapped = true;
}

void slow_find_free(struct slow_search *search)
{
	struct flow_state state;
	struct ways ways = {};

	flow_entry(&state);
	state.registers[FLOW_RDI].may = FLOW_BLOCK;
	if (!flow_run(&search->code, search->library->functions[FN_FREE], &state, 0, &ways.flow)) {
		slow_refuse(&search->paths->functions[FN_FREE], "its code cannot be followed");
		return;
	}
	find_in_free(search, &ways);
	ways_free(&ways);
}
