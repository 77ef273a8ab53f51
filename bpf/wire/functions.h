/* SPDX-License-Identifier: GPL-2.0 */
/* functions.h: the functions of the allocator, and the system calls, that are probed. */
#ifndef MEMTOLL_WIRE_FUNCTIONS_H
#define MEMTOLL_WIRE_FUNCTIONS_H

/* The allocator's functions. 0 means "in none of them". */
enum memtoll_fn {
	FN_NONE = 0,
	FN_MALLOC = 1,
	FN_CALLOC = 2,
	FN_REALLOC = 3,
	FN_REALLOCARRAY = 4,
	FN_FREE = 5,
	FN_POSIX_MEMALIGN = 6,
	FN_ALIGNED_ALLOC = 7,
	FN_MEMALIGN = 8,
	FN_COUNT = 9,
};

/* The system calls of the toll `map`. 0 means "in none of them". */
enum memtoll_map_fn {
	MAP_FN_NONE = 0,
	MAP_FN_MMAP = 1,
	MAP_FN_MUNMAP = 2,
	MAP_FN_MREMAP = 3,
	MAP_FN_BRK = 4,
	MAP_FN_MADVISE = 5,
	MAP_FN_IN_CALLS = 6, /* below: those that an outlier counts */
	/* These change no mapping. mprotect: recorded only where it faults pages in. */
	MAP_FN_MPROTECT = 6,
	MAP_FN_MLOCK = 7,
	MAP_FN_MLOCK2 = 8,
	MAP_FN_MLOCKALL = 9,
	MAP_FN_COUNT = 10,
};

/* The ways of reading a file that are watched. 0 means "in none of them". */
enum memtoll_read_fn {
	READ_FN_NONE = 0,
	READ_FN_READ = 1,
	READ_FN_PREAD = 2,
	READ_FN_READV = 3,
	READ_FN_PREADV = 4,
	READ_FN_PREADV2 = 5,
	READ_FN_IO_SUBMIT = 6, /* Linux AIO: what was asked for, when it was submitted */
	READ_FN_IO_URING = 7,  /* what came, when it was complete */
	READ_FN_COUNT = 8,
};

#endif /* MEMTOLL_WIRE_FUNCTIONS_H */
