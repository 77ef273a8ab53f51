// SPDX-License-Identifier: GPL-2.0
/*
 * libfront.so: a preloaded malloc that is a jump to libc's, which then returns to the caller of the
 * first. Where front_exit is set, it goes there instead and never returns.
 */
#include <setjmp.h>
#include <stddef.h>

void *__libc_malloc(size_t size);

__attribute__((visibility("default"))) jmp_buf *volatile front_exit;

__attribute__((visibility("default"),
	       optimize("omit-frame-pointer", "optimize-sibling-calls"))) void *
malloc(size_t size)
{
	if (__builtin_expect(front_exit != NULL, 0))
		longjmp(*front_exit, 1);
	return __libc_malloc(size);
}
