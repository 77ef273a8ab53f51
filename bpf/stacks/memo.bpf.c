// SPDX-License-Identifier: GPL-2.0
/* memo.bpf.c: whether a stack is the one that a memo was made of. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "state/loop.bpf.h"
#include "state/numbers.bpf.h"
#include "state/processes.bpf.h"
#include "stacks/call_stack.bpf.h"
#include "stacks/memo.bpf.h"

struct memos_map memos SEC(".maps");

struct memo_places_map memo_places SEC(".maps");

/* None of them counts any more. */
int memos_clear(struct memos *known)
{
	__u32 i;

	if (!known)
		return 0;
	for (i = 0; i < MEMOS; i++)
		known->memos[i].key.ip = 0;
	return 0;
}

/*
 * What this step went by: the return address and, if it is not by the stack pointer alone, rbp. A
 * saved rbp that no step goes by is the program's own value, different every time.
 */
int memo_add_step(struct memo *memo, __u32 step, const struct unwind *walk)
{
	__u64 address, used;

	if (!memo || !walk || step >= MEMO_STEPS)
		return 0;
	address = walk->sp - 8 - memo->key.sp;
	used = walk->used_at - memo->key.sp;
	memo->address_at[step] = address;
	memo->used_at[step] = used;
	memo->hash = mix(mix(memo->hash, walk->ip), walk->used_word);
	memo->bytes = address + 8;
	memo->beyond |=
		(address | used | (address - used)) >> MEMO_BYTES_LOG | ((address | used) & 7);
	return 0;
}

static __always_inline bool memo_is_of(const struct memo *memo, const struct memo_key *key)
{
	return memo->key.ip == key->ip && memo->key.sp == key->sp &&
	       memo->key.callee == key->callee && (!memo->needs_bp || memo->key.bp == key->bp);
}

/* The words that a memo was made of, as the stack has them now. */
struct hashing_words {
	const struct memos *known;
	const struct memo *memo;
	__u64 hash;
};

#define STEPS_AT_ONCE 4 /* a round's call takes as long as a step */
_Static_assert(MEMO_STEPS % STEPS_AT_ONCE == 0, "rounds take in all steps");

static int steps_hash_on(__u32 round, void *context)
{
	struct hashing_words *hashing = context;
	const struct memos *known = hashing->known;
	const struct memo *memo = hashing->memo;
	__u64 hash = hashing->hash;
	__u32 i, at;

	if (round >= MEMO_STEPS / STEPS_AT_ONCE)
		return 1;
	for (i = 0; i < STEPS_AT_ONCE; i++) {
		at = round * STEPS_AT_ONCE + i;
		if (at >= memo->steps)
			break;
		hash = mix(mix(hash, known->copy[memo->address_at[at] / 8 % MEMO_COPY_WORDS]),
			   known->copy[memo->used_at[at] / 8 % MEMO_COPY_WORDS]);
	}
	hashing->hash = hash;
	return i < STEPS_AT_ONCE;
}

/*
 * The stack of this memo, where that was made of what is looked for, and the stack still has the
 * words that it was made of; or 0. Counts as a walk where it has.
 */
__u64 memo_holds(struct memos *known, __u32 at)
{
	struct hashing_words hashing = { .known = known };
	__u64 began_ns, bytes;
	struct memo *memo;

	if (!known)
		return 0;
	memo = &known->memos[at % MEMOS];
	if (!memo_is_of(memo, &known->key))
		return 0;
	began_ns = bpf_ktime_get_ns();
	bytes = memo->bytes;
	barrier_var(bytes);
	if (bytes > MEMO_BYTES || bpf_probe_read_user(known->copy, bytes, (void *)memo->key.sp))
		return 0;
	hashing.memo = memo;
	repeat(MEMO_STEPS / STEPS_AT_ONCE, steps_hash_on, &hashing);
	if (hashing.hash != memo->hash)
		return 0;
	walk_account(bpf_get_current_pid_tgid() >> 32, bpf_ktime_get_ns() - began_ns, 1);
	return memo->id;
}

/*
 * The id of the running thread's stack at these registers: by a memo, or walked now and to be
 * stored, as thread->walk.stored says. A global function, as those of stack.bpf.h.
 */
__u64 memo_walk(struct thread *thread, __u64 ip, __u64 sp, __u64 bp, __u32 leaf)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct memo *memo = NULL;
	struct memos *known;
	__u64 id;

	if (!thread)
		return 0;
	thread->walk.stored = 1;
	if (process_is_nameless(task->tgid))
		return 0;
	/* In a call of the allocator what is walked begins at its caller: no memo has it by these. */
	known = thread->in_fn ? NULL : memos_get(task);
	if (known) {
		known->key.callee = 0;
		known->key.ip = ip;
		known->key.sp = sp;
		known->key.bp = bp;
		id = memo_find(known, thread, task->tgid);
		if (id)
			return id;
		memo = memo_new(known);
	}
	/* This clears what the walk left, the mark that it is stored, too. */
	thread->walk = (struct unwind){ .ip = ip, .sp = sp, .bp = bp, .exact = 1, .leaf = leaf };
	stack_begin(&thread->stack, task->tgid, ip);
	id = stack_on(thread, &thread->stack, &thread->walk, &thread->python, memo);
	memo_keep(memo, ip, &thread->stack);
	return id;
}
