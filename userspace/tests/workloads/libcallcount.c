// SPDX-License-Identifier: GPL-2.0
/*
 * libcallcount: preloaded, counts the calls by which a program asks for blocks of 64 KiB and more, and
 * their bytes. The file that MEMTOLL_TEST_WITNESS names gets one JSON object.
 */
#define _GNU_SOURCE 1 /* RTLD_NEXT */

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LEAST (64UL << 10)

struct count {
	const char *name;
	uint64_t calls, bytes;
};

static struct count mallocs = { "malloc", 0, 0 }, callocs = { "calloc", 0, 0 },
		    reallocs = { "realloc", 0, 0 };

static void add(struct count *count, size_t size)
{
	if (size < LEAST)
		return;
	__atomic_fetch_add(&count->calls, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&count->bytes, size, __ATOMIC_RELAXED);
}

void *malloc(size_t size)
{
	static void *(*next)(size_t);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "malloc");
	add(&mallocs, size);
	return next(size);
}

/* dlsym may ask for a block before it has found calloc: it takes none, too. */
void *calloc(size_t count, size_t size)
{
	static void *(*next)(size_t, size_t);
	static bool looking;

	if (!next) {
		if (looking)
			return NULL;
		looking = true;
		*(void **)&next = dlsym(RTLD_NEXT, "calloc");
	}
	add(&callocs, count * size);
	return next(count, size);
}

void *realloc(void *block, size_t size)
{
	static void *(*next)(void *, size_t);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "realloc");
	add(&reallocs, size);
	return next(block, size);
}

static __attribute__((destructor)) void tell(void)
{
	const struct count *const counts[] = { &mallocs, &callocs, &reallocs };
	const char *path = getenv("MEMTOLL_TEST_WITNESS");
	FILE *file = path ? fopen(path, "w") : NULL;

	if (!file)
		return;
	for (size_t i = 0; i < 3; i++)
		fprintf(file, "%s\"%s\": [%lu, %lu]", i ? ", " : "{", counts[i]->name,
			(unsigned long)counts[i]->calls, (unsigned long)counts[i]->bytes);
	fputs("}\n", file);
	fclose(file);
}
