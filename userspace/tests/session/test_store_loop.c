// SPDX-License-Identifier: GPL-2.0
/* Which code fills memory, with what, and which copies: judged at every instruction of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "session/store_loop.h"
#include "session/store_string.h"

/* Code between NAME and NAME_end, the part that is judged from NAME_at to NAME_to. */
#define CODE(name, before, judged, after)                                                  \
	extern const uint8_t name[], name##_at[], name##_to[], name##_end[];               \
	__asm__(".pushsection .rodata\n" #name ":\n\t" before "\n" #name "_at:\n\t" judged \
		"\n" #name "_to:\n\t" after "\n" #name "_end:\n"                           \
		".popsection")

CODE(bytes, "ret", "1: movb $0, (%rdi)\n add $1, %rdi\n cmp %rsi, %rdi\n jne 1b", "ret");
CODE(other_bytes, "ret", "1: movb $0xdd, (%rdi)\n inc %rdi\n cmp %rsi, %rdi\n jne 1b", "ret");
/* OPENSSL_cleanse's. */
CODE(words, "ret\n xor %rax, %rax",
     "1: mov %rax, (%rdi)\n lea -8(%rsi), %rsi\n test $-8, %rsi\n lea 8(%rdi), %rdi\n jne 1b",
     "ret");
CODE(vector, "ret\n vpxor %xmm0, %xmm0, %xmm0\n add %rdi, %rsi",
     "1: vmovdqu %ymm0, (%rdi)\n add $32, %rdi\n cmp %rsi, %rdi\n jne 1b", "vzeroupper\n ret");
CODE(unknown_vector, "ret\n vpxor %xmm0, %xmm0, %xmm0\n call 1f\n 1:",
     "1: vmovdqu %ymm0, (%rdi, %rax)\n add $32, %rax\n cmp %rsi, %rax\n jne 1b", "ret");
CODE(down, "ret", "1: movq $0, -8(%rdi)\n sub $8, %rdi\n cmp %rsi, %rdi\n jne 1b", "ret");
CODE(stream, "ret\n pxor %xmm0, %xmm0\n xor %eax, %eax",
     "1: mov %rax, %rdx\n add 8(%rbx), %rdx\n movntdq %xmm0, (%rdx)\n mov 8(%rbx), %rdx\n"
     "movntdq %xmm0, 16(%rdx, %rax)\n add $32, %rax\n cmp %rcx, %rax\n jne 1b",
     "ret");
CODE(unoptimised, "ret",
     "1: mov -8(%rbp), %rax\n lea 1(%rax), %rdx\n mov %rdx, -8(%rbp)\n movb $0, (%rax)\n"
     "subq $1, -16(%rbp)\n cmpq $0, -16(%rbp)\n jne 1b",
     "ret");
/* GCC's, of a vector: numpy's assignments. */
CODE(shifted, "ret",
     "1: mov %rax, %rcx\n add $1, %rax\n shl $4, %rcx\n movups %xmm0, (%rdx, %rcx)\n"
     "cmp %rax, %rsi\n jne 1b",
     "ret");
CODE(string, "xor %eax, %eax", "rep stosq", "ret");
CODE(string_bytes, "nop", "rep stosb", "ret");
CODE(string_copy, "nop", "rep movsb", "ret");
CODE(straight, "ret\n mov %rsp, %rdi",
     "movups %xmm15, (%rdi)\n movups %xmm15, 16(%rdi)\n movups %xmm15, 32(%rdi)\n"
     "movups %xmm15, 48(%rdi)\n lea 64(%rdi), %rdi\n movups %xmm15, (%rdi)",
     "ret");
CODE(copy, "ret",
     "1: movdqu (%rsi, %rax), %xmm0\n movdqu 16(%rsi, %rax), %xmm1\n movups %xmm0, (%rdi, %rax)\n"
     "movups %xmm1, 16(%rdi, %rax)\n add $32, %rax\n cmp %rdx, %rax\n jne 1b",
     "ret");
/* What only looks like it. */
CODE(pages, "ret", "1: movq $0, (%rdi)\n add $4096, %rdi\n cmp %rsi, %rdi\n jne 1b", "ret");
CODE(shifted_pages, "ret",
     "1: mov %rax, %rcx\n add $1, %rax\n shl $12, %rcx\n movups %xmm0, (%rdx, %rcx)\n"
     "cmp %rax, %rsi\n jne 1b",
     "ret");
CODE(counting, "ret", "1: mov %eax, (%rdi)\n inc %eax\n add $4, %rdi\n cmp %rsi, %rdi\n jne 1b",
     "ret");
CODE(taking, "ret",
     "1: xor (%rdi), %rax\n imul %rdx, %rax\n movq $0, (%rdi)\n add $8, %rdi\n cmp %rsi, %rdi\n"
     "jne 1b",
     "ret");
CODE(list, "ret", "1: movq $0, (%rdi)\n mov 8(%rdi), %rdi\n test %rdi, %rdi\n jne 1b", "ret");
CODE(scatter, "ret",
     "1: mov (%rsi, %rcx, 4), %eax\n movb $0, (%rdi, %rax)\n inc %rcx\n cmp %rdx, %rcx\n jne 1b",
     "ret");
CODE(gather, "ret",
     "1: mov (%rsi, %rcx, 4), %eax\n mov (%rdi, %rax, 8), %rdx\n mov %rdx, (%r8, %rcx, 8)\n"
     "inc %rcx\n cmp %r9, %rcx\n jne 1b",
     "ret");
CODE(flag, "ret", "1: movb $0, 8(%rbx)\n add $1, %rdi\n cmp %rsi, %rdi\n jne 1b", "ret");
CODE(calling, "ret", "1: movb $0, (%rdi)\n call 1b\n inc %rdi\n cmp %rsi, %rdi\n jne 1b", "ret");
CODE(few, "ret", "movq $0, (%rdi)\n movq $0, 8(%rdi)\n mov %rsi, 16(%rdi)", "ret");

struct expected {
	const char *name;
	const uint8_t *code, *at, *to, *end;
	enum store_kind kind;
	enum store_value value;
	uint8_t flags;
	uint32_t bytes_per_16_cycles;
};

#define EXPECT(name, kind, value, flags, rate)                                          \
	{                                                                               \
#name, name, name##_at, name##_to, name##_end, kind, value, flags, rate \
	}
#define LEFT (STORE_ADDRESS | STORE_LEFT)
#define DOWN (STORE_LEFT | STORE_COUNTS_DOWN)
#define NOTHING(name) EXPECT(name, STORE_NONE, VALUE_SAMPLED, 0, 0)

static void test_each_instruction(void **state)
{
	const struct expected table[] = {
		EXPECT(bytes, STORE_FILL, VALUE_ZERO, LEFT | STORE_END, 16),
		EXPECT(other_bytes, STORE_FILL, VALUE_OTHER, LEFT | STORE_END, 16),
		EXPECT(words, STORE_FILL, VALUE_SAMPLED, STORE_ADDRESS | STORE_REGISTER | DOWN,
		       128),
		EXPECT(vector, STORE_FILL, VALUE_ZERO, LEFT | STORE_END, 512),
		EXPECT(unknown_vector, STORE_FILL, VALUE_SAMPLED, LEFT | STORE_END | STORE_INDEX,
		       512),
		EXPECT(down, STORE_FILL, VALUE_ZERO, STORE_ADDRESS | STORE_DOWN | STORE_END | DOWN,
		       128),
		EXPECT(stream, STORE_FILL, VALUE_ZERO, LEFT | STORE_END, 256),
		EXPECT(unoptimised, STORE_FILL, VALUE_ZERO, STORE_ADDRESS, 16),
		EXPECT(shifted, STORE_FILL, VALUE_SAMPLED, LEFT | STORE_END | STORE_INDEX, 256),
		EXPECT(string, STORE_FILL, VALUE_SAMPLED, STORE_ADDRESS | STORE_REGISTER | DOWN, 0),
		EXPECT(string_bytes, STORE_FILL, VALUE_SAMPLED,
		       STORE_ADDRESS | STORE_REGISTER | DOWN, 0),
		EXPECT(string_copy, STORE_COPY, VALUE_SAMPLED, STORE_ADDRESS | DOWN, 0),
		EXPECT(copy, STORE_COPY, VALUE_SAMPLED, LEFT | STORE_END | STORE_INDEX, 256),
		NOTHING(pages),
		NOTHING(shifted_pages),
		NOTHING(counting),
		NOTHING(taking),
		NOTHING(list),
		NOTHING(scatter),
		NOTHING(gather),
		NOTHING(flag),
		NOTHING(calling),
		NOTHING(few),
	};
	struct store_loop loop, first;
	size_t i, at, judged;

	(void)state;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct expected *one = &table[i];

		judged = 0;
		for (at = (size_t)(one->at - one->code); one->code + at < one->to; at++) {
			store_loop_find(one->code, (size_t)(one->end - one->code), at, &loop);
			/* In the middle of an instruction there may be none that fits. */
			if (loop.kind != one->kind && one->code + at > one->at)
				continue;
			if (loop.kind != one->kind || loop.value != one->value ||
			    loop.wire.flags != one->flags ||
			    loop.bytes_per_16_cycles != one->bytes_per_16_cycles)
				fail_msg("%s+%zu: kind %d, value %d, flags %x, %u bytes", one->name,
					 at, loop.kind, loop.value, loop.wire.flags,
					 loop.bytes_per_16_cycles);
			first = judged++ ? first : loop;
			assert_int_equal(loop.head, first.head);
			assert_int_equal(loop.end, first.end);
		}
		/* At each of its instructions, of which none is longer than 12 bytes. */
		assert_true(judged * 12 >= (size_t)(one->to - one->at));
	}
}

/* A row is one wherever in it, and right behind; what was stored last lies below the address. */
static void test_straight_row(void **state)
{
	/* Offsets of the instructions, the end among them; what is on from %rdi, and its bytes. */
	static const struct {
		size_t at;
		bool told;
		int32_t disp;
	} table[] = {
		{ 0, false, 0 },  { 4, true, 16 }, { 9, true, 32 },  { 14, true, 48 },
		{ 19, true, 64 }, { 23, true, 0 }, { 27, true, 16 },
	};
	const size_t last = sizeof(table) / sizeof(table[0]) - 1;
	size_t begin = (size_t)(straight_at - straight), i;
	struct store_loop loop;

	(void)state;
	assert_int_equal(straight_to - straight_at, 27);
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		store_loop_find(straight, (size_t)(straight_end - straight), begin + table[i].at,
				&loop);
		assert_int_equal(loop.kind, STORE_FILL);
		assert_int_equal(loop.value, VALUE_SAMPLED);
		assert_int_equal(!!(loop.wire.flags & STORE_ADDRESS), table[i].told);
		assert_int_equal(loop.wire.disp, table[i].disp);
		assert_int_equal(loop.head, begin);
		assert_int_equal(loop.end, begin + 27);
		assert_int_equal(store_loop_next(straight, &loop, begin + table[i].at),
				 begin + table[i < last ? i + 1 : last].at);
		assert_int_equal(loop.wire.base, table[i].told ? 7 : 0);
	}
}

/* What a string instruction has done is seen right behind it, too. */
static void test_behind_string(void **state)
{
	struct store_loop loop;

	(void)state;
	store_loop_find(string, (size_t)(string_end - string), (size_t)(string_to - string), &loop);
	assert_int_equal(loop.kind, STORE_FILL);
	assert_int_equal(loop.wire.value, 0);
	assert_int_equal(loop.wire.value_bits, 64);
	store_loop_find(string_bytes, 4, (size_t)(string_bytes_at - string_bytes), &loop);
	assert_int_equal(loop.wire.value_bits, 8);
	assert_int_equal(loop.wire.base, 7);
}

/* GCC's of an array on the stack, and of what a pointer that is kept tells. */
CODE(array, "xor %eax, %eax\n mov $0xff, %ecx\n lea 24(%rsp), %rdi\n rep stosq\n mov %rbx, %rdi",
     "mov 8(%rsp), %rdx", "ret");
CODE(pushed,
     "xor %eax, %eax\n mov $0xff, %ecx\n mov %rsp, %rdi\n rep stosl\n mov %rbx, %rdi\n push %rax",
     "mov 8(%rsp), %rdx", "ret");
CODE(pointed, "xor %eax, %eax\n rep stosb\n mov %rbx, %rsi", "mov 8(%rsp), %rdx", "ret");

/* How much it stores, and where that ends, is told by what it was set up with. */
static void test_stored_behind_string(void **state)
{
	struct store_loop loop;

	(void)state;
#define BEHIND(name) \
	store_loop_find(name, (size_t)(name##_end - name), (size_t)(name##_to - name), &loop)
	BEHIND(array);
	assert_int_equal(loop.kind, STORE_FILL);
	assert_int_equal(loop.length, 255 * 8);
	assert_int_equal(loop.wire.flags, STORE_ADDRESS);
	assert_int_equal(loop.wire.base, 4);
	assert_int_equal(loop.wire.disp, 24 + 255 * 8);
	BEHIND(pushed);
	assert_int_equal(loop.kind, STORE_FILL);
	assert_int_equal(loop.length, 255 * 4);
	assert_int_equal(loop.wire.flags, 0);
	BEHIND(pointed);
	assert_int_equal(loop.length, 0);
	assert_int_equal(loop.wire.flags, STORE_ADDRESS);
	assert_int_equal(loop.wire.base, 7);
}

CODE(waiting, "xor %eax, %eax\n rep stosq\n mov %rdx, %rdi", "call waiting",
     "mov (%rsp), %rax\n ret");
CODE(not_cleared, "rep stosq\n mov %rdx, %rdi", "mov (%rsp), %rcx", "ret");
CODE(elsewhere, "xor %eax, %eax\n rep stosq\n mov %rdx, %rdi", "mov (%rsi), %rcx", "ret");
CODE(jumped, "xor %eax, %eax\n rep stosq\n jz 1f\n", "mov (%rsp), %rcx", "1: ret");

/* What reads the stack behind a rep stos waits for its stores, and so does the return. */
static void test_waiting_for_string(void **state)
{
	struct store_loop loop;
	size_t stores = 0;

	(void)state;
#define JUDGE(name) \
	store_loop_find(name, (size_t)(name##_end - name), (size_t)(name##_to - name), &loop)
	JUDGE(waiting);
	assert_int_equal(loop.kind, STORE_FILL);
	assert_int_equal(loop.value, VALUE_ZERO);
	assert_int_equal(loop.head, 2);
	JUDGE(not_cleared);
	assert_int_equal(loop.kind, STORE_NONE);
	JUDGE(elsewhere);
	assert_int_equal(loop.kind, STORE_NONE);
	JUDGE(jumped);
	assert_int_equal(loop.kind, STORE_NONE);
	assert_true(store_string_waits(waiting, (size_t)(waiting_end - waiting), &stores, &loop));
	assert_int_equal(stores, 2);
	assert_false(store_string_waits(not_cleared, (size_t)(not_cleared_end - not_cleared),
					&stores, &loop));
	assert_false(store_string_waits(jumped, (size_t)(jumped_end - jumped), &stores, &loop));
	assert_false(store_string_waits(waiting, (size_t)(waiting_to - waiting), &stores, &loop));
}

/* Whatever the bytes are, nothing is read behind them. */
static void test_any_bytes(void **state)
{
	uint64_t seed = 88172645463325252u;
	struct store_loop loop;
	uint8_t code[97];
	size_t i, k, stores;

	(void)state;
	for (i = 0; i < 3000; i++) {
		for (k = 0; k < sizeof(code); k++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			code[k] = (uint8_t)(seed >> 24);
		}
		store_loop_find(code, seed % (sizeof(code) + 1), seed >> 32 & 127, &loop);
		assert_true(loop.wire.words <= STORE_WORDS);
		store_string_waits(code, seed % (sizeof(code) + 1), &stores, &loop);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_instruction),
		cmocka_unit_test(test_straight_row),
		cmocka_unit_test(test_behind_string),
		cmocka_unit_test(test_stored_behind_string),
		cmocka_unit_test(test_waiting_for_string),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
