/* SPDX-License-Identifier: GPL-2.0 */
/*
 * memo.bpf.h: stacks that were walked before, found again without a walk.
 *
 * A walk by call frame information depends on the stack pointer that it begins with and on the
 * words of the stack that it goes by: return addresses, and rbp where a frame is found by it.
 * (Most code keeps data in rbp. What it has saved of that is ignored.) A memo keeps where those
 * words stand, and their hash. From the same instruction and stack pointer, with the same words in
 * the same places, the walk would come to the same stack: one copy of that piece of the stack and
 * some hashing, 0.3 us, instead of some twenty look-ups, 4 us. It counts where pages are touched
 * from several places in turn, which ends a run at nearly every fault, and where a loop maps and
 * unmaps, or allocates and clears so much that the tables are out of the caches each time.
 */
#ifndef MEMTOLL_MEMO_BPF_H
#define MEMTOLL_MEMO_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "state/numbers.bpf.h"
#include "state/threads.bpf.h"
#include "memory/page_state.bpf.h"
#include "stacks/stack.bpf.h"

#define MEMO_WAYS 4 /* of a set */
#define MEMOS (8 * MEMO_WAYS)
#define MEMO_STEPS 48
#define MEMO_BYTES_LOG 12
#define MEMO_BYTES (1ULL << MEMO_BYTES_LOG)
#define MEMO_COPY_WORDS (MEMO_BYTES / 8)

/* What a walk has read of the stack, from these registers on. */
struct memo_key {
	__u64 callee; /* the allocator function before it, not walked; 0: none */
	__u64 ip;     /* 0: no memo */
	__u64 sp;
	__u64 bp;
};

struct memo {
	struct memo_key key;
	__u64 id;     /* of the stack, without the interpreter's frames */
	__u64 hash;   /* of the words */
	__u64 bytes;  /* from sp on they lie in so many */
	__u64 beyond; /* some do not */
	__u32 steps;
	__u32 needs_bp;		      /* key.bp counts */
	__u16 address_at[MEMO_STEPS]; /* bytes from sp */
	__u16 used_at[MEMO_STEPS];
};

struct memos {
	__u64 program; /* that they are of: memos_program() */
	__u64 turn;
	struct memo_key key; /* what is looked for */
	struct memo memos[MEMOS];
	__u64 copy[MEMO_COPY_WORDS]; /* scratch */
};

struct memos_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct memos);
};
extern struct memos_map memos SEC(".maps");

/*
 * Of the threads that have a place in thread_places. What a thread leaves here the next one of the
 * same program may use: its stack is often the same memory.
 */
struct memo_places_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, THREAD_PLACES);
	__type(key, __u32);
	__type(value, struct memos);
};
extern struct memo_places_map memo_places SEC(".maps");

__u64 memo_holds(struct memos *known, __u32 at);
int memos_clear(struct memos *known);
int memo_add_step(struct memo *memo, __u32 step, const struct unwind *walk);
__u64 memo_walk(struct thread *thread, __u64 ip, __u64 sp, __u64 bp, __u32 leaf);

/* Of a process up to its next exec. Never 0. */
static __always_inline __u64 memos_program(const struct task_struct *task)
{
	return mix(mix(STACK_HASH_SEED, current_leader()), task->self_exec_id) | 1;
}

static __always_inline struct memos *memos_in_place(const struct task_struct *task, __u32 place)
{
	struct memos *known = bpf_map_lookup_elem(&memo_places, &place);
	__u64 program = memos_program(task);

	if (known && known->program != program) {
		memos_clear(known);
		known->program = program;
	}
	return known;
}

static __always_inline struct memos *memos_get(struct task_struct *task)
{
	__u32 place = task->pid & (THREAD_PLACES - 1);

	if (thread_owners[place] == thread_owner(task))
		return memos_in_place(task, place);
	return bpf_task_storage_get(&memos, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* The set where a key's memos are. Not by its rbp, which seldom counts. */
static __always_inline __u64 memo_set(const struct memo_key *key)
{
	return mix(mix(mix(STACK_HASH_SEED, key->callee), key->ip), key->sp);
}

static __always_inline __u32 memo_index(__u64 set, __u64 way)
{
	__u64 at = set * MEMO_WAYS + way % MEMO_WAYS;

	/* 6.1's verifier has to see the mask. */
	barrier_var(at);
	return at % MEMOS;
}

/*
 * The id of the stack whose walk would begin at known->key, the interpreter's frames included, if a
 * memo has it and it is stored already; or 0. The interpreter's frames are read anew: they are not
 * on the stack.
 */
static __always_inline __u64 memo_find(struct memos *known, struct thread *thread, __u32 tgid)
{
	__u64 set = memo_set(&known->key), id = 0;
	__u32 way;

	/* Of several with this key, from as many callers at the same depth, one may hold. */
	for (way = 0; way < MEMO_WAYS && !id; way++)
		id = memo_holds(known, memo_index(set, way));
	if (!id)
		return 0;
	thread->stack.tgid = tgid;
	id = stack_add_python(&thread->stack, &thread->python, NULL, id);
	return bpf_map_lookup_elem(&stacks, &id) ? id : 0;
}

/* A memo to be filled by a walk that begins at known->key. memo_keep() makes it count. */
static __always_inline struct memo *memo_new(struct memos *known)
{
	struct memo *memo = &known->memos[memo_index(memo_set(&known->key), known->turn++)];

	memo->key = known->key;
	memo->key.ip = 0;
	return memo;
}

static __always_inline void memo_keep(struct memo *memo, __u64 ip, struct memtoll_stack *stack)
{
	if (!memo || !memo->steps)
		return;
	memo->id = stack->id;
	memo->key.ip = ip;
}

/* The stack at these registers, which are the program's, or where the allocator was called. */
static __always_inline __u64 memo_stack(struct thread *thread, const struct pt_regs *regs,
					bool leaf)
{
	__u64 id = memo_walk(thread, regs->ip, regs->sp, regs->bp, leaf);

	/* That the thread may be NULL is what the verifier thinks of memo_walk(): here it never is. */
	if (!thread->walk.stored)
		stack_put(id, &thread->stack, &thread->python);
	return id;
}

#endif /* MEMTOLL_MEMO_BPF_H */
