/* SPDX-License-Identifier: GPL-2.0 */
/* records.h: records of the ring buffer `events`. Each begins with its kind and its process. */
#ifndef MEMTOLL_WIRE_RECORDS_H
#define MEMTOLL_WIRE_RECORDS_H

#include "faults.h"
#include "functions.h"
#include "types.h"

enum memtoll_kind {
	EVENT_BLOCK = 1,
	EVENT_RUN = 2,
	EVENT_MAPPING = 3,
	EVENT_SAMPLE = 4,
	EVENT_PROCESS = 5,
	EVENT_FILE = 6,
	EVENT_READ = 7,
	EVENT_PATH = 8,
	EVENT_OUTLIER = 9,
	EVENT_SERIES = 10,
	EVENT_STACK = 11,
	EVENT_FILL = 12,
};

/* block.flags */
#define BLOCK_GLIBC (1U << 0)	/* the chunk header was read: what it says is known */
#define BLOCK_MMAPPED (1U << 1) /* chunk has its own mapping */
#define BLOCK_FAILED (1U << 2)	/* the call returned NULL for a size that is not 0 */
#define BLOCK_SAMPLED (1U << 4) /* chosen by --sample; below cfg_min_size */
#define BLOCK_ARENA (1U << 3)	/* chunk lies in an arena that is not the main one */

/*
 * A call of the allocator that made, moved or ended a block of at least cfg_min_size bytes.
 * For free: addr is 0 and old_addr the block. For realloc both may be set.
 */
struct memtoll_block {
	__u32 kind;
	__u32 tgid;
	__u32 tid;
	__u16 fn;
	__u16 flags;
	__u64 addr;
	__u64 old_addr;
	__u64 size;	     /* bytes asked */
	__u64 cleared_bytes; /* bytes the allocator cleared, where BLOCK_GLIBC */
	__u64 start_ns;
	__u64 end_ns;
	__u64 stack_id;
};

_Static_assert(sizeof(struct memtoll_block) == 72, "wire size of struct memtoll_block");

/* run.flags */
#define RUN_MAJOR (1U << 0)
#define RUN_KERNEL_MODE (1U << 1) /* taken inside a system call: copy_to_user and the like */
#define RUN_FILL_ZERO (1U << 2)	  /* low byte of %rsi was 0: a memset here would clear */
#define RUN_WRITE (1U << 3)
#define RUN_MEMSET (1U << 4)	  /* the instruction belongs to memset or bzero */
#define RUN_INTERRUPTED (1U << 5) /* its first fault, by its probe: ended, not timed */
#define RUN_POPULATED (1U << 6)	  /* taken by the kernel for the program: no probe was hit */
#define RUN_ZERO_FILE (1U << 7)	  /* in shared anonymous memory, whose file has no name */

/* Under which userspace sums up all of it: no file system numbers inodes so far. */
#define ZERO_FILE_INODE (~0ULL)

/* A sweep of faults by one thread: same class, same instruction, next page. */
struct memtoll_run {
	__u32 kind;
	__u32 tgid;
	__u32 tid;
	__u8 fault_class;
	__u8 area;
	__u8 in_fn; /* enum memtoll_fn the thread was in */
	__u8 flags;
	__u64 address; /* first byte of the first page */
	__u64 pages;
	__u64 faults;
	__u64 first_ns;
	__u64 last_ns;
	__u64 timed_faults;  /* faults whose end was seen */
	__u64 timed_cpu_ns;  /* their time on the CPU */
	__u64 timed_cpu_us2; /* sum of squares, in us^2: 64 bits hold 10^6 faults of 4 s */
	__u64 blocked_ns;    /* their time asleep */
	__u64 ip;
	__u64 stack_id;
	__u64 inode; /* of the area's file, or 0: see struct memtoll_file */
	__u32 dev;
	__u32 swap_type; /* FAULT_SWAP*: the kernel's number of the swap device */
	__u64 file_page; /* of a file's area: where in the file address is, in pages */
	__u64 passed;	 /* faults that were counted only, for which these stand, too */
};

_Static_assert(sizeof(struct memtoll_run) == 136, "wire size of struct memtoll_run");

/* A run whose faults took a page each, all minor and untimed, in no call of the allocator. */
struct memtoll_plain_run {
	__u64 ip;
	__u64 stack_id;
	__u32 first_after_ns; /* from the series' first_ns on */
	__u32 last_after_ns;
	__u32 pages;
	__u32 flags;
};

_Static_assert(sizeof(struct memtoll_plain_run) == 32, "wire size of struct memtoll_plain_run");

#define SERIES_RUNS 16 /* a power of 2 */

/*
 * Plain runs by one thread in one area, each of which begins at the page where the one before has
 * ended. As runs of their own they would be four times as much to write and to read.
 */
struct memtoll_series {
	__u32 kind;
	__u32 tgid;
	__u32 tid;
	__u8 fault_class;
	__u8 area;
	__u8 unused[2];
	__u64 address; /* first byte of the first page */
	__u64 pages;
	__u64 first_ns;
	__u64 inode;
	__u64 file_page; /* of address, as in a run */
	__u32 dev;
	__u32 count; /* of runs: only those are sent */
	struct memtoll_plain_run runs[SERIES_RUNS];
};

_Static_assert(sizeof(struct memtoll_series) == 64 + 32 * SERIES_RUNS,
	       "wire size of struct memtoll_series");

/* The file of an area in which a fault fell, before the first run that names it. */
struct memtoll_file {
	__u32 kind;
	__u32 tgid;
	__u64 inode;
	__u32 dev; /* as stat(2) splits it: major << 20 | minor */
	__u32 unused;
	char name[64]; /* the last part of its path */
};

_Static_assert(sizeof(struct memtoll_file) == 88, "wire size of struct memtoll_file");

/* A stack that is in the table of stacks from now on. */
struct memtoll_new_stack {
	__u32 kind;
	__u32 tgid;
	__u64 id;
};

_Static_assert(sizeof(struct memtoll_new_stack) == 16, "wire size of struct memtoll_new_stack");

/* mapping.flags */
#define MAPPING_EXEC_FILE (1U << 0) /* a file was mapped executable: a library came */
#define MAPPING_ANONYMOUS (1U << 1) /* mmap of MAP_ANONYMOUS, or of shared memory */
#define MAPPING_FIXED (1U << 2)	    /* mmap of MAP_FIXED */
#define MAPPING_POPULATE (1U << 3)  /* mmap of MAP_POPULATE or MAP_LOCKED */
#define MAPPING_STACK (1U << 4)	    /* mmap of MAP_STACK; madvise of the thread's own stack */

struct memtoll_mapping {
	__u32 kind;
	__u32 tgid;
	__u32 tid;
	__u8 map_fn;
	__u8 in_fn;
	__u16 flags;
	__u64 addr; /* as asked; for brk the break before */
	__u64 len;
	__u64 arg;     /* mmap: prot; madvise: advice; mremap: new length */
	__u64 in_size; /* bytes asked of the allocator function it was made in */
	__s64 result;
	__u64 start_ns;
	__u64 cpu_ns; /* faults inside are not taken out: see faults */
	__u64 stack_id;
};

_Static_assert(sizeof(struct memtoll_mapping) == 80, "wire size of struct memtoll_mapping");

enum memtoll_process_what {
	PROCESS_FORK = 1,  /* tgid is the parent, other the child */
	PROCESS_EXEC = 2,  /* other is what the thread that called exec had for a number */
	PROCESS_EXIT = 3,  /* the last thread of tgid */
	PROCESS_FREED = 4, /* after PROCESS_EXIT, of one that nobody had held at its end */
};

struct memtoll_process {
	__u32 kind;
	__u32 tgid;
	__u32 tid;
	__u32 what;
	__u32 other;
	__u32 exit_code; /* as wait(2) has it */
	__u64 time_ns;
	__u64 minor_faults; /* PROCESS_EXIT: of its threads */
	__u64 major_faults;
	__u64 cpu_ns; /* PROCESS_EXIT, as far as the kernel has added it up; PROCESS_FREED: all */
	char comm[16];
	__u32 held; /* by ptrace, of the process; PROCESS_FORK: of the new one */
	__u32 brief; /* it is one of a storm, and not to be looked at as long as it may end at once */
};

_Static_assert(sizeof(struct memtoll_process) == 80, "wire size of struct memtoll_process");

/* sample.flags */
#define SAMPLE_USER (1U << 0)	/* interrupted in user mode */
#define SAMPLE_MEMSET (1U << 1) /* at an instruction of memset or bzero */
#define SAMPLE_READ (1U << 2)	/* inside a read of a file */
#define SAMPLE_PROBE (1U << 3)	/* in a uprobe, or where the program goes on after one */
#define SAMPLE_MEMCPY (1U << 4) /* at an instruction of memcpy or memmove */
#define SAMPLE_FILL (1U << 5)	/* SAMPLE_MEMSET: its byte, if it is still in %rsi, is not 0 */
#define SAMPLE_SPOKEN (1U << 6) /* inside a read of a file that others speak for */

/* sample.stores: what the code at ip stores; none where it is not known to store */
#define STORES_UNKNOWN_CODE (1U << 0) /* that code was not decoded yet */
#define STORES_REGISTER_ZERO (1U << 1)
#define STORES_REGISTER_OTHER (1U << 2)
#define STORES_MEMORY_ZERO (1U << 3) /* what it has just stored, read from there */
#define STORES_MEMORY_OTHER (1U << 4)

#define MEMTOLL_KERNEL_DEPTH 24

struct memtoll_sample {
	__u32 kind;
	__u32 tgid;
	__u32 tid;
	__u8 in_fn;
	__u8 map_fn;
	__u8 flags;
	__u8 kernel_frames;
	__u64 time_ns;
	__u64 ip;	/* user instruction pointer */
	__u64 stack_id; /* user stack; for samples inside the allocator, its caller's */
	__u64 kernel[MEMTOLL_KERNEL_DEPTH];
	__u64 store; /* where the code at ip stores next; 0: not known */
	__u32 stores;
	__s32 syscall; /* that it is in, or comes from; -1: none */
	__u64 left;    /* bytes that the loop at ip has still to store; 0: not known */
	__u64 sp;      /* in user mode; 0: in the kernel */
};

_Static_assert(sizeof(struct memtoll_sample) == 72 + 8 * MEMTOLL_KERNEL_DEPTH,
	       "wire size of struct memtoll_sample");

/*
 * A call of the allocator that took far longer than its thread's calls of that function do, with
 * all that is known to have happened inside. Wall times, as a caller waits for them.
 */
struct memtoll_outlier {
	__u32 kind;
	__u32 tgid;
	__u32 tid;
	__u16 fn;
	__u16 flags; /* BLOCK_*; BLOCK_GLIBC: it is glibc's own function */
	__u64 size;
	__u64 start_ns;
	__u64 wall_ns;	 /* the probes' part taken out */
	__u64 cpu_ns;	 /* of it on the CPU */
	__u64 median_ns; /* running median of the function's calls by this thread; 0: none yet */
	__u64 frees;	 /* by this thread since its last request of LARGE_REQUEST or more */
	__u64 cleared_bytes;
	__u64 map_ns;	  /* in mapping system calls */
	__u64 lock_ns;	  /* in futex calls */
	__u64 reclaim_ns; /* in reclaim, which may lie in a fault or mapping call */
	__u64 stack_id;
	__u32 lock_waits;
	__u32 voluntary; /* context switches */
	__u32 involuntary;
	__u32 faults[FAULT_KINDS];
	__u32 timed[FAULT_KINDS]; /* faults whose end was seen */
	__u32 map_calls[MAP_FN_IN_CALLS];
	__u32 unused;
	__u64 fault_ns[FAULT_KINDS]; /* of the timed ones */
};

_Static_assert(sizeof(struct memtoll_outlier) == 192, "wire size of struct memtoll_outlier");

/*
 * glibc up to 2.42 consolidates its fast bins at a request of that many bytes (malloc.c, 64 bits).
 */
#define LARGE_REQUEST 1001

/* read.flags, read_key.flags, path.flags */
#define READ_DIRECT (1U << 0) /* O_DIRECT: past the page cache */
#define READ_BLOCK_DEVICE (1U << 1)
#define PATH_CUT (1U << 2) /* deeper than MEMTOLL_PATH_PARTS */

/* Reads of one file by one thread, each of which began where the one before ended: [start, end). */
struct memtoll_read {
	__u32 kind;
	__u32 tgid;
	__u32 dev; /* as stat(2) splits it: major << 20 | minor */
	__u32 flags;
	__u64 inode;
	__u64 start; /* bytes into the file */
	__u64 end;
	__u64 reads;
};

_Static_assert(sizeof(struct memtoll_read) == 48, "wire size of struct memtoll_read");

/* fill.flags: what brought the pages in */
#define FILL_FAULT (1U << 0)
#define FILL_READ (1U << 1)
#define FILL_MAP (1U << 2) /* inside a mapping call: MADV_WILLNEED, MAP_POPULATE */

/*
 * Adjacent pages of a file that came into the page cache because a thread of the target did not
 * find them there, or read ahead.
 */
struct memtoll_fill {
	__u32 kind;
	__u32 tgid;
	__u32 dev; /* as stat(2) splits it: major << 20 | minor */
	__u32 flags;
	__u64 inode;
	__u64 start; /* first page, counted from the file's start */
	__u64 pages;
	__u64 requests; /* faults or calls that began to bring pages in here; 0: one did before */
	__u64 first_wanted; /* page that the first of them asked for, and the last one */
	__u64 last_wanted;
	__u64 bytes; /* size of the file */
};

_Static_assert(sizeof(struct memtoll_fill) == 72, "wire size of struct memtoll_fill");

#define MEMTOLL_PATH_PARTS 16
#define MEMTOLL_PATH_PART 64

/* Where a file is, before the first record or sum that names it: leaf first, "" after the last. */
struct memtoll_path {
	__u32 kind;
	__u32 tgid;
	__u64 inode;
	__u32 dev;
	__u32 flags;
	__u64 bytes; /* size of the file */
	char parts[MEMTOLL_PATH_PARTS][MEMTOLL_PATH_PART];
};

_Static_assert(sizeof(struct memtoll_path) == 32 + MEMTOLL_PATH_PARTS * MEMTOLL_PATH_PART,
	       "wire size of struct memtoll_path");

#endif /* MEMTOLL_WIRE_RECORDS_H */
