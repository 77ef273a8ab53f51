/* SPDX-License-Identifier: GPL-2.0 */
/* open_fault.bpf.h: a fault that a thread is in, and the area that its last one fell in. */
#ifndef MEMTOLL_OPEN_FAULT_BPF_H
#define MEMTOLL_OPEN_FAULT_BPF_H

#include "vmlinux.h"

#include "state/stamp.bpf.h"

/* The way through the page tables to the entry of an address: memory/pagetable.bpf.h. */
struct walked {
	__u64 entry;
	__u64 at;    /* where the entry is, in the direct map */
	__u64 slot;  /* the same if it is one of the last level; else 0 */
	__u64 table; /* then: the entry that points to its table, and where that one is */
	__u64 table_at;
	__u64 pages; /* that a present entry maps: 1, 512 or 262144 */
};

/*
 * Entries that are looked at around a fault: the 16 within which the kernel maps what is there
 * already (fault_around_bytes, 64 KiB), and one on either side, which only a larger folio reaches.
 */
#define WINDOW_PAGES 18

/* A fault that has begun and whose end was not seen (yet). */
struct open_fault {
	__u32 tgid;
	__u32 tid;
	__u64 address;
	__u64 ip;
	struct stamp start;
	__u64 reclaim_cpu_ns; /* taken out of its time: toll reclaim */
	__u64 reclaim_blocked_ns;
	__u64 stack_id;
	__u64 root; /* of its page tables; 0: they are gone */
	__u64 pfn;  /* write to a present page: what was mapped */
	__u64 inode;
	__u64 timed_walk_ns; /* rates->walk_ns when its program began, if that is timed */
	/*
	 * When its program began, and when it began to do what only this fault needs; 0: not timed,
	 * nothing. volatile: the verifier is not to follow their values.
	 */
	volatile __u64 timed_ns;
	volatile __u64 began_ns;
	/* Written by the handler that answers it, while the thread sleeps (handler.bpf.c). */
	__u64 answered_ns;     /* 0: not yet */
	__u64 answered_cpu_ns; /* its thread's CPU time since the start */
	__u32 dev;
	__u32 swap_type;
	__u32 passed;	 /* faults that it stands for besides itself */
	__u32 in_device; /* pages brought in during it, from a swap device */
	__u32 in_zswap;
	__u32 in_zero;
	__u32 active;
	__u32 window;	    /* pages present around it at the start */
	__u16 window_first; /* slot of the first of them in its page table */
	__u8 look_again;    /* what to look at when it has ended */
	__u8 fault_class;
	__u8 area;
	__u8 flags;
	__u8 in_fn;
	__u8 merged;		     /* KSM had made one of that page and equal ones */
	__u8 stamped;		     /* start is its own */
	__u8 interrupted;	     /* by what its probe did: its time is not the fault's alone */
	__u32 block_generation;	     /* when start was taken */
	struct walked walked;	     /* the way to its entry: no room on the BPF stack */
	__u64 entries[WINDOW_PAGES]; /* scratch */
};

struct area_cache {
	__u64 start;
	__u64 end;
	__u64 inode;
	__u64 mapping; /* the file's struct address_space, or 0 */
	__u64 offset;  /* page number of an address + offset: page number in the file */
	__u32 dev;
	__u32 generation;
	__u8 area;
	__u8 shared;
	__u8 hugetlb;
	__u8 tmpfs;
	__u8 zero_file;	 /* shared anonymous memory, whose file nobody has named */
	__u8 userfault;	 /* registered with a userfaultfd */
	__u32 voluntary; /* the thread's switches when that was asked */
	__u64 flags;	 /* VM_* */
	__u64 area_at;	 /* the kernel's struct of it; 0: no area */
};

/* What the kernel says of an area, until it is judged. */
struct area_query {
	__u64 start;
	__u64 end;
	__u64 flags;   /* VM_* */
	__u64 area_at; /* struct vm_area_struct */
	__u64 inode;
	__u64 mapping; /* struct address_space */
	__u64 offset;  /* of the area in the file, in pages */
	__u32 dev;
	__u8 area;
	__u8 shared;
	__u8 hugetlb;
	bool file;
	bool tmpfs; /* the file is one of it */
	bool zero_file;
	bool userfault;
	bool regular;
	__u64 name; /* where the kernel has the last part of the file's path */
};

#endif /* MEMTOLL_OPEN_FAULT_BPF_H */
