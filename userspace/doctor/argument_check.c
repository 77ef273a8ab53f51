// SPDX-License-Identifier: GPL-2.0
#include "doctor/argument_check.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bpf/wire/cookies.h"
#include "bpf/wire/sums.h"
#include "check_arguments.skel.h"

/* As in check_arguments.bpf.c. */
#define COOKIE_WANTED_SHIFT 24

#define POLL_US 5000

/* Offsets to attach to: places behind the entry, and the entries of these functions. */
struct places {
	__u64 entries[FAMILY_MAX];
	__u64 offsets[FAMILY_MAX];
	__u64 cookies[FAMILY_MAX];
	size_t indexes[FAMILY_MAX];
	size_t count;
};

struct links {
	int fds[2];
	struct bpf_link *links[2 * FAMILY_MAX];
	size_t count;
};

static void find_places(const struct allocator_module *module, struct places *places)
{
	for (size_t i = 0; i < module->point_count; i++) {
		const struct placement *place = &module->points[i].place;

		if (!place->found || !place->offset)
			continue;
		places->entries[places->count] = module->points[i].symbol_offset;
		places->offsets[places->count] = module->points[i].symbol_offset + place->offset;
		places->cookies[places->count] =
			places->count | (__u64)module->points[i].arguments << COOKIE_WANTED_SHIFT |
			(__u64)place->pushed << COOKIE_SP_SHIFT | uprobe_cookie_arguments(place) |
			(module->points[i].product ? COOKIE_PRODUCT : 0);
		places->indexes[places->count++] = i;
	}
}

static int attach_perf(struct bpf_program *program, pid_t pid, const char *path,
		       const __u64 *offsets, const struct places *places, struct links *links)
{
	for (size_t i = 0; i < places->count; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = places->cookies[i]);
		struct bpf_link *link =
			bpf_program__attach_uprobe_opts(program, pid, path, offsets[i], &opts);

		if (!link)
			return -errno;
		links->links[links->count++] = link;
	}
	return 0;
}

/* The places first, so that no call is seen at its entry only. */
static int attach(struct check_arguments_bpf *bpf, enum uprobe_mechanism mechanism, pid_t pid,
		  const char *path, const struct places *places, struct links *links)
{
	struct bpf_program *programs[] = { bpf->progs.value_place, bpf->progs.value_entry };
	const __u64 *offsets[] = { places->offsets, places->entries };
	int err = 0;

	for (size_t i = 0; i < 2 && !err; i++) {
		if (mechanism == UPROBE_PERF) {
			err = attach_perf(programs[i], pid, path, offsets[i], places, links);
			continue;
		}
		links->fds[i] =
			uprobe_link_multi(bpf_program__fd(programs[i]), ATTACH_UPROBE_MULTI, false,
					  path, pid, offsets[i], places->cookies, places->count);
		if (links->fds[i] < 0)
			err = links->fds[i];
	}
	return err;
}

/* Entries first: calls under way may still reach the place. */
static void detach_entries(const struct places *places, struct links *links)
{
	if (links->fds[1] >= 0)
		close(links->fds[1]);
	links->fds[1] = -1;
	while (links->count > places->count)
		bpf_link__destroy(links->links[--links->count]);
}

static void detach(struct links *links)
{
	for (size_t i = 0; i < 2; i++)
		if (links->fds[i] >= 0)
			close(links->fds[i]);
	while (links->count > 0)
		bpf_link__destroy(links->links[--links->count]);
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

static struct check_arguments_bpf *load(enum uprobe_mechanism mechanism)
{
	struct check_arguments_bpf *bpf = check_arguments_bpf__open();

	if (!bpf)
		return NULL;
	bpf_program__set_autoload(bpf->progs.value_entry, true);
	bpf_program__set_autoload(bpf->progs.value_place, true);
	if (mechanism != UPROBE_PERF) {
		bpf_program__set_expected_attach_type(bpf->progs.value_entry, ATTACH_UPROBE_MULTI);
		bpf_program__set_expected_attach_type(bpf->progs.value_place, ATTACH_UPROBE_MULTI);
	}
	if (!check_arguments_bpf__load(bpf))
		return bpf;
	check_arguments_bpf__destroy(bpf);
	return NULL;
}

int arguments_check(pid_t pid, enum uprobe_mechanism mechanism,
		    const struct allocator_module *module, struct argument_check *checks)
{
	struct links links = { .fds = { -1, -1 } };
	struct places places = {};
	struct check_arguments_bpf *bpf;
	char path[64];
	int err;

	memset(checks, 0, module->point_count * sizeof(*checks));
	find_places(module, &places);
	if (!places.count)
		return 0;
	bpf = load(mechanism);
	if (!bpf)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", module->fd);
	err = attach(bpf, mechanism, pid, path, &places, &links);
	for (int waited = 0; !err && waited < ARGUMENT_CHECK_MS * 1000; waited += POLL_US) {
		usleep(POLL_US);
		if (read_sums(bpf, &places, checks))
			break;
	}
	detach_entries(&places, &links);
	read_sums(bpf, &places, checks);
	detach(&links);
	check_arguments_bpf__destroy(bpf);
	return err;
}
