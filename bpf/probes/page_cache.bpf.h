/* SPDX-License-Identifier: GPL-2.0 */
/* page_cache.bpf.h: pages that came into the page cache and are waiting to be sent. */
#ifndef MEMTOLL_PAGE_CACHE_PROBES_BPF_H
#define MEMTOLL_PAGE_CACHE_PROBES_BPF_H

#include "vmlinux.h"

#include "state/thread.bpf.h"

int fills_emit(struct thread *thread);

#endif /* MEMTOLL_PAGE_CACHE_PROBES_BPF_H */
