/* SPDX-License-Identifier: GPL-2.0 */
/* thread_iterator.h: has a program look at every thread that was met, whatever it does. */
#ifndef MEMTOLL_THREAD_ITERATOR_H
#define MEMTOLL_THREAD_ITERATOR_H

struct memtoll_bpf;

/* Which it does by the settings (bpf/probes/process.bpf.c, drain_threads). 0 or -errno. */
int threads_iterate(struct memtoll_bpf *bpf);

#endif /* MEMTOLL_THREAD_ITERATOR_H */
