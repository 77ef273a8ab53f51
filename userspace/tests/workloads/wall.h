/* SPDX-License-Identifier: GPL-2.0 */
/* wall.h: something right behind the program's heap, as JIT compilers may map it. */
#ifndef MEMTOLL_WORKLOAD_WALL_H
#define MEMTOLL_WORKLOAD_WALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define WALL_BYTES 4096

/* The program break cannot grow from now on. false: something else is there already. */
static bool wall(void)
{
	uintptr_t end = ((uintptr_t)sbrk(0) + WALL_BYTES - 1) & -(uintptr_t)WALL_BYTES;
	void *place = mmap((void *)end, WALL_BYTES, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	return place == (void *)end;
}

#endif /* MEMTOLL_WORKLOAD_WALL_H */
