/* SPDX-License-Identifier: GPL-2.0 */
/* faults.h: what is known of a fault: what the kernel did, and the memory that it fell in. */
#ifndef MEMTOLL_WIRE_FAULTS_H
#define MEMTOLL_WIRE_FAULTS_H

/* What a fault did, judged by the page-table entry at its start (userspace/doc/architecture.md). */
enum memtoll_fault_class {
	FAULT_ZERO = 0,		/* first write to an anonymous page: cleared by the kernel */
	FAULT_ZERO_HUGE = 1,	/* the same, a huge page */
	FAULT_ZERO_UPGRADE = 2, /* first write where the shared zero page was mapped */
	FAULT_ZERO_READ = 3,	/* first read: the shared zero page is mapped, nothing is cleared */
	FAULT_COW = 4,		/* write to a shared page: copied */
	FAULT_SWAP = 5,		/* the page is on swap or in the swap cache */
	FAULT_FILE = 6,		/* file page mapped in */
	FAULT_SHARED = 7,     /* page of shared memory (tmpfs, memfd, SysV) that is there already */
	FAULT_OTHER = 8,      /* none of these: NUMA hints, devices, spurious faults, walk failed */
	FAULT_REUSE = 9,      /* write to a page that had become private: not copied */
	FAULT_ZERO_MTHP = 10, /* first write that mapped a folio of several pages */
	FAULT_SWAP_ZSWAP = 11, /* major: decompressed from zswap, no I/O */
	FAULT_SWAP_ZERO = 12,  /* major: the page was all zeros and never on the device */
	FAULT_USER = 13, /* userfaultfd: a handler in user mode brings the page, or allows it */
	FAULT_SHARED_ZERO = 14, /* a new page of shared memory: cleared by the kernel */
	FAULT_FILE_AGAIN = 15, /* file page that was in the page cache before, and was pushed out */
	/* Taken by the kernel inside a system call, for the program: mlock, MAP_POPULATE ... */
	FAULT_ZERO_POPULATED = 16,   /* a new page, cleared */
	FAULT_FILE_POPULATED = 17,   /* a file's page, mapped in */
	FAULT_COW_POPULATED = 18,    /* a copy of a file's page */
	FAULT_SHARED_POPULATED = 19, /* a page of shared memory that was there */
	FAULT_READ_POPULATED = 20,   /* the shared zero page, mapped for a read */
	FAULT_FORBIDDEN = 21,  /* access that the area does not allow: ends in a signal, SIGSEGV */
	FAULT_MOVED = 22,      /* the page is being moved by the kernel (compaction, migration) */
	FAULT_COW_MERGED = 23, /* write to a page that KSM had made one with equal ones: copied */
	FAULT_CLASSES = 24,    /* userspace knows one more: events/refined.h */
};

/* The kind of memory area a fault fell in. */
enum memtoll_area {
	AREA_UNKNOWN = 0, /* bpf_find_vma missing or refused */
	AREA_ANON = 1,
	AREA_HEAP = 2, /* the brk heap */
	AREA_STACK = 3,
	AREA_FILE = 4,
	AREA_SHARED = 5,
	AREA_ARENA = 6,	 /* an arena of glibc's that is not the main one */
	AREA_DEVICE = 7, /* frames of a driver's, or of no page: VFIO, GPU, the kernel's own data */
	AREA_COUNT = 8,	 /* userspace knows one more: events/refined.h */
};

/* When faults are seen. */
enum memtoll_faults_rest {
	FAULTS_ALL_SEEN = 0, /* so far always */
	FAULTS_HAVE_RESTED = 1,
	FAULTS_REST = 2, /* now in windows only */
};

/* Kinds of faults, as an outlier counts them. */
enum memtoll_fault_kind {
	FAULT_KIND_ZERO = 0, /* the kernel cleared a page, or mapped its shared zero page */
	FAULT_KIND_SWAP = 1,
	FAULT_KIND_OTHER = 2,
	FAULT_KINDS = 3,
};

#endif /* MEMTOLL_WIRE_FAULTS_H */
