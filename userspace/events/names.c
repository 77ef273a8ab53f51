// SPDX-License-Identifier: GPL-2.0
#include "events/names.h"
#include "bpf/wire/functions.h"
#include "bpf/wire/sums.h"

#define NAME(names, index) ((index) < sizeof(names) / sizeof(*(names)) ? (names)[index] : "")

const char *fn_name(unsigned int fn)
{
	static const char *const names[FN_COUNT] = {
		[FN_NONE] = "",
		[FN_MALLOC] = "malloc",
		[FN_CALLOC] = "calloc",
		[FN_REALLOC] = "realloc",
		[FN_REALLOCARRAY] = "reallocarray",
		[FN_FREE] = "free",
		[FN_POSIX_MEMALIGN] = "posix_memalign",
		[FN_ALIGNED_ALLOC] = "aligned_alloc",
		[FN_MEMALIGN] = "memalign",
	};

	return NAME(names, fn);
}

const char *map_fn_name(unsigned int map_fn)
{
	static const char *const names[MAP_FN_COUNT] = {
		[MAP_FN_NONE] = "",
		[MAP_FN_MMAP] = "mmap",
		[MAP_FN_MUNMAP] = "munmap",
		[MAP_FN_MREMAP] = "mremap",
		[MAP_FN_BRK] = "brk",
		[MAP_FN_MADVISE] = "madvise",
		[MAP_FN_MPROTECT] = "mprotect",
		[MAP_FN_MLOCK] = "mlock",
		[MAP_FN_MLOCK2] = "mlock2",
		[MAP_FN_MLOCKALL] = "mlockall",
	};

	return NAME(names, map_fn);
}

const char *fault_class_name(unsigned int fault_class, bool major)
{
	static const char *const minor_names[] = {
		[FAULT_ZERO] = "zero",
		[FAULT_ZERO_HUGE] = "zero_huge",
		[FAULT_ZERO_UPGRADE] = "zero_upgrade",
		[FAULT_ZERO_READ] = "zero_read",
		[FAULT_COW] = "cow",
		[FAULT_SWAP] = "swap_minor",
		[FAULT_FILE] = "file_minor",
		[FAULT_SHARED] = "shared_minor",
		[FAULT_OTHER] = "other",
		[FAULT_REUSE] = "reuse",
		[FAULT_ZERO_MTHP] = "zero_mthp",
		[FAULT_ZERO_POPULATED] = "zero_populated",
		[FAULT_FILE_POPULATED] = "file_populated",
		[FAULT_COW_POPULATED] = "cow_populated",
		[FAULT_SHARED_POPULATED] = "shared_populated",
		[FAULT_READ_POPULATED] = "read_populated",
		[FAULT_SWAP_ZSWAP] = "swap_minor",
		[FAULT_SWAP_ZERO] = "swap_minor",
		[FAULT_USER] = "user",
		[FAULT_SHARED_ZERO] = "shared_zero",
		[FAULT_FILE_AGAIN] = "file_again",
		[FAULT_FORBIDDEN] = "forbidden",
		[FAULT_MOVED] = "moved",
		[FAULT_COW_MERGED] = "cow_merged",
		[FAULT_SWAP_ZRAM] = "swap_minor",
	};

	if (!major)
		return NAME(minor_names, fault_class);
	switch (fault_class) {
	case FAULT_USER: /* tried again after its wait, which kernels may count as major */
		return "user";
	case FAULT_SWAP:
		return "swap_major";
	case FAULT_SWAP_ZSWAP:
		return "swap_zswap_major";
	case FAULT_SWAP_ZERO:
		return "swap_zero_major";
	case FAULT_SWAP_ZRAM:
		return "swap_zram_major";
	case FAULT_SHARED:
		return "shared_major";
	case FAULT_COW:
		return "cow_major";
	case FAULT_FILE_AGAIN:
		return "file_again_major";
	default:
		/* A major fault that found no swap entry read a file. */
		return "file_major";
	}
}

const char *area_name(unsigned int area)
{
	static const char *const names[] = {
		[AREA_UNKNOWN] = "unknown", [AREA_ANON] = "anon",	[AREA_HEAP] = "heap",
		[AREA_STACK] = "stack",	    [AREA_FILE] = "file",	[AREA_SHARED] = "shared",
		[AREA_ARENA] = "arena",	    [AREA_LIBRARY] = "library", [AREA_DEVICE] = "device",
	};

	return NAME(names, area);
}

const char *swap_what_name(unsigned int what)
{
	static const char *const names[SWAP_WHATS] = {
		[0] = "",
		[SWAP_RECLAIM_DIRECT] = "reclaim_direct",
		[SWAP_RECLAIM_MEMCG] = "reclaim_memcg",
		[SWAP_OUT_SELF] = "out_self",
		[SWAP_OUT_KSWAPD] = "out_kswapd",
		[SWAP_OUT_OTHER] = "out_other",
		[SWAP_OUT_TRACED] = "out_traced",
		[SWAP_OUT_SHARED] = "shared_out",
		[SWAP_IN_DEVICE] = "in_device",
		[SWAP_IN_ZSWAP] = "in_zswap",
		[SWAP_IN_ZERO] = "in_zero",
	};

	return NAME(names, what);
}

const char *drop_how_name(unsigned int how)
{
	static const char *const names[DROP_HOWS] = {
		[0] = "",
		[DROP_SELF] = "self",
		[DROP_KSWAPD] = "kswapd",
		[DROP_OTHER] = "other",
		[DROP_MADVISE] = "madvise",
		[DROP_FADVISE] = "fadvise",
		[DROP_ASKED] = "asked",
		[DROP_CUT] = "cut",
	};

	return NAME(names, how);
}

/* By the number in the request: include/uapi/linux/userfaultfd.h. */
const char *handler_request_name(unsigned int request)
{
	static const char *const names[ANSWER_REQUESTS + 1] = {
		"UFFDIO_REGISTER",     "UFFDIO_UNREGISTER",
		"UFFDIO_WAKE",	       "UFFDIO_COPY",
		"UFFDIO_ZEROPAGE",     "UFFDIO_MOVE",
		"UFFDIO_WRITEPROTECT", "UFFDIO_CONTINUE",
		"UFFDIO_POISON",       "",
	};

	return NAME(names, request);
}

const char *read_fn_name(unsigned int read_fn)
{
	static const char *const names[READ_FN_COUNT] = {
		[READ_FN_NONE] = "",
		[READ_FN_READ] = "read",
		[READ_FN_PREAD] = "pread64",
		[READ_FN_READV] = "readv",
		[READ_FN_PREADV] = "preadv",
		[READ_FN_PREADV2] = "preadv2",
		[READ_FN_IO_SUBMIT] = "io_submit",
		[READ_FN_IO_URING] = "io_uring",
	};

	return NAME(names, read_fn);
}
