// SPDX-License-Identifier: GPL-2.0
/*
 * python.bpf.c: the frames of a CPython interpreter, read from what it keeps for itself.
 *
 * The thread state is found by the thread's pthread_self(), which every version keeps. (The
 * thread's number, kept since 3.11, is that of its own pid namespace, and some versions leave the
 * parent's in a forked child.) Nothing is written; what does not fit is not followed.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "wire/losses.h"
#include "state/loop.bpf.h"
#include "state/losses.bpf.h"
#include "state/numbers.bpf.h"
#include "state/processes.bpf.h"
#include "stacks/interpreter.bpf.h"
#include "stacks/python.bpf.h"
#include "stacks/stack.bpf.h"

struct pythons_map pythons SEC(".maps");

#define STATES 256		  /* thread states looked at, at most */
#define STATUS_ACTIVE (1ULL << 4) /* _status.active, 3.12 and later */
#define OWNER_INTERPRETER 3	  /* FRAME_OWNED_BY_CSTACK of 3.12 and 3.13 is 3, too */

/*
 * Whether the state that was read is the one in use: with several interpreters a thread has
 * several. A thread that has let go of the GIL uses none.
 */
static __always_inline bool is_active(const struct python_walk *walk,
				      const struct memtoll_python_offsets *at, __u64 state)
{
	if (at->current)
		return pointer_at(at->runtime + at->current) == state;
	return word(walk, at->state_status) & STATUS_ACTIVE;
}

/* Whether a state is still in its interpreter's list: freed memory may look like one. */
static __always_inline bool is_listed(const struct python_walk *walk,
				      const struct memtoll_python_offsets *at, __u64 state)
{
	__u64 previous = word(walk, at->state_previous);

	if (previous)
		return pointer_at(previous + at->state_next) == state;
	return pointer_at(word(walk, at->state_interpreter) + at->threads) == state;
}

/* The only interpreter there is. */
static __always_inline bool is_alone(const struct memtoll_python_offsets *at, __u64 interpreter)
{
	return pointer_at(at->runtime + at->interpreters) == interpreter &&
	       !pointer_at(interpreter + at->next_interpreter);
}

/*
 * Read a thread state into the chunk. 0: unreadable; else STATE_*. Like python_frame() a global
 * function, since it is called in a loop.
 */
enum { STATE_OTHER = 1, STATE_MINE, STATE_ACTIVE };

int python_state(struct python_walk *walk, const struct memtoll_target *process, __u64 state)
{
	const struct memtoll_python_offsets *at;

	if (!walk || !process)
		return 0;
	at = &process->python;
	if (!interpreter_read(walk, state, at->state_bytes))
		return 0;
	if (word(walk, at->state_id) != thread_self())
		return STATE_OTHER;
	return is_active(walk, at, state) ? STATE_ACTIVE : STATE_MINE;
}

/* Whether what was found last time is still this thread's state; then it is in the chunk. */
int python_same_state(struct python_walk *walk, const struct memtoll_target *process)
{
	const struct memtoll_python_offsets *at;
	int kind;

	if (!walk || !process || !walk->state)
		return 0;
	at = &process->python;
	kind = python_state(walk, process, walk->state);
	return kind >= STATE_MINE && is_listed(walk, at, walk->state) &&
	       (kind == STATE_ACTIVE || is_alone(at, word(walk, at->state_interpreter)));
}

/*
 * One step of the search for this thread's state: through the states of an interpreter, then to
 * the next one. 0: it is over. Where it stands is kept in memory: see depth_get().
 */
int python_search(struct python_walk *walk, const struct memtoll_target *process)
{
	const struct memtoll_python_offsets *at;
	int kind;

	if (!walk || !process)
		return 0;
	at = &process->python;
	if (!walk->candidate) {
		if (!walk->interpreter)
			return 0;
		walk->candidate = pointer_at(walk->interpreter + at->threads);
		walk->interpreter = pointer_at(walk->interpreter + at->next_interpreter);
		return 1;
	}
	kind = python_state(walk, process, walk->candidate);
	if (!kind)
		return 0;
	if (kind >= STATE_MINE)
		walk->state = walk->candidate;
	if (kind == STATE_ACTIVE)
		return 0;
	walk->candidate = word(walk, at->state_next);
	return 1;
}

/* Where the search is. */
struct python_place {
	struct python_walk *walk;
	const struct memtoll_target *process;
};

static int python_search_on(__u32 i, void *context)
{
	struct python_place *place = context;

	return !python_search(place->walk, place->process);
}

/*
 * Find this thread's state and read it into the chunk. False: it has none, as threads have none
 * that never run Python code.
 */
static __always_inline bool find_state(struct python_walk *walk,
				       const struct memtoll_target *process)
{
	const struct memtoll_python_offsets *at = &process->python;
	struct python_place place = { .walk = walk, .process = process };

	if (python_same_state(walk, process))
		return true;
	walk->state = 0;
	walk->candidate = 0;
	walk->interpreter = pointer_at(at->runtime + at->interpreters);
	repeat(STATES, python_search_on, &place);
	if (!walk->state)
		return false;
	return walk->candidate == walk->state || python_state(walk, process, walk->state);
}

/* The innermost frame of the state in the chunk, and where it stands. */
static __always_inline void find_top(struct python_walk *walk,
				     const struct memtoll_python_offsets *at)
{
	__u64 frame = word(walk, at->state_frame);

	walk->top.frame_at = walk->state + at->state_frame;
	if (at->indirect && frame) {
		walk->top.frame_at = frame + at->indirect_offset;
		frame = pointer_at(walk->top.frame_at);
	}
	walk->top.frame = frame;
	walk->top.instruction_at = frame + at->frame_instruction;
}

/* The end of a run of the eval loop: mark its outermost frame, or keep its place if it has none. */
static __always_inline void end_run(struct memtoll_python *python)
{
	__u32 last = depth_get(python) - 1;

	if (last < MEMTOLL_PYTHON_DEPTH && !(python->frames[last].flags & PYTHON_ENTRY))
		python->frames[last].flags |= PYTHON_ENTRY;
	else
		append(python, 0, 0, PYTHON_ENTRY);
}

/* Add the frame in the chunk. */
static __always_inline void add_frame(struct python_walk *walk,
				      const struct memtoll_python_offsets *at)
{
	/* Low bits tag references that count nothing (3.14). */
	__u64 code = word(walk, at->frame_code) & ~7ULL;
	__u64 instruction = word(walk, at->frame_instruction);
	__u8 owner = byte(walk, at->frame_owner);

	if (at->kind == PYTHON_OBJECTS) {
		instruction = (__u64)((__s64)(__s32)instruction * at->instruction_unit);
		append(&walk->python, code, instruction, PYTHON_ENTRY);
	} else if (at->kind == PYTHON_ENTRIES) {
		append(&walk->python, code, instruction - code - at->code_start,
		       owner ? PYTHON_ENTRY : 0);
	} else if (owner < OWNER_INTERPRETER) {
		append(&walk->python, code, instruction - code - at->code_start, 0);
	} else if (owner == OWNER_INTERPRETER) {
		end_run(&walk->python);
	}
}

/* Add the frame and return the one below it; 0 at the end, and where it cannot be read. */
__u64 python_frame(struct python_walk *walk, const struct memtoll_target *process, __u64 frame)
{
	const struct memtoll_python_offsets *at;

	if (!walk || !process)
		return 0;
	at = &process->python;
	if (!interpreter_read(walk, frame, at->frame_bytes)) {
		walk->python.flags |= PYTHON_BROKEN;
		lose(LOST_PYTHON_WALK, 1);
		return 0;
	}
	if (frame == walk->top.frame)
		walk->top.instruction = word(walk, at->frame_instruction);
	add_frame(walk, at);
	return word(walk, at->frame_previous);
}

/* Frames that are being read. */
struct reading {
	struct python_walk *walk;
	const struct memtoll_target *process;
	__u64 frame; /* the next; 0: there is none */
};

/* One frame more; 1: that was the last. */
static int read_on(__u32 i, void *context)
{
	struct reading *reading = context;

	/* Java: the walk noted all frames before; a full list is no reason not to read their methods. */
	if (!reading->frame || (reading->process->python.kind != INTERPRETER_JAVA &&
				depth_get(&reading->walk->python) > MEMTOLL_PYTHON_DEPTH))
		return 1;
	switch (reading->process->python.kind) {
	case INTERPRETER_RUBY:
		reading->frame = ruby_frame(reading->walk, reading->process, reading->frame);
		break;
	case INTERPRETER_PHP:
		reading->frame = php_frame(reading->walk, reading->process, reading->frame);
		break;
	case INTERPRETER_V8:
		reading->frame = v8_frame(reading->walk, reading->process, reading->frame);
		break;
	case INTERPRETER_JAVA:
		reading->frame = java_frame(reading->walk, reading->process, reading->frame);
		break;
	default:
		reading->frame = python_frame(reading->walk, reading->process, reading->frame);
	}
	return 0;
}

/* Frames that are being mixed into an id. */
struct python_hashing {
	const struct memtoll_python *python;
	__u64 id;
};

static int python_hash_on(__u32 i, void *context)
{
	struct python_hashing *hashing = context;
	const struct memtoll_python *python = hashing->python;

	if (i >= MEMTOLL_PYTHON_DEPTH || i >= python->depth)
		return 1;
	hashing->id = mix(mix(hashing->id, python->frames[i].code),
			  python->frames[i].instruction | (__u64)python->frames[i].flags << 32);
	return 0;
}

/*
 * Read the frames of the current thread. The id with code objects and instructions mixed in: the
 * same native stack below another line is another stack.
 */
__u64 python_walk(struct python_walk *walk, const struct memtoll_target *process, __u64 id)
{
	struct reading reading = { .walk = walk, .process = process };
	struct python_hashing hashing = { .id = id };
	struct memtoll_python *python;
	__u64 began_ns = bpf_ktime_get_ns();

	if (!walk || !process)
		return id;
	python = &walk->python;
	hashing.python = python;
	python->tgid = bpf_get_current_pid_tgid() >> 32;
	if (process->python.kind != INTERPRETER_JAVA)
		python->depth = 0;
	python->flags = 0;
	/* Without a state there is an interpreter all the same, but no knowing where it is. */
	walk->top.frame_at = process->python.runtime;
	walk->top.frame = 0;
	if (process->python.kind == INTERPRETER_RUBY)
		ruby_top(walk, process);
	else if (process->python.kind == INTERPRETER_PHP)
		php_top(walk, process);
	else if (process->python.kind == INTERPRETER_V8)
		v8_top(walk, process);
	else if (process->python.kind == INTERPRETER_JAVA)
		java_top(walk, process);
	else if (find_state(walk, process))
		find_top(walk, &process->python);
	reading.frame = process->python.kind == INTERPRETER_V8	 ? walk->generated_bp :
			process->python.kind == INTERPRETER_JAVA ? 1 :
								   walk->top.frame;
	/* Twice as many: of 3.12 and later every other frame may be a shim. */
	repeat(2 * MEMTOLL_PYTHON_DEPTH, read_on, &reading);
	if (reading.frame)
		python->flags |= PYTHON_TRUNCATED;
	/* One more was read, to know: it may have been the outermost. */
	if (depth_get(python) > MEMTOLL_PYTHON_DEPTH) {
		python->flags |= PYTHON_TRUNCATED;
		python->depth = MEMTOLL_PYTHON_DEPTH;
	}
	repeat(MEMTOLL_PYTHON_DEPTH, python_hash_on, &hashing);
	/* A part of the stack's walk. */
	walk_account(python->tgid, bpf_ktime_get_ns() - began_ns, 0);
	return hashing.id ? hashing.id : 1;
}

/*
 * Send the interpreter's frames of a new stack, those there are. Whether that woke who names them:
 * an interrupt in the program, and where the reader runs on this CPU a switch to it and back, 8 us.
 */
int python_emit(__u64 id, struct memtoll_python *python)
{
	__u64 size;

	if (!python)
		return 0;
	size = sizeof(*python) - sizeof(python->frames) + python->depth * sizeof(python->frames[0]);
	python->stack_id = id;
	if (size > sizeof(*python) ||
	    bpf_ringbuf_output(&pythons, python, size, BPF_RB_FORCE_WAKEUP)) {
		lose(LOST_PYTHONS_FULL, 1);
		return 0;
	}
	return 1;
}

/* The interpreter's frames, where the process has one: stack_add_python(). */
__u64 python_add(struct memtoll_stack *stack, struct python_walk *walk, __u64 id)
{
	struct memtoll_target *process;

	if (!stack || !walk)
		return id;
	process = process_get(stack->tgid);
	if (!process || !process->python.kind)
		return id;
	/* The addresses of its code mean nothing to others. */
	id = python_walk(walk, process, mix(id, stack->tgid));
	stack->python_depth = walk->python.depth;
	return id;
}
