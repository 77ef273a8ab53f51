// SPDX-License-Identifier: GPL-2.0
#include "doctor/argument_check.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bpf/wire/cookies.h"
#include "bpf/wire/sums.h"
#include "check_arguments.skel.h"
#include "doctor/check_links.h"

/* As in check_arguments.bpf.c. */
#define COOKIE_WANTED_SHIFT 24

#define POLL_US 5000

/* Places behind the entry, and the entries of these functions. */
struct places {
	struct check_places entries;
	struct check_places behind;
	size_t indexes[FAMILY_MAX];
	size_t count;
};

static void find_places(const struct allocator_module *module, struct places *places)
{
	for (size_t i = 0; i < module->point_count; i++) {
		const struct probe_point *point = &module->points[i];
		const struct placement *place = &point->place;
		__u64 cookie;

		if (!place->found || !place->offset)
			continue;
		cookie = places->count | (__u64)point->arguments << COOKIE_WANTED_SHIFT |
			 (__u64)place->pushed << COOKIE_SP_SHIFT | uprobe_cookie_arguments(place) |
			 (point->product ? COOKIE_PRODUCT : 0);
		check_places_add(&places->entries, point->symbol_offset, cookie);
		check_places_add(&places->behind, point->symbol_offset + place->offset, cookie);
		places->indexes[places->count++] = i;
	}
}

/* True when each function was called often enough. */
static bool read_sums(struct check_arguments_bpf *bpf, const struct places *places,
		      struct argument_check *checks)
{
	bool enough = true;

	for (uint32_t i = 0; i < places->count; i++) {
		struct argument_check *check = &checks[places->indexes[i]];
		struct memtoll_value_sum sum;

		if (bpf_map_lookup_elem(bpf_map__fd(bpf->maps.sums), &i, &sum))
			continue;
		check->entered = sum.entered;
		check->agreed = sum.agreed;
		check->differed = sum.differed;
		enough &= sum.agreed + sum.differed >= ARGUMENT_CHECK_CALLS;
	}
	return enough;
}

/* The places first, so that no call is seen at its entry only. */
static int watch(struct check_arguments_bpf *bpf, enum uprobe_mechanism mechanism, pid_t pid,
		 int fd, const struct places *places, struct argument_check *checks)
{
	struct check_links behind = {}, entries = {};
	int err =
		check_attach(bpf->progs.value_place, mechanism, pid, fd, &places->behind, &behind);

	if (!err)
		err = check_attach(bpf->progs.value_entry, mechanism, pid, fd, &places->entries,
				   &entries);
	for (int waited = 0; !err && waited < ARGUMENT_CHECK_MS * 1000; waited += POLL_US) {
		usleep(POLL_US);
		if (read_sums(bpf, places, checks))
			break;
	}
	/* Entries first: calls under way may still reach the place. */
	check_detach(&entries);
	read_sums(bpf, places, checks);
	check_detach(&behind);
	return err;
}

int arguments_check(pid_t pid, enum uprobe_mechanism mechanism,
		    const struct allocator_module *module, struct argument_check *checks)
{
	static const char *const names[] = { "value_entry", "value_place", NULL };
	struct check_arguments_bpf *bpf = NULL;
	struct places places = {};
	int err = 0;

	memset(checks, 0, module->point_count * sizeof(*checks));
	check_places_init(&places.entries);
	check_places_init(&places.behind);
	find_places(module, &places);
	if (!places.count)
		goto out;
	bpf = check_load(mechanism, names);
	if (bpf)
		err = watch(bpf, mechanism, pid, module->fd, &places, checks);
	else
		err = -errno;
out:
	check_arguments_bpf__destroy(bpf);
	check_places_free(&places.entries);
	check_places_free(&places.behind);
	return err;
}
