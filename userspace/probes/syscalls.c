// SPDX-License-Identifier: GPL-2.0
#include "probes/syscalls.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <glib.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/message.h"
#include "bpf/wire/syscalls.h"
#include "memtoll.skel.h"
#include "probes/links.h"
#include "probes/map_lock.h"
#include "probes/thread_iterator.h"

struct syscalls {
	struct memtoll_bpf *bpf;
	bool mappings;
	bool reads;
	bool locks;		   /* futex calls are wanted, too */
	struct bpf_link *begin;	   /* sys_enter; NULL: no call is watched */
	struct bpf_link *end;	   /* sys_exit */
	struct bpf_link *uring;	   /* reports reads besides system calls */
	bool calls;		   /* all but read(2) are watched */
	bool plain_reads;	   /* read(2) is */
	GPtrArray *missed;	   /* counts calls that are not watched; NULL: none is */
	bool missed_maps;	   /* of mapping calls, too */
	GPtrArray *resting;	   /* sees mapping calls between windows; NULL: they do not rest */
	struct map_lock *map_lock; /* by their lock; NULL: was not needed yet */
	bool map_lock_refused;	   /* there they are counted only */
	bool seen;		   /* where they do: a window is open */
	GPtrArray *fading; /* of before, for calls whose entry nobody saw; until the next step */
};

static const struct watched_call {
	uint16_t number;
	uint8_t taker; /* enum syscall_taker */
} watched_calls[] = {
	{ SYS_mmap, SYSCALL_MAPPING },	   { SYS_munmap, SYSCALL_MAPPING },
	{ SYS_mremap, SYSCALL_MAPPING },   { SYS_brk, SYSCALL_MAPPING },
	{ SYS_madvise, SYSCALL_MAPPING },  { SYS_mprotect, SYSCALL_MAPPING },
	{ SYS_mlock, SYSCALL_MAPPING },	   { SYS_mlock2, SYSCALL_MAPPING },
	{ SYS_mlockall, SYSCALL_MAPPING }, { SYS_read, SYSCALL_READ },
	{ SYS_pread64, SYSCALL_READ },	   { SYS_readv, SYSCALL_READ },
	{ SYS_preadv, SYSCALL_READ },	   { SYS_preadv2, SYSCALL_READ },
	{ SYS_io_submit, SYSCALL_READ },   { SYS_futex, SYSCALL_LOCK },
	{ SYS_shmat, SYSCALL_ATTACH },	   { SYS_shmdt, SYSCALL_MAPPING },
};

static bool is_wanted(const struct syscalls *syscalls, const struct watched_call *call)
{
	switch (call->taker) {
	case SYSCALL_MAPPING:
	case SYSCALL_ATTACH:
		return syscalls->mappings && syscalls->calls;
	case SYSCALL_READ:
		return syscalls->reads &&
		       (call->number == SYS_read ? syscalls->plain_reads : syscalls->calls);
	default:
		return syscalls->locks && syscalls->calls;
	}
}

static void leave_all(struct syscalls *syscalls)
{
	bpf_link__destroy(syscalls->begin);
	bpf_link__destroy(syscalls->end);
	syscalls->begin = syscalls->end = NULL;
}

/* Watch what is wanted. The exits first: an entry never waits for an exit that is not seen. */
static int watch(struct syscalls *syscalls)
{
	struct memtoll_bpf *bpf = syscalls->bpf;
	bool any = false;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(watched_calls); i++) {
		bool wanted = is_wanted(syscalls, &watched_calls[i]);

		any |= wanted;
		bpf->bss->syscall_takers[watched_calls[i].number] =
			wanted ? watched_calls[i].taker : SYSCALL_NOBODY;
	}
	if (!any || (syscalls->resting && !syscalls->seen)) {
		leave_all(syscalls);
		return 0;
	}
	if (!syscalls->end)
		syscalls->end = bpf_program__attach(bpf->progs.syscall_end);
	if (syscalls->end && !syscalls->begin)
		syscalls->begin = bpf_program__attach(bpf->progs.syscall_begin);
	return syscalls->begin ? 0 : -errno;
}

static int put(struct bpf_map *map, uint32_t taker, const struct bpf_program *program)
{
	int fd = bpf_program__fd(program);

	if (!bpf_program__autoload(program))
		return 0;
	return bpf_map__update_elem(map, &taker, sizeof(taker), &fd, sizeof(fd), BPF_ANY);
}

/* Who takes a call, for the programs on sys_enter and sys_exit. */
static int put_takers(struct memtoll_bpf *bpf)
{
	struct bpf_map *entries = bpf->maps.syscall_entries, *exits = bpf->maps.syscall_exits;
	int err;

	err = put(entries, SYSCALL_MAPPING, bpf->progs.map_enter);
	if (!err)
		err = put(exits, SYSCALL_MAPPING, bpf->progs.map_exit);
	if (!err)
		err = put(entries, SYSCALL_READ, bpf->progs.read_enter);
	if (!err)
		err = put(exits, SYSCALL_READ, bpf->progs.read_exit);
	if (!err)
		err = put(entries, SYSCALL_LOCK, bpf->progs.lock_enter);
	if (!err)
		err = put(exits, SYSCALL_LOCK, bpf->progs.lock_exit);
	/* Its entry tells nothing. */
	if (!err)
		err = put(exits, SYSCALL_ATTACH, bpf->progs.map_exit);
	return err;
}

struct syscalls *syscalls_attach(struct memtoll_bpf *bpf, bool mappings, bool reads)
{
	struct syscalls *syscalls = g_new0(struct syscalls, 1);
	int err = 0;

	syscalls->bpf = bpf;
	syscalls->mappings = mappings;
	syscalls->reads = reads;
	syscalls->calls = mappings || reads;
	syscalls->plain_reads = reads;
	if (bpf_program__autoload(bpf->progs.syscall_begin))
		err = put_takers(bpf);
	if (!err)
		err = watch(syscalls);
	if (err) {
		message("cannot watch system calls: %s", strerror(-err));
		syscalls_detach(syscalls);
		errno = -err;
		return NULL;
	}
	/* A refinement: not every kernel has io_uring. */
	if (reads)
		syscalls->uring = bpf_program__attach(bpf->progs.read_uring);
	return syscalls;
}

bool syscalls_may_leave_plain_reads(const struct syscalls *syscalls)
{
	return syscalls->reads && bpf_program__autoload(syscalls->bpf->progs.read_unwatched);
}

bool syscalls_may_leave(const struct syscalls *syscalls)
{
	const struct memtoll_bpf *bpf = syscalls->bpf;

	return (syscalls->mappings || syscalls->reads) &&
	       (!syscalls->mappings || bpf_program__autoload(bpf->progs.map_unwatched)) &&
	       (!syscalls->reads || (bpf_program__autoload(bpf->progs.read_unwatched) &&
				     bpf_program__autoload(bpf->progs.read_submitted)));
}

static void destroy_link(gpointer link)
{
	bpf_link__destroy(link);
}

static GPtrArray *attach_all(struct bpf_program *const *programs, size_t count)
{
	GPtrArray *links = g_ptr_array_new_with_free_func(destroy_link);
	size_t i;

	for (i = 0; i < count; i++)
		if (programs[i] && keep_link(links, bpf_program__attach(programs[i]))) {
			g_ptr_array_free(links, TRUE);
			return NULL;
		}
	return links;
}

/* What sees mapping calls by their lock, or counts them; NULL: neither can be had. */
static GPtrArray *attach_maps(struct syscalls *syscalls)
{
	struct bpf_program *const programs[] = {
		syscalls->bpf->progs.map_unwatched,
		syscalls->bpf->progs.map_changed,
	};
	GPtrArray *links;

	if (!syscalls->mappings)
		return attach_all(NULL, 0);
	if (!syscalls->map_lock && !syscalls->map_lock_refused) {
		syscalls->map_lock = map_lock_load(syscalls->bpf);
		if (!syscalls->map_lock)
			message("mapping calls cannot be seen by their lock: %s", strerror(errno));
	}
	syscalls->bpf->data->locks_watched_ns = now_ns();
	links = syscalls->map_lock ? map_lock_attach(syscalls->map_lock) : NULL;
	if (links)
		return links;
	syscalls->bpf->data->locks_watched_ns = UINT64_MAX;
	if (syscalls->map_lock)
		message("mapping calls cannot be seen by their lock: %s", strerror(errno));
	syscalls->map_lock_refused = true;
	return attach_all(programs, G_N_ELEMENTS(programs));
}

bool syscalls_see_maps_resting(const struct syscalls *syscalls)
{
	return !syscalls->map_lock_refused;
}

/* What counts calls that are detached; NULL where that cannot be had: then they stay. */
static GPtrArray *attach_missed(const struct syscalls *syscalls, bool maps)
{
	struct bpf_program *const programs[] = {
		maps ? syscalls->bpf->progs.map_unwatched : NULL,
		maps ? syscalls->bpf->progs.map_changed : NULL,
		syscalls->reads ? syscalls->bpf->progs.read_unwatched : NULL,
		maps && syscalls->reads ? syscalls->bpf->progs.read_submitted : NULL,
	};

	return attach_all(programs, G_N_ELEMENTS(programs));
}

static void forget_missed(GPtrArray **missed)
{
	if (*missed)
		g_ptr_array_free(*missed, TRUE);
	*missed = NULL;
}

bool syscalls_may_rest(const struct syscalls *syscalls)
{
	const struct memtoll_bpf *bpf = syscalls->bpf;

	return syscalls->reads && syscalls->calls && bpf->bss->reads_are_counted &&
	       (!syscalls->mappings || bpf_program__autoload(bpf->progs.map_unwatched));
}

bool syscalls_do_rest(const struct syscalls *syscalls)
{
	return syscalls->resting;
}

/* Since when ends of calls are seen: those that began before were in another window. */
static void set_seen(struct syscalls *syscalls, bool seen)
{
	uint64_t since_ns = seen ? now_ns() : UINT64_MAX;

	syscalls->seen = seen;
	syscalls->bpf->bss->calls_watched_ns = since_ns;
	syscalls->bpf->bss->reads_watched_ns = syscalls->plain_reads ? since_ns : UINT64_MAX;
}

int syscalls_see(struct syscalls *syscalls, bool see)
{
	int err;

	if (!syscalls_do_rest(syscalls) || see == syscalls->seen)
		return 0;
	if (!see) {
		leave_all(syscalls);
		set_seen(syscalls, false);
		return 0;
	}
	set_seen(syscalls, true);
	err = watch(syscalls);
	if (err) {
		leave_all(syscalls);
		set_seen(syscalls, false);
	}
	return err;
}

bool syscalls_settle(struct syscalls *syscalls)
{
	if (!syscalls_do_rest(syscalls))
		return false;
	/* In a window threads would do it at the same time. */
	syscalls_see(syscalls, false);
	syscalls->bpf->bss->reads_settle = 1;
	threads_iterate(syscalls->bpf);
	syscalls->bpf->bss->reads_settle = 0;
	return true;
}

int syscalls_rest(struct syscalls *syscalls, bool rest)
{
	struct memtoll_bpf *bpf = syscalls->bpf;
	int err;

	if (rest == syscalls_do_rest(syscalls) || (rest && !syscalls_may_rest(syscalls)))
		return 0;
	if (rest) {
		syscalls->resting = attach_maps(syscalls);
		if (!syscalls->resting)
			return 0;
		bpf->bss->calls_rest = CALLS_REST;
		leave_all(syscalls);
		set_seen(syscalls, false);
		return 0;
	}
	syscalls_settle(syscalls);
	bpf->bss->calls_rest = CALLS_HAVE_RESTED;
	set_seen(syscalls, true);
	err = watch(syscalls);
	/* Windows try again. */
	if (err) {
		leave_all(syscalls);
		bpf->bss->calls_rest = CALLS_REST;
		set_seen(syscalls, false);
		return err;
	}
	forget_missed(&syscalls->resting);
	bpf->data->locks_watched_ns = UINT64_MAX;
	return 0;
}

void syscalls_watch(struct syscalls *syscalls, bool watched, bool plain_reads)
{
	bool calls = watched || !syscalls_may_leave(syscalls);
	bool plain = syscalls->reads &&
		     (!syscalls_may_leave_plain_reads(syscalls) || (calls && plain_reads));
	bool all = plain || !syscalls->reads;
	GPtrArray *missed = NULL;

	if (!syscalls->mappings && !syscalls->reads)
		return;
	forget_missed(&syscalls->fading);
	if (calls == syscalls->calls && plain == syscalls->plain_reads)
		return;
	/* What counts the missed calls is attached first, and detached a step after. */
	if (!calls || !all) {
		if (!syscalls->missed || syscalls->missed_maps != !calls) {
			missed = attach_missed(syscalls, !calls);
			if (!missed)
				return;
		}
	}
	syscalls->calls = calls;
	syscalls->plain_reads = plain;
	if (watch(syscalls))
		syscalls->calls = syscalls->plain_reads = false;
	if (missed || (calls && all && syscalls->calls)) {
		syscalls->fading = syscalls->missed;
		syscalls->missed = NULL;
	}
	if (missed) {
		syscalls->missed = missed;
		syscalls->missed_maps = !calls;
	}
}

bool syscalls_are_watched(const struct syscalls *syscalls)
{
	return syscalls->calls || !(syscalls->mappings || syscalls->reads);
}

bool syscalls_plain_reads_are_watched(const struct syscalls *syscalls)
{
	return syscalls->plain_reads || !syscalls->reads;
}

bool syscalls_count(struct syscalls *syscalls, bool counting)
{
	counting = counting && syscalls->begin;
	syscalls->bpf->bss->syscalls_counted = counting;
	return counting;
}

bool syscalls_follow_locks(struct syscalls *syscalls)
{
	if (!syscalls->locks && bpf_program__autoload(syscalls->bpf->progs.lock_enter)) {
		syscalls->locks = true;
		/* Where others are left, with them, when they are watched again. */
		if (!syscalls->mappings && !syscalls->reads)
			syscalls->calls = true;
		syscalls->locks = !watch(syscalls);
	}
	return syscalls->locks;
}

void syscalls_detach(struct syscalls *syscalls)
{
	if (!syscalls)
		return;
	leave_all(syscalls);
	bpf_link__destroy(syscalls->uring);
	forget_missed(&syscalls->missed);
	forget_missed(&syscalls->fading);
	forget_missed(&syscalls->resting);
	map_lock_free(syscalls->map_lock);
	g_free(syscalls);
}
