// SPDX-License-Identifier: GPL-2.0
/*
 * test_placement.c: the choice of the probed instruction, on byte patterns of several C libraries
 * and on the functions of the C library that runs this test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/placement.h"

#define RDI PLACEMENT_RDI
#define RSI PLACEMENT_RSI
#define RDX PLACEMENT_RDX
#define CODE(...) { __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ })
#define REFUSED UINT32_MAX

struct sample {
	const char *name;
	uint8_t code[64];
	size_t len;
	uint32_t arguments;
	bool need_return;
	uint32_t offset; /* REFUSED: must not be placed */
	uint32_t pushed;
	const char *text; /* the chosen instruction starts so, or the refusal contains it */
};

/* The whitelist a second time and in another form, so that it is a witness. */
static bool is_whitelisted(const uint8_t *code)
{
	return (code[0] & 0xf8) == 0x50 || (code[0] & 0xf0) == 0x70 || code[0] == 0x90 ||
	       code[0] == 0xeb || code[0] == 0xe9 ||
	       (code[0] == 0x41 && (code[1] & 0xf8) == 0x50) ||
	       (code[0] == 0x0f && (code[1] & 0xf0) == 0x80) ||
	       (code[0] == 0x66 && code[1] == 0x90);
}

static const struct sample samples[] = {
	/* Debian 12, glibc 2.36 */
	{ "2.36 malloc", CODE(0x41, 0x54, 0x55, 0x53, 0x48, 0x89, 0xfb), RDI, true, 0, 0,
	  "push %r12" },
	{ "2.36 free", CODE(0x48, 0x85, 0xff, 0x0f, 0x84, 0xbf, 0, 0, 0, 0x55), RDI, true, 3, 0,
	  "jz" },
	{ "2.36 posix_memalign", CODE(0x80, 0x3d, 1, 2, 0x14, 0, 0, 0x41, 0x54, 0x49, 0x89, 0xd4),
	  RDI | RSI | RDX, true, 7, 0, "push %r12" },
	{ "2.36 aligned_alloc",
	  CODE(0x80, 0x3d, 0x71, 0x0e, 0x14, 0, 0, 0x74, 0x07, 0xe9, 0x32, 0xf6, 0xff, 0xff),
	  RDI | RSI, true, 7, 0, "jz" },
	{ "2.36 reallocarray",
	  CODE(0x48, 0x89, 0xf0, 0x48, 0xf7, 0xe2, 0x48, 0x89, 0xc6, 0x70, 0x05, 0xe9, 0, 0, 0, 0),
	  RDI | RSI | RDX, true, REFUSED, 0, "mul at +3 overwrites an argument" },
	/* Debian 11, glibc 2.31 */
	{ "2.31 malloc",
	  CODE(0x48, 0x8b, 0x05, 0x11, 0x22, 0x15, 0, 0x41, 0x54, 0x55, 0x53, 0x48, 0x8b, 0x00),
	  RDI, true, 7, 0, "push %r12" },
	{ "2.31 free, rsp kept",
	  CODE(0x48, 0x83, 0xec, 0x18, 0x48, 0x8b, 0x05, 1, 2, 3, 0, 0x48, 0x8b, 0x00, 0x48, 0x85,
	       0xc0, 0x0f, 0x85, 0x98, 0, 0, 0),
	  RDI, true, REFUSED, 0, "stack pointer" },
	{ "2.31 free, rsp free",
	  CODE(0x48, 0x83, 0xec, 0x18, 0x48, 0x8b, 0x05, 1, 2, 3, 0, 0x48, 0x8b, 0x00, 0x48, 0x85,
	       0xc0, 0x0f, 0x85, 0x98, 0, 0, 0),
	  RDI, false, 17, 24, "jnz" },
	{ "2.31 aligned_alloc", CODE(0x48, 0x8b, 0x14, 0x24, 0xe9, 0x67, 0xfe, 0xff, 0xff),
	  RDI | RSI, true, 4, 0, "jmp" },
	/* Ubuntu 22.04, glibc 2.35, built for control-flow enforcement */
	{ "2.35 malloc", CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x54, 0x55, 0x48, 0x89, 0xfd, 0x53),
	  RDI, true, 4, 0, "push %r12" },
	{ "2.35 free", CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x85, 0xff, 0x0f, 0x84, 0xbb, 0, 0, 0),
	  RDI, true, 7, 0, "jz" },
	{ "2.35 posix_memalign",
	  CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x80, 0x3d, 0x7d, 0x93, 0x17, 0, 0, 0x41, 0x56, 0x41, 0x55),
	  RDI | RSI | RDX, true, 11, 0, "push %r14" },
	{ "2.35 aligned_alloc",
	  CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x55, 0x49, 0x89, 0xf5, 0x41, 0x54), RDI | RSI, true,
	  4, 0, "push %r13" },
	/* mimalloc 2.0.9: the argument is moved on, then its register is overwritten */
	{ "mimalloc malloc",
	  CODE(0x48, 0x8b, 0x05, 0x49, 0xb4, 0, 0, 0x48, 0x89, 0xfe, 0x64, 0x48, 0x8b, 0x38, 0x48,
	       0x81, 0xfe, 0, 4, 0, 0, 0x77, 0x29),
	  RDI, true, 21, 0, "jnbe" },
	{ "mimalloc calloc",
	  CODE(0x48, 0x8b, 0x15, 0xc9, 0xad, 0, 0, 0x48, 0x89, 0xf8, 0x64, 0x48, 0x8b, 0x3a, 0x48,
	       0x83, 0xf8, 1, 0x74, 8),
	  RDI | RSI, true, 18, 0, "jz" },
	/* Debian 13, glibc 2.41: aligned_alloc begins with push rbx */
	{ "2.41 aligned_alloc", CODE(0x53, 0x48, 0x83, 0xec, 0x10), RDI | RSI, true, 0, 0,
	  "push %rbx" },
	/* glibc 2.43 */
	{ "2.43 malloc", CODE(0x48, 0x85, 0xff, 0x78, 0x20, 0x48, 0x8d, 0x47, 0x17), RDI, true, 3,
	  0, "js" },
	{ "2.43 calloc", CODE(0x48, 0x89, 0xf8, 0x48, 0xf7, 0xe6, 0x70, 0x40, 0x48, 0x89, 0xc2),
	  RDI | RSI, true, 6, 0, "jo" },
	{ "2.43 realloc", CODE(0x48, 0x89, 0xf0, 0x48, 0x85, 0xff, 0x74, 0x10), RDI | RSI, true, 6,
	  0, "jz" },
	{ "2.43 posix_memalign",
	  CODE(0x48, 0x89, 0xf0, 0x83, 0xe0, 0x07, 0x48, 0x8d, 0x4e, 0xff, 0x48, 0xc1, 0xe9, 0x03,
	       0x48, 0x85, 0xc9, 0x48, 0x85, 0xc0, 0x0f, 0x1f, 0x00, 0x75, 0x40),
	  RDI | RSI | RDX, true, 23, 0, "jnz" },
	/* control-flow enforcement: endbr64 is single-stepped and never chosen */
	{ "endbr64 push", CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x57), RDI, true, 4, 0, "push %r15" },
	{ "endbr64 alone", CODE(0xf3, 0x0f, 0x1e, 0xfa), RDI, true, REFUSED, 0, "no emulated" },
	/* VEX, EVEX: opcode bytes 70-7f must not be taken for a jcc; they are stepped over */
	{ "vpbroadcastb", CODE(0xc4, 0xe2, 0x7d, 0x78, 0xc0, 0xc5, 0xfd, 0x74, 0xc1, 0x55), RDI,
	  true, 9, 0, "push %rbp" },
	{ "vmovdqu store", CODE(0xc5, 0xfe, 0x7f, 0x07, 0xc3), RDI, true, REFUSED, 0, "ret" },
	{ "vmovdqu store, end", CODE(0xc5, 0xfe, 0x7f, 0x07), RDI, true, REFUSED, 0,
	  "no emulated" },
	{ "evex vmovdqu64 store", CODE(0x62, 0xf1, 0xfe, 0x48, 0x7f, 0x07, 0x50), RDI, true, 6, 0,
	  "push %rax" },
	{ "sse psrlw 71", CODE(0x66, 0x0f, 0x71, 0xd0, 0x02, 0x53), RDI, true, 5, 0, "push %rbx" },
	/* long nops are emulated by some kernels only, prefixed jumps and pushes not wanted */
	{ "nop4 nop5 nop", CODE(0x0f, 0x1f, 0x40, 0, 0x0f, 0x1f, 0x44, 0, 0, 0x90), RDI, true, 9, 0,
	  "nop" },
	{ "66 90", CODE(0x66, 0x90, 0xc3), RDI, true, 0, 0, "" },
	{ "pause f3 90", CODE(0xf3, 0x90, 0xc3), RDI, true, REFUSED, 0, "ret" },
	{ "xchg r8 41 90", CODE(0x41, 0x90, 0xc3), RDI, true, REFUSED, 0, "ret" },
	{ "branch hint 3e je", CODE(0x3e, 0x74, 0x05, 0x90), RDI, true, REFUSED, 0, "at +0" },
	{ "bnd jmp f2", CODE(0xf2, 0xe9, 0, 0, 0, 0), RDI, true, REFUSED, 0, "at +0" },
	{ "rex.w push", CODE(0x48, 0x50, 0xc3), RDI, true, REFUSED, 0, "stack pointer" },
	{ "66 push", CODE(0x66, 0x50, 0x90), RDI, false, 2, 2, "nop" },
	{ "jmp rel8", CODE(0xeb, 0x10), RDI, true, 0, 0, "jmp" },
	/* control flow that ends the search */
	{ "call", CODE(0xe8, 0, 0, 0, 0, 0x90), RDI, true, REFUSED, 0, "call at +0" },
	{ "ret", CODE(0xc3, 0x90), RDI, true, REFUSED, 0, "ret" },
	{ "indirect jmp", CODE(0xff, 0xe0, 0x90), RDI, true, REFUSED, 0, "jmp" },
	{ "indirect call", CODE(0xff, 0x15, 0, 0, 0, 0, 0x90), RDI, true, REFUSED, 0, "call" },
	{ "syscall", CODE(0x0f, 0x05, 0x90), RDI, true, REFUSED, 0, "syscall" },
	{ "int3", CODE(0xcc, 0x90), RDI, true, REFUSED, 0, "int3" },
	{ "hlt", CODE(0xf4, 0x90), RDI, true, REFUSED, 0, "hlt" },
	{ "ud2", CODE(0x0f, 0x0b, 0x90), RDI, true, REFUSED, 0, "ud2" },
	{ "xbegin", CODE(0xc7, 0xf8, 0, 0, 0, 0, 0x90), RDI, true, REFUSED, 0, "xbegin" },
	{ "jrcxz", CODE(0xe3, 0x05, 0x90), RDI, true, REFUSED, 0, "jrcxz" },
	/* writes to arguments, whole, in part, implicit, on a condition */
	{ "mul, rdx unwanted", CODE(0x48, 0xf7, 0xe6, 0x70, 0x02), RDI | RSI, true, 3, 0, "jo" },
	{ "mul, rdx wanted", CODE(0x48, 0xf7, 0xe6, 0x70, 0x02), RDI | RSI | RDX, true, REFUSED, 0,
	  "mul" },
	{ "mov edi", CODE(0x89, 0xc7, 0x90), RDI, true, REFUSED, 0, "overwrites" },
	{ "mov dil", CODE(0x40, 0x88, 0xc7, 0x90), RDI, true, REFUSED, 0, "overwrites" },
	{ "mov edi, unwanted", CODE(0x89, 0xc7, 0x90), RSI, true, 2, 0, "nop" },
	{ "cmov rsi", CODE(0x48, 0x0f, 0x44, 0xf0, 0x90), RSI, true, REFUSED, 0, "overwrites" },
	{ "xchg rax,rdi", CODE(0x48, 0x97, 0x90), RDI, true, REFUSED, 0, "overwrites" },
	{ "rep stos", CODE(0xf3, 0x48, 0xab, 0x90), RDI, true, REFUSED, 0, "overwrites" },
	{ "cpuid", CODE(0x0f, 0xa2, 0x90), RDI | RDX, true, REFUSED, 0, "overwrites" },
	{ "mov (rdi),rax", CODE(0x48, 0x8b, 0x07, 0x90), RDI, true, 3, 0, "nop" },
	{ "mov rax,(rdi)", CODE(0x48, 0x89, 0x07, 0x90), RDI, true, 3, 0, "nop" },
	/* the stack pointer */
	{ "add -128", CODE(0x48, 0x83, 0xc4, 0x80, 0x90), RDI, false, 4, 128, "nop" },
	{ "sub 256", CODE(0x48, 0x81, 0xec, 0, 1, 0, 0, 0x90), RDI, false, REFUSED, 0, "followed" },
	{ "sub 255", CODE(0x48, 0x81, 0xec, 0xff, 0, 0, 0, 0x90), RDI, false, 7, 255, "nop" },
	{ "add 8", CODE(0x48, 0x83, 0xc4, 8, 0x90), RDI, false, REFUSED, 0, "followed" },
	{ "and rsp", CODE(0x48, 0x83, 0xe4, 0xf0, 0x90), RDI, false, REFUSED, 0, "followed" },
	{ "push imm, sub", CODE(0x6a, 1, 0x48, 0x83, 0xec, 8, 0x90), RDI, false, 6, 16, "nop" },
	{ "pushf, push mem", CODE(0x9c, 0xff, 0x37, 0x90), RDI, false, 3, 16, "nop" },
	{ "sub rsp,rax", CODE(0x48, 0x29, 0xc4, 0x90), RDI, false, REFUSED, 0, "followed" },
	/* loops: the probe would be hit more than once per call */
	{ "jcc back", CODE(0x48, 0x89, 0xc8, 0x75, 0xfb), RDI, true, REFUSED, 0, "loop" },
	{ "jcc to itself", CODE(0x75, 0xfe), RDI, true, REFUSED, 0, "loop" },
	{ "jcc back to the start", CODE(0x48, 0x85, 0xff, 0x0f, 0x84, 0xf7, 0xff, 0xff, 0xff), RDI,
	  true, REFUSED, 0, "loop" },
	{ "jcc before the start", CODE(0x48, 0x85, 0xff, 0x74, 0x80), RDI, true, 3, 0, "jz" },
	{ "later jump back", CODE(0x48, 0x85, 0xff, 0x74, 0x04, 0x48, 0x89, 0xc8, 0xeb, 0xf6), RDI,
	  true, REFUSED, 0, "loop" },
	{ "later call to the start", CODE(0x53, 0xe8, 0xfa, 0xff, 0xff, 0xff), RDI, true, 0, 0,
	  "push" },
	/* truncated and broken code */
	{ "cut je rel32", CODE(0x48, 0x85, 0xff, 0x0f, 0x84, 0xbf), RDI, true, REFUSED, 0,
	  "no emulated instruction in 6 bytes" },
	{ "cut REX", CODE(0x41), RDI, true, REFUSED, 0, "no emulated instruction in 1 bytes" },
	{ "invalid in 64 bits", CODE(0x06, 0x90), RDI, true, REFUSED, 0,
	  "cannot be decoded at +0" },
};

static void check(const struct sample *sample)
{
	struct placement place;
	int err = placement_find(sample->code, sample->len, sample->arguments, sample->need_return,
				 &place);

	print_message("%-26s %s+%u %s%s\n", sample->name, err ? "- " : "", place.offset,
		      place.instruction, place.refusal);
	if (sample->offset == REFUSED) {
		assert_int_equal(err, -ENOENT);
		assert_false(place.found);
		assert_non_null(strstr(place.refusal, sample->text));
		return;
	}
	assert_int_equal(err, 0);
	assert_true(place.found);
	assert_int_equal(place.offset, sample->offset);
	assert_int_equal(place.pushed, sample->pushed);
	assert_true(is_whitelisted(sample->code + place.offset));
	assert_int_equal(strncmp(place.instruction, sample->text, strlen(sample->text)), 0);
	assert_string_equal(place.refusal, "");
}

static void test_samples(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		check(&samples[i]);
}

/* In which register each argument is at the place: code, wanted, and rdi's, rsi's and rdx's. */
static void test_registers(void **state)
{
	static const struct {
		uint8_t code[32];
		size_t len;
		uint32_t arguments;
		int8_t registers[PLACEMENT_ARGUMENTS];
	} codes[] = {
		{ CODE(0x90), RDI | RSI | RDX, { 7, 6, 2 } },
		/* mov rsi,rdi; mov rdi,[rax]; nop */
		{ CODE(0x48, 0x89, 0xfe, 0x48, 0x8b, 0x38, 0x90), RDI, { 6, -1, 2 } },
		/*
		 * mov r12,rdi; xor edi,edi; nop: and rdi's own register is preferred if it is there
		 */
		{ CODE(0x49, 0x89, 0xfc, 0x31, 0xff, 0x90), RDI | RSI, { 12, 6, 2 } },
		{ CODE(0x49, 0x89, 0xfc, 0x90), RDI | RSI, { 7, 6, 2 } },
		/* mov rax,rsi; mov rdx,rax; mov rax,1; xor esi,esi; nop: a copy of a copy */
		{ CODE(0x48, 0x89, 0xf0, 0x48, 0x89, 0xc2, 0x48, 0xc7, 0xc0, 1, 0, 0, 0, 0x31, 0xf6,
		       0x90),
		  RDI | RSI,
		  { 7, 2, -1 } },
		/* mov rdi,rsi; nop: another value came to it */
		{ CODE(0x48, 0x89, 0xf7, 0x90), RSI, { -1, 6, 2 } },
		/* mov rax,rdi; mov eax,eax; nop: half of it is gone, the original is not */
		{ CODE(0x48, 0x89, 0xf8, 0x89, 0xc0, 0x90), RDI, { 7, 6, 2 } },
	};
	/* mov eax,edi keeps half of it only; xor edi,edi; nop */
	static const uint8_t half[] = { 0x89, 0xf8, 0x31, 0xff, 0x90 };
	struct placement place;

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		assert_int_equal(placement_find(codes[i].code, codes[i].len, codes[i].arguments,
						true, &place),
				 0);
		for (size_t k = 0; k < PLACEMENT_ARGUMENTS; k++)
			assert_int_equal(place.registers[k], codes[i].registers[k]);
	}
	assert_int_equal(placement_find(half, sizeof(half), RDI, true, &place), -ENOENT);
	assert_string_equal(placement_register(0), "rax");
	assert_string_equal(placement_register(7), "rdi");
	assert_string_equal(placement_register(15), "r15");
	assert_string_equal(placement_register(-1), "");
}

/* A function that does nothing but jump on, and where to. */
static void test_forwards(void **state)
{
	static const uint8_t stub[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xc9, 0xe9, 0x10, 0, 0, 0 };
	static const uint8_t worker[] = { 0x48, 0x85, 0xff, 0xe9, 0x10, 0, 0, 0 };
	static const uint8_t conditional[] = { 0x74, 0x10 };
	struct placement place;

	(void)state;
	assert_int_equal(placement_find(stub, sizeof(stub), RDI, true, &place), 0);
	assert_true(place.forwards);
	assert_int_equal(place.target, sizeof(stub) + 0x10);
	assert_int_equal(placement_find(worker, sizeof(worker), RDI, true, &place), 0);
	assert_false(place.forwards);
	assert_int_equal(placement_find(conditional, sizeof(conditional), RDI, true, &place), 0);
	assert_false(place.forwards);
}

static void test_empty(void **state)
{
	struct placement place;
	uint8_t byte = 0x55;

	(void)state;
	assert_int_equal(placement_find(&byte, 0, RDI, true, &place), -ENOENT);
	assert_false(place.found);
	assert_string_not_equal(place.refusal, "");
	assert_int_equal(placement_find(NULL, 0, RDI, true, &place), -ENOENT);
}

/* Every prefix of a good prologue: the place, or a refusal, and nothing read past the end. */
static void test_truncated(void **state)
{
	static const uint8_t code[] = { 0x80, 0x3d, 0x71, 0x0e, 0x14, 0x00, 0x00,
					0x0f, 0x84, 0x07, 0x00, 0x00, 0x00 };
	struct placement place;

	(void)state;
	for (size_t len = 0; len <= sizeof(code); len++) {
		uint8_t *copy = malloc(len ? len : 1);
		int err;

		assert_non_null(copy);
		memcpy(copy, code, len);
		err = placement_find(copy, len, RDI | RSI, true, &place);
		assert_int_equal(err, len == sizeof(code) ? 0 : -ENOENT);
		free(copy);
	}
	assert_int_equal(place.offset, 7);
}

/* The window ends the search, also in the middle of an instruction. */
static void test_window(void **state)
{
	uint8_t code[PLACEMENT_WINDOW + 16];
	struct placement place;

	(void)state;
	for (size_t last = PLACEMENT_WINDOW - 6; last <= PLACEMENT_WINDOW + 4; last++) {
		memset(code, 0xf8, sizeof(code)); /* clc */
		memcpy(code + last, (uint8_t[]){ 0x0f, 0x84, 1, 0, 0, 0 }, 6);
		assert_int_equal(placement_find(code, sizeof(code), RDI, true, &place),
				 last + 6 <= PLACEMENT_WINDOW ? 0 : -ENOENT);
	}
}

/* Random bytes: what is chosen is always on the whitelist and inside the window. */
static void test_random(void **state)
{
	uint32_t seed = 1009;
	unsigned int found = 0;
	struct placement place;
	uint8_t code[83];

	(void)state;
	for (unsigned int round = 0; round < 100003; round++) {
		for (size_t i = 0; i < sizeof(code); i++) {
			seed = seed * 1664525 + 1013904223;
			code[i] = (uint8_t)(seed >> 24);
		}
		if (placement_find(code, round % sizeof(code), seed >> 8 & 7, seed & 0x1000,
				   &place))
			continue;
		found++;
		assert_true(place.offset < round % sizeof(code) && place.offset < PLACEMENT_WINDOW);
		assert_true(place.pushed <= 255);
		assert_true(is_whitelisted(code + place.offset));
	}
	print_message("%u of 100003 random codes have a place\n", found);
	assert_true(found > 1009);
}

static void test_own_libc(void **state)
{
	static const struct {
		const char *name;
		void *function;
		uint32_t arguments;
	} functions[] = {
		{ "malloc", (void *)malloc, RDI },
		{ "calloc", (void *)calloc, RDI | RSI },
		{ "realloc", (void *)realloc, RDI | RSI },
		{ "free", (void *)free, RDI },
		{ "posix_memalign", (void *)posix_memalign, RDI | RSI | RDX },
		{ "aligned_alloc", (void *)aligned_alloc, RDI | RSI },
		{ "memalign", (void *)memalign, RDI | RSI },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		const uint8_t *code = functions[i].function;
		struct placement place;

		if (placement_find(code, PLACEMENT_WINDOW, functions[i].arguments, false, &place))
			fail_msg("%s: %s", functions[i].name, place.refusal);
		print_message("%s +%u %s\n", functions[i].name, place.offset, place.instruction);
		assert_true(is_whitelisted(code + place.offset));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),	  cmocka_unit_test(test_registers),
		cmocka_unit_test(test_forwards),  cmocka_unit_test(test_empty),
		cmocka_unit_test(test_truncated), cmocka_unit_test(test_window),
		cmocka_unit_test(test_random),	  cmocka_unit_test(test_own_libc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
