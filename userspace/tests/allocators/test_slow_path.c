// SPDX-License-Identifier: GPL-2.0
/*
 * test_slow_path.c: what malloc, calloc, realloc and free hand on when the thread's cache has no
 * answer: in code that is written as compilers have it, in code that only looks like it, and in the
 * C library that runs this test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "allocators/slow_path.h"
#include "host/proc.h"
#include "symbols/image.h"

/* A function among the others, with its extent, as .eh_frame would have it. */
#define FUNCTION(name, code)                                                     \
	extern const uint8_t name[];                                             \
	__asm__(".pushsection mimics, \"a\", @progbits\n" #name ":\n\t" code     \
		"\n9:\n\t.pushsection extents, \"a\", @progbits\n\t.long " #name \
		" - ., 9b - .\n\t.popsection\n\t.popsection")

extern const uint8_t __start_mimics[], __stop_mimics[];
extern const int32_t __start_extents[], __stop_extents[];

/* main_arena and another object, both writable. */
uint64_t mimic_arena[4] = { 1 }, mimic_lock = 1;

FUNCTION(routine, "push %rbx\n mov %rsi, %rbx\n xor %eax, %eax\n pop %rbx\n ret");
FUNCTION(other_routine, "mov %rsi, %rax\n ret");
FUNCTION(unmap, "mov $11, %eax\n syscall\n ret");
FUNCTION(unmap_chunk, "mov 8(%rdi), %rsi\n jmp unmap");
FUNCTION(take_back, "mov 8(%rsi), %rax\n mov %rax, 96(%rdi)\n ret");
FUNCTION(find_arena, "mov mimic_lock(%rip), %rax\n ret");
/* Ends the program, which two calls deeper can be seen. */
FUNCTION(end, "mov $231, %eax\n syscall\n hlt");
FUNCTION(complain, "sub $8, %rsp\n call end");
/* Ends it for one of its arguments only: the compiler knew that no caller comes back. */
FUNCTION(complain_or_not, "test %edi, %edi\n jne end\n ret");

#define HIT "mov %fs:(%rcx), %rdx\n mov 16(%rdx), %rax\n test %rax, %rax\n "
#define ARENA_SIZE(size) "mov " size ", %rsi\n lea mimic_arena(%rip), %rdi\n"

/* As glibc 2.36 has them. */
FUNCTION(plain_malloc,
	 "push %rbx\n mov %rdi, %rbx\n" HIT "jne 2f\n cmpb $0, mimic_lock(%rip)\n"
	 "jne 1f\n" ARENA_SIZE(
		 "%rbx") "call routine\n 2: pop %rbx\n ret\n"
			 "1: call find_arena\n mov %rbx, %rsi\n mov %rax, %rdi\n call routine\n"
			 "test %rax, %rax\n jne 2b\n mov %rbx, %rsi\n call find_arena\n"
			 "mov %rax, %rdi\n mov %rbx, %rsi\n call routine\n pop %rbx\n ret");
FUNCTION(plain_calloc,
	 "mov %rdi, %rax\n mul %rsi\n jo 1f\n push %rbp\n mov %rax, %rbp\n"
	 "sub $16, %rsp\n" ARENA_SIZE("%rbp") "call routine\n add $16, %rsp\n"
					      "pop %rbp\n ret\n 1: xor %eax, %eax\n ret");
FUNCTION(reallocate, "push %rbx\n lea -15(%rcx), %rsi\n call routine\n pop %rbx\n ret");
FUNCTION(plain_realloc, "lea 23(%rsi), %rcx\n lea -16(%rdi), %rsi\n and $-16, %rcx\n"
			"xor %eax, %eax\n lea mimic_arena(%rip), %rdi\n test $2, %cl\n"
			"cmovne %rax, %rdi\n jmp reallocate");
#define KEEP "mov %rdi, 128(%rdx, %rax, 8)\n"
FUNCTION(plain_free, "test %rdi, %rdi\n je 3f\n lea -16(%rdi), %rsi\n mov -8(%rdi), %rax\n"
		     "test $2, %al\n jne 2f\n mov %fs:(%rcx), %rdx\n test %rdx, %rdx\n je 1f\n" KEEP
		     "3: ret\n 1: lea mimic_arena(%rip), %rdi\n test $4, %al\n je 4f\n"
		     "mov (%rax), %rdi\n 4: xor %ecx, %ecx\n call take_back\n ret\n"
		     "2: mov %rsi, %rdi\n jmp unmap_chunk");

/* As glibc 2.43 has them: the fast path alone, and jumps out of it. */
FUNCTION(malloc_slowly, "push %rbp\n mov %rdi, %rbp\n mov %rdi, %rsi\n"
			"lea mimic_arena(%rip), %rdi\n call routine\n pop %rbp\n ret");
FUNCTION(jumping_malloc, HIT "je malloc_slowly\n ret");

/* The size goes through the frame; the ways behind a complaint do not exist. */
FUNCTION(spilling_malloc,
	 "sub $24, %rsp\n mov %rdi, 8(%rsp)\n test %rdi, %rdi\n js 1f\n call find_arena\n"
	 "mov 8(%rsp), %rsi\n lea mimic_arena(%rip), %rdi\n call routine\n"
	 "add $24, %rsp\n ret\n 1: xor %edi, %edi\n movq $7, 8(%rsp)\n"
	 "call complain\n mov 8(%rsp), %rsi\n jmp spilling_malloc + 18");
FUNCTION(complaining_malloc, "push %rbx\n mov %rdi, %rbx\n 1: mov %rbx, %rsi\n"
			     "lea mimic_arena(%rip), %rbx\n mov %rbx, %rdi\n call routine\n"
			     "test $1, %al\n jne 2f\n pop %rbx\n ret\n"
			     "2: mov $1, %edi\n call complain_or_not\n jmp 1b");

/* With frame pointers, the size in the frame. */
FUNCTION(framed_malloc,
	 "endbr64\n push %rbp\n mov %rsp, %rbp\n sub $32, %rsp\n mov %rdi, -24(%rbp)\n"
	 "call find_arena\n test %rax, %rax\n jne 1f\n"
	 "lea mimic_arena(%rip), %rdi\n mov -24(%rbp), %rsi\n call routine\n leave\n ret\n"
	 "1: mov -24(%rbp), %rsi\n mov %rax, %rdi\n call routine\n leave\n ret");
/* Its rare part is elsewhere, as -freorder-blocks-and-partition puts it, and comes back. */
FUNCTION(parted_malloc, "push %rbx\n mov %rdi, %rbx\n xor %edi, %edi\n cmpb $0, mimic_lock(%rip)\n"
			"jne parted_malloc_cold\n"
			".globl parted_malloc_back\n parted_malloc_back: mov %rbx, %rsi\n"
			"lea mimic_arena(%rip), %rdi\n call routine\n pop %rbx\n ret");
FUNCTION(parted_malloc_cold,
	 "mov %rbx, %rsi\n call find_arena\n mov %rax, %rdi\n mov %rbx, %rsi\n"
	 "test %rax, %rax\n je parted_malloc_back\n call routine\n pop %rbx\n ret");

/* What only looks like it. */
FUNCTION(two_malloc,
	 "push %rbx\n mov %rdi, %rbx\n" ARENA_SIZE(
		 "%rdi") "call routine\n test %rax, %rax\n"
			 "jne 1f\n" ARENA_SIZE("%rbx") "call other_routine\n 1: pop %rbx\n ret");
FUNCTION(padding_malloc, "lea 16(%rdi), %rsi\n lea mimic_arena(%rip), %rdi\n call routine\n ret");
FUNCTION(half_malloc, "mov %edi, %esi\n lea mimic_arena(%rip), %rdi\n call routine\n ret");
FUNCTION(arenaless_malloc,
	 "push %rdi\n call find_arena\n pop %rsi\n mov %rax, %rdi\n call routine\n ret");
FUNCTION(leaking_malloc, "sub $24, %rsp\n mov %rdi, 8(%rsp)\n lea 8(%rsp), %rdi\n call find_arena\n"
			 "mov 8(%rsp), %rsi\n lea mimic_arena(%rip), %rdi\n call routine\n"
			 "add $24, %rsp\n ret");
FUNCTION(stepped_malloc, ARENA_SIZE("%rdi") ".byte 0xf2\n call routine\n ret");
FUNCTION(endless_malloc, ARENA_SIZE("%rdi") "1: .byte 0x06\n call routine\n jmp 1b");
FUNCTION(table_malloc,
	 "push %rbx\n mov %rdi, %rbx\n cmpb $0, mimic_lock(%rip)\n jne 1f\n" ARENA_SIZE(
		 "%rbx") "call routine\n pop %rbx\n ret\n 1: jmp *%rax\n"
			 "mov %rbx, %rsi\n call routine\n pop %rbx\n ret");
FUNCTION(other_calloc, "imul %rsi, %rdi\n" ARENA_SIZE("%rdi") "call other_routine\n ret");
FUNCTION(other_arena_calloc, "imul %rsi, %rdi\n mov %rdi, %rsi\n lea mimic_lock(%rip), %rdi\n"
			     "call routine\n ret");
FUNCTION(adding_calloc, "add %rsi, %rdi\n mov %rdi, %rsi\n mov %rcx, %rsi\n"
			"lea mimic_arena(%rip), %rdi\n call routine\n ret");

/* As glibc 2.36 has it: whoever is handed a block asks the cache himself. */
#define HAND_ON(to)                                                                   \
	"lea -16(%rdi), %rsi\n lea mimic_arena(%rip), %rdi\n sub $8, %rsp\n call " to \
	"\n add $8, %rsp\n ret"
FUNCTION(caching, "push %rbx\n mov %rsi, %rbx\n mov %fs:(%rcx), %rdx\n test %rdx, %rdx\n je 1f\n"
		  "lea 16(%rsi), %rdi\n cmpw $7, (%rdx)\n jb 2f\n 1: cmp %rax, mimic_lock(%rip)\n"
		  "jb 3f\n mov %rdi, 96(%rdi)\n 3: pop %rbx\n ret\n 2:" KEEP "jmp 3b");
FUNCTION(caching_free, HAND_ON("caching"));
/* As 2.31 has it: free is gone from the stack there, and others call the same. */
FUNCTION(caching_jump, "lea -16(%rdi), %rsi\n lea mimic_arena(%rip), %rdi\n jmp caching");
FUNCTION(caching_twice,
	 "push %rbx\n mov %rsi, %rbx\n mov %fs:(%rcx), %rdx\n test %rdx, %rdx\n je 1f\n"
	 "lea 16(%rsi), %rdi\n cmpw $7, (%rdx)\n jb 2f\n xor %eax, %eax\n"
	 "1: cmp %rax, mimic_lock(%rip)\n jb 3f\n 3: pop %rbx\n ret\n 2:" KEEP "jmp 3b");
FUNCTION(caching_twice_free, HAND_ON("caching_twice"));
FUNCTION(forgetting, "mov %fs:(%rcx), %rdx\n test %rdx, %rdx\n lea 16(%rsi), %rdi\n je 1f\n" KEEP
		     "ret\n 1: xor %edi, %edi\n xor %esi, %esi\n jb 2f\n 2: ret");
FUNCTION(forgetting_free, HAND_ON("forgetting"));
FUNCTION(cacheless_free, HAND_ON("take_back"));
FUNCTION(both_free, "push %rbx\n lea -16(%rdi), %rsi\n mov %fs:(%rcx), %rdx\n" KEEP
		    "test %al, %al\n je 1f\n lea mimic_arena(%rip), %rdi\n call take_back\n"
		    "1: pop %rbx\n ret");
FUNCTION(two_places_free,
	 "lea -16(%rdi), %rsi\n mov %fs:(%rcx), %rdx\n test %rdx, %rdx\n je 1f\n" KEEP
	 "ret\n 1: lea mimic_arena(%rip), %rdi\n test %al, %al\n je take_back\n"
	 "jmp take_back");

static bool find_extent(uint64_t address, uint64_t *start, uint64_t *end, void *argument)
{
	(void)argument;
	for (const int32_t *at = __start_extents; at < __stop_extents; at += 2) {
		*start = (uintptr_t)at + (int64_t)at[0];
		*end = (uintptr_t)(at + 1) + (int64_t)at[1];
		if (address >= *start && address < *end)
			return true;
	}
	return false;
}

static void find(const uint8_t *malloc, const uint8_t *calloc, const uint8_t *free,
		 struct slow_paths *paths)
{
	struct slow_library library = {
		.bytes = __start_mimics,
		.len = (size_t)(__stop_mimics - __start_mimics),
		.address = (uintptr_t)__start_mimics,
		.data_start = MIN((uintptr_t)mimic_arena, (uintptr_t)&mimic_lock),
		.data_end = MAX((uintptr_t)(mimic_arena + 4), (uintptr_t)(&mimic_lock + 1)),
		.munmap = (uintptr_t)unmap,
		.extent = find_extent,
	};

	library.functions[FN_MALLOC] = (uintptr_t)malloc;
	library.functions[FN_CALLOC] = (uintptr_t)calloc;
	library.functions[FN_REALLOC] = (uintptr_t)plain_realloc;
	library.functions[FN_FREE] = (uintptr_t)free;
	slow_paths_find(&library, paths);
}

/* Target of the call or jump at a place, read by hand. */
static uint64_t target_of(const uint8_t *code, uint64_t address)
{
	int32_t distance;

	assert_true(code[0] == 0xe8 || code[0] == 0xe9);
	memcpy(&distance, code + 1, sizeof(distance));
	return address + 5 + (uint64_t)(int64_t)distance;
}

/* Sites of a function of the mimics: all of them lead to the routine. */
static void check_sites(const struct slow_path *path, size_t count, enum slow_value value,
			uint32_t depth)
{
	if (!path->found)
		fail_msg("not found: %s", path->refusal);
	assert_int_equal(path->site_count, count);
	for (size_t i = 0; i < count; i++) {
		const struct slow_site *site = &path->sites[i];

		assert_int_equal(target_of((const uint8_t *)(uintptr_t)site->address,
					   site->address),
				 (uintptr_t)routine);
		assert_int_equal(site->value, value);
		assert_int_equal(site->number, 6);
		assert_int_equal(site->depth, depth);
		assert_string_equal(site->instruction, "call");
	}
}

static void test_plain(void **state)
{
	struct slow_paths paths;
	const struct slow_path *freeing = &paths.functions[FN_FREE];

	(void)state;
	find(plain_malloc, plain_calloc, plain_free, &paths);
	assert_int_equal(paths.routine, (uintptr_t)routine);
	assert_int_equal(paths.release, (uintptr_t)take_back);
	assert_int_equal(paths.arena, (uintptr_t)mimic_arena);
	check_sites(&paths.functions[FN_MALLOC], 3, SLOW_SIZE, 8);
	assert_false(paths.functions[FN_MALLOC].sites[0].again);
	assert_false(paths.functions[FN_MALLOC].sites[1].again);
	assert_true(paths.functions[FN_MALLOC].sites[2].again);
	assert_true(paths.functions[FN_MALLOC].bypassed);
	check_sites(&paths.functions[FN_CALLOC], 1, SLOW_SIZE, 24);
	assert_false(paths.functions[FN_CALLOC].bypassed);
	/* Pushed by what it jumps to. */
	check_sites(&paths.functions[FN_REALLOC], 1, SLOW_PADDED, 8);
	assert_true(freeing->found);
	assert_int_equal(freeing->site_count, 2);
	assert_int_equal(target_of((const uint8_t *)(uintptr_t)freeing->sites[0].address,
				   freeing->sites[0].address),
			 (uintptr_t)take_back);
	assert_int_equal(freeing->sites[0].value, SLOW_CHUNK);
	assert_int_equal(freeing->sites[0].number, 6);
	assert_true(freeing->sites[1].mapped);
	assert_int_equal(target_of((const uint8_t *)(uintptr_t)freeing->sites[1].address,
				   freeing->sites[1].address),
			 (uintptr_t)unmap_chunk);
	assert_int_equal(freeing->sites[1].number, 7);
}

static void test_other_forms(void **state)
{
	struct slow_paths paths;

	(void)state;
	find(jumping_malloc, plain_calloc, plain_free, &paths);
	check_sites(&paths.functions[FN_MALLOC], 1, SLOW_SIZE, 8);
	assert_true(paths.functions[FN_MALLOC].bypassed);
	find(spilling_malloc, plain_calloc, plain_free, &paths);
	check_sites(&paths.functions[FN_MALLOC], 1, SLOW_SIZE, 24);
	assert_false(paths.functions[FN_MALLOC].bypassed);
	find(framed_malloc, plain_calloc, plain_free, &paths);
	check_sites(&paths.functions[FN_MALLOC], 2, SLOW_SIZE, 40);
	find(parted_malloc, plain_calloc, plain_free, &paths);
	check_sites(&paths.functions[FN_MALLOC], 2, SLOW_SIZE, 8);
	assert_true(paths.functions[FN_MALLOC].sites[0].inside !=
		    paths.functions[FN_MALLOC].sites[1].inside);
	find(complaining_malloc, plain_calloc, plain_free, &paths);
	check_sites(&paths.functions[FN_MALLOC], 1, SLOW_SIZE, 8);
}

/* Where the call of a function in the code behind an address returns to. */
static uint64_t returns_from(const uint8_t *code, uint64_t function)
{
	for (size_t i = 0; i < 64; i++)
		if (code[i] == 0xe8 && target_of(code + i, (uintptr_t)code + i) == function)
			return (uintptr_t)code + i + 5;
	fail_msg("no call");
	return 0;
}

/* What a probe there needs to know of the function's own call. */
static void test_way_back(void **state)
{
	struct slow_paths paths;
	const struct slow_path *path = &paths.functions[FN_MALLOC];
	const struct slow_site *site = path->sites;
	bool listed = false;

	(void)state;
	find(plain_malloc, plain_calloc, plain_free, &paths);
	assert_true(site[0].is_call && site[0].target == paths.routine);
	assert_true(site[0].main_arena && !site[1].main_arena);
	assert_true(site[0].has_rbp && site[0].rbp == 0);
	assert_true(paths.functions[FN_CALLOC].sites[0].has_rbp);
	assert_int_equal(paths.functions[FN_CALLOC].sites[0].rbp, -8);
	assert_int_equal(path->code_count, 1);
	find(jumping_malloc, plain_calloc, plain_free, &paths);
	assert_true(site[0].has_rbp && site[0].rbp == -8);
	assert_int_equal(path->code_count, 2);
	find(framed_malloc, plain_calloc, plain_free, &paths);
	assert_true(site[0].has_rbp && site[0].rbp == -8);

	path = &paths.functions[FN_FREE];
	site = path->sites;
	find(plain_malloc, plain_calloc, caching_free, &paths);
	assert_true(path->found && site[0].shared);
	assert_int_equal(site[0].depth, 24);
	assert_int_equal(site[0].returns_at, 8);
	assert_int_equal(site[0].returns_to, returns_from(caching_free, (uintptr_t)caching));
	find(plain_malloc, plain_calloc, caching_jump, &paths);
	assert_true(path->found && site[0].shared);
	assert_int_equal(site[0].returns_at, site[0].depth);
	assert_int_equal(site[0].returns_to, 0);
	for (size_t i = 0; i < paths.other_count; i++)
		listed |= paths.others[i] == returns_from(caching_free, (uintptr_t)caching);
	assert_true(listed);
}

static void refuse_all(const uint8_t *malloc, const uint8_t *calloc, const char *reason)
{
	struct slow_paths paths;

	find(malloc, calloc, plain_free, &paths);
	assert_int_equal(paths.routine, 0);
	for (enum memtoll_fn fn = FN_MALLOC; fn <= FN_FREE; fn++) {
		if (fn == FN_REALLOCARRAY || (fn == FN_MALLOC && !malloc))
			continue;
		assert_false(paths.functions[fn].found);
		if (!*paths.functions[fn].refusal)
			fail_msg("no reason for function %d", fn);
	}
	if (!strstr(paths.functions[FN_FREE].refusal, reason))
		fail_msg("'%s' is not in '%s'", reason, paths.functions[FN_FREE].refusal);
}

static void test_only_alike(void **state)
{
	(void)state;
	refuse_all(two_malloc, plain_calloc, "more than one function");
	refuse_all(padding_malloc, plain_calloc, "hands no function");
	refuse_all(half_malloc, plain_calloc, "hands no function");
	refuse_all(arenaless_malloc, plain_calloc, "hands no function");
	refuse_all(leaking_malloc, plain_calloc, "hands no function");
	refuse_all(endless_malloc, plain_calloc, "hands no function");
	refuse_all(plain_malloc, other_calloc, "calloc does not call");
	refuse_all(plain_malloc, other_arena_calloc, "calloc does not call");
	refuse_all(plain_malloc, adding_calloc, "calloc does not call");
	refuse_all(NULL, plain_calloc, "both malloc and calloc");
}

/* The others are found all the same. */
static void test_single_stepped(void **state)
{
	struct slow_paths paths;

	(void)state;
	find(stepped_malloc, plain_calloc, plain_free, &paths);
	assert_int_equal(paths.routine, (uintptr_t)routine);
	assert_false(paths.functions[FN_MALLOC].found);
	assert_true(paths.functions[FN_CALLOC].found);
}

/* A place that no way seems to lead to would be missed. */
static void test_unreached(void **state)
{
	struct slow_paths paths;

	(void)state;
	find(table_malloc, plain_calloc, plain_free, &paths);
	assert_int_equal(paths.routine, (uintptr_t)routine);
	assert_false(paths.functions[FN_MALLOC].found);
	assert_non_null(strstr(paths.functions[FN_MALLOC].refusal, "cannot be followed"));
	assert_true(paths.functions[FN_CALLOC].found);
}

static void refuse_free(const uint8_t *free, const char *reason)
{
	struct slow_paths paths;

	find(plain_malloc, plain_calloc, free, &paths);
	assert_true(paths.functions[FN_MALLOC].found);
	assert_false(paths.functions[FN_FREE].found);
	if (!strstr(paths.functions[FN_FREE].refusal, reason))
		fail_msg("'%s' is not in '%s'", reason, paths.functions[FN_FREE].refusal);
}

static void test_cache_behind(void **state)
{
	struct slow_paths paths;
	const struct slow_site *site = paths.functions[FN_FREE].sites;
	const uint8_t *code;

	(void)state;
	find(plain_malloc, plain_calloc, caching_free, &paths);
	if (!paths.functions[FN_FREE].found)
		fail_msg("%s", paths.functions[FN_FREE].refusal);
	assert_int_equal(paths.functions[FN_FREE].site_count, 1);
	assert_string_equal(site->instruction, "jb");
	assert_int_equal(site->number, 3);
	assert_int_equal(site->value, SLOW_CHUNK);
	/* free's own 8, the call's, and the push. */
	assert_int_equal(site->depth, 24);
	code = (const uint8_t *)(uintptr_t)site->address;
	assert_int_equal(code[0], 0x72);
	/* The second of that function: right behind the comparison. */
	assert_memory_equal(code - 7, "\x48\x39\x05", 3);
	refuse_free(caching_twice_free, "before the thread's cache is asked");
	refuse_free(forgetting_free, "before the thread's cache is asked");
	refuse_free(cacheless_free, "no cache of the thread");
	refuse_free(both_free, "hand it on, too");
	refuse_free(two_places_free, "more than one place");
}

/* The library that runs this: every site is a call of the one routine. */
static void test_own_library(void **state)
{
	static const enum memtoll_fn allocating[] = { FN_MALLOC,	FN_CALLOC,
						      FN_REALLOC,	FN_POSIX_MEMALIGN,
						      FN_ALIGNED_ALLOC, FN_MEMALIGN };
	struct slow_paths paths;
	struct image image = {};
	struct maps maps;
	bool found = false;

	(void)state;
	assert_int_equal(maps_read(getpid(), &maps), 0);
	for (size_t i = 0; i < maps.count && !found; i++) {
		found = maps.entries[i].exec && strstr(maps.entries[i].path, "/libc.so.6");
		if (found)
			assert_int_equal(image_open(getpid(), &maps.entries[i], &image), 0);
	}
	assert_true(found);
	slow_paths_read(&image, &paths);
	for (size_t i = 0; i < G_N_ELEMENTS(allocating); i++) {
		const struct slow_path *path = &paths.functions[allocating[i]];

		if (!path->found)
			fail_msg("function %d: %s", allocating[i], path->refusal);
		for (size_t k = 0; k < path->site_count; k++) {
			uint64_t offset, available;
			uint8_t code[5];

			assert_true(image_code_offset(&image, path->sites[k].address, &offset,
						      &available));
			assert_int_equal(pread(image.fd, code, sizeof(code), (off_t)offset),
					 sizeof(code));
			assert_int_equal(target_of(code, path->sites[k].address), paths.routine);
			assert_true(path->sites[k].value ==
				    (allocating[i] <= FN_CALLOC ? SLOW_SIZE : SLOW_PADDED));
		}
	}
	assert_true(paths.functions[FN_MALLOC].bypassed);
	assert_true(paths.functions[FN_FREE].found);
	image_close(&image);
	maps_free(&maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),	    cmocka_unit_test(test_other_forms),
		cmocka_unit_test(test_only_alike),  cmocka_unit_test(test_single_stepped),
		cmocka_unit_test(test_unreached),   cmocka_unit_test(test_cache_behind),
		cmocka_unit_test(test_own_library), cmocka_unit_test(test_way_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
