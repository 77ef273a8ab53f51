// SPDX-License-Identifier: GPL-2.0
/*
 * Frames of Ruby, PHP, V8 and Java, from structures laid out by the test as userspace's offsets
 * say.
 */
#include "tests/bpf/native.h"

#define SELF 0x7f0000777740ULL
#define BLOCKS 0x7f0000100000ULL
#define BLOCK 0x7f0000200000ULL
#define BLOCK_MODULE 3
#define CONTEXT_OFFSET 8
#define CONTEXT 0x7f0000300000ULL
#define FRAME(i) (0x7f0000400000ULL + 64 * (i))
#define CODE(i) (0x7f0000600000ULL + 0x1000 * (i))
#define INSTRUCTION(i) (0x7f1100000010ULL + 8 * (i))
#define ENVIRONMENT(i) (0x7f0000700000ULL + 8 * (i))
#define GLOBALS 0x7f0000800000ULL
#define CALL(i) (0x7f0000900000ULL + 0x100 * (i))
#define NATIVE_ID 0x1234567ULL

/* Of a Ruby frame's environment, of a PHP call, and of a PHP function. */
#define METHOD 0x11110001ULL
#define OUTERMOST 0x79990001ULL
#define FINISH (1ULL << 5)
#define TOP (1ULL << 17)
enum { INTERNAL = 1, WRITTEN = 2, EVALUATED = 4 };

static struct memtoll_target target;

static void poke(__u64 address, __u64 word)
{
	kernel_poke_word(USER, address, word);
}

static const struct memtoll_python *walk_frames(__u64 *id)
{
	struct thread *thread = host_thread();

	*id = python_walk(&thread->python, &target, NATIVE_ID);
	return &thread->python.python;
}

static void assert_frame(const struct memtoll_python *frames, unsigned at, unsigned i, __u32 flags)
{
	assert_int_equal(frames->frames[at].code, CODE(i));
	assert_int_equal(frames->frames[at].instruction, (__u32)INSTRUCTION(i));
	assert_int_equal(frames->frames[at].flags, flags);
}

/* ---- Ruby ---- */

/* As 3.1 has it, in a library; so many frames, side by side. */
static void begin_ruby(unsigned frames)
{
	host_begin();
	memset(&target, 0, sizeof(target));
	target.python = (struct memtoll_python_offsets){
		.runtime = CONTEXT_OFFSET,
		.kind = INTERPRETER_RUBY,
		.block_module = BLOCK_MODULE,
		.state_bytes = 56,
		.state_stack = 0,
		.state_stack_words = 8,
		.state_frame = 16,
		.frame_bytes = 64,
		.frame_instruction = 0,
		.frame_code = 16,
		.frame_owner = 32,
	};
	host.task.thread.fsbase = SELF;
	poke(SELF + 8, BLOCKS);
	poke(BLOCKS + 16 * BLOCK_MODULE, BLOCK);
	poke(BLOCK + CONTEXT_OFFSET, CONTEXT);
	poke(CONTEXT, FRAME(0));
	poke(CONTEXT + 8, 8 * frames);
	poke(CONTEXT + 16, FRAME(0));
	poke(CONTEXT + 48, 0);
	thread_create(&host.task);
}

static void lay_frame(unsigned i, __u64 environment)
{
	poke(FRAME(i), INSTRUCTION(i));
	poke(FRAME(i) + 16, CODE(i));
	poke(FRAME(i) + 32, ENVIRONMENT(i));
	poke(FRAME(i) + 56, 0);
	poke(ENVIRONMENT(i), environment);
}

/* A function in C has no code, one that yields to C has no instruction. */
static void lay_frame_of_c(unsigned i, bool has_code)
{
	lay_frame(i, METHOD);
	poke(FRAME(i), 0);
	poke(FRAME(i) + 16, has_code ? CODE(i) : 0);
}

static void test_ruby(void **state)
{
	const struct memtoll_python *frames;
	__u64 id, again;
	unsigned loops;

	for (loops = 0; loops < 2; loops++) {
		begin_ruby(6);
		if (!loops)
			kernel_lacks("BPF_FUNC_loop");
		lay_frame_of_c(0, false);
		lay_frame(1, METHOD | FINISH);
		lay_frame_of_c(2, true);
		lay_frame(3, METHOD);
		lay_frame(4, METHOD | FINISH);
		lay_frame(5, OUTERMOST | FINISH);
		/* Beyond the stack's end there is more. */
		lay_frame(6, METHOD);
		frames = walk_frames(&id);
		assert_int_equal(frames->depth, 3);
		assert_int_equal(frames->flags, 0);
		assert_frame(frames, 0, 1, PYTHON_ENTRY);
		assert_frame(frames, 1, 3, 0);
		assert_frame(frames, 2, 4, PYTHON_ENTRY);
		assert_int_equal(host_thread()->python.top.frame_at, CONTEXT + 16);
		assert_int_equal(host_thread()->python.top.frame, FRAME(0));
		walk_frames(&again);
		assert_int_equal(again, id);
		/* Another line of the outermost method is another stack. */
		poke(FRAME(4), INSTRUCTION(4) + 8);
		walk_frames(&again);
		assert_int_not_equal(again, id);
		assert_lost_only(0, 0);
	}
}

/* Its variable lies right at the thread's pointer where the program has the interpreter in itself. */
static void test_ruby_in_the_program(void **state)
{
	__u64 id;

	begin_ruby(1);
	target.python.block_module = 0;
	target.python.runtime = -16LL;
	poke(SELF + 8, 0);
	poke(SELF - 16, CONTEXT);
	lay_frame(0, METHOD | FINISH);
	assert_int_equal(walk_frames(&id)->depth, 1);
}

/* Of a thread that runs no Ruby; whose block is not there yet; whose blocks cannot be read. */
static void test_thread_without_ruby(void **state)
{
	unsigned way;
	__u64 id;

	for (way = 0; way < 4; way++) {
		begin_ruby(1);
		lay_frame(0, METHOD | FINISH);
		if (way == 0)
			poke(BLOCK + CONTEXT_OFFSET, 0);
		else if (way == 1)
			poke(BLOCKS + 16 * BLOCK_MODULE, ~0ULL);
		else if (way == 2)
			poke(SELF + 8, 0x7f0099999000);
		else
			poke(BLOCK + CONTEXT_OFFSET, 0x7f0099999000);
		assert_int_equal(walk_frames(&id)->depth, 0);
		assert_int_equal(id, NATIVE_ID);
		assert_int_equal(host_thread()->python.top.frame, 0);
		assert_lost_only(0, 0);
	}
}

static void test_deep_ruby(void **state)
{
	const struct memtoll_python *frames;
	unsigned i, depth;
	__u64 id;

	for (depth = 47; depth < 53; depth++) {
		begin_ruby(depth);
		for (i = 0; i < depth; i++)
			lay_frame(i, METHOD);
		frames = walk_frames(&id);
		assert_int_equal(frames->depth,
				 depth < MEMTOLL_PYTHON_DEPTH ? depth : MEMTOLL_PYTHON_DEPTH);
		assert_int_equal(frames->flags,
				 depth > MEMTOLL_PYTHON_DEPTH ? PYTHON_TRUNCATED : 0);
	}
}

/* A stack that says of itself that it has no end, of which two pages are there. */
static void test_endless_ruby(void **state)
{
	const struct memtoll_python *frames;
	unsigned i;
	__u64 id;

	begin_ruby(0);
	poke(CONTEXT + 8, 1ULL << 40);
	for (i = 0; i < 8192 / 64; i++)
		lay_frame_of_c(i, false);
	frames = walk_frames(&id);
	assert_int_equal(frames->depth, 0);
	assert_int_equal(frames->flags, PYTHON_TRUNCATED);
	poke(CONTEXT + 16, FRAME(8192 / 64 - 3));
	frames = walk_frames(&id);
	assert_int_equal(frames->flags, PYTHON_BROKEN);
	assert_lost_only(LOST_PYTHON_WALK, 1);
	/* Its innermost frame is not in it. */
	poke(CONTEXT + 16, ~0ULL - 7);
	assert_int_equal(walk_frames(&id)->depth, 0);
}

/* ---- PHP ---- */

/* As 8.2 has it. */
static void begin_php(__u64 innermost)
{
	host_begin();
	memset(&target, 0, sizeof(target));
	target.python = (struct memtoll_python_offsets){
		.runtime = GLOBALS,
		.kind = INTERPRETER_PHP,
		.state_frame = 488,
		.frame_bytes = 56,
		.frame_instruction = 0,
		.frame_code = 24,
		.frame_owner = 40,
		.frame_previous = 48,
	};
	poke(GLOBALS + 488, innermost);
	thread_create(&host.task);
}

static void lay_call(unsigned i, unsigned type, __u64 how, __u64 below)
{
	poke(CALL(i), INSTRUCTION(i));
	poke(CALL(i) + 24, CODE(i));
	/* In its upper half: the number of its arguments. */
	poke(CALL(i) + 40, 7ULL << 32 | how);
	poke(CALL(i) + 48, below);
	poke(CODE(i), 0x7f00 | type);
}

static void test_php(void **state)
{
	const struct memtoll_python *frames;
	__u64 id, again;
	unsigned loops;

	for (loops = 0; loops < 2; loops++) {
		begin_php(CALL(0));
		if (!loops)
			kernel_lacks("BPF_FUNC_loop");
		lay_call(0, INTERNAL, 0, CALL(1));
		lay_call(1, WRITTEN, TOP, CALL(2));
		lay_call(2, INTERNAL, TOP, CALL(3));
		lay_call(3, EVALUATED, 0, CALL(4));
		lay_call(4, WRITTEN, TOP, CALL(5));
		/* One without a function. */
		lay_call(5, WRITTEN, 0, 0);
		poke(CALL(5) + 24, 0);
		frames = walk_frames(&id);
		assert_int_equal(frames->depth, 3);
		assert_int_equal(frames->flags, 0);
		assert_frame(frames, 0, 1, PYTHON_ENTRY);
		assert_frame(frames, 1, 3, 0);
		assert_frame(frames, 2, 4, PYTHON_ENTRY);
		walk_frames(&again);
		assert_int_equal(again, id);
		poke(CALL(4), INSTRUCTION(4) + 32);
		walk_frames(&again);
		assert_int_not_equal(again, id);
		assert_lost_only(0, 0);
	}
}

/* What the first thread runs is none of another one's. */
static void test_other_thread_of_php(void **state)
{
	__u64 id;

	begin_php(CALL(0));
	lay_call(0, WRITTEN, TOP, 0);
	assert_int_equal(walk_frames(&id)->depth, 1);
	host.task.pid = TGID + 1;
	thread_create(&host.task);
	assert_int_equal(walk_frames(&id)->depth, 0);
	assert_int_equal(id, NATIVE_ID);
}

static void test_php_at_rest(void **state)
{
	__u64 id;

	begin_php(0);
	assert_int_equal(walk_frames(&id)->depth, 0);
	assert_int_equal(host_thread()->python.top.frame, 0);
	assert_lost_only(0, 0);
}

/* Calls in a circle, and one that leads to nowhere. */
static void test_hostile_php(void **state)
{
	const struct memtoll_python *frames;
	__u64 id;

	begin_php(CALL(0));
	lay_call(0, WRITTEN, 0, CALL(1));
	lay_call(1, WRITTEN, 0, CALL(0));
	frames = walk_frames(&id);
	assert_int_equal(frames->depth, MEMTOLL_PYTHON_DEPTH);
	assert_int_equal(frames->flags, PYTHON_TRUNCATED);
	lay_call(1, INTERNAL, 0, CALL(1));
	frames = walk_frames(&id);
	assert_int_equal(frames->depth, 1);
	assert_int_equal(frames->flags, PYTHON_TRUNCATED);
	poke(CALL(1) + 48, 0x7f0099999000);
	frames = walk_frames(&id);
	assert_int_equal(frames->flags, PYTHON_BROKEN);
	assert_lost_only(LOST_PYTHON_WALK, 1);
}

/* ---- V8 ---- */

#define SHARED 24
#define FUNCTION(i) (0x7f0000a00001ULL + 0x100 * (i))
#define SHARED_PART(i) (0x7f0000b00001ULL + 0x100 * (i))
#define CHAIN(i) (0x7f0000c00100ULL + 0x100 * (i))
#define RETURN(i) (0x7f2200000000ULL + 16 * (i))
#define CONTEXT_OBJECT 0x7f0000d00001ULL
enum { ENTRY = 1, CONSTRUCT_ENTRY = 2, EXIT = 3 };

/* What the stack's walk has passed first. */
static void begin_v8(__u64 bp)
{
	host_begin();
	memset(&target, 0, sizeof(target));
	target.python = (struct memtoll_python_offsets){
		.kind = INTERPRETER_V8,
		.code_start = SHARED,
		.frame_owner = ENTRY,
		.frame_previous = CONSTRUCT_ENTRY,
	};
	thread_create(&host.task);
	host_thread()->python.generated_bp = bp;
	host_thread()->python.generated_ip = RETURN(0);
}

static void lay_link(unsigned i, __u64 function, __u64 context, __u64 caller)
{
	poke(CHAIN(i) - 16, function);
	poke(CHAIN(i) - 8, context);
	poke(CHAIN(i), caller);
	poke(CHAIN(i) + 8, RETURN(i + 1));
	poke(FUNCTION(i) - 1 + SHARED, SHARED_PART(i));
}

static const struct memtoll_python *walk_v8(__u64 *id)
{
	host_thread()->python.generated_ip = RETURN(0);
	return walk_frames(id);
}

static void test_v8(void **state)
{
	const struct memtoll_python *frames;
	__u64 id, again;
	unsigned loops;

	for (loops = 0; loops < 2; loops++) {
		begin_v8(CHAIN(0));
		if (!loops)
			kernel_lacks("BPF_FUNC_loop");
		/* Out of JavaScript; a function; a number where one would be; a function; from C++. */
		lay_link(0, 0, 2 * EXIT, CHAIN(1));
		lay_link(1, FUNCTION(1), CONTEXT_OBJECT, CHAIN(2));
		lay_link(2, 7ULL << 32, CONTEXT_OBJECT, CHAIN(3));
		lay_link(3, FUNCTION(3), CONTEXT_OBJECT, CHAIN(4));
		lay_link(4, 0, 2 * (loops ? ENTRY : CONSTRUCT_ENTRY), CHAIN(5));
		lay_link(5, FUNCTION(5), CONTEXT_OBJECT, 0);
		frames = walk_v8(&id);
		assert_int_equal(frames->depth, 2);
		assert_int_equal(frames->flags, 0);
		assert_int_equal(frames->frames[0].code, SHARED_PART(1));
		assert_int_equal(frames->frames[0].instruction, (__u32)RETURN(1));
		assert_int_equal(frames->frames[1].code, SHARED_PART(3));
		assert_int_equal(frames->frames[1].instruction, (__u32)RETURN(3));
		/* Another function object made of the same code: the same stack. */
		lay_link(3, FUNCTION(9), CONTEXT_OBJECT, CHAIN(4));
		poke(FUNCTION(9) - 1 + SHARED, SHARED_PART(3));
		walk_v8(&again);
		assert_int_equal(again, id);
		poke(FUNCTION(9) - 1 + SHARED, SHARED_PART(9));
		walk_v8(&again);
		assert_int_not_equal(again, id);
		assert_lost_only(0, 0);
	}
}

/* No frame was passed by its pointer; it leads nowhere, or back, or to itself. */
static void test_hostile_v8(void **state)
{
	static const __u64 callers[] = { 0x7f0099999000, CHAIN(0), CHAIN(1), CHAIN(2) + 1, ~7ULL };
	unsigned i;
	__u64 id;

	begin_v8(0);
	assert_int_equal(walk_v8(&id)->depth, 0);
	assert_int_equal(id, NATIVE_ID);
	assert_int_equal(host_thread()->python.top.frame_at, 0);
	for (i = 0; i < sizeof(callers) / sizeof(callers[0]); i++) {
		begin_v8(CHAIN(0));
		lay_link(0, FUNCTION(0), CONTEXT_OBJECT, CHAIN(1));
		lay_link(1, FUNCTION(1), CONTEXT_OBJECT, callers[i]);
		assert_int_equal(walk_v8(&id)->depth, 2);
		assert_lost_only(0, 0);
	}
}

static void test_deep_v8(void **state)
{
	const struct memtoll_python *frames;
	unsigned i;
	__u64 id;

	begin_v8(CHAIN(0));
	for (i = 0; i < 2 * MEMTOLL_PYTHON_DEPTH; i++)
		lay_link(i, FUNCTION(i), CONTEXT_OBJECT, CHAIN(i + 1));
	frames = walk_v8(&id);
	assert_int_equal(frames->depth, MEMTOLL_PYTHON_DEPTH);
	assert_int_equal(frames->flags, PYTHON_TRUNCATED);
}

/* ---- Java ---- */

#define QUEUE_POINTER 0x7f0000e00000ULL
#define QUEUE 0x7f0000e01000ULL
#define INTERPRETED 0x7f3300000000ULL
#define INTERPRETED_BYTES 0x10000
#define METHOD_CONSTANT 8
#define CONSTANT_BYTES 56
#define JAVA_FRAME(i) (0x7f0000f00100ULL + 0x100 * (i))
#define JAVA_METHOD(i) (0x7f0001100000ULL + 0x100 * (i))
#define CONSTANT(i) (0x7f0001200000ULL + 0x20000 * (i))
#define STEP(i) (INTERPRETED + 0x100 + 16 * (i))

static void begin_java(void)
{
	host_begin();
	memset(&target, 0, sizeof(target));
	target.python = (struct memtoll_python_offsets){
		.kind = INTERPRETER_JAVA,
		.runtime = QUEUE_POINTER,
		.interpreters = 8,
		.threads = 20,
		.frame_code = METHOD_CONSTANT,
		.code_start = CONSTANT_BYTES,
	};
	poke(QUEUE_POINTER, QUEUE);
	poke(QUEUE + 8, INTERPRETED);
	poke(QUEUE + 16, (__u64)INTERPRETED_BYTES << 32);
	thread_create(&host.task);
	host_thread()->python.python.depth = 0;
}

/* A frame that the stack's walk has come by; where its method is, and at which byte. */
static void lay_java(unsigned i, __u64 method, __u64 bytecode)
{
	struct unwind walk = { .bp = JAVA_FRAME(i), .ip = STEP(i), .exact = i == 0 };
	unsigned word;

	for (word = 0; word < 8; word++)
		poke(JAVA_FRAME(i) - 64 + 8 * word, 0);
	poke(JAVA_FRAME(i) - 24, method);
	poke(JAVA_FRAME(i) - 64, bytecode);
	poke(JAVA_METHOD(i) + METHOD_CONSTANT, CONSTANT(i));
	java_note(&host_thread()->python, &walk);
	assert_true(walk.irregular);
}

static __u64 byte_of(unsigned i, __u64 at)
{
	return CONSTANT(i) + CONSTANT_BYTES + at;
}

static void test_java(void **state)
{
	const struct memtoll_python *frames;
	__u64 id, again;

	begin_java();
	/* At work: where it is has r13. */
	host.regs.r13 = byte_of(0, 7);
	lay_java(0, JAVA_METHOD(0), byte_of(0, 3));
	lay_java(1, JAVA_METHOD(1), byte_of(1, 65535));
	/* Native code of Java's. */
	lay_java(2, JAVA_METHOD(2), 0);
	frames = walk_frames(&id);
	assert_int_equal(frames->depth, 3);
	assert_int_equal(frames->flags, 0);
	assert_int_equal(frames->frames[0].code, JAVA_METHOD(0));
	assert_int_equal(frames->frames[0].instruction, (__u32)STEP(0));
	assert_int_equal(frames->frames[0].flags, PYTHON_ENTRY | PYTHON_AT | 7 << PYTHON_AT_SHIFT);
	assert_int_equal(frames->frames[1].code, JAVA_METHOD(1));
	assert_int_equal(frames->frames[1].flags,
			 PYTHON_ENTRY | PYTHON_AT | 65535U << PYTHON_AT_SHIFT);
	assert_int_equal(frames->frames[2].code, JAVA_METHOD(2));
	assert_int_equal(frames->frames[2].flags, PYTHON_ENTRY);
	/* Farther on in its code: another stack. */
	host_thread()->python.python.depth = 0;
	lay_java(0, JAVA_METHOD(0), byte_of(0, 3));
	lay_java(1, JAVA_METHOD(1), byte_of(1, 65534));
	lay_java(2, JAVA_METHOD(2), 0);
	walk_frames(&again);
	assert_int_not_equal(again, id);
	assert_lost_only(0, 0);
}

/* No method; one that leads nowhere; a byte of another's code; deeper than is kept. */
static void test_hostile_java(void **state)
{
	const struct memtoll_python *frames;
	unsigned i;
	__u64 id;

	begin_java();
	assert_int_equal(walk_frames(&id)->depth, 0);
	assert_int_equal(host_thread()->python.top.frame_at, 0);
	host.regs.r13 = 7;
	lay_java(0, JAVA_METHOD(0), 0);
	lay_java(1, 0, 0);
	lay_java(2, 0x7f0099999000, byte_of(2, 0));
	lay_java(3, JAVA_METHOD(3), byte_of(3, 65536));
	lay_java(4, JAVA_METHOD(4), CONSTANT(4));
	frames = walk_frames(&id);
	assert_int_equal(frames->depth, 5);
	/* While it works it may be anywhere: the method is known, the place is not. */
	assert_int_equal(frames->frames[0].code, JAVA_METHOD(0));
	assert_int_equal(frames->frames[0].flags, PYTHON_ENTRY);
	for (i = 1; i < 5; i++)
		assert_int_equal(frames->frames[i].code, 0);
	begin_java();
	for (i = 0; i < 2 * MEMTOLL_PYTHON_DEPTH; i++)
		lay_java(i, JAVA_METHOD(i), byte_of(i, i));
	frames = walk_frames(&id);
	assert_int_equal(frames->depth, MEMTOLL_PYTHON_DEPTH);
	assert_int_equal(frames->flags, PYTHON_TRUNCATED);
	for (i = 0; i < MEMTOLL_PYTHON_DEPTH; i++)
		assert_int_equal(frames->frames[i].code, JAVA_METHOD(i));
	assert_lost_only(0, 0);
}

/* The caller of an allocator's call cannot be found: what an earlier walk came by is not of this stack. */
static void test_call_without_a_caller(void **state)
{
	struct thread *thread;

	begin_java();
	thread = host_thread();
	lay_java(0, JAVA_METHOD(0), byte_of(0, 0));
	thread->walk.generated_bp = CHAIN(0);
	thread->in_fn = 0;
	thread->call.caller = 0;
	thread->call.sp = 0;
	poke(0, 0);
	stack_of_call(thread);
	assert_int_equal(thread->stack.stop, UNWIND_STOP_PROBE);
	assert_int_equal(thread->walk.generated_bp, 0);
	assert_int_equal(thread->python.python.depth, 0);
}

/* Its code is there only once it has started. */
static void test_code_of_java(void **state)
{
	struct java_code code;

	begin_java();
	host_thread()->python.python.depth = 5;
	python_seen = 1;
	java_begin(&host_thread()->python, &target, &code);
	assert_int_equal(code.start, INTERPRETED);
	assert_int_equal(code.bytes, INTERPRETED_BYTES);
	assert_int_equal(host_thread()->python.python.depth, 0);
	poke(QUEUE_POINTER, 0);
	java_begin(&host_thread()->python, &target, &code);
	assert_int_equal(code.bytes, 0);
	target.python.kind = INTERPRETER_PHP;
	poke(QUEUE_POINTER, QUEUE);
	java_begin(&host_thread()->python, &target, &code);
	assert_int_equal(code.bytes, 0);
	python_seen = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ruby),
		cmocka_unit_test(test_ruby_in_the_program),
		cmocka_unit_test(test_thread_without_ruby),
		cmocka_unit_test(test_deep_ruby),
		cmocka_unit_test(test_endless_ruby),
		cmocka_unit_test(test_php),
		cmocka_unit_test(test_other_thread_of_php),
		cmocka_unit_test(test_php_at_rest),
		cmocka_unit_test(test_hostile_php),
		cmocka_unit_test(test_v8),
		cmocka_unit_test(test_hostile_v8),
		cmocka_unit_test(test_deep_v8),
		cmocka_unit_test(test_java),
		cmocka_unit_test(test_hostile_java),
		cmocka_unit_test(test_call_without_a_caller),
		cmocka_unit_test(test_code_of_java),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
