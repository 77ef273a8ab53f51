/* SPDX-License-Identifier: GPL-2.0 */
/*
 * direct_map.bpf.h: a word of the thread's own memory that is read again and again.
 *
 * bpf_probe_read_user() costs some 40 ns, of which the word itself is the least. The kernel maps
 * all memory a second time (the direct map): as long as the page-table entry is the one by which
 * the word was found, two loads are enough. The entry changes when the page has moved, has gone to
 * swap or was given back: then the helper reads the word.
 *
 * Part of page_state.bpf.c: libbpf's linker takes the kernel's cast from one object only.
 */
#ifndef MEMTOLL_DIRECT_MAP_BPF_H
#define MEMTOLL_DIRECT_MAP_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/config.h"
#include "wire/pages.h"
#include "state/fault_order.bpf.h"
#include "memory/pagetable.bpf.h"

/* What of an entry says where the page is. Accessed and dirty bits come and go meanwhile. */
#define SEEN_MASK (PTE_PFN_MASK | PTE_PRESENT | PTE_HUGE)

/* Find where the kernel has the word at `address`. Nowhere: the slot is 0. */
int seen_find(struct seen *seen, __u64 root, __u64 address)
{
	struct walked walked = {};
	__u64 inside;
	int end;

	if (!seen)
		return 0;
	seen->slot = 0;
	/* Without casts reading it so would be two helpers. */
	if (!cfg_casts || !root)
		return 0;
	end = walk(root, address, cfg_page_offset, cfg_page_levels, &walked);
	if ((end != WALK_ENTRY && end != WALK_HUGE) || !(walked.entry & PTE_PRESENT))
		return 0;
	inside = address & (MEMTOLL_PAGE_SIZE - 1);
	seen->entry = walked.entry & SEEN_MASK;
	seen->word_at = cfg_page_offset + walked_pfn(&walked, address) * MEMTOLL_PAGE_SIZE + inside;
	seen->slot = walked.at;
	return 0;
}

static __always_inline bool seen_is(const struct seen *seen, __u64 address, __u64 value)
{
	__u64 word;

	if (cfg_casts && seen->slot && (kernel_word(seen->slot) & SEEN_MASK) == seen->entry)
		return kernel_word(seen->word_at) == value;
	return !bpf_probe_read_user(&word, sizeof(word), (void *)address) && word == value;
}

/* Whether the interpreter is where it was when the place was noted. */
int seen_same_top(const struct sweep_place *place)
{
	const struct python_top *top;

	if (!place)
		return 0;
	top = &place->top;
	return seen_is(&place->frame_seen, top->frame_at, top->frame) &&
	       seen_is(&place->instruction_seen, top->instruction_at, top->instruction);
}

#endif /* MEMTOLL_DIRECT_MAP_BPF_H */
