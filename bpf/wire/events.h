/* SPDX-License-Identifier: GPL-2.0 */
/*
 * events.h: the wire contract between the BPF programs and userspace.
 *
 * Included by both sides and includes nothing: whoever includes it has __u8..__u64 already
 * (vmlinux.h or <linux/types.h>). Enum values are explicit and append-only. Times are
 * nanoseconds of CLOCK_MONOTONIC (_ns) or of the thread's CPU clock (_cpu_ns); sizes are bytes.
 */
#ifndef MEMTOLL_EVENTS_H
#define MEMTOLL_EVENTS_H

#define MEMTOLL_PAGE_SIZE 4096ULL
#define MEMTOLL_HUGE_PAGES 512ULL
#define MEMTOLL_STACK_DEPTH 127
#define MEMTOLL_PYTHON_DEPTH 48
#define MEMTOLL_KERNEL_DEPTH 24

/* The allocator's functions. 0 means "in none of them". */
enum memtoll_fn {
	FN_NONE = 0,
	FN_MALLOC = 1,
	FN_CALLOC = 2,
	FN_REALLOC = 3,
	FN_REALLOCARRAY = 4,
	FN_FREE = 5,
	FN_POSIX_MEMALIGN = 6,
	FN_ALIGNED_ALLOC = 7,
	FN_MEMALIGN = 8,
	FN_COUNT = 9,
};

/* The system calls of the toll `map`. 0 means "in none of them". */
enum memtoll_map_fn {
	MAP_FN_NONE = 0,
	MAP_FN_MMAP = 1,
	MAP_FN_MUNMAP = 2,
	MAP_FN_MREMAP = 3,
	MAP_FN_BRK = 4,
	MAP_FN_MADVISE = 5,
	MAP_FN_COUNT = 6,
};

/* What a fault did, judged by the page-table entry at its start (design.md, section 5). */
enum memtoll_fault_class {
	FAULT_ZERO = 0,		/* first write to an anonymous page: cleared by the kernel */
	FAULT_ZERO_HUGE = 1,	/* the same, a huge page */
	FAULT_ZERO_UPGRADE = 2,	/* first write where the shared zero page was mapped */
	FAULT_ZERO_READ = 3,	/* first read: the shared zero page is mapped, nothing is cleared */
	FAULT_COW = 4,		/* write to a shared page: copied */
	FAULT_SWAP = 5,		/* the page is on swap or in the swap cache */
	FAULT_FILE = 6,		/* file page mapped in */
	FAULT_SHARED = 7,	/* shared memory (shmem, SysV, MAP_SHARED|MAP_ANONYMOUS) */
	FAULT_OTHER = 8,	/* none of these: NUMA hints, spurious faults, walk failed */
	FAULT_REUSE = 9,	/* write to a page that had become private: not copied */
	FAULT_ZERO_MTHP = 10,	/* first write that mapped a folio of several pages */
	FAULT_SWAP_ZSWAP = 11,	/* major: decompressed from zswap, no I/O */
	FAULT_SWAP_ZERO = 12,	/* major: the page was all zeros and never on the device */
	FAULT_SWAP_ZRAM = 13,	/* major: from compressed memory; userspace tells by the device */
	FAULT_CLASSES = 14,
};

/* The kind of memory area a fault fell in. */
enum memtoll_area {
	AREA_UNKNOWN = 0,	/* bpf_find_vma missing or refused */
	AREA_ANON = 1,
	AREA_HEAP = 2,		/* the brk heap */
	AREA_STACK = 3,
	AREA_FILE = 4,
	AREA_SHARED = 5,
	AREA_ARENA = 6,		/* an arena of glibc's that is not the main one */
	AREA_LIBRARY = 7,	/* a file that is also mapped executable: told in userspace */
	AREA_COUNT = 8,
};

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
};

/* Times between two hits, of which those of GAP_MOST_NS and more say nothing of the probes. */
#define GAP_MOST_NS 16384

struct memtoll_gaps {
	__u64 count;
	__u64 low_ns;		/* sum over them of what a tenth of their thread's last ones are below */
};

/*
 * Hits of the probes on all traced processes, by what they cost: the governor reads them many times
 * a second. Value of map `rates`.
 */
struct memtoll_rates {
	__u64 calls[FN_COUNT];	/* counted entries, nested ones with them */
	__u64 idle[FN_COUNT];	/* hits that were passed over: their window was closed */
	__u64 faults;
	__u64 fault_ns;		/* in their programs, stacks apart: one in FAULT_TIMED, times it */
	__u64 samples;
	__u64 sample_ns;	/* in their programs, stacks apart */
	__u64 maps;
	__u64 reads;
	__u64 plain_reads;	/* of these by read(2), which sockets are read by, too */
	__u64 other_reads;	/* by read(2) of what is no file; told by the PASSES_AT_ONCE */
	__u64 unwatched_reads;	/* of files while read(2), or any call, was not watched */
	__u64 unwatched_maps;	/* mapping calls while none was watched */
	__u64 syscalls;		/* that no program looks at, counted in windows */
	__u64 walk_ns;		/* stacks looked at, in whatever program */
	struct memtoll_gaps gaps;	/* from a call's return to the thread's next call */
	struct memtoll_gaps idle_gaps;	/* from one hit that was passed over to the next */
};

/* Bits of the u64 cookie that says which probe was hit. */
#define COOKIE_NONE 0ULL
#define COOKIE_DIFFERS (~0ULL)	/* from probe to probe: of entry_cookies alone */
#define COOKIE_FN_MASK 0xffULL
#define COOKIE_GLIBC (1ULL << 8)	/* chunk headers may be read */
#define COOKIE_ENTRY_ONLY (1ULL << 9)	/* no return probe here */
#define COOKIE_PRODUCT (1ULL << 10)	/* reallocarray: the size asked is in the result register */
#define COOKIE_SP_SHIFT 16		/* bytes pushed between the symbol and the probe, 8 bits */
/*
 * Where the first three arguments are at the probe, 5 bits each: 0, where the ABI puts them; else
 * 1 + the number of a register as instructions have it (rax 0, rcx 1, rdx 2 ... r15 15).
 */
#define COOKIE_ARGUMENT_SHIFT 32
#define COOKIE_ARGUMENT_BITS 5

/* block.flags */
#define BLOCK_GLIBC (1U << 0)		/* the chunk header was read: what it says is known */
#define BLOCK_MMAPPED (1U << 1)		/* chunk has its own mapping */
#define BLOCK_FAILED (1U << 2)		/* the call returned NULL for a size that is not 0 */
#define BLOCK_SAMPLED (1U << 4)		/* chosen by --sample; below cfg_min_size */
#define BLOCK_ARENA (1U << 3)		/* chunk lies in an arena that is not the main one */

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
	__u64 size;		/* bytes asked */
	__u64 cleared_bytes;	/* bytes the allocator cleared, where BLOCK_GLIBC */
	__u64 start_ns;
	__u64 end_ns;
	__u64 stack_id;
};

/* run.flags */
#define RUN_MAJOR (1U << 0)
#define RUN_KERNEL_MODE (1U << 1)	/* taken inside a system call: copy_to_user and the like */
#define RUN_FILL_ZERO (1U << 2)		/* low byte of %rsi was 0: a memset here would clear */
#define RUN_WRITE (1U << 3)
#define RUN_MEMSET (1U << 4)		/* the instruction belongs to memset or bzero */
#define RUN_INTERRUPTED (1U << 5)	/* its first fault, by its probe: ended, not timed */

/* A sweep of faults by one thread: same class, same instruction, next page. */
struct memtoll_run {
	__u32 kind;
	__u32 tgid;
	__u32 tid;
	__u8 fault_class;
	__u8 area;
	__u8 in_fn;		/* enum memtoll_fn the thread was in */
	__u8 flags;
	__u64 address;		/* first byte of the first page */
	__u64 pages;
	__u64 faults;
	__u64 first_ns;
	__u64 last_ns;
	__u64 timed_faults;	/* faults whose end was seen */
	__u64 timed_cpu_ns;	/* their time on the CPU */
	__u64 timed_cpu_us2;	/* sum of squares, in us^2: 64 bits hold 10^6 faults of 4 s */
	__u64 blocked_ns;	/* their time asleep */
	__u64 ip;
	__u64 stack_id;
	__u64 inode;		/* of the area's file, or 0: see struct memtoll_file */
	__u32 dev;
	__u32 swap_type;	/* FAULT_SWAP*: the kernel's number of the swap device */
};

/* A run whose faults took a page each, all minor and untimed, in no call of the allocator. */
struct memtoll_plain_run {
	__u64 ip;
	__u64 stack_id;
	__u32 first_after_ns;	/* from the series' first_ns on */
	__u32 last_after_ns;
	__u32 pages;
	__u32 flags;
};

#define SERIES_RUNS 16			/* a power of 2 */

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
	__u64 address;		/* first byte of the first page */
	__u64 pages;
	__u64 first_ns;
	__u64 inode;
	__u32 dev;
	__u32 count;		/* of runs: only those are sent */
	struct memtoll_plain_run runs[SERIES_RUNS];
};

/* The file of an area in which a fault fell, before the first run that names it. */
struct memtoll_file {
	__u32 kind;
	__u32 tgid;
	__u64 inode;
	__u32 dev;		/* as stat(2) splits it: major << 20 | minor */
	__u32 unused;
	char name[64];		/* the last part of its path */
};

/* A stack that is in the table of stacks from now on. */
struct memtoll_new_stack {
	__u32 kind;
	__u32 tgid;
	__u64 id;
};

/* mapping.flags */
#define MAPPING_EXEC_FILE (1U << 0)	/* a file was mapped executable: a library came */
#define MAPPING_ANONYMOUS (1U << 1)	/* mmap of MAP_ANONYMOUS */
#define MAPPING_FIXED (1U << 2)		/* mmap of MAP_FIXED */

struct memtoll_mapping {
	__u32 kind;
	__u32 tgid;
	__u32 tid;
	__u8 map_fn;
	__u8 in_fn;
	__u16 flags;
	__u64 addr;		/* as asked; for brk the break before */
	__u64 len;
	__u64 arg;		/* mmap: prot; madvise: advice; mremap: new length */
	__u64 in_size;		/* bytes asked of the allocator function it was made in */
	__s64 result;
	__u64 start_ns;
	__u64 cpu_ns;		/* faults inside are not taken out: see faults */
	__u64 stack_id;
};

enum memtoll_process_what {
	PROCESS_FORK = 1,	/* tgid is the parent, other the child */
	PROCESS_EXEC = 2,	/* other is what the thread that called exec had for a number */
	PROCESS_EXIT = 3,	/* the last thread of tgid */
};

struct memtoll_process {
	__u32 kind;
	__u32 tgid;
	__u32 tid;
	__u32 what;
	__u32 other;
	__u32 exit_code;	/* as wait(2) has it */
	__u64 time_ns;
	__u64 minor_faults;	/* PROCESS_EXIT: of its threads */
	__u64 major_faults;
	char comm[16];
};

/* sample.flags */
#define SAMPLE_USER (1U << 0)		/* interrupted in user mode */
#define SAMPLE_MEMSET (1U << 1)		/* at an instruction of memset or bzero */
#define SAMPLE_READ (1U << 2)		/* inside a read of a file */
#define SAMPLE_PROBE (1U << 3)		/* in a uprobe, or where the program goes on after one */

struct memtoll_sample {
	__u32 kind;
	__u32 tgid;
	__u32 tid;
	__u8 in_fn;
	__u8 map_fn;
	__u8 flags;
	__u8 kernel_frames;
	__u64 time_ns;
	__u64 ip;		/* user instruction pointer */
	__u64 stack_id;		/* user stack; for samples inside the allocator, its caller's */
	__u64 kernel[MEMTOLL_KERNEL_DEPTH];
};

/* Key of the in-kernel sums: one allocator function called from one place. */
struct memtoll_call_key {
	__u32 tgid;
	__u32 fn;
	__u64 stack_id;
};

/* Each addition costs the target some 6 ns: what another counter tells is not counted. */
struct memtoll_call_sum {
	__u64 failed;
	__u64 bytes;		/* bytes asked by the calls that succeeded */
	__u64 cpu_ns;		/* on-CPU time between the two probes, everything inside included */
	__u64 map_cpu_ns;	/* of it: inside mapping system calls */
	__u64 map_calls;
	__u64 faults;		/* faults of the thread inside the call, all classes */
	__u64 fault_cpu_ns;	/* of those that were timed */
	__u64 faults_timed;
	__u64 cleared_calls;	/* glibc: calls that memset */
	__u64 cleared_bytes;
	__u64 cleared_cpu_ns;	/* cpu_ns of those calls */
	__u64 cleared_faults;	/* faults inside those calls */
	__u64 mmapped_calls;	/* glibc: blocks with a mapping of their own */
	__u64 untimed_calls;	/* return not seen or not wanted: not in cpu_ns, nor in latency */
	__u64 nested_calls;	/* made by another allocator function: in none of these */
	__u64 foreign_calls;	/* timed ones of no glibc: its rule of clearing does not hold */
	__u64 slow_calls; /* of LATENCY_SLOW_NS and more, or with a fault or mapping call inside */
	__u64 slow_cpu_ns;	/* cpu_ns of those calls */
	__u64 off_ns;		/* time off the CPU inside: asleep, or preempted */
	__u64 lock_waits;	/* futex calls inside */
	__u64 lock_ns;		/* wall time of those */
};

/*
 * Latency of calls: wall time between the probes, less their calibrated part of it, in buckets.
 * Log2-linear: bucket 0 holds what took less than 2^LATENCY_FIRST_LOG ns; from there on every power
 * of two is divided into 2^LATENCY_SUB_LOG buckets of equal width; the last one has no upper end.
 */
#define LATENCY_FIRST_LOG 5
#define LATENCY_SUB_LOG 2
#define LATENCY_LOGS 28
#define LATENCY_BUCKETS (1 + (LATENCY_LOGS << LATENCY_SUB_LOG))

/* Calls from here on are told from short ones however much the price of the probes varies. */
#define LATENCY_SLOW_NS 2048

/*
 * Value of map `calls`. The buckets may wrap: userspace takes differences once per slice. Every
 * timed call is in one of them: their sum is how many there were.
 */
struct memtoll_call {
	struct memtoll_call_sum sum;
	__u32 latency[LATENCY_BUCKETS + 1];	/* the last one is unused */
};

/*
 * Value of map `call_places`. Each CPU has so many, for the first sites that it meets: found by the
 * key's hash, and looked up in line. A site that finds its place taken has its sums in `calls`.
 */
#define CALL_PLACES_LOG 7
#define CALL_PLACES (1U << CALL_PLACES_LOG)

#define PLACE_FREE 0
#define PLACE_BEING_TAKEN 1
#define PLACE_TAKEN 2

struct memtoll_call_place {
	__u64 state;		/* PLACE_* */
	struct memtoll_call_key key;
	struct memtoll_call call;
};

/* Kinds of faults, as an outlier counts them. */
enum memtoll_fault_kind {
	FAULT_KIND_ZERO = 0,	/* the kernel cleared a page, or mapped its shared zero page */
	FAULT_KIND_SWAP = 1,
	FAULT_KIND_OTHER = 2,
	FAULT_KINDS = 3,
};

/*
 * A call of the allocator that took far longer than its thread's calls of that function do, with
 * all that is known to have happened inside. Wall times, as a caller waits for them.
 */
struct memtoll_outlier {
	__u32 kind;
	__u32 tgid;
	__u32 tid;
	__u16 fn;
	__u16 flags;		/* BLOCK_*; BLOCK_GLIBC: it is glibc's own function */
	__u64 size;
	__u64 start_ns;
	__u64 wall_ns;		/* the probes' part taken out */
	__u64 cpu_ns;		/* of it on the CPU */
	__u64 median_ns; /* running median of the function's calls by this thread; 0: none yet */
	__u64 frees;		/* by this thread since its last request of LARGE_REQUEST or more */
	__u64 cleared_bytes;
	__u64 map_ns;		/* in mapping system calls */
	__u64 lock_ns;		/* in futex calls */
	__u64 reclaim_ns;	/* in reclaim, which may lie in a fault or mapping call */
	__u64 stack_id;
	__u32 lock_waits;
	__u32 voluntary;	/* context switches */
	__u32 involuntary;
	__u32 faults[FAULT_KINDS];
	__u32 timed[FAULT_KINDS];	/* faults whose end was seen */
	__u32 map_calls[MAP_FN_COUNT];
	__u32 unused;
	__u64 fault_ns[FAULT_KINDS];	/* of the timed ones */
};

/*
 * glibc up to 2.42 consolidates its fast bins at a request of that many bytes (malloc.c, 64 bits).
 */
#define LARGE_REQUEST 1001

struct memtoll_map_key {
	__u32 tgid;
	__u16 map_fn;
	__u16 in_fn;
	__u64 stack_id;
};

struct memtoll_map_sum {
	__u64 calls;
	__u64 bytes;
	__u64 cpu_ns;
	__u64 failed;
	__u64 populated;	/* minor faults inside that raise no event: MAP_POPULATE */
};

/* Reclaim that the target suffered, its pages pushed out to swap, by whom, and brought in. */
enum memtoll_swap_what {
	SWAP_RECLAIM_DIRECT = 1,	/* the machine is short of memory */
	SWAP_RECLAIM_MEMCG = 2,		/* its memory cgroup is */
	SWAP_OUT_SELF = 3,		/* while it reclaimed memory itself */
	SWAP_OUT_KSWAPD = 4,
	SWAP_OUT_OTHER = 5,		/* by the reclaim of a process that is not traced */
	SWAP_IN_DEVICE = 6,		/* pages it brought in, with read-ahead, from a device */
	SWAP_IN_ZSWAP = 7,
	SWAP_IN_ZERO = 8,		/* all-zero pages, which are not kept anywhere */
	SWAP_OUT_TRACED = 9,		/* by that of another process that is traced too */
	SWAP_WHATS = 10,
};

struct memtoll_swap_key {
	__u32 tgid;		/* 0: all processes that are not traced */
	__u32 what;
	__u64 unused;
};

struct memtoll_swap_sum {
	__u64 count;
	__u64 pages;		/* reclaimed, or pushed out */
	__u64 cpu_ns;
	__u64 blocked_ns;
};

/* The ways of reading a file that are watched. 0 means "in none of them". */
enum memtoll_read_fn {
	READ_FN_NONE = 0,
	READ_FN_READ = 1,
	READ_FN_PREAD = 2,
	READ_FN_READV = 3,
	READ_FN_PREADV = 4,
	READ_FN_PREADV2 = 5,
	READ_FN_IO_SUBMIT = 6,	/* Linux AIO: what was asked for, when it was submitted */
	READ_FN_IO_URING = 7,	/* what came, when it was complete */
	READ_FN_COUNT = 8,
};

/* read.flags, read_key.flags, path.flags */
#define READ_DIRECT (1U << 0)		/* O_DIRECT: past the page cache */
#define READ_BLOCK_DEVICE (1U << 1)
#define PATH_CUT (1U << 2)		/* deeper than MEMTOLL_PATH_PARTS */

/* Reads of one file by one thread, each of which began where the one before ended: [start, end). */
struct memtoll_read {
	__u32 kind;
	__u32 tgid;
	__u32 dev;		/* as stat(2) splits it: major << 20 | minor */
	__u32 flags;
	__u64 inode;
	__u64 start;		/* bytes into the file */
	__u64 end;
	__u64 reads;
};

#define MEMTOLL_PATH_PARTS 16
#define MEMTOLL_PATH_PART 64

/* Where a file is, before the first record or sum that names it: leaf first, "" after the last. */
struct memtoll_path {
	__u32 kind;
	__u32 tgid;
	__u64 inode;
	__u32 dev;
	__u32 flags;
	__u64 bytes;		/* size of the file */
	char parts[MEMTOLL_PATH_PARTS][MEMTOLL_PATH_PART];
};

/* Key of the in-kernel sums: one file read from one place. */
struct memtoll_read_key {
	__u32 tgid;
	__u32 dev;
	__u64 inode;
	__u64 stack_id;
	__u32 read_fn;
	__u32 flags;
};

struct memtoll_read_sum {
	__u64 calls;
	__u64 failed;		/* and those at the end of the file, which read nothing */
	__u64 bytes;
	__u64 cpu_ns; /* major faults and reclaim inside are taken out, minor faults not */
	__u64 blocked_ns;	/* asleep; likewise */
	__u64 cached_calls;	/* all was in the page cache: no page added, no wait */
	__u64 cached_bytes;
	__u64 filled_pages;	/* pages that came into the page cache, read-ahead included */
	__u64 faults;		/* minor ones of the thread inside */
};

/* What walking stacks has cost a process: taken out of its time. */
struct memtoll_walk_key {
	__u32 tgid;
	__u32 unused[3];
};

struct memtoll_walk_sum {
	__u64 walks;
	__u64 ns;
};

/* Of a process: what passes by the tracepoints of system calls. */
struct memtoll_pass_key {
	__u32 tgid;
	__u32 unused[3];
};

struct memtoll_pass_sum {
	__u64 passes;		/* reads of what is no file */
	__u64 syscalls;		/* that no program looks at, counted in windows */
};

/* A thread tells of either when it has so many, and when it ends. */
#define PASSES_AT_ONCE 64

/* How many calls came by a function's entry, and at its probe had the same arguments or not. */
struct memtoll_value_sum {
	__u64 entered;
	__u64 agreed;
	__u64 differed;
};

#define MEMTOLL_MEMSET_RANGES 8
/* More allocators than that no program has. */
#define MEMTOLL_CALLOCS 4

/* A range of code, [start, end). */
struct memtoll_range {
	__u64 start;
	__u64 end;
};

/* How an interpreter tells which of its frames were called from C. */
enum memtoll_python_kind {
	PYTHON_NONE = 0, /* no interpreter whose frames can be read */
	PYTHON_OBJECTS = 1, /* 3.9, 3.10: frame objects, each a run of the eval loop of its own */
	PYTHON_ENTRIES = 2, /* 3.11: the frame says so itself */
	PYTHON_SHIMS = 3, /* 3.12 and later: a frame without code lies below */
};

/* Bytes that are read at once of a thread state or of a frame, at most. */
#define MEMTOLL_PYTHON_CHUNK 256

/*
 * Where CPython keeps its frames: offsets in bytes, those of 8-byte fields multiples of 8. Of each
 * process, filled by userspace (python_offsets.c).
 */
struct memtoll_python_offsets {
	__u64 runtime;		/* address of _PyRuntime */
	__u32 kind;		/* enum memtoll_python_kind */
	__u32 interpreters;	/* _PyRuntime: the first interpreter */
	__u32 current;		/* _PyRuntime: the thread state that holds the GIL; 0: not there */
	__u32 next_interpreter;	/* interpreter: the next one */
	__u32 threads;		/* interpreter: its first thread state */
	__u16 state_bytes;	/* of a thread state, as far as it is needed */
	__u16 state_previous;
	__u16 state_next;
	__u16 state_interpreter;
	__u16 state_id;		/* pthread_self() of its thread */
	__u16 state_status;	/* bit 4: in use; 0: not there */
	__u16 state_frame;	/* the innermost frame, or what points to it */
	__u16 frame_bytes;
	__u16 frame_previous;
	__u16 frame_code;
	__u16 frame_instruction;
	__u16 frame_owner;	/* or, of PYTHON_ENTRIES, whether it was called from C */
	__u16 code_start;	/* code object: its first instruction */
	__u16 instruction_unit;	/* PYTHON_OBJECTS: bytes that an instruction's number counts */
	__u8 indirect;		/* state_frame points to a place that points to the frame ... */
	__u8 indirect_offset;	/* ... at this offset */
	__u16 unused[3];
};

/* frames[].flags */
#define PYTHON_ENTRY (1U << 0)		/* called from C: those below ran in another eval loop */

/* memtoll_python.flags */
#define PYTHON_TRUNCATED (1U << 0)	/* deeper than MEMTOLL_PYTHON_DEPTH */
#define PYTHON_BROKEN (1U << 1)		/* a frame could not be read: the rest is missing */

/*
 * The interpreter's frames of a stack that was not seen before, innermost first: record of the ring
 * buffer `pythons`, as long as it is deep. Urgent: what names them must be read while the code is
 * still in memory, so it has a ring buffer and a reader of its own.
 */
struct memtoll_python {
	__u64 stack_id;
	__u32 tgid;
	__u16 depth;
	__u16 flags;
	struct {
		__u64 code;		/* code object; 0: an eval loop without a frame */
		__u32 instruction;	/* bytes into its code; negative: not begun */
		__u32 flags;
	} frames[MEMTOLL_PYTHON_DEPTH];
};

/*
 * Value of map `processes`, keyed by tgid: a traced process. memset[] and calloc[] are filled by
 * userspace.
 */
struct memtoll_target {
	__u32 unwind_table;	/* of its mappings; 0: none yet */
	__u32 exec_pending;	/* counting starts at the next exec: a command not yet started */
	__u32 memset_count;
	__u32 ended;		/* its last thread has exited; its number may become another's */
	struct memtoll_range memset[MEMTOLL_MEMSET_RANGES];
	__u64 calloc[MEMTOLL_CALLOCS];	/* addresses of the functions; 0: no more */
	__u64 exited_minor_faults;	/* of threads that have exited */
	__u64 exited_major_faults;
	struct memtoll_python_offsets python;
};

/* A program whose dynamic loader tells how far it is: see start.bpf.c. */
struct memtoll_start {
	__u64 state_at;	/* address of _r_debug.r_state */
	__u32 adding;	/* libraries were about to be mapped */
	__u32 mapped;	/* and all are */
	__u32 awaited;	/* its tracer wants to hear of that */
};

/*
 * Counts of traced processes by the lowest bits of their numbers (thread.bpf.h): a power of two. One
 * in so many of the others has a traced one's and is passed over by its whole number.
 */
#define NEAR_PROCESSES 4096

/*
 * Unwinding by call frame information. Userspace compiles .eh_frame of a module into rows that
 * ascend by pc: a row holds from its pc to that of the next one. pc is relative to the module's
 * lowest address in the file; no module has 4 GiB of code.
 *
 * A table is an array map of chunks. Chunk 0 is an index: for each other chunk, in order, the pc of
 * its first row; unused entries are ~0. The rows follow in the other chunks, the last one padded
 * with rows of pc ~0. A process's mappings make a table of the same kind, without an index.
 */
#define UNWIND_CHUNK_BYTES 16384
#define UNWIND_CHUNK_ROWS (UNWIND_CHUNK_BYTES / 8)
#define UNWIND_INDEX_ENTRIES (UNWIND_CHUNK_BYTES / 4)
#define UNWIND_CHUNK_MAPPINGS (UNWIND_CHUNK_BYTES / 32)
#define UNWIND_MAPPING_CHUNKS 8		/* 4096 mappings of a process */
#define UNWIND_TABLES 4096		/* modules and processes together */

struct memtoll_unwind_row {
	__u32 pc;
	__u32 rule;
};

/* How the frame's address (CFA, the value of rsp before the call) is found: rule bits 0..2. */
enum memtoll_cfa {
	CFA_STOP = 0, /* no information, or a rule that cannot be expressed */
	CFA_END = 1, /* the return address is undefined: the thread's first frame */
	CFA_RSP = 2, /* rsp + offset */
	CFA_RBP = 3, /* rbp + offset */
	CFA_RBP_DEREF = 4, /* what lies at rbp + offset, + addend: a realigned stack */
	CFA_PLT = 5, /* rsp + 8 + ((rip & 15) >= offset / 8 ? 8 : 0) */
	CFA_SIGNAL = 6, /* rsp points to the ucontext that the kernel pushed */
	CFA_RSP_DEREF = 7, /* what lies at rsp + offset, + addend: assembly that kept rsp there */
};

/* Where the caller's rbp is: rule bits 3..4. */
enum memtoll_saved_rbp {
	RBP_SAME = 0,
	RBP_AT_CFA = 1,		/* at CFA + offset */
	RBP_AT_RBP = 2,		/* at rbp + offset: a realigned stack */
	RBP_UNKNOWN = 3,
};

/* Offsets are signed multiples of 8: 17 bits of the CFA's, 10 of rbp's. Return address: CFA - 8. */
#define UNWIND_CFA_SHIFT 5
#define UNWIND_CFA_BITS 17
#define UNWIND_RBP_SHIFT 22
#define UNWIND_RBP_BITS 10

#define UNWIND_CFA(rule) ((enum memtoll_cfa)((rule) & 7))
#define UNWIND_SAVED_RBP(rule) ((enum memtoll_saved_rbp)((rule) >> 3 & 3))
/* Sign-extended by shifting the field to the top; in bytes. */
#define UNWIND_CFA_OFFSET(rule) \
	((__s64)((__s32)((rule) << (32 - UNWIND_CFA_SHIFT - UNWIND_CFA_BITS)) >> \
		 (32 - UNWIND_CFA_BITS)) * 8)
#define UNWIND_RBP_OFFSET(rule) ((__s64)((__s32)(rule) >> UNWIND_RBP_SHIFT) * 8)
/* The _DEREF rules: the upper 12 bits of the CFA's 17 are the offset, the lower 5 the addend. */
#define UNWIND_DEREF_BITS 12
#define UNWIND_ADDEND_BITS 5
#define UNWIND_DEREF_OFFSET(rule) ((UNWIND_CFA_OFFSET(rule) / 8 >> UNWIND_ADDEND_BITS) * 8)
#define UNWIND_ADDEND(rule) \
	(((rule) >> UNWIND_CFA_SHIFT & ((1U << UNWIND_ADDEND_BITS) - 1)) * 8)

/* An executable mapping of a process, ascending by start; unused entries have start ~0. */
struct memtoll_unwind_mapping {
	__u64 start;
	__u64 end;
	__u64 bias;		/* address - bias is a row's pc */
	__u32 table;		/* of the module; 0: none, frame pointers only */
	__u32 unused;
};

/* How a stack was made. */
enum memtoll_unwind {
	UNWIND_FP = 1,		/* frame pointers alone, first caller from the stack pointer */
	UNWIND_CFI = 2,		/* call frame information, frame pointers where there was none */
};

#define STACK_TRUNCATED (1U << 0)	/* deeper than MEMTOLL_STACK_DEPTH */
#define STACK_COMPLETE (1U << 1)	/* reached the thread's first frame */
#define STACK_SOME_FP (1U << 2)		/* some frame by frame pointer */

/* Why the walk of a stack ended early. */
enum memtoll_unwind_stop {
	UNWIND_STOP_NONE = 0,
	UNWIND_STOP_NO_MAPPING = 1,	/* an address in no known code */
	UNWIND_STOP_NO_ROW = 2,		/* code without call frame information */
	UNWIND_STOP_RULE = 3,		/* a rule that cannot be expressed */
	UNWIND_STOP_MEMORY = 4,		/* the stack could not be read */
	UNWIND_STOP_PROBE = 5,		/* a return probe was about to take the return address */
};

struct memtoll_stack {
	__u16 depth;
	__u8 how;
	__u8 flags;
	__u32 tgid;
	__u64 exact[2];		/* bit n: frames[n] is an instruction, not a return address */
	__u8 stop;		/* enum memtoll_unwind_stop */
	__u8 python_depth;	/* frames of the interpreter, sent under the same id */
	__u8 unused[6];
	__u64 frames[MEMTOLL_STACK_DEPTH];	/* leaf first; return addresses where not exact */
};

_Static_assert(sizeof(struct memtoll_block) == 72, "wire size of struct memtoll_block");
_Static_assert(sizeof(struct memtoll_run) == 120, "wire size of struct memtoll_run");
_Static_assert(sizeof(struct memtoll_file) == 88, "wire size of struct memtoll_file");
_Static_assert(sizeof(struct memtoll_mapping) == 80, "wire size of struct memtoll_mapping");
_Static_assert(sizeof(struct memtoll_new_stack) == 16, "wire size of struct memtoll_new_stack");
_Static_assert(sizeof(struct memtoll_process) == 64, "wire size of struct memtoll_process");
_Static_assert(sizeof(struct memtoll_sample) == 40 + 8 * MEMTOLL_KERNEL_DEPTH,
	       "wire size of struct memtoll_sample");
_Static_assert(sizeof(struct memtoll_python) == 16 + 16 * MEMTOLL_PYTHON_DEPTH,
	       "wire size of struct memtoll_python");
_Static_assert(sizeof(struct memtoll_outlier) == 192, "wire size of struct memtoll_outlier");
_Static_assert(sizeof(struct memtoll_call) % 8 == 0, "no padding in a map value");
_Static_assert(sizeof(struct memtoll_python_offsets) == 64, "no hole in a map value");
_Static_assert(sizeof(struct memtoll_read) == 48, "wire size of struct memtoll_read");
_Static_assert(sizeof(struct memtoll_path) == 32 + MEMTOLL_PATH_PARTS * MEMTOLL_PATH_PART,
	       "wire size of struct memtoll_path");
_Static_assert(sizeof(struct memtoll_read_key) == 32, "no padding in a map key");
_Static_assert(sizeof(struct memtoll_call_key) == 16, "no padding in a map key");
_Static_assert(sizeof(struct memtoll_map_key) == 16, "no padding in a map key");

#endif /* MEMTOLL_EVENTS_H */
