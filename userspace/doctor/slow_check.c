// SPDX-License-Identifier: GPL-2.0
#include "doctor/slow_check.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bpf/wire/cookies.h"
#include "bpf/wire/sums.h"
#include "check_arguments.skel.h"
#include "doctor/check_links.h"

/* As in check_slow_path.bpf.c. */
#define SLOW_KEPT_SHIFT 8
#define SLOW_REGISTER_SHIFT 8
#define SLOW_VALUE_SHIFT 12
#define SLOW_DEPTH_SHIFT 16

enum kept { KEPT_FIRST = 0, KEPT_SECOND = 1, KEPT_THIRD = 2, KEPT_PRODUCT = 3 };

#define POLL_US 5000

const struct slow_path *slow_path_of(const struct slow_paths *paths,
				     const struct probe_point *point)
{
	return slow_path_is_of(point->fn, point->symbol) ? &paths->functions[point->fn] : NULL;
}

/* What is found again on the slow way: the size, or the block. */
static enum kept kept_of(enum memtoll_fn fn)
{
	switch (fn) {
	case FN_CALLOC:
		return KEPT_PRODUCT;
	case FN_REALLOC:
	case FN_ALIGNED_ALLOC:
	case FN_MEMALIGN:
		return KEPT_SECOND;
	case FN_POSIX_MEMALIGN:
		return KEPT_THIRD;
	default:
		return KEPT_FIRST;
	}
}

/* Entries of all functions: by each of them a thread's last call is another one. */
static void find_places(const struct allocator_module *module, const struct slow_paths *paths,
			struct check_places *entries, struct check_places *slow)
{
	for (size_t i = 0; i < module->point_count; i++) {
		const struct probe_point *point = &module->points[i];
		const struct slow_path *path = slow_path_of(paths, point);

		if (!point->place.found)
			continue;
		check_places_add(entries, point->symbol_offset + point->place.offset,
				 i | (__u64)kept_of(point->fn) << SLOW_KEPT_SHIFT |
					 (__u64)point->place.pushed << COOKIE_SP_SHIFT |
					 uprobe_cookie_arguments(&point->place));
		for (size_t k = 0; path && path->found && k < path->site_count; k++) {
			const struct slow_site *site = &path->sites[k];

			if (site->again)
				continue;
			check_places_add(slow, site->address + paths->shift,
					 i | (__u64)site->number << SLOW_REGISTER_SHIFT |
						 (__u64)site->value << SLOW_VALUE_SHIFT |
						 (__u64)site->depth << SLOW_DEPTH_SHIFT);
		}
	}
}

/* What is watched, and until when. */
struct watching {
	const struct allocator_module *module;
	struct check_arguments_bpf *bpf;
	struct check_places entries, slow;
	unsigned int ms;
	uint64_t calls;
};

/* Number of all calls. */
static uint64_t read_sums(const struct watching *watching, struct slow_check *checks)
{
	uint64_t calls = 0;

	for (uint32_t i = 0; i < watching->module->point_count; i++) {
		struct memtoll_slow_sum sum;

		if (bpf_map_lookup_elem(bpf_map__fd(watching->bpf->maps.slow_sums), &i, &sum))
			continue;
		checks[i].entered = sum.entered;
		checks[i].agreed = sum.agreed;
		checks[i].differed = sum.differed;
		calls += sum.entered;
	}
	return calls;
}

static void set_rates(const struct watching *watching, double seconds, struct slow_check *checks)
{
	for (size_t i = 0; i < watching->module->point_count; i++) {
		struct slow_check *check = &checks[i];

		check->entered_per_s = (double)check->entered / seconds;
		check->slow_per_s = (double)(check->agreed + check->differed) / seconds;
	}
}

/* The places of the slow way first: a call that is seen at its entry is seen there, too. */
static int watch(const struct watching *watching, enum uprobe_mechanism mechanism, pid_t pid,
		 struct slow_check *checks)
{
	const struct bpf_program *place = watching->bpf->progs.slow_place;
	const struct bpf_program *entry = watching->bpf->progs.slow_entry;
	struct check_links slow = {}, entries = {};
	int fd = watching->module->fd, err;
	uint64_t begin = 0;

	err = check_attach(place, mechanism, pid, fd, &watching->slow, &slow);
	if (!err)
		err = check_attach(entry, mechanism, pid, fd, &watching->entries, &entries);
	begin = now_ns();
	while (!err && now_ns() - begin < watching->ms * 1000000ULL) {
		usleep(POLL_US);
		if (read_sums(watching, checks) >= watching->calls)
			break;
	}
	set_rates(watching, 1e-9 * (double)(now_ns() - begin), checks);
	/* Entries last: else a thread's last known call would be an old one. */
	watching->bpf->bss->slow_closed = true;
	check_detach(&slow);
	read_sums(watching, checks);
	check_detach(&entries);
	return err;
}

int slow_check(pid_t pid, enum uprobe_mechanism mechanism, const struct allocator_module *module,
	       const struct slow_paths *paths, unsigned int ms, uint64_t calls,
	       struct slow_check *checks)
{
	static const char *const names[] = { "slow_entry", "slow_place", NULL };
	struct watching watching = { .module = module, .ms = ms, .calls = calls };
	int err = 0;

	memset(checks, 0, module->point_count * sizeof(*checks));
	check_places_init(&watching.entries);
	check_places_init(&watching.slow);
	find_places(module, paths, &watching.entries, &watching.slow);
	if (!watching.slow.offsets->len)
		goto out;
	watching.bpf = check_load(mechanism, names);
	if (watching.bpf)
		err = watch(&watching, mechanism, pid, checks);
	else
		err = -errno;
out:
	check_arguments_bpf__destroy(watching.bpf);
	check_places_free(&watching.entries);
	check_places_free(&watching.slow);
	return err;
}
