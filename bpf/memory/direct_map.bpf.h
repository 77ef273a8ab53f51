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

/* The bits of an entry that say where the page is, without the accessed and dirty bits. */
#define DIRECT_ENTRY_MASK (PTE_PFN_MASK | PTE_PRESENT | PTE_HUGE)

/* Find where the kernel has the word at `address`. Nowhere: the slot is 0. */
int direct_word_find(struct direct_word *word, __u64 root, __u64 address)
{
	struct walked walked = {};
	__u64 inside;
	int end;

	if (!word)
		return 0;
	word->slot = 0;
	/* Without casts reading it so would be two helpers. */
	if (!cfg_casts || !root)
		return 0;
	end = walk(root, address, cfg_page_offset, cfg_page_levels, &walked);
	if ((end != WALK_ENTRY && end != WALK_HUGE) || !(walked.entry & PTE_PRESENT))
		return 0;
	inside = address & (MEMTOLL_PAGE_SIZE - 1);
	word->entry = walked.entry & DIRECT_ENTRY_MASK;
	word->word_at = cfg_page_offset + walked_pfn(&walked, address) * MEMTOLL_PAGE_SIZE + inside;
	word->slot = walked.at;
	return 0;
}

static __always_inline bool direct_word_is(const struct direct_word *word, __u64 address,
					   __u64 value)
{
	__u64 found;

	if (cfg_casts && word->slot && (kernel_word(word->slot) & DIRECT_ENTRY_MASK) == word->entry)
		return kernel_word(word->word_at) == value;
	return !bpf_probe_read_user(&found, sizeof(found), (void *)address) && found == value;
}

/* Whether the interpreter is where it was when the place was noted. */
int python_top_is_same(const struct sweep_place *place)
{
	const struct python_top *top;

	if (!place)
		return 0;
	top = &place->top;
	return direct_word_is(&place->frame_word, top->frame_at, top->frame) &&
	       direct_word_is(&place->instruction_word, top->instruction_at, top->instruction);
}

#endif /* MEMTOLL_DIRECT_MAP_BPF_H */
