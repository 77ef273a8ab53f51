// SPDX-License-Identifier: GPL-2.0
/* site.bpf.c: which of an allocator call's callers are part of its site. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/pages.h"
#include "state/numbers.bpf.h"
#include "state/processes.bpf.h"
#include "stacks/call_stack.bpf.h"
#include "stacks/site.bpf.h"
#include "stacks/unwind.bpf.h"

#define SITE_CALLERS 3 /* at most, beyond the direct one: recursion has sites without end */
#define SITE_NOTES_LOG 13

#define NOTE_NEW 0	/* no call was looked at yet */
#define NOTE_LAST 65535 /* where the next caller stands is not known, or differs */

struct site_note {
	__u64 id;   /* of the callers so far; 0: free */
	__u64 next; /* the caller beyond, as seen first */
	__u32 tgid;
	__u16 at;   /* it stands that many bytes above the call's stack pointer; NOTE_* */
	__u8 wraps; /* others were seen there */
	__u8 deep;  /* here or further on: bit 0; above it its rank, as note_rank() has it */
};

#define NOTE_DEEP 1
#define NOTE_RANK_SHIFT 1

static struct site_note site_notes[1 << SITE_NOTES_LOG];

/* Two places for each. */
static __always_inline __u32 note_place(__u64 id)
{
	return id * STACK_HASH_SEED >> (64 - SITE_NOTES_LOG + 1) << 1;
}

/* NULL: there is none. */
static __always_inline struct site_note *note_find(__u64 id)
{
	__u32 at = note_place(id);

	if (site_notes[at].id == id)
		return &site_notes[at];
	return site_notes[at + 1].id == id ? &site_notes[at + 1] : NULL;
}

#define NOTE_BEING_MADE 1 /* no id */

/*
 * Which notes give way to others: those of chains that go farther out, of which there are many times
 * as many, while who calls a wrapper matters more than who calls that. Who calls free matters less
 * than who allocates.
 */
static __always_inline __u32 note_rank(const struct thread *thread, __u32 callers)
{
	return callers + (thread->in_fn == FN_FREE);
}

/* A place that is free, of a process that has gone, or of a note of a higher rank. */
static __always_inline bool note_gives_way(const struct site_note *note, __u32 rank)
{
	return !note->id || note->deep >> NOTE_RANK_SHIFT > rank || !process_get(note->tgid);
}

static __always_inline bool note_take(struct site_note *note, __u32 tgid, __u64 id, __u32 rank)
{
	__u64 before = note->id;

	if (before == NOTE_BEING_MADE || !note_gives_way(note, rank))
		return false;
	if (__sync_val_compare_and_swap(&note->id, before, NOTE_BEING_MADE) != before)
		return false;
	note->next = 0;
	note->tgid = tgid;
	note->at = NOTE_NEW;
	note->wraps = 0;
	note->deep = rank << NOTE_RANK_SHIFT;
	/* With a barrier: the rest is there before the id is. */
	__sync_val_compare_and_swap(&note->id, NOTE_BEING_MADE, id);
	return true;
}

#define NOTE_NOWHERE (1 << SITE_NOTES_LOG)

/*
 * Where the note of an id is, of this rank; NOTE_NOWHERE: both places are taken, and its callers are
 * left out. A global function: looked at once by the verifier, not for each caller.
 */
__u32 site_note_make(__u32 tgid, __u64 id, __u32 rank)
{
	__u32 at = note_place(id);

	if (site_notes[at].id == id)
		return at;
	if (site_notes[at + 1].id == id)
		return at + 1;
	if (note_take(&site_notes[at], tgid, id, rank))
		return at;
	return note_take(&site_notes[at + 1], tgid, id, rank) ? at + 1 : NOTE_NOWHERE;
}

static __always_inline bool note_is_wanted(__u64 id, __u32 rank)
{
	__u32 at = note_place(id);

	return note_gives_way(&site_notes[at], rank) || note_gives_way(&site_notes[at + 1], rank);
}

/*
 * The open call's callers, by their rules, noted. What is known already is compared: a caller that
 * stands elsewhere than before has a frame whose size varies, and is the last one.
 */
int site_learn(struct thread *thread, __u32 tgid, __u64 id)
{
	__u32 places[SITE_CALLERS + 1] = {}, i, deep = 0;
	struct memtoll_target *process;
	struct unwind *walk;
	__u64 at;

	if (!thread)
		return 0;
	process = process_get(tgid);
	walk = &thread->walk;
	*walk = (struct unwind){
		.ip = thread->call.caller,
		.sp = thread->call.sp + 8,
		.bp = thread->call.bp,
		.process_table = process ? process->unwind_table : 0,
	};
	for (i = 0; i <= SITE_CALLERS; i++) {
		__u32 place = site_note_make(tgid, id, note_rank(thread, i));
		struct site_note *note;

		if (place >= NOTE_NOWHERE)
			break;
		places[i] = place;
		note = &site_notes[place];
		/* It may have given way to another meanwhile. */
		if (note->id != id || note->at == NOTE_LAST)
			break;
		if (i == SITE_CALLERS || unwind_step(walk) != 1 || walk->irregular) {
			note->at = NOTE_LAST;
			break;
		}
		at = walk->sp - 8 - thread->call.sp;
		if (note->at == NOTE_NEW && at < MEMTOLL_PAGE_SIZE) {
			note->next = walk->ip;
			note->at = at;
		} else if (note->at != at) {
			note->at = NOTE_LAST;
			break;
		} else if (note->next != walk->ip) {
			note->wraps = 1;
			deep = i + 1;
		}
		id = mix(id, walk->ip);
	}
	for (i = 0; i <= SITE_CALLERS; i++)
		if (i < deep)
			site_notes[places[i] & (NOTE_NOWHERE - 1)].deep |= NOTE_DEEP;
	return 0;
}

/*
 * The site of the open call, whose function and direct caller have this id, by the notes that there
 * are. thread->site_unknown: of a caller on the way there is none yet. A caller that is there a
 * second time is recursion, and tells no more.
 */
__u64 site_by_notes(struct thread *thread, __u64 id)
{
	__u64 site = id, word, words[SITE_CALLERS + 1] = {};
	struct site_note *note = note_find(id);
	bool wraps;
	__u32 i, k;

	if (!thread)
		return id;
	thread->site_unknown = 0;
	words[0] = thread->call.caller;
	if (!words[0] || (note && !(note->deep & NOTE_DEEP) && bpf_get_prandom_u32() & 7))
		return id;
	for (i = 0; i < SITE_CALLERS; i++) {
		if (!note) {
			thread->site_unknown = note_is_wanted(id, note_rank(thread, i));
			break;
		}
		if (note->at == NOTE_NEW || note->at == NOTE_LAST ||
		    bpf_probe_read_user(&word, sizeof(word), (void *)(thread->call.sp + note->at)))
			break;
		for (k = 0; k <= i; k++)
			if (words[k] == word)
				return site;
		if (word != note->next && !note->wraps) {
			thread->site_unknown = 1;
			break;
		}
		words[i + 1] = word;
		id = mix(id, word);
		wraps = note->wraps;
		note = note_find(id);
		/* What is not in a note has not been proved to be a caller. */
		if (note && wraps)
			site = id;
	}
	return site;
}

/*
 * The stack of the open call has been walked, as the example of the site with this id, which is of
 * its process alone. The stack's id becomes that of the site by the places of its callers: all
 * processes of a program have the same. Not with an interpreter's frames, by which one knows it.
 */
int site_share(struct thread *thread, __u64 id)
{
	struct memtoll_stack *stack;
	__u64 own, shared = ~STACK_HASH_SEED, address;
	struct unwind *walk;
	__u32 i;

	if (!thread)
		return 0;
	stack = &thread->stack;
	walk = &thread->walk;
	if (stack->python_depth)
		return 0;
	own = mix(~STACK_HASH_SEED, stack->tgid);
	for (i = 0; i < SITE_CALLERS + 2; i++) {
		if (i >= stack->depth)
			break;
		own = mix(own, stack->frames[i]);
		/* Of a caller the return address may be the first byte after its function. */
		address = stack->frames[i] - !!i;
		if (!unwind_mapping(walk, address) || !walk->table)
			break;
		shared = mix(shared, unwind_place(walk, address));
		if (own == id) {
			stack->id = shared + !shared;
			stack->flags |= STACK_SITE;
			break;
		}
	}
	return 0;
}
