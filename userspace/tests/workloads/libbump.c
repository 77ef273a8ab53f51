// SPDX-License-Identifier: GPL-2.0
/*
 * libbump.so: a preloaded malloc without headers, whose blocks of whole pages lie one behind the
 * other, as in allocators that keep their books elsewhere. Nothing is used twice until
 * bump_restart() gives all of it back to the kernel.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define PAGE 4096UL
#define REGION (512UL << 20)
#define SMALL_REGION (1UL << 20) /* what is less than a page */

static char small[SMALL_REGION] __attribute__((aligned(16)));
static atomic_size_t small_used, used;
static _Atomic(char *) region;

static char *region_get(void)
{
	char *mine = region, *none = NULL;

	if (mine)
		return mine;
	mine = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mine == MAP_FAILED)
		return NULL;
	if (atomic_compare_exchange_strong(&region, &none, mine))
		return mine;
	munmap(mine, REGION);
	return none;
}

__attribute__((visibility("default"))) void *malloc(size_t size)
{
	size_t at;
	char *base;

	if (size < PAGE) {
		at = atomic_fetch_add(&small_used, (size + 16) & ~15UL);
		return at + size < SMALL_REGION ? small + at : NULL;
	}
	base = region_get();
	at = atomic_fetch_add(&used, (size + PAGE - 1) & ~(PAGE - 1));
	return base && at + size <= REGION ? base + at : NULL;
}

__attribute__((visibility("default"))) void free(void *block)
{
	(void)block;
}

__attribute__((visibility("default"))) int bump_restart(void)
{
	used = 0;
	return region ? madvise(region, REGION, MADV_DONTNEED) : 0;
}
