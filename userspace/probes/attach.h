/* SPDX-License-Identifier: GPL-2.0 */
/* attach.h: BPF programs onto uprobes, tracepoints and perf events. */
#ifndef MEMTOLL_ATTACH_H
#define MEMTOLL_ATTACH_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "allocators/modules.h"

struct bpf_program;
struct memtoll_bpf;
struct slow_places;
struct syscalls;

/* How uprobes are attached, best first. */
enum uprobe_mechanism {
	UPROBE_SESSION = 0, /* one link, entry and return: 6.13, kernel commit 535a3692ba72 */
	UPROBE_MULTI = 1,   /* one link for each side: 6.6, kernel commit 89ae89f53d20 */
	UPROBE_PERF = 2,    /* a perf event per function and side, 5.15 (cookies) */
};

const char *uprobe_mechanism_name(enum uprobe_mechanism mechanism);

/* What this kernel has, asked of the kernel itself. */
enum uprobe_mechanism uprobe_mechanism_find(void);

/* Choose the programs and their attach types. Before loading. */
void uprobe_prepare(struct memtoll_bpf *bpf, enum uprobe_mechanism mechanism);

/* include/uapi/linux/bpf.h; headers older than 6.6 do not have it. */
#define ATTACH_UPROBE_MULTI 48

/*
 * Link a program to places of a file, given as offsets into it, in one process. Descriptor of the
 * link or -errno. path may be of /proc/self/fd.
 */
int uprobe_link_multi(int program, int type, bool is_return, const char *path, pid_t pid,
		      const __u64 *offsets, const __u64 *cookies, size_t count);

/* The bits of a cookie that say where arguments are (bpf/wire/cookies.h). */
__u64 uprobe_cookie_arguments(const struct placement *place);

/* Where glibc's malloc and free are probed: slow_places.h. */
enum probe_place {
	PLACE_ENTRY = 0,
	PLACE_SLOW, /* where that cannot be, it is said why */
	PLACE_AUTO,
};

struct uprobe_attachment;

/*
 * What is attached and detached together, in the order in which the governor detaches it: from
 * GROUP_PAIR on the allocator's functions.
 */
enum probe_group {
	GROUP_READ, /* read(2), where nearly all of it is on sockets and the like */
	GROUP_PAIR, /* malloc, free, and what C++ makes of them */
	GROUP_CALLOC,
	GROUP_OTHER, /* realloc, the aligned ones */
	PROBE_GROUPS,
};

enum probe_group probe_group_of(unsigned int fn); /* enum memtoll_fn */
/*
 * Where malloc and free are probed past their threads' caches they are hit seldom: they change
 * places with the last group, and realloc goes first. Before anything is attached.
 */
void probe_groups_order(enum probe_place place);

/*
 * Attach to the probe points of one group of one module in one process (never to all processes).
 * Points without a place are left out. slow: places that stand for some of the points, or NULL.
 * NULL with errno set; ESRCH: the process is gone.
 */
struct uprobe_attachment *uprobe_attach(struct memtoll_bpf *bpf, enum uprobe_mechanism mechanism,
					pid_t pid, const struct allocator_module *module,
					const struct slow_places *slow, enum probe_group group);

/*
 * Attach a program of the multi kind to one place, an offset into the file behind fd, in one
 * process. NULL with errno set.
 */
struct uprobe_attachment *uprobe_attach_at(const struct bpf_program *program, pid_t pid, int fd,
					   __u64 offset);

/* Detaching waits for the kernel's grace periods, 40 ms and more: a workqueue does it. */
void uprobe_detach_aside(struct uprobe_attachment *attachment);
/* Wait until all that a workqueue detaches is gone. */
void uprobe_detach_finish(void);
/*
 * Of a process that has ended: they cost nothing any more. The kernel takes some 40 ms for each (it
 * waits until no CPU can be in one), a few at a time. In a storm of processes they become many, and
 * only the end of memtoll has to wait for them; beyond some thousands each next one is waited for.
 * Also for probes of a living process that are hardly ever hit.
 */
void uprobe_detach_dead(struct uprobe_attachment *attachment);
bool uprobe_dead_are_many(void);
void uprobe_detach_finish_dead(void);

/* The probes that are not tied to a process. They filter out every process but the targets. */
struct probes;

struct probe_set {
	bool faults;
	bool mappings;
	bool samples;
	bool reads;
};

#define SAMPLE_FREQUENCY 99 /* Hz; not 100: does not beat with timers */

/* All but those at the beginning of a fault. NULL after one message. */
struct probes *probes_attach(struct memtoll_bpf *bpf, const struct probe_set *set);
/*
 * The probes at the beginning of a fault, if faults are in the set: the calibration times faults
 * just before and after. 0, or -errno after a message.
 */
int probes_begin_faults(struct probes *probes);
/* Switch the timing of minor faults on or off. 0, or -errno: not on all CPUs. */
int probes_window(struct probes *probes, bool open);
/*
 * From now on the probes at the beginning of a fault are there only while faults are timed and where
 * probes_see() says so, or they are there all the time again. 0, or -errno: they are not.
 */
int probes_rest_faults(struct probes *probes, bool rest);
/*
 * The same of the probes of system calls, where those that change mappings are seen without them, and
 * the kernel counts reads; else, and where all of them are wanted, they stay. 0, or -errno: they are
 * not there all the time.
 */
int probes_rest_calls(struct probes *probes, bool rest);
bool probes_calls_rest(const struct probes *probes);
/*
 * Where faults or system calls rest: see them for a moment, untimed, or no longer. 0, or -errno: they
 * are not seen.
 */
int probes_see(struct probes *probes, bool see);
/*
 * Once there is swap, follow what is pushed out to it and brought in from it: call it again, swap
 * may be switched on at any time. True: each page brought in is reported (6.14 and later).
 */
bool probes_follow_swap(struct probes *probes);

/* Once faults wait for a userfaultfd's handler, follow who wakes them. Tried once. */
void probes_follow_handlers(struct probes *probes);

/* Their tracepoints of system calls, which come and go. */
struct syscalls *probes_syscalls(const struct probes *probes);
void probes_detach(struct probes *probes);

#endif /* MEMTOLL_ATTACH_H */
