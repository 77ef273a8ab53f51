// SPDX-License-Identifier: GPL-2.0
/*
 * uprobe.c: uprobes of one process, by session, multi or perf links.
 *
 * libbpf has calls for multi links from 1.3 and for session links from 1.6 on; Debian 12 and
 * Ubuntu 24.04 ship older ones, so the bpf system call is made here.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <glib.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/wire/cookies.h"
#include "bpf/wire/pages.h"
#include "host/workqueue.h"
#include "memtoll.skel.h"
#include "probes/attach.h"
#include "probes/slow_places.h"

/* include/uapi/linux/bpf.h of 6.13; older headers do not have them. */
#define ATTACH_UPROBE_SESSION 57
#define UPROBE_MULTI_RETURN 1U

/* bpf_attr.link_create with its uprobe_multi member. */
struct link_create_uprobe_multi {
	__u32 prog_fd;
	__u32 target_fd;
	__u32 attach_type;
	__u32 flags;
	__u64 path;
	__u64 offsets;
	__u64 ref_ctr_offsets;
	__u64 cookies;
	__u32 count;
	__u32 multi_flags;
	__u32 pid;
	__u32 unused;
};

struct uprobe_attachment {
	int fds[2];	/* session, or multi: entry and return */
	int untimed_fd; /* functions without a return probe */
	struct bpf_link *links[2 * (FAMILY_MAX + SLOW_SITES_MAX)];
	size_t link_count;
};

/* Four rounds of a workqueue's threads. */
#define DEAD_MAX 64
#define DEAD_WAIT 2048

/*
 * Two: probes of a living process cost it something until they are detached, and must not wait
 * behind thousands of those of dead ones.
 */
static struct workqueue detaching, dead;

const char *uprobe_mechanism_name(enum uprobe_mechanism mechanism)
{
	static const char *const names[] = { "session", "multi", "perf" };

	return names[mechanism];
}

int uprobe_link_multi(int program, int type, bool is_return, const char *path, pid_t pid,
		      const __u64 *offsets, const __u64 *cookies, size_t count)
{
	struct link_create_uprobe_multi attr = {
		.prog_fd = program,
		.attach_type = type,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.cookies = (uintptr_t)cookies,
		.count = count,
		.multi_flags = is_return ? UPROBE_MULTI_RETURN : 0,
		.pid = pid,
	};
	int fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}

/*
 * A link that cannot be made: its path is a directory. A kernel that knows the attach type says
 * EBADF, another EINVAL.
 */
static bool has_attach_type(int type)
{
	const struct bpf_insn program[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = type);
	const __u64 offset = 0;
	int fd, err;

	fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "check_uprobe", "GPL", program, 2, &opts);
	if (fd < 0)
		return false;
	err = uprobe_link_multi(fd, type, false, "/", 0, &offset, NULL, 1);
	if (err >= 0)
		close(err);
	close(fd);
	return err == -EBADF;
}

enum uprobe_mechanism uprobe_mechanism_find(void)
{
	if (has_attach_type(ATTACH_UPROBE_SESSION))
		return UPROBE_SESSION;
	return has_attach_type(ATTACH_UPROBE_MULTI) ? UPROBE_MULTI : UPROBE_PERF;
}

void uprobe_prepare(struct memtoll_bpf *bpf, enum uprobe_mechanism mechanism)
{
	bpf_program__set_autoload(bpf->progs.alloc_session, mechanism == UPROBE_SESSION);
	bpf_program__set_autoload(bpf->progs.alloc_entry, mechanism != UPROBE_SESSION);
	bpf_program__set_autoload(bpf->progs.alloc_return, mechanism != UPROBE_SESSION);
	bpf_program__set_autoload(bpf->progs.loader_mapped, mechanism != UPROBE_PERF);
	bpf_program__set_expected_attach_type(bpf->progs.alloc_session, ATTACH_UPROBE_SESSION);
	if (mechanism == UPROBE_PERF)
		return;
	bpf_program__set_expected_attach_type(bpf->progs.alloc_entry, ATTACH_UPROBE_MULTI);
	bpf_program__set_expected_attach_type(bpf->progs.alloc_return, ATTACH_UPROBE_MULTI);
	bpf_program__set_expected_attach_type(bpf->progs.loader_mapped, ATTACH_UPROBE_MULTI);
}

static bool pair_is_last;

void probe_groups_order(enum probe_place place)
{
	pair_is_last = place != PLACE_ENTRY;
}

enum probe_group probe_group_of(unsigned int fn)
{
	switch (fn) {
	case FN_MALLOC:
	case FN_FREE:
		return pair_is_last ? GROUP_OTHER : GROUP_PAIR;
	case FN_CALLOC:
		return GROUP_CALLOC;
	default:
		return pair_is_last ? GROUP_PAIR : GROUP_OTHER;
	}
}

/* Places of one kind: with a return probe or without. */
struct places {
	__u64 offsets[FAMILY_MAX + SLOW_SITES_MAX];
	__u64 cookies[FAMILY_MAX + SLOW_SITES_MAX];
	size_t count;
};

/* Where the arguments are, unless all are where the ABI puts them. */
__u64 uprobe_cookie_arguments(const struct placement *place)
{
	static const int8_t abi[PLACEMENT_ARGUMENTS] = { 7, 6, 2 };
	__u64 cookie = 0;
	size_t i;

	for (i = 0; i < PLACEMENT_ARGUMENTS; i++)
		if (place->registers[i] >= 0 && place->registers[i] != abi[i])
			cookie |= (1ULL + place->registers[i])
				  << (COOKIE_ARGUMENT_SHIFT + i * COOKIE_ARGUMENT_BITS);
	return cookie;
}

static void add_place(struct places *places, __u64 offset, __u64 cookie)
{
	places->offsets[places->count] = offset;
	places->cookies[places->count] = cookie;
	places->count++;
}

static void sort_places(const struct allocator_module *module, const struct slow_places *slow,
			enum probe_group group, struct places *timed, struct places *untimed)
{
	size_t i;

	for (i = 0; i < module->point_count; i++) {
		const struct probe_point *point = &module->points[i];
		struct places *places = point->place.pushed ? untimed : timed;
		__u64 cookie = point->fn | (__u64)point->place.pushed << COOKIE_SP_SHIFT;

		if (!point->place.found || point->place.pushed > 0xff ||
		    probe_group_of(point->fn) != group || slow_places_replace(slow, point))
			continue;
		cookie |= uprobe_cookie_arguments(&point->place);
		if (module->kind == ALLOCATOR_GLIBC)
			cookie |= COOKIE_GLIBC;
		if (point->product)
			cookie |= COOKIE_PRODUCT;
		if (places == untimed)
			cookie |= COOKIE_ENTRY_ONLY;
		add_place(places, point->symbol_offset + point->place.offset, cookie);
	}
	for (i = 0; slow && i < slow->count; i++)
		if (probe_group_of(slow->places[i].fn) == group)
			add_place(slow->places[i].timed ? timed : untimed, slow->places[i].offset,
				  slow->places[i].cookie);
}

/* A mapping begins at a page of its file: an offset's place in its page is the address's. */
static void set_entry_cookies(struct memtoll_bpf *bpf, const struct places *places)
{
	__u64 *cookie;
	size_t i;

	for (i = 0; i < places->count; i++) {
		cookie = &bpf->bss->entry_cookies[places->offsets[i] % MEMTOLL_PAGE_SIZE];
		if (*cookie == COOKIE_NONE)
			*cookie = places->cookies[i];
		else if (*cookie != places->cookies[i])
			*cookie = COOKIE_DIFFERS;
	}
}

static int attach_multi(struct memtoll_bpf *bpf, enum uprobe_mechanism mechanism, pid_t pid,
			const char *path, const struct places *places, bool timed,
			struct uprobe_attachment *attachment)
{
	bool session = mechanism == UPROBE_SESSION;
	int entry = bpf_program__fd(session ? bpf->progs.alloc_session : bpf->progs.alloc_entry);
	int type = session ? ATTACH_UPROBE_SESSION : ATTACH_UPROBE_MULTI;
	int fd;

	if (!places->count)
		return 0;
	set_entry_cookies(bpf, places);
	/* The return side first: an entry is never seen without it. */
	if (timed && mechanism == UPROBE_MULTI) {
		fd = uprobe_link_multi(bpf_program__fd(bpf->progs.alloc_return),
				       ATTACH_UPROBE_MULTI, true, path, pid, places->offsets,
				       places->cookies, places->count);
		if (fd < 0)
			return fd;
		attachment->fds[1] = fd;
	}
	fd = uprobe_link_multi(entry, type, false, path, pid, places->offsets, places->cookies,
			       places->count);
	if (fd < 0)
		return fd;
	if (timed)
		attachment->fds[0] = fd;
	else
		attachment->untimed_fd = fd;
	return 0;
}

static int attach_perf(struct memtoll_bpf *bpf, pid_t pid, const char *path,
		       const struct places *places, bool timed,
		       struct uprobe_attachment *attachment)
{
	size_t i;
	int side;

	for (i = 0; i < places->count; i++) {
		for (side = timed ? 1 : 0; side >= 0; side--) {
			LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = places->cookies[i],
				    .retprobe = side);
			struct bpf_link *link = bpf_program__attach_uprobe_opts(
				side ? bpf->progs.alloc_return : bpf->progs.alloc_entry, pid, path,
				places->offsets[i], &opts);

			if (!link)
				return -errno;
			attachment->links[attachment->link_count++] = link;
		}
	}
	return 0;
}

static struct uprobe_attachment *attachment_new(void)
{
	struct uprobe_attachment *attachment = g_new0(struct uprobe_attachment, 1);

	attachment->fds[0] = -1;
	attachment->fds[1] = -1;
	attachment->untimed_fd = -1;
	return attachment;
}

/* Waits for the kernel's grace periods, 40 ms and more. */
static void detach(struct uprobe_attachment *attachment)
{
	size_t i;

	if (!attachment)
		return;
	/* Entry before return, so that no entry is left waiting for one. */
	if (attachment->fds[0] >= 0)
		close(attachment->fds[0]);
	if (attachment->fds[1] >= 0)
		close(attachment->fds[1]);
	if (attachment->untimed_fd >= 0)
		close(attachment->untimed_fd);
	for (i = attachment->link_count; i > 0; i--)
		bpf_link__destroy(attachment->links[i - 1]);
	g_free(attachment);
}

struct uprobe_attachment *uprobe_attach_at(const struct bpf_program *program, pid_t pid, int fd,
					   __u64 offset)
{
	struct uprobe_attachment *attachment = attachment_new();
	char path[64];
	int link;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	link = uprobe_link_multi(bpf_program__fd(program), ATTACH_UPROBE_MULTI, false, path, pid,
				 &offset, NULL, 1);
	if (link < 0) {
		detach(attachment);
		errno = -link;
		return NULL;
	}
	attachment->untimed_fd = link;
	return attachment;
}

struct uprobe_attachment *uprobe_attach(struct memtoll_bpf *bpf, enum uprobe_mechanism mechanism,
					pid_t pid, const struct allocator_module *module,
					const struct slow_places *slow, enum probe_group group)
{
	struct uprobe_attachment *attachment = attachment_new();
	struct places timed = {}, untimed = {};
	char path[64];
	int err;

	/* By descriptor: right also when the path means another file by now, or none. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", module->fd);
	sort_places(module, slow, group, &timed, &untimed);
	if (mechanism == UPROBE_PERF) {
		err = attach_perf(bpf, pid, path, &timed, true, attachment);
		if (!err)
			err = attach_perf(bpf, pid, path, &untimed, false, attachment);
	} else {
		err = attach_multi(bpf, mechanism, pid, path, &timed, true, attachment);
		if (!err)
			err = attach_multi(bpf, mechanism, pid, path, &untimed, false, attachment);
	}
	if (err) {
		detach(attachment);
		errno = -err;
		return NULL;
	}
	return attachment;
}

static void detach_job(void *attachment)
{
	detach(attachment);
}

void uprobe_detach_aside(struct uprobe_attachment *attachment)
{
	if (attachment)
		workqueue_push(&detaching, detach_job, attachment);
}

void uprobe_detach_dead(struct uprobe_attachment *attachment)
{
	if (!attachment)
		return;
	/* Each holds descriptors: a storm that is faster than the kernel waits here. */
	if (workqueue_pending(&dead) >= DEAD_WAIT)
		detach(attachment);
	else
		workqueue_push(&dead, detach_job, attachment);
}

bool uprobe_dead_are_many(void)
{
	return workqueue_pending(&dead) > DEAD_MAX;
}

void uprobe_detach_finish(void)
{
	workqueue_wait(&detaching);
}

void uprobe_detach_finish_dead(void)
{
	workqueue_wait(&dead);
}
