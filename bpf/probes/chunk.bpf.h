/* SPDX-License-Identifier: GPL-2.0 */
/*
 * chunk.bpf.h: what glibc's header of a block says of the call that returned it. Included by
 * alloc.bpf.c alone.
 */
#ifndef MEMTOLL_CHUNK_BPF_H
#define MEMTOLL_CHUNK_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/functions.h"
#include "wire/records.h"
#include "state/losses.bpf.h"
#include "state/open_calls.bpf.h"
#include "memory/page_state.bpf.h"
#include "probes/request.bpf.h"

/* malloc_chunk of glibc: the word before the block holds size and these bits (malloc.c). */
#define CHUNK_IS_MMAPPED 0x2ULL
#define CHUNK_NON_MAIN_ARENA 0x4ULL
#define CHUNK_FLAGS 0x7ULL
#define CHUNK_SIZE_WORD 8ULL

/*
 * calloc memsets a block unless it has a mapping of its own; of a block cut from a top that grew in
 * this very call it clears only the old part, because the new one comes zeroed from the kernel
 * (__libc_calloc, oldtopsize). The old part ends at the break as it was before the call; in an
 * arena, where mprotect has just extended the heap. What begins behind the old break was not cut
 * from the old top, and all of it is cleared: the first block of all, one behind memory that another
 * took by sbrk(), and, where something is in the way of the break, those of the mappings that serve
 * as the heap then (sysmalloc_mmap_fallback). The historic maximum of the heap plays no part on
 * Linux: after a trim the pages obtained anew are left alone (seen on 2.36: 2 x 10 MiB live, trimmed
 * each round, 33 faults a call and not 2560).
 */
static __always_inline void read_chunk(const struct open_call *call, __u32 fn, __u64 addr,
				       struct call_end *ended)
{
	__u64 header, end, start = addr - CHUNK_HEADER;

	if (bpf_probe_read_user(&header, sizeof(header), (void *)(addr - CHUNK_SIZE_WORD))) {
		lose(LOST_HEADER_UNREADABLE, 1);
		return;
	}
	ended->flags = BLOCK_GLIBC;
	if (header & CHUNK_IS_MMAPPED) {
		ended->flags |= BLOCK_MMAPPED;
		return;
	}
	end = start + (header & ~CHUNK_FLAGS);
	if (header & CHUNK_NON_MAIN_ARENA) {
		ended->flags |= BLOCK_ARENA;
		if (call->fresh_from && call->fresh_from > addr && call->fresh_from < end)
			end = call->fresh_from;
	} else if (start >= current_heap() && start < call->heap_top && end > call->heap_top) {
		end = call->heap_top;
	}
	if (fn == FN_CALLOC && end + CHUNK_SIZE_WORD > addr)
		ended->cleared = end + CHUNK_SIZE_WORD - addr;
}

#endif /* MEMTOLL_CHUNK_BPF_H */
