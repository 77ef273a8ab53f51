// SPDX-License-Identifier: GPL-2.0
/*
 * Frames of a CPython interpreter, from structures laid out by the test as userspace's offsets say.
 */
#include "tests/bpf/native.h"

#define RUNTIME 0x7f0000100000ULL
#define INTERPRETER 0x7f0000200000ULL
#define STATE(i) (0x7f0000300000ULL + 0x1000 * (i))
#define FRAME(i) (0x7f0000400000ULL + 0x80 * (i))
#define CODE(i) (0x7f0000500000ULL + 0x1000 * (i))
#define SELF 0x7f0000777740ULL
#define OTHER_SELF 0x7f0000888840ULL
#define CODE_START 192
#define ACTIVE (1 << 4)
#define NATIVE_ID 0x1234567ULL

enum owner { OWNED_BY_THREAD = 0, OWNED_BY_INTERPRETER = 3 };

static struct memtoll_target target;

static void poke(__u64 address, __u64 word)
{
	kernel_poke_word(USER, address, word);
}

/* As 3.12 has it: entries are frames of the interpreter's own, that lie below. */
static void begin(void)
{
	host_begin();
	memset(&target, 0, sizeof(target));
	target.python = (struct memtoll_python_offsets){
		.runtime = RUNTIME,
		.kind = PYTHON_SHIMS,
		.interpreters = 40,
		.next_interpreter = 48,
		.threads = 56,
		.state_bytes = 128,
		.state_previous = 0,
		.state_next = 8,
		.state_interpreter = 16,
		.state_id = 24,
		.state_status = 32,
		.state_frame = 40,
		.frame_bytes = 80,
		.frame_previous = 8,
		.frame_code = 0,
		.frame_instruction = 24,
		.frame_owner = 72,
		.code_start = CODE_START,
	};
	host.task.thread.fsbase = SELF;
	poke(RUNTIME + 40, INTERPRETER);
	poke(INTERPRETER + 48, 0);
	thread_create(&host.task);
}

static void add_state(unsigned i, __u64 self, __u64 status, __u64 frame)
{
	poke(STATE(i), i ? STATE(i - 1) : 0);
	poke(STATE(i) + 8, 0);
	poke(STATE(i) + 16, INTERPRETER);
	poke(STATE(i) + 24, self);
	poke(STATE(i) + 32, status);
	poke(STATE(i) + 40, frame);
	poke(STATE(i) + 120, 0);
	poke(i ? STATE(i - 1) + 8 : INTERPRETER + 56, STATE(i));
}

/* At its instruction 2 * i; the one below it is i + 1, unless it is the last. */
static void add_frame_at(unsigned i, enum owner owner, bool last)
{
	poke(FRAME(i), owner == OWNED_BY_THREAD ? CODE(i) : 0);
	poke(FRAME(i) + 8, last ? 0 : FRAME(i + 1));
	poke(FRAME(i) + 24, CODE(i) + CODE_START + 2 * i);
	poke(FRAME(i) + 72, owner);
}

static const struct memtoll_python *walk_frames(__u64 *id)
{
	struct thread *thread = host_thread();

	*id = python_walk(&thread->python, &target, NATIVE_ID);
	return &thread->python.python;
}

static void assert_python(const struct memtoll_python *python, unsigned at, unsigned frame,
			  __u32 flags)
{
	assert_int_equal(python->frames[at].code, CODE(frame));
	assert_int_equal(python->frames[at].instruction, 2 * frame);
	assert_int_equal(python->frames[at].flags, flags);
}

/* f called g's caller in C: two runs of the eval loop. */
static void test_two_runs(void **state)
{
	const struct memtoll_python *python;
	__u64 id, again;
	unsigned loops;

	for (loops = 0; loops < 2; loops++) {
		begin();
		if (!loops)
			kernel_lacks("BPF_FUNC_loop");
		add_state(0, OTHER_SELF, ACTIVE, FRAME(50));
		add_state(1, SELF, ACTIVE, FRAME(0));
		add_frame_at(0, OWNED_BY_THREAD, false);
		add_frame_at(1, OWNED_BY_THREAD, false);
		add_frame_at(2, OWNED_BY_INTERPRETER, false);
		add_frame_at(3, OWNED_BY_THREAD, false);
		add_frame_at(4, OWNED_BY_INTERPRETER, true);
		python = walk_frames(&id);
		assert_int_equal(python->depth, 3);
		assert_int_equal(python->flags, 0);
		assert_python(python, 0, 0, 0);
		assert_python(python, 1, 1, PYTHON_ENTRY);
		assert_python(python, 2, 3, PYTHON_ENTRY);
		walk_frames(&again);
		assert_int_equal(again, id);
		/* Another line of the outermost function is another stack. */
		poke(FRAME(3) + 24, CODE(3) + CODE_START + 8);
		walk_frames(&again);
		assert_int_not_equal(again, id);
		assert_lost_only(0, 0);
	}
}

/* The thread has let go of the GIL, or runs no Python at all. */
static void test_no_state(void **state)
{
	__u64 id;

	begin();
	add_state(0, OTHER_SELF, ACTIVE, FRAME(0));
	add_frame_at(0, OWNED_BY_THREAD, true);
	assert_int_equal(walk_frames(&id)->depth, 0);
	assert_int_equal(id, NATIVE_ID);
	assert_int_equal(host_thread()->python.top.frame, 0);
}

static void test_deep(void **state)
{
	const struct memtoll_python *python;
	unsigned i, depth;
	__u64 id;

	for (depth = 47; depth < 53; depth++) {
		begin();
		add_state(0, SELF, ACTIVE, FRAME(0));
		for (i = 0; i < depth; i++)
			add_frame_at(i, OWNED_BY_THREAD, i == depth - 1);
		python = walk_frames(&id);
		assert_int_equal(python->depth,
				 depth < MEMTOLL_PYTHON_DEPTH ? depth : MEMTOLL_PYTHON_DEPTH);
		assert_int_equal(python->flags,
				 depth > MEMTOLL_PYTHON_DEPTH ? PYTHON_TRUNCATED : 0);
	}
}

static void test_broken(void **state)
{
	const struct memtoll_python *python;
	__u64 id;

	begin();
	add_state(0, SELF, ACTIVE, FRAME(0));
	add_frame_at(0, OWNED_BY_THREAD, false);
	poke(FRAME(0) + 8, 0x7f0099999000);
	python = walk_frames(&id);
	assert_int_equal(python->depth, 1);
	assert_int_equal(python->flags, PYTHON_BROKEN);
	assert_lost_only(LOST_PYTHON_WALK, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_runs),
		cmocka_unit_test(test_no_state),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
