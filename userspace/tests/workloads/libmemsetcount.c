// SPDX-License-Identifier: GPL-2.0
/*
 * libmemsetcount: preloaded before an allocator, counts the bytes that its calloc clears by memset in
 * blocks of 1 MiB and more. The file that MEMTOLL_TEST_WITNESS names gets one JSON object.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t calls, bytes;

void *memset(void *to, int value, size_t size)
{
	void *at = to;
	size_t left = size;

	if (value == 0 && size >= 1 << 20) {
		__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&bytes, size, __ATOMIC_RELAXED);
	}
	__asm__ volatile("rep stosb" : "+D"(at), "+c"(left) : "a"(value) : "memory");
	return to;
}

static __attribute__((destructor)) void tell(void)
{
	const char *path = getenv("MEMTOLL_TEST_WITNESS");
	FILE *file = path ? fopen(path, "w") : NULL;

	if (!file)
		return;
	fprintf(file, "{\"calls\": %lu, \"bytes\": %lu}\n", (unsigned long)calls,
		(unsigned long)bytes);
	fclose(file);
}
