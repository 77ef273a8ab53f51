// SPDX-License-Identifier: GPL-2.0
/*
 * libcachedcalloc.so: the naive calloc with a cache of freed large blocks, as macOS keeps one
 * (casebook, entry 2). The faults go, the memset stays.
 */
#include <malloc.h>
#include <pthread.h>

#include "naive.h"

#define CACHE_SLOTS 16
#define CACHE_MIN (1UL << 20)
#define CACHE_MAX (128UL << 20)

/* glibc's own name for free: looking it up by dlsym could allocate. */
extern void __libc_free(void *block);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *slots[CACHE_SLOTS];

static void *cache_take(size_t bytes)
{
	void *block = NULL;

	if (bytes < CACHE_MIN)
		return NULL;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < CACHE_SLOTS && !block; i++) {
		if (!slots[i] || malloc_usable_size(slots[i]) < bytes)
			continue;
		block = slots[i];
		slots[i] = NULL;
	}
	pthread_mutex_unlock(&lock);
	if (block)
		atomic_fetch_add_explicit(&naive_reused, 1, memory_order_relaxed);
	return block;
}

static int cache_put(void *block)
{
	size_t size = malloc_usable_size(block);
	int kept = 0;

	if (size < CACHE_MIN || size > CACHE_MAX)
		return 0;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < CACHE_SLOTS && !kept; i++) {
		if (slots[i])
			continue;
		slots[i] = block;
		kept = 1;
	}
	pthread_mutex_unlock(&lock);
	return kept;
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size)
{
	size_t bytes;
	void *block;

	if (__builtin_mul_overflow(count, size, &bytes))
		return NULL;
	block = cache_take(bytes);
	if (!block)
		block = malloc(bytes);
	if (block)
		naive_clear(block, bytes);
	return block;
}

__attribute__((visibility("default"))) void free(void *block)
{
	if (block && !cache_put(block))
		__libc_free(block);
}
