/* SPDX-License-Identifier: GPL-2.0 */
/* memtoll.bpf.h: what the BPF parts share: maps, state of threads, loss counter, emitter. */
#ifndef MEMTOLL_BPF_H
#define MEMTOLL_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "wire/config.h"
#include "wire/events.h"
#include "wire/losses.h"
#include "memory/pagetable.bpf.h"

/* A moment in a thread's life, to measure from. */
struct stamp {
	__u64 ns;
	__u64 accounted_ns;	/* CPU time in the scheduler's books */
	__u64 runtime_ns;	/* the same, plus what passed since */
	__u64 voluntary;	/* context switches */
	__u64 involuntary;
};

/* What happened inside a call, by kind, for its record should it take long. */
struct call_inside {
	__u32 faults[FAULT_KINDS];	/* void while open_call.faults is 0 */
	__u32 timed[FAULT_KINDS];
	__u64 fault_ns[FAULT_KINDS];
	__u32 map_calls[MAP_FN_COUNT];	/* void while open_call.map_calls is 0 */
	__u64 map_ns;
};

/* The outermost allocator call that a thread is in. */
struct open_call {
	__u64 sp;		/* stack pointer at the function's entry: identifies the call */
	__u64 bp;
	__u64 ip;		/* the function */
	__u64 caller;		/* where it returns to; 0: not known yet (call_find_caller) */
	__u64 size;
	__u64 pointer;		/* realloc, free: the block; posix_memalign: where to */
	__u64 heap_top;		/* calloc: the break before the call */
	__u64 fresh_from;	/* calloc in an arena: start of what mprotect opened meanwhile */
	struct stamp start;
	__u64 map_cpu_ns;
	__u64 fault_cpu_ns;
	__u64 reclaim_cpu_ns;
	__u64 probe_ns;		/* spent by our own programs at the start of runs of faults */
	__u32 map_calls;
	__u32 faults;
	__u32 faults_timed;
	__u32 glibc;
	__u64 chosen;		/* by --sample */
	__u64 large_stack;	/* free, realloc of a followed block: its reported stack */
	__u32 lock_waits;
	__u32 followed;		/* its block is told of by itself */
	__u64 lock_ns;
	__u64 reclaim_ns;	/* wall time; it may lie in a fault or mapping call */
	struct call_inside inside;
};

/* How a call ended. */
struct call_end {
	__u64 cpu_ns;
	__u64 off_ns;		/* not on the CPU */
	__u64 net_ns;		/* wall time without the probes' calibrated part */
	__u64 cleared;		/* bytes calloc's memset wrote */
	__u16 flags;		/* BLOCK_* */
	__u8 failed;
	__u8 slept;		/* it gave up the CPU */
};

/* The running median of a thread's calls of one function. */
struct pace {
	__u32 median_ns;
	__u32 calls;		/* so far, up to PACE_YOUNG */
};

struct open_map_call {
	struct stamp start;
	__u64 addr;
	__u64 len;
	__u64 arg;
	__u64 reclaim_cpu_ns;
	__u64 minor_before;	/* the thread's minor faults, by the kernel's count */
	__u32 minor;		/* those inside that we have seen */
	__u32 map_fn;
	__u16 flags;		/* MAPPING_* */
};

/* A read of a file that a thread is in. */
struct open_read {
	struct stamp start;
	__u64 inode;
	__u64 position;		/* bytes into the file; of AIO: the array of its requests */
	__u32 dev;
	__u32 read_fn;
	__u32 flags;		/* READ_* */
	__u32 faults;		/* minor ones inside */
	__u64 fault_cpu_ns;	/* major faults inside: they have their own toll */
	__u64 fault_blocked_ns;
	__u64 fault_switches;	/* voluntary ones */
	__u64 reclaim_cpu_ns;
	__u64 reclaim_blocked_ns;
	__u64 filled_pages;
};

#define READ_SITE_WORDS 32	/* of the stack's top: what tells one call site from another */

/* The call site of the last read: a loop that reads has the same stack again and again. */
struct read_site {
	__u64 ip;
	__u64 sp;
	__u64 hash;		/* of the top of the stack */
	__u64 stack_id;
	__u64 words[READ_SITE_WORDS];	/* scratch: the top of the stack */
};

/* A fault that has begun and whose end was not seen (yet). */
struct open_fault {
	__u64 address;
	__u64 ip;
	struct stamp start;
	__u64 reclaim_cpu_ns;	/* taken out of its time: toll reclaim */
	__u64 reclaim_blocked_ns;
	__u64 stack_id;
	__u64 root;		/* of its page tables; 0: they are gone */
	__u64 pfn;		/* write to a present page: what was mapped */
	__u64 inode;
	__u64 timed_walk_ns;	/* rates->walk_ns when its program began, if that is timed */
	/* When its program began, and what is its own only; 0: not timed, nothing. Read anew. */
	volatile __u64 timed_ns;
	volatile __u64 began_ns;
	__u32 dev;
	__u32 swap_type;
	__u32 in_device;	/* pages brought in meanwhile, from a swap device */
	__u32 in_zswap;
	__u32 in_zero;
	__u32 active;
	__u32 window;		/* pages present around it at the start */
	__u16 window_first;	/* slot of the first of them in its page table */
	__u8 look_again;	/* what to look at when it has ended */
	__u8 fault_class;
	__u8 area;
	__u8 flags;
	__u8 in_fn;
	__u8 stamped;		/* start is its own */
	__u8 interrupted;	/* by what its probe did: its time is not the fault's alone */
	__u32 blocks_told;	/* when start was taken */
	struct walked walked;		/* the way to its entry: no room on the BPF stack */
	__u64 entries[WINDOW_PAGES];	/* scratch */
};

struct area_cache {
	__u64 start;
	__u64 end;
	__u64 inode;
	__u32 dev;
	__u32 generation;
	__u8 area;
	__u8 shared;
	__u8 hugetlb;
};

/* Where an interpreter is: the words that tell, and what they were when its frames were read. */
struct python_top {
	__u64 frame_at;		/* 0: no interpreter */
	__u64 frame;		/* the innermost; 0: it was not to be had */
	__u64 instruction_at;
	__u64 instruction;
};

/* To read an interpreter's frames. */
struct python_walk {
	struct python_top top;
	__u64 state;		/* the thread state found last */
	__u64 candidate;	/* while it is searched for: the state to be looked at ... */
	__u64 interpreter;	/* ... and where to go on after the last of this interpreter's */
	__u8 chunk[MEMTOLL_PYTHON_CHUNK];
	struct memtoll_python python;
	__u8 woken;		/* who names the frames was woken for the last stack */
};

/* A walk over a stack: the registers of one frame, and the mapping that its code is in. */
struct unwind {
	__u64 ip;
	__u64 sp;
	__u64 bp;
	__u64 start;
	__u64 end;
	__u64 bias;
	__u32 table;
	__u32 process_table;
	__u32 exact;		/* ip is an instruction, not a return address */
	__u32 leaf;		/* nothing but the return address is on its stack yet */
	__u32 flags;		/* STACK_* */
	__u32 stop;
	__u64 bp_from;		/* where rbp was read; 0: it is the first frame's */
	__u64 used_at;		/* where the rbp was read that the last step went by, or its ip */
	__u64 used_word;	/* what was there */
	__u32 needs_bp;		/* a step went by the first frame's rbp */
	__u32 stopped_by_bp;	/* the walk ended because of what rbp is */
	__u32 irregular;	/* a step did not go by a rule, or read more than those two */
	__u32 unused;
};

/* Where pages are touched in order: see fault_streams.bpf.h. */
#define SWEEP_PLACES 4

/* Where the kernel has a word of the thread's memory, as long as this maps it: see direct_map.bpf.h. */
struct seen {
	__u64 slot;		/* of the page-table entry; 0: not known */
	__u64 entry;
	__u64 word_at;		/* in the direct map */
};

struct sweep_place {
	__u64 ip;
	__u64 sp;
	struct python_top top;
	struct seen frame_seen;
	struct seen instruction_seen;
	__u64 stack_id;
	__u64 until;		/* sweep.faults up to which faults are believed to be from there */
	__u32 believed;		/* for so many faults, when it was looked at last */
	__u32 flags;		/* RUN_* */
};

struct sweep {
	__u64 next;		/* the page in order; 0: none */
	__u64 faults;		/* of the thread */
	struct sweep_place places[SWEEP_PLACES];
};

/* Faults that follow upon the open one in order, and what must be as it was: fault_sequence.bpf.h. */
struct order {
	__u64 next;		/* the page that follows */
	__u64 ip;
	__u64 table;		/* the entry that points to its page table, and where that is */
	__u64 table_at;
	__u32 area_generation;
	__u32 blocks_told;
	__u16 followed;		/* faults; the open fault stands for the first of all */
	__u16 left;		/* that still may follow; 0: none */
	__u32 faults;		/* of the thread, whether in order or not */
};

/*
 * Everything known of a thread. Written by the thread itself only. What every fault in order
 * looks at comes first, in one cache line: clearing a page leaves little in the first cache.
 */
struct thread {
	__u32 in_fn;
	__u32 drained;		/* drain_epoch this thread has last obeyed */
	struct order order;
	__u32 idle_hits;
	__u32 passes;		/* reads of what is no file, not told of yet */
	__u32 syscalls;		/* counted, likewise */
	__u32 abandoned;	/* a call of its was given up without its return */
	__u64 entry_ip;		/* its last uprobe at an entry; 0: none yet */
	__u64 return_ip;	/* where it went on after its last one at a return */
	__u64 returned_ns;	/* from its last call; 0: none yet */
	__u64 passed_ns;	/* its last hit that was passed over */
	__u64 gap_ns;		/* a tenth of its gaps between calls are below, about */
	__u64 idle_gap_ns;	/* likewise between hits that were passed over */
	__s64 sample_left;	/* bytes to the next chosen place */
	__u64 sampling;		/* the first place was drawn */
	struct open_call call;
	struct open_map_call map;
	struct memtoll_mapping mapping;	/* on its way: too large for the BPF stack */
	struct open_fault fault;
	struct stamp reclaim;
	__u32 reclaiming;	/* SWAP_RECLAIM_*, or 0 */
	__u64 frees;		/* since its last large request */
	__u64 futex_ns; /* since when it is in a futex call inside the allocator; 0: it is not */
	struct pace paces[FN_COUNT];
	struct memtoll_run run;	/* run.faults == 0: none open */
	struct memtoll_series series;	/* the runs before it; series.count == 0: none */
	struct sweep sweep;
	struct area_cache area;
	struct open_read read;
	struct memtoll_read_key read_key;	/* scratch: too large for the BPF stack */
	struct memtoll_read reads;	/* reads.reads == 0: none open */
	struct read_site read_site;
	struct memtoll_file file;		/* scratch */
	struct memtoll_stack stack;		/* scratch */
	struct unwind walk;			/* scratch */
	struct memtoll_stack sample_stack;	/* scratch of the sampling interrupt */
	struct unwind sample_walk;
	__u64 sample_walk_ns;			/* rates->walk_ns when it began */
	struct python_walk python;		/* scratch, likewise two */
	struct python_walk sample_python;
};

struct block_key {
	__u32 tgid;
	__u32 unused;
	__u64 addr;
};

struct processes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct memtoll_target);
};
extern struct processes_map processes SEC(".maps");

struct stacks_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct memtoll_stack);
};
extern struct stacks_map stacks SEC(".maps");

struct unwind_chunk {
	union {
		__u32 index[UNWIND_INDEX_ENTRIES];
		struct memtoll_unwind_row rows[UNWIND_CHUNK_ROWS];
		struct memtoll_unwind_mapping mappings[UNWIND_CHUNK_MAPPINGS];
	};
};

/* Tables of modules and of processes: arrays of chunks, made by userspace (unwind_load.c). */
struct unwind_tables_map {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNWIND_TABLES);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
};
extern struct unwind_tables_map unwind_tables SEC(".maps");

#define MEMO_WAYS 4			/* of a set */
#define MEMOS (8 * MEMO_WAYS)
#define MEMO_STEPS 48
#define MEMO_BYTES_LOG 12
#define MEMO_BYTES (1ULL << MEMO_BYTES_LOG)
#define MEMO_COPY_WORDS (MEMO_BYTES / 8)

/* What a walk has read of the stack, from these registers on: see memo.bpf.h. */
struct memo_key {
	__u64 callee;		/* the frame before, of the allocator, which is not walked; 0: none */
	__u64 ip;		/* 0: no memo */
	__u64 sp;
	__u64 bp;
};

struct memo {
	struct memo_key key;
	__u64 id;		/* of the stack, without the interpreter's frames */
	__u64 hash;		/* of the words */
	__u64 bytes;		/* from sp on they lie in so many */
	__u64 beyond;		/* some do not */
	__u32 steps;
	__u32 needs_bp;		/* key.bp counts */
	__u16 address_at[MEMO_STEPS];	/* bytes from sp */
	__u16 used_at[MEMO_STEPS];
};

struct memos {
	__u64 turn;
	struct memo_key key;	/* what is looked for */
	struct memo memos[MEMOS];
	__u64 copy[MEMO_COPY_WORDS];	/* scratch */
};

struct memos_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct memos);
};
extern struct memos_map memos SEC(".maps");

struct pythons_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1048576);
};
extern struct pythons_map pythons SEC(".maps");

struct events_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16777216);
};
extern struct events_map events SEC(".maps");

struct losses_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MEMTOLL_LOSS_COUNT);
	__type(key, __u32);
	__type(value, __u64);
};
extern struct losses_map losses SEC(".maps");

struct rates_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct memtoll_rates);
};
extern struct rates_map rates SEC(".maps");

#define FN_MASK 31	/* of the bits and the array below */

/* Bit n: calls of function n are passed over, their window is closed: governor.c. */
extern volatile __u32 closed_fns;
/*
 * Until when windows are open, as userspace has it; ~0: no end is set. It comes and moves it on:
 * one that is stopped, or gets no CPU, leaves none open. And when a program found that it was past:
 * until it is moved on from there, hits are passed over, and counted as such. Programs cannot take
 * probes away: a hit still costs its trap.
 */
extern volatile __u64 open_until_ns;
extern volatile __u64 shut_ns;
/* Likewise of windows in which ends of minor faults are seen, and system calls counted. */
extern volatile __u64 timed_until_ns;
extern volatile __u64 timed_shut_ns;
/* When the probe of function n was last taken away: returns of calls before that are not seen. */
extern volatile __u64 detached_ns[FN_MASK + 1];
/* Where in the ring buffer userspace was last woken for much data. */
extern volatile __u64 woken_position;
extern volatile __u32 stacks_untold;
/* Since when read(2) is watched, and its ends are seen; ~0: it is not. */
extern volatile __u64 reads_watched_ns;
/* Likewise mapping calls, and the other calls that read. */
extern volatile __u64 calls_watched_ns;

/* Raised by userspace once per slice: threads then emit their open run at their next event. */
extern volatile __u32 drain_epoch;
/* Set when the recording is over: nothing is counted any more, whatever is still attached. */
extern volatile __u32 stopped;
/* Raised by every change of a traced process's mappings: voids the cached areas. */
extern volatile __u32 area_generation;
/* Raised by every block that userspace is told of, made or freed. */
extern volatile __u32 blocks_told;
/* Set by userspace while a sampling window is open: the ends of minor faults are seen. */
extern volatile __u32 ends_seen;
/* Set by userspace when it first meets an interpreter. */
extern volatile __u32 python_seen;
/* Calibrated: what of a call's duration is the probes' own, by function. */
extern volatile __u32 price_inside_ns[FN_COUNT];
extern volatile __u32 price_fault_ns;
/* Outliers still to be recorded in this slice, and the least they must take: by userspace. */
extern volatile __s64 outliers_left;
extern volatile __s64 preempted_left;
extern volatile __u64 outlier_floor_ns;
/*
 * There is more than one thread, or a call slept inside: futex calls are to be watched
 * (lock.bpf.c).
 */
extern volatile __u32 lock_suspected;

/* target.bpf.c */
struct thread *thread_create(struct task_struct *task) __hidden;
/* Global functions, here and below: the verifier looks at each once, not at every call. */
int lose(__u32 what, __u64 count);
int much_is_waiting(void);
int stack_tell(__u32 tgid, __u64 id);
/*
 * unwind.bpf.c. All but walk_account() global: with the functions of other files it makes loading
 * ten times as fast. Their pointers may be NULL as far as the verifier knows.
 */
__u64 stack_hash(struct memtoll_stack *stack);
int call_find_caller(struct thread *thread);
int stack_of_call(struct thread *thread);
__u64 stack_of_call_known(struct thread *thread);
int stack_walk(struct memtoll_stack *stack, struct unwind *walk, struct memo *memo);
int stack_end(struct memtoll_stack *stack, const struct unwind *walk, struct memo *memo,
	      __u32 steps);
__u64 stack_of_registers(struct thread *thread, struct memo *memo, __u32 sampling);
__u64 true_return(__u64 slot);
int memo_holds(struct memos *known, __u32 at);
int walk_account(__u32 tgid, __u64 ns, __u32 count) __hidden;
int unwind_step(struct unwind *walk);
int unwind_mapping(struct unwind *walk, __u64 address);
int unwind_see_through(struct unwind *walk);
int unwind_stopped(struct unwind *walk);
__u32 unwind_rule(__u32 table_id, __u32 pc);
int in_memset(const struct memtoll_target *process, __u64 ip);
/* alloc.bpf.c */
int call_add(struct memtoll_call *site, const struct open_call *call, const struct call_end *end);
/* python.bpf.c */
int python_state(struct python_walk *walk, const struct memtoll_target *process, __u64 state);
int python_search(struct python_walk *walk, const struct memtoll_target *process);
int python_same_state(struct python_walk *walk, const struct memtoll_target *process);
__u64 python_frame(struct python_walk *walk, const struct memtoll_target *process, __u64 frame);
__u64 python_walk(struct python_walk *walk, const struct memtoll_target *process, __u64 id);
int python_emit(__u64 id, struct memtoll_python *python);
__u64 python_add(struct memtoll_stack *stack, struct python_walk *walk, __u64 id);
/* page_state.bpf.c */
/* Of the running task: its mm as a number, 0: none; bounds of its heap; its first stack. */
__u64 current_mm(void);
__u64 current_heap(void);
__u64 current_heap_top(void);
__u64 current_stack(void);
/* The struct file of a descriptor as a number, 0 where there is none. */
__u64 current_file(__u32 fd);
/* Whether the last table of a walk is still where it was, and its entry for the address empty. */
int slot_is_empty(__u64 table, __u64 table_at, __u64 address);
__u64 table_root(void);
int walk_tables(struct walked *walked, __u64 root, __u64 address);
int look_around(struct open_fault *fault, int end, __u64 area_start);
__u64 fault_result(struct open_fault *fault, __u64 area_start, __u64 area_end);
__u64 vma_find(__u64 address);
int seen_find(struct seen *seen, __u64 root, __u64 address);
int seen_same_top(const struct sweep_place *place);
/* read.bpf.c */
int reads_emit(struct thread *thread);
int passes_tell(struct task_struct *task, struct thread *thread) __hidden;
/* fault.bpf.c */
int fault_settle(struct task_struct *task, struct thread *thread) __hidden;
int run_emit(struct thread *thread);
int run_close(struct thread *thread);

static __always_inline __u64 less(__u64 whole, __u64 part)
{
	return whole > part ? whole - part : 0;
}

static __always_inline void stamp_take(const struct task_struct *task, struct stamp *stamp)
{
	stamp->ns = bpf_ktime_get_ns();
	stamp->accounted_ns = task->se.sum_exec_runtime;
	stamp->runtime_ns = stamp->accounted_ns + stamp->ns - task->se.exec_start;
	stamp->voluntary = task->nvcsw;
	stamp->involuntary = task->nivcsw;
}

/*
 * Time on the CPU since the stamp. Without a context switch all of it. Else by the scheduler's
 * account. Its clock differs between CPUs by what interrupts and the hypervisor took: where a
 * thread moved and the difference comes out impossible, its books alone count, which lag by up to a
 * tick at both ends and so are right on average.
 */
static __always_inline __u64 stamp_cpu_ns(const struct task_struct *task,
					  const struct stamp *stamp, __u64 now)
{
	__u64 wall_ns = now - stamp->ns;
	__s64 cpu_ns;

	if (task->nvcsw == stamp->voluntary && task->nivcsw == stamp->involuntary)
		return wall_ns;
	cpu_ns = task->se.sum_exec_runtime + now - task->se.exec_start - stamp->runtime_ns;
	if (cpu_ns < 0 || (__u64)cpu_ns > wall_ns)
		cpu_ns = task->se.sum_exec_runtime - stamp->accounted_ns;
	return (__u64)cpu_ns < wall_ns ? cpu_ns : wall_ns;
}

/*
 * Of this CPU: nobody else writes there, save who interrupts or preempts; a governor may err by
 * one.
 */
static __always_inline struct memtoll_rates *rates_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&rates, &zero);
}

static __always_inline void rate_map(void)
{
	struct memtoll_rates *rates = rates_here();

	if (rates)
		rates->maps++;
}

static __always_inline void rate_read(bool plain)
{
	struct memtoll_rates *rates = rates_here();

	if (!rates)
		return;
	rates->reads++;
	if (plain)
		rates->plain_reads++;
}

/* Whoever has read the clock says whether windows are past their end: nobody reads it for that. */
static __always_inline void windows_end(__u64 now)
{
	if (now > open_until_ns && shut_ns <= open_until_ns)
		shut_ns = now;
	if (now > timed_until_ns && timed_shut_ns <= timed_until_ns)
		timed_shut_ns = now;
}

static __always_inline bool timed_window_is_open(void)
{
	return timed_shut_ns <= timed_until_ns;
}

/* Whether the ends of minor faults are seen. */
static __always_inline bool ends_are_seen(void)
{
	return ends_seen && timed_window_is_open();
}

static __always_inline bool calls_are_watched(void)
{
	return calls_watched_ns != ~0ULL;
}

/* In a mapping call whose end will be seen. */
static __always_inline bool in_map(const struct thread *thread)
{
	return thread->map.map_fn && thread->map.start.ns >= calls_watched_ns;
}

/* In a read of a file whose end will be seen. */
static __always_inline bool in_read(const struct thread *thread)
{
	return thread->read.read_fn &&
	       thread->read.start.ns >= (thread->read.read_fn == READ_FN_READ ? reads_watched_ns :
										calls_watched_ns);
}

#include "state/thread.bpf.h"

/* The page where the kernel keeps what its probes execute: return probes send functions there. */
static __always_inline __u64 probe_page(struct task_struct *task)
{
	return BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

static __always_inline bool is_trampoline(struct task_struct *task, __u64 address)
{
	__u64 page = probe_page(task);

	return page && address - page < MEMTOLL_PAGE_SIZE;
}

static __always_inline struct memtoll_target *process_get(__u32 tgid)
{
	return is_near(tgid) ? bpf_map_lookup_elem(&processes, &tgid) : NULL;
}

/* Copy a finished record into the ring buffer; count it as lost, `weight` times, if it is full. */
static __always_inline void emit(void *record, __u64 size, __u32 loss, __u64 weight, bool urgent)
{
	__u64 flags = BPF_RB_NO_WAKEUP;

	if (urgent || much_is_waiting())
		flags = BPF_RB_FORCE_WAKEUP;
	if (bpf_ringbuf_output(&events, record, size, flags))
		lose(loss, weight);
}

#define STACK_HASH_SEED 0x9e3779b97f4a7c15ULL
#define STACK_HASH_PRIME 0xff51afd7ed558ccdULL

static __always_inline __u64 mix(__u64 hash, __u64 value)
{
	hash = (hash ^ value) * STACK_HASH_PRIME;
	return hash ^ (hash >> 32);
}

/* Read the interpreter's frames, where there is one. The id with them mixed in. */
static __always_inline __u64 stack_add_python(struct memtoll_stack *stack,
					      struct python_walk *walk, __u64 id)
{
	stack->python_depth = 0;
	walk->top.frame_at = 0;
	return python_seen ? python_add(stack, walk, id) : id;
}

/* Not a global function: before 6.2 a map takes its values from maps and the stack only. */
static __always_inline void stack_put(__u64 id, struct memtoll_stack *stack,
				      struct python_walk *walk)
{
	if (bpf_map_lookup_elem(&stacks, &id))
		return;
	if (stack->python_depth)
		walk->woken = python_emit(id, &walk->python);
	if (bpf_map_update_elem(&stacks, &id, stack, BPF_ANY))
		lose(LOST_STACKS_FULL, 1);
	else
		stack_tell(stack->tgid, id);
}

static __always_inline __u64 stack_store(struct memtoll_stack *stack, struct python_walk *walk)
{
	__u64 id = stack_add_python(stack, walk, stack_hash(stack));

	stack_put(id, stack, walk);
	return id;
}

/*
 * Whether the word on top of the stack is a return address: it follows a call instruction. Then
 * nothing was pushed since, as in libc's wrappers of system calls.
 */
static __always_inline bool is_return_address(__u64 sp)
{
#if defined(__TARGET_ARCH_x86)
	__u64 address;
	__u8 code[7];

	if (bpf_probe_read_user(&address, sizeof(address), (void *)sp) ||
	    bpf_probe_read_user(code, sizeof(code), (void *)(address - sizeof(code))))
		return false;
	/* call rel32; call *disp32(%rip); call *disp8(reg); call *reg */
	return code[2] == 0xe8 || (code[1] == 0xff && code[2] == 0x15) ||
	       (code[4] == 0xff && (code[5] & 0xf8) == 0x50) ||
	       (code[5] == 0xff && (code[6] & 0xf8) == 0xd0);
#else
	return false;
#endif
}

/* A stack of one frame, an instruction. */
static __always_inline void stack_begin(struct memtoll_stack *stack, __u32 tgid, __u64 ip)
{
	stack->tgid = tgid;
	stack->how = UNWIND_FP;
	stack->flags = 0;
	stack->exact[0] = 1;
	stack->exact[1] = 0;
	stack->stop = UNWIND_STOP_NONE;
	stack->python_depth = 0;
	stack->frames[0] = ip;
	stack->depth = 1;
}

/* A stack that goes no further because the return address was not to be had. */
static __always_inline void stack_ends_in_probe(struct memtoll_stack *stack)
{
	stack->how = UNWIND_CFI;
	stack->stop = UNWIND_STOP_PROBE;
}

/*
 * The stack of code that is not at a function's entry. `stack` is one of the thread's two scratch
 * places. leaf: without call frame information the caller is where the stack pointer points.
 */
static __always_inline __u64 stack_at(struct thread *thread, struct memtoll_stack *stack,
				      struct memo *memo, __u32 tgid, __u64 ip, __u64 sp,
				      __u64 bp, bool leaf)
{
	bool sampling = stack == &thread->sample_stack;
	struct unwind *walk = sampling ? &thread->sample_walk : &thread->walk;
	__u64 id;

	*walk = (struct unwind){ .ip = ip, .sp = sp, .bp = bp, .exact = 1, .leaf = leaf };
	stack_begin(stack, tgid, ip);
	id = stack_of_registers(thread, memo, sampling);
	stack_put(id, stack, sampling ? &thread->sample_python : &thread->python);
	return id;
}

/*
 * The id of a call site where the stack is not walked at every call: function and direct caller,
 * which must be known. stack_keep() stores under it the whole stack of the first call, as an
 * example.
 */
static __always_inline __u64 stack_site(__u32 tgid, const struct thread *thread)
{
	__u64 id = mix(~STACK_HASH_SEED, tgid);

	id = mix(mix(id, thread->call.ip), thread->call.caller);
	return id ? id : 1;
}

static __always_inline __u64 stack_from_call(struct thread *thread)
{
	__u64 id = stack_of_call_known(thread);

	if (id)
		return id;
	stack_of_call(thread);
	return stack_store(&thread->stack, &thread->python);
}

/* Keep the stack of the open call as the example of its site. */
static __always_inline void stack_keep(struct thread *thread, __u64 id)
{
	if (bpf_map_lookup_elem(&stacks, &id))
		return;
	stack_of_call(thread);
	stack_add_python(&thread->stack, &thread->python, id);
	stack_put(id, &thread->stack, &thread->python);
}

#endif /* MEMTOLL_BPF_H */
