// SPDX-License-Identifier: GPL-2.0
#include "probes/slow_places.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/wire/cookies.h"
#include "bpf/wire/slow_places.h"
#include "memtoll.skel.h"

/* tcache_max_bytes (malloc.c), unless a tunable says otherwise. */
#define CACHED_DEFAULT 1032
/* By how much less than its largest chunk may be asked for. */
#define CHUNK_ROUND 16

#define CALL_BYTES 5 /* call rel32: no other is emulated */
#define WORDS_MAX 255

struct search {
	struct memtoll_bpf *bpf;
	const struct allocator_module *module;
	const struct slow_paths *paths;
	__u16 *number;
	struct slow_places *places;
	enum memtoll_fn fn;
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct search *search, const char *format,
							 ...)
{
	struct slow_places *places = search->places;
	va_list args;

	va_start(args, format);
	if (!*places->refusal)
		vsnprintf(places->refusal, sizeof(places->refusal), format, args);
	va_end(args);
	return false;
}

/* from: where the call returns to; 0: the place is in the function itself. */
static bool tell(struct search *search, uint64_t probed, uint64_t from,
		 const struct memtoll_slow_caller *caller)
{
	const struct memtoll_slow_key key = {
		.place = *search->number,
		.from = from ? (__s32)(from - probed) : 0,
	};

	if (!bpf_map_update_elem(bpf_map__fd(search->bpf->maps.slow_callers), &key, caller,
				 BPF_ANY))
		return true;
	return refuse(search, "the kernel has no room for them: %s", strerror(errno));
}

/* above: bytes from the stack pointer at the probe to the return address of the function. */
static bool tell_site(struct search *search, uint64_t probed, uint64_t from,
		      const struct slow_site *site, uint32_t above, bool retried)
{
	const struct memtoll_slow_caller caller = {
		.function = (__s32)(search->paths->entries[search->fn] - probed),
		.above = above,
		.rbp = site->rbp,
		.retried = retried,
	};

	return tell(search, probed, from, &caller);
}

static void add(struct search *search, uint64_t probed, __u64 cookie, int8_t number, bool timed)
{
	struct slow_places *places = search->places;

	places->places[places->count++] = (struct slow_place){
		.offset = probed + search->paths->shift,
		.cookie = cookie | search->fn | COOKIE_SLOW | COOKIE_GLIBC |
			  (timed ? 0 : COOKIE_ENTRY_ONLY) |
			  (1ULL + (__u64)number) << COOKIE_ARGUMENT_SHIFT |
			  (__u64)*search->number << COOKIE_PLACE_SHIFT,
		.fn = search->fn,
		.timed = timed,
	};
	places->timed[search->fn] &= timed;
	++*search->number;
}

/*
 * An emulated place at the entry of a function that is called with a chunk or a size in this
 * register, where a return probe can be set.
 */
static bool find_entry(const struct search *search, uint64_t function, int8_t number,
		       struct placement *place, int8_t *holder)
{
	bool second = number == 6; /* rsi, else rdi */
	uint8_t code[PLACEMENT_WINDOW];
	ssize_t got = pread(search->module->fd, code, sizeof(code),
			    (off_t)(function + search->paths->shift));

	if (got <= 0 || (!second && number != 7) ||
	    placement_find(code, (size_t)got, second ? PLACEMENT_RSI : PLACEMENT_RDI, true, place))
		return false;
	*holder = place->registers[second];
	return true;
}

/* malloc: the entry of the routine, for all calls of it. */
static bool find_malloc(struct search *search)
{
	const struct slow_path *path = &search->paths->functions[FN_MALLOC];
	struct placement place;
	bool again = false;
	uint64_t probed;
	int8_t holder;

	if (!find_entry(search, search->paths->routine, 6, &place, &holder))
		return refuse(search, "in what malloc calls is %s", place.refusal);
	probed = search->paths->routine + place.offset;
	for (size_t i = 0; i < path->site_count; i++)
		again |= path->sites[i].again;
	for (size_t i = 0; i < path->site_count; i++) {
		const struct slow_site *site = &path->sites[i];

		if (!site->is_call || site->value != SLOW_SIZE || !site->has_rbp)
			return refuse(search, "a call of malloc's cannot be followed back");
		if (!tell_site(search, probed, site->address + CALL_BYTES, site, site->depth + 8,
			       again && !site->again && !site->main_arena))
			return false;
	}
	add(search, probed, COOKIE_CALLED, holder, true);
	return true;
}

/* In a function that others call, too. */
static bool find_shared(struct search *search, const struct slow_site *site, __u64 cookie)
{
	const struct slow_paths *paths = search->paths;
	const struct memtoll_slow_caller nobody = { 0 };

	if (site->returns_at % 8 || site->returns_at / 8 > WORDS_MAX)
		return refuse(search, "its callers cannot be told apart");
	cookie |= (__u64)(site->returns_at / 8) << COOKIE_SP_SHIFT;
	cookie |= site->returns_to ? COOKIE_CALLED : COOKIE_JUMPED;
	for (size_t i = 0; !site->returns_to && i < paths->other_count; i++)
		if (!tell(search, site->address, paths->others[i], &nobody))
			return false;
	if (!tell_site(search, site->address, site->returns_to, site, site->depth, false))
		return false;
	add(search, site->address, cookie, site->number, false);
	return true;
}

static bool find_free_at(struct search *search, const struct slow_site *site)
{
	__u64 cookie = site->value == SLOW_CHUNK ? COOKIE_CHUNK : 0;
	struct placement place;
	int8_t holder;

	if (!site->has_rbp)
		return refuse(search, "a call of free's cannot be followed back");
	if (site->shared)
		return find_shared(search, site, cookie);
	if (site->is_call && find_entry(search, site->target, site->number, &place, &holder)) {
		uint64_t probed = site->target + place.offset;

		if (!tell_site(search, probed, site->address + CALL_BYTES, site, site->depth + 8,
			       false))
			return false;
		add(search, probed, cookie | COOKIE_CALLED, holder, true);
		return true;
	}
	/* A jump out of the function: the stack pointer is as at its entry. */
	if (!tell_site(search, site->address, 0, site, site->depth, false))
		return false;
	add(search, site->address, cookie, site->number,
	    !site->is_call && site->target && !site->depth);
	return true;
}

static bool find_free(struct search *search)
{
	const struct slow_path *path = &search->paths->functions[FN_FREE];

	for (size_t i = 0; i < path->site_count; i++)
		if (!path->sites[i].again && !find_free_at(search, &path->sites[i]))
			return false;
	return true;
}

/* All of a function's places, or none. */
static void find_of(struct search *search, enum memtoll_fn fn, bool (*find)(struct search *search))
{
	const struct slow_path *path = &search->paths->functions[fn];
	struct slow_places *places = search->places;
	size_t before = places->count;

	search->fn = fn;
	places->timed[fn] = true;
	if (!path->found)
		refuse(search, "%s", path->refusal);
	else
		places->found[fn] = find(search);
	if (!places->found[fn])
		places->count = before;
	for (size_t i = 0; places->found[fn] && i < path->code_count; i++)
		places->code[fn][i] =
			(struct slow_code){ path->code[i].start + search->paths->shift,
					    path->code[i].end + search->paths->shift };
}

void slow_places_find(struct memtoll_bpf *bpf, const struct allocator_module *module, pid_t pid,
		      __u16 *number, struct slow_places *places)
{
	struct slow_paths paths;
	struct search search = { bpf, module, &paths, number, places, FN_NONE };

	memset(places, 0, sizeof(*places));
	if (module->kind != ALLOCATOR_GLIBC || module->linkage == LINKAGE_EMBEDDED) {
		refuse(&search, "it is not glibc's");
		return;
	}
	if (!slow_paths_open(pid, module->fd, &paths)) {
		refuse(&search, "its file cannot be read");
		return;
	}
	find_of(&search, FN_MALLOC, find_malloc);
	find_of(&search, FN_FREE, find_free);
}

bool slow_places_replace(const struct slow_places *places, const struct probe_point *point)
{
	return places && places->found[point->fn] && slow_path_is_of(point->fn, point->symbol);
}

size_t slow_places_cached(const char *tunables)
{
	static const char name[] = "glibc.malloc.tcache_max=";
	size_t largest = CACHED_DEFAULT;

	for (const char *at = tunables; at && (at = strstr(at, name)); at += strlen(name)) {
		size_t set = strtoull(at + strlen(name), NULL, 0);

		if (set < SIZE_MAX - CHUNK_ROUND)
			set += CHUNK_ROUND;
		if (set > largest)
			largest = set;
	}
	return largest;
}
