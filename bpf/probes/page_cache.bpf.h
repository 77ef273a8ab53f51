/* SPDX-License-Identifier: GPL-2.0 */
/* page_cache.bpf.h: pages that came into the page cache and are waiting to be sent. */
#ifndef MEMTOLL_PAGE_CACHE_PROBES_BPF_H
#define MEMTOLL_PAGE_CACHE_PROBES_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "state/thread.bpf.h"

extern volatile __u32 files_are_filled; /* whether the target has brought in pages of files */

int file_is_filled(__u64 inode, __u32 dev);
int fills_emit(struct thread *thread);

struct folio___before_6_4 {
	unsigned char _folio_order;
};

/* Pages of a folio, by its own account. */
static __always_inline __u64 pages_of_folio(struct folio *folio)
{
	struct folio___before_6_4 *old = (void *)folio;
	unsigned char order = 0;
	__u64 flags = 0;

	/* Of a single page the next one's fields would be read. */
	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	if (!(flags & 1ULL << bpf_core_enum_value(enum pageflags, PG_head)))
		return 1;
	if (bpf_core_field_exists(old->_folio_order))
		bpf_core_read(&order, sizeof(order), &old->_folio_order);
	else if (bpf_core_field_exists(folio->_flags_1))
		bpf_core_read(&order, sizeof(order), &folio->_flags_1); /* its lowest byte */
	return 1ULL << (order & 31);
}

#endif /* MEMTOLL_PAGE_CACHE_PROBES_BPF_H */
