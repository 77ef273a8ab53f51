// SPDX-License-Identifier: GPL-2.0
#include "allocators/slow_path.h"

#include <glib.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "allocators/code_flow.h"
#include "allocators/slow_path_internal.h"

/* posix_memalign, _mid_memalign, _int_memalign: the call is in the third. */
#define LEVELS 4
#define FUNCTIONS_FOLLOWED 64

#define SIZES (FLOW_SIZE | FLOW_PADDED)

/* A walk from an exported function through what it hands the size to. */
struct descent {
	struct slow_search *search;
	struct slow_path *path; /* of the function, when the routine is known */
	uint64_t cut;
	unsigned int followed;
	bool by_jumps; /* so far: what is returned is what the exported function returns */
	bool passed;   /* the routine has been called on the way */
	bool bypassed; /* a block was returned that was read from memory */
	bool ambiguous;
};

void slow_refuse(struct slow_path *path, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(path->refusal, sizeof(path->refusal), format, args);
	va_end(args);
	path->found = false;
}

const char *slow_value_name(enum slow_value value)
{
	static const char *const names[] = { "size", "padded size", "chunk", "block" };

	return names[value];
}

/* The main arena or one that was looked up, or 0 where there is none; nothing else. */
bool slow_is_arena(const struct slow_search *search, const struct flow_value *value)
{
	if (value->may & ~(FLOW_DATA | FLOW_LOADED | FLOW_RETURNED | FLOW_NUMBER))
		return false;
	return !(value->may & FLOW_DATA) || !search->paths->arena ||
	       (uint64_t)value->at == search->paths->arena;
}

static bool is_size(const struct flow_value *value)
{
	return (value->may & SIZES) && !(value->may & ~(SIZES | FLOW_NUMBER));
}

bool slow_is_exported(const struct slow_search *search, uint64_t address)
{
	for (size_t fn = 0; fn < FN_COUNT; fn++)
		if (address && search->library->functions[fn] == address)
			return true;
	return false;
}

/* The state in which a call, or a jump out of a function, enters the next one. */
void slow_enter(const struct flow_state *state, bool is_call, struct flow_state *next)
{
	static const int8_t arguments[] = { FLOW_RDI, FLOW_RSI, FLOW_RDX, FLOW_RCX };
	struct flow_value *sp = &next->registers[FLOW_RSP];

	if (!is_call) {
		*next = *state;
		return;
	}
	flow_entry(next);
	for (size_t i = 0; i < G_N_ELEMENTS(arguments); i++)
		if (!(state->registers[arguments[i]].may & FLOW_STACK))
			next->registers[arguments[i]] = state->registers[arguments[i]];
	*sp = state->registers[FLOW_RSP];
	sp->at -= 8;
	next->registers[FLOW_RBP].may &= state->registers[FLOW_RBP].may;
	if (!next->registers[FLOW_RBP].may)
		next->registers[FLOW_RBP].may = FLOW_OTHER;
	for (size_t i = 0; i < FLOW_SLOTS; i++)
		if (state->slots[i].may == FLOW_FRAME)
			next->slots[i] = state->slots[i];
}

bool slow_site_fill(const struct flow_state *state, const struct instruction *one,
		    const struct flow_code *code, struct slow_site *site)
{
	const char *name = ZydisMnemonicGetString(one->insn.mnemonic);

	memset(site, 0, sizeof(*site));
	site->address = code->address + one->at;
	site->is_call = one->insn.meta.category == ZYDIS_CATEGORY_CALL;
	site->has_rbp = flow_caller_rbp(state, &site->rbp);
	snprintf(site->instruction, sizeof(site->instruction), "%s", name ? name : "");
	return flow_depth(state, &site->depth) &&
	       slow_is_emulated(code->code.bytes + one->at, one->insn.length);
}

/*
 * What the kernel emulates of what ends a block: call, jmp and jcc without prefixes, the same bytes
 * that placement.c takes for jumps (arch/x86/kernel/uprobes.c, branch_setup_xol_ops).
 */
bool slow_is_emulated(const uint8_t *code, size_t len)
{
	return (len == 5 && (code[0] == 0xe8 || code[0] == 0xe9)) ||
	       (len == 2 && (code[0] == 0xeb || (code[0] & 0xf0) == 0x70)) ||
	       (len == 6 && code[0] == 0x0f && (code[1] & 0xf0) == 0x80);
}

/* One function of the descent. */
struct visit {
	struct descent *descent;
	const struct flow_state *entry;
	struct flow all;
	struct flow first; /* by ways that have not met the routine */
	uint64_t address;
	unsigned int level;
};

/*
 * While the routine is looked for: is a function, where it is called for the first time, certainly
 * given the main arena and the size as it was asked for? Behind a call there are ways that do not
 * exist: the compiler knows of more functions than this that they never return.
 */
static void consider(const struct visit *visit, uint64_t target)
{
	struct slow_paths *paths = visit->descent->search->paths;
	struct instruction one;
	struct flow flow;
	uint64_t to;
	bool is_call;

	if (!flow_run(&visit->descent->search->code, visit->address, visit->entry, target, &flow))
		return;
	for (size_t offset = 0; offset < flow.end - flow.start; offset++) {
		const struct flow_state *state = flow_at(&flow, offset, &one);
		const struct flow_value *arena = state ? &state->registers[FLOW_RDI] : NULL;

		if (!state || !flow_leaves(&flow, &one, &to, &is_call) || to != target ||
		    arena->may != FLOW_DATA || state->registers[FLOW_RSI].may != FLOW_SIZE)
			continue;
		visit->descent->ambiguous |=
			paths->routine &&
			(paths->routine != target || paths->arena != (uint64_t)arena->at);
		paths->routine = target;
		paths->arena = (uint64_t)arena->at;
	}
	flow_free(&flow);
}

/* A call of the routine. */
static void add_site(struct descent *descent, const struct flow_state *state,
		     const struct instruction *one, bool again)
{
	const struct flow_value *size = &state->registers[FLOW_RSI];
	struct slow_path *path = descent->path;
	struct slow_site site;
	bool proved = slow_is_arena(descent->search, &state->registers[FLOW_RDI]) && is_size(size);

	/* A second try: ways lead there that do not exist, but with the size, too. */
	if (!proved && !(again && descent->by_jumps && (size->may & SIZES))) {
		/* Of others nothing has to be known; a constant is the library's own block. */
		descent->ambiguous |= !again && size->may != FLOW_NUMBER;
		return;
	}
	if (!slow_site_fill(state, one, &descent->search->code, &site)) {
		descent->ambiguous = true;
		return;
	}
	for (size_t i = 0; i < path->site_count; i++) {
		if (path->sites[i].address != site.address)
			continue;
		path->sites[i].again &= again;
		return;
	}
	if (path->site_count == SLOW_SITES_MAX) {
		descent->ambiguous = true;
		return;
	}
	site.number = FLOW_RSI;
	site.value = (size->may & SIZES) == FLOW_SIZE ? SLOW_SIZE : SLOW_PADDED;
	site.again = again;
	site.target = descent->search->paths->routine;
	site.main_arena = state->registers[FLOW_RDI].may == FLOW_DATA;
	path->sites[path->site_count++] = site;
}

/* A call's arguments; what is a part of the function itself has all registers and the frame. */
static bool hands_on_size(const struct flow_state *state, bool is_call)
{
	bool found = is_size(&state->registers[FLOW_RDI]) || is_size(&state->registers[FLOW_RSI]) ||
		     is_size(&state->registers[FLOW_RDX]) || is_size(&state->registers[FLOW_RCX]);

	for (size_t i = 0; i < FLOW_REGISTERS && !is_call; i++)
		found |= is_size(&state->registers[i]);
	for (size_t i = 0; i < FLOW_SLOTS && !is_call; i++)
		found |= is_size(&state->slots[i]);
	return found;
}

/* Is there a call of the routine that no followed way leads to? */
static bool has_unreached(const struct flow *flow, uint64_t routine)
{
	const struct flow_code *code = flow->code;
	struct instruction one;
	uint64_t target;
	size_t at = 0;
	bool is_call;

	while (at < flow->end - flow->start &&
	       code_decode(&code->code, flow->start + at - code->address, &one)) {
		if (!flow->states[at] && flow_leaves(flow, &one, &target, &is_call) &&
		    target == routine)
			return true;
		at += one.insn.length;
	}
	return false;
}

static bool descend(struct descent *descent, uint64_t address, const struct flow_state *state,
		    unsigned int level);

static void look_at(const struct visit *visit, size_t offset)
{
	struct descent *descent = visit->descent;
	const struct slow_search *search = descent->search;
	const struct flow_state *state = visit->all.states[offset];
	const struct flow_state *first = visit->first.states[offset];
	struct flow_state next;
	struct instruction one;
	uint64_t target;
	bool is_call;

	if (!flow_at(&visit->all, offset, &one))
		return;
	/* By a way that meets no call of the routine. */
	if (first && descent->by_jumps && !descent->passed &&
	    one.insn.meta.category == ZYDIS_CATEGORY_RET)
		descent->bypassed |=
			(first->registers[FLOW_RAX].may & (FLOW_LOADED | FLOW_BLOCK)) != 0;
	if (!flow_leaves(&visit->all, &one, &target, &is_call))
		return;
	if (first)
		state = first;
	if (descent->path && target == search->paths->routine) {
		add_site(descent, state, &one, !first || descent->passed);
		return;
	}
	if (!descent->path && (state->registers[FLOW_RDI].may & FLOW_DATA) &&
	    (state->registers[FLOW_RSI].may & FLOW_SIZE))
		consider(visit, target);
	descent->by_jumps &= !is_call;
	if (slow_is_exported(search, target) || !hands_on_size(state, !descent->by_jumps))
		return;
	/* The routine is called by what malloc is or ends in; its helpers are given sizes, too. */
	if (!descent->path && is_call)
		return;
	slow_enter(state, is_call, &next);
	descent->passed |= !first;
	if (!descend(descent, target, &next, visit->level + 1))
		descent->ambiguous |= descent->path && descent->by_jumps && !descent->passed;
}

/* False: it cannot be followed. */
static bool descend(struct descent *descent, uint64_t address, const struct flow_state *state,
		    unsigned int level)
{
	struct flow_code *code = &descent->search->code;
	uint64_t routine = descent->search->paths->routine;
	struct visit visit = { descent, state, .address = address, .level = level };
	bool by_jumps = descent->by_jumps, passed = descent->passed;

	if (level >= LEVELS || descent->followed++ >= FUNCTIONS_FOLLOWED ||
	    !flow_run(code, address, state, 0, &visit.all))
		return false;
	if (!flow_run(code, address, state, routine, &visit.first)) {
		flow_free(&visit.all);
		return false;
	}
	for (size_t offset = 0; offset < visit.all.end - visit.all.start; offset++) {
		descent->by_jumps = by_jumps;
		descent->passed = passed;
		look_at(&visit, offset);
	}
	descent->ambiguous |= descent->path && has_unreached(&visit.all, routine);
	descent->by_jumps = by_jumps;
	descent->passed = passed;
	flow_free(&visit.first);
	flow_free(&visit.all);
	return true;
}

/* The arguments of an exported function, at its entry. */
static void enter_exported(enum memtoll_fn fn, struct flow_state *state)
{
	struct flow_value *registers = state->registers;

	flow_entry(state);
	switch (fn) {
	case FN_MALLOC:
		registers[FLOW_RDI].may = FLOW_SIZE;
		break;
	case FN_CALLOC:
		registers[FLOW_RDI].may = FLOW_COUNT;
		registers[FLOW_RSI].may = FLOW_ELEMENT;
		break;
	case FN_REALLOC:
		registers[FLOW_RDI].may = FLOW_BLOCK;
		registers[FLOW_RSI].may = FLOW_SIZE;
		break;
	case FN_POSIX_MEMALIGN:
		registers[FLOW_RDX].may = FLOW_SIZE;
		break;
	case FN_ALIGNED_ALLOC:
	case FN_MEMALIGN:
		registers[FLOW_RSI].may = FLOW_SIZE;
		break;
	default:
		registers[FLOW_RDI].may = FLOW_BLOCK;
		break;
	}
}

static void find_sites(struct slow_search *search, enum memtoll_fn fn)
{
	struct slow_path *path = &search->paths->functions[fn];
	struct descent descent = { .search = search, .path = path, .by_jumps = true };
	struct flow_state state;

	enter_exported(fn, &state);
	descend(&descent, search->library->functions[fn], &state, 0);
	path->bypassed = descent.bypassed;
	path->found = path->site_count && !descent.ambiguous;
	if (descent.ambiguous)
		slow_refuse(path, "a call of the slow routine cannot be followed");
	else if (!path->found)
		slow_refuse(path, "no way to the routine that malloc and calloc share was found");
}

/* By malloc alone, then proved by what calloc calls with the same arena. */
static void find_routine(struct slow_search *search, struct slow_path *path)
{
	struct slow_paths *paths = search->paths;
	struct descent descent = { .search = search };
	struct flow_state state;

	enter_exported(FN_MALLOC, &state);
	descend(&descent, search->library->functions[FN_MALLOC], &state, 0);
	if (descent.ambiguous) {
		slow_refuse(path,
			    "malloc hands its main arena and the size to more than one function");
		paths->routine = 0;
	} else if (!paths->routine) {
		slow_refuse(path, "malloc hands no function its main arena and the size");
	}
}

static void add_code(const struct slow_library *library, uint64_t address, struct slow_path *path)
{
	struct slow_code *code = &path->code[path->code_count];

	for (size_t i = 0; i < path->code_count; i++)
		if (address >= path->code[i].start && address < path->code[i].end)
			return;
	if (path->code_count < G_N_ELEMENTS(path->code) &&
	    library->extent(address, &code->start, &code->end, library->argument))
		path->code_count++;
}

static void mark_inside(const struct slow_library *library, enum memtoll_fn fn,
			struct slow_path *path)
{
	add_code(library, library->functions[fn], path);
	for (size_t i = 0; i < path->site_count; i++) {
		struct slow_site *site = &path->sites[i];

		site->inside = path->code_count && site->address >= path->code[0].start &&
			       site->address < path->code[0].end;
		if (!site->shared)
			add_code(library, site->address, path);
	}
}

void slow_paths_find(const struct slow_library *library, struct slow_paths *paths)
{
	static const enum memtoll_fn allocating[] = { FN_CALLOC,	FN_MALLOC,
						      FN_REALLOC,	FN_POSIX_MEMALIGN,
						      FN_ALIGNED_ALLOC, FN_MEMALIGN };
	struct slow_search search = { .library = library, .paths = paths };
	struct slow_path reason = {};

	memset(paths, 0, sizeof(*paths));
	memcpy(paths->entries, library->functions, sizeof(paths->entries));
	if (!flow_code_init(&search.code, library->bytes, library->len, library->address))
		slow_refuse(&reason, "the decoder cannot be set up");
	search.code.data_start = library->data_start;
	search.code.data_end = library->data_end;
	search.code.extent = library->extent;
	search.code.argument = library->argument;
	if (!library->functions[FN_MALLOC] || !library->functions[FN_CALLOC])
		slow_refuse(&reason, "it does not export both malloc and calloc");
	else if (!*reason.refusal)
		find_routine(&search, &reason);
	for (size_t i = 0; i < G_N_ELEMENTS(allocating) && paths->routine; i++) {
		if (library->functions[allocating[i]])
			find_sites(&search, allocating[i]);
		/* calloc is the first. */
		if (!paths->functions[FN_CALLOC].found) {
			slow_refuse(&reason,
				    "calloc does not call what malloc calls with its arena");
			paths->routine = 0;
		}
	}
	if (paths->routine && library->functions[FN_FREE])
		slow_find_free(&search);
	for (size_t fn = 0; fn < FN_COUNT; fn++) {
		struct slow_path *path = &paths->functions[fn];

		if (path->found)
			mark_inside(library, fn, path);
		if (path->found || *path->refusal || !library->functions[fn])
			continue;
		slow_refuse(path, "%s",
			    *reason.refusal ? reason.refusal : "it calls other functions of these");
	}
	flow_code_free(&search.code);
}
