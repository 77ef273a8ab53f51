// SPDX-License-Identifier: GPL-2.0
/*
 * python.bpf.c: the frames of a CPython interpreter, read from what it keeps for itself.
 *
 * The thread state is found by the thread's pthread_self(), which every version keeps. (The
 * thread's number, kept since 3.11, is that of its own pid namespace, and some versions leave the
 * parent's in a forked child.) Nothing is written; what does not fit is not followed.
 */
#include "memtoll.bpf.h"

struct pythons_map pythons SEC(".maps");

#define STATES 256		/* thread states looked at, at most */
#define STATUS_ACTIVE (1ULL << 4)	/* _status.active, 3.12 and later */
#define OWNER_INTERPRETER 3	/* FRAME_OWNED_BY_CSTACK of 3.12 and 3.13 is 3, too */

/* A field of what was read last. The masks let the verifier see that it lies inside. */
static __always_inline __u64 word(const struct python_walk *walk, __u16 offset)
{
	return *(__u64 *)&walk->chunk[offset & (MEMTOLL_PYTHON_CHUNK - 8)];
}

static __always_inline __u8 byte(const struct python_walk *walk, __u16 offset)
{
	return walk->chunk[offset & (MEMTOLL_PYTHON_CHUNK - 1)];
}

static __always_inline bool read_chunk(struct python_walk *walk, __u64 address, __u32 bytes)
{
	if (bytes > sizeof(walk->chunk))
		return false;
	return !bpf_probe_read_user(walk->chunk, bytes, (void *)address);
}

/* A pointer; 0 where it cannot be read. */
static __always_inline __u64 pointer_at(__u64 address)
{
	__u64 value = 0;

	bpf_probe_read_user(&value, sizeof(value), (void *)address);
	return value;
}

/* What pthread_self() gives: the thread's own control block. */
static __always_inline __u64 thread_self(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

#if defined(__TARGET_ARCH_x86)
	return task->thread.fsbase;
#elif defined(__TARGET_ARCH_arm64)
	return task->thread.uw.tp_value;
#endif
}

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
 * Find this thread's state and read it into the chunk. 0: it has none, as threads have none that
 * never run Python code.
 */
static __always_inline __u64 find_state(struct python_walk *walk,
					const struct memtoll_python_offsets *at)
{
	__u64 self = thread_self(), interpreter, state = walk->state, found = 0;
	int i;

	if (state && read_chunk(walk, state, at->state_bytes) &&
	    word(walk, at->state_id) == self && is_listed(walk, at, state)) {
		if (is_active(walk, at, state) || is_alone(at, word(walk, at->state_interpreter)))
			return state;
	}
	interpreter = pointer_at(at->runtime + at->interpreters);
	state = 0;
	for (i = 0; i < STATES; i++) {
		if (!state) {
			if (!interpreter)
				break;
			state = pointer_at(interpreter + at->threads);
			interpreter = pointer_at(interpreter + at->next_interpreter);
			continue;
		}
		if (!read_chunk(walk, state, at->state_bytes))
			break;
		if (word(walk, at->state_id) == self) {
			found = state;
			if (is_active(walk, at, state))
				break;
		}
		state = word(walk, at->state_next);
	}
	walk->state = found;
	if (found && found != state && !read_chunk(walk, found, at->state_bytes))
		return 0;
	return found;
}

static __always_inline __u64 first_frame(const struct python_walk *walk,
					 const struct memtoll_python_offsets *at)
{
	__u64 frame = word(walk, at->state_frame);

	return at->indirect && frame ? pointer_at(frame + at->indirect_offset) : frame;
}

/*
 * How many frames there are is kept in memory and read anew for each: a number that the verifier
 * knew would make it look at every frame of every possible depth.
 */
static __always_inline __u32 depth_get(const struct memtoll_python *python)
{
	return *(const volatile __u16 *)&python->depth;
}

/* Beyond the last place only the depth grows. */
static __always_inline void append(struct memtoll_python *python, __u64 code, __u32 instruction,
				   __u32 flags)
{
	__u32 depth = depth_get(python);

	if (depth < MEMTOLL_PYTHON_DEPTH) {
		python->frames[depth].code = code;
		python->frames[depth].instruction = instruction;
		python->frames[depth].flags = flags;
	}
	*(volatile __u16 *)&python->depth = depth + 1;
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

/*
 * Read the frames of the current thread. The id with code objects and instructions mixed in: the
 * same native stack below another line is another stack.
 */
__u64 python_walk(struct python_walk *walk, const struct memtoll_target *process, __u64 id)
{
	const struct memtoll_python_offsets *at;
	struct memtoll_python *python;
	__u64 frame = 0;
	__u32 i, depth;

	if (!walk || !process)
		return id;
	at = &process->python;
	python = &walk->python;
	python->tgid = bpf_get_current_pid_tgid() >> 32;
	python->depth = 0;
	python->flags = 0;
	if (find_state(walk, at))
		frame = first_frame(walk, at);
	/* Twice as many: of 3.12 and later every other frame may be a shim. */
	for (i = 0; i < 2 * MEMTOLL_PYTHON_DEPTH; i++) {
		if (!frame || depth_get(python) > MEMTOLL_PYTHON_DEPTH)
			break;
		if (!read_chunk(walk, frame, at->frame_bytes)) {
			python->flags |= PYTHON_BROKEN;
			lose(LOST_PYTHON_WALK, 1);
			frame = 0;
			break;
		}
		add_frame(walk, at);
		frame = word(walk, at->frame_previous);
	}
	if (depth_get(python) > MEMTOLL_PYTHON_DEPTH)
		python->depth = MEMTOLL_PYTHON_DEPTH;
	if (frame)
		python->flags |= PYTHON_TRUNCATED;
	depth = depth_get(python);
	for (i = 0; i < MEMTOLL_PYTHON_DEPTH; i++) {
		if (i >= depth)
			break;
		id = mix(mix(id, python->frames[i].code), python->frames[i].instruction);
	}
	return id ? id : 1;
}
