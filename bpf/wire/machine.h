/* SPDX-License-Identifier: GPL-2.0 */
/* machine.h: what bpf/machine/ sums of the whole machine. */
#ifndef MEMTOLL_MACHINE_H
#define MEMTOLL_MACHINE_H

#include "types.h"

#define MACHINE_COMM 16
#define MACHINE_GROUPS_MOST 4096
#define MACHINE_PUSHES_MOST 16384

/* Programs by what they cost, and what could not be kept. */
enum machine_count {
	MACHINE_HIT_PAGE,  /* page_allocated */
	MACHINE_HIT_FAULT, /* fault_began */
	MACHINE_HIT_MAJOR, /* fault_ended */
	MACHINE_HIT_OTHER, /* of reclaim and of the page cache */
	MACHINE_PROCESSES_FULL,
	MACHINE_GROUPS_FULL,
	MACHINE_COUNTS,
};

/* Of a process, by its number. */
struct machine_process {
	__u64 born_ns; /* when the row was made: another one for the same number is another process */
	__u64 group;   /* its memory cgroup's number, as of then */
	__u64 zeroed_pages;
	__u64 huge_pages;      /* of those, in huge pages */
	__u64 swap_faults;     /* major, and no file's */
	__u64 file_faults;     /* major */
	__u64 timed_faults;    /* of both */
	__u64 waited_ns;       /* of the timed ones */
	__u64 refaulted_pages; /* of files: thrown out not long ago, and brought in by it */
	__u64 pushed_pages;    /* thrown out of memory by it, of whoever */
	__u64 reclaims;
	__u64 reclaim_ns;
	char comm[MACHINE_COMM];
};

/* Of a memory cgroup, by its number. */
struct machine_group {
	__u64 faults; /* major, of pages that were pushed out */
	__u64 timed_faults;
	__u64 waited_ns;
};

/* Who pushed whose pages out. */
struct machine_push_key {
	__u64 pusher; /* memory cgroup; kswapd's is that of who woke it last */
	__u64 victim; /* that the page is accounted to; 0: none */
	__u64 by_kswapd;
};

struct machine_push {
	__u64 swap_pages;
	__u64 file_pages;
	__u64 back_pages; /* of files, that were brought in again */
};

#endif /* MEMTOLL_MACHINE_H */
