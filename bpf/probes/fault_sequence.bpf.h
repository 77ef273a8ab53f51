/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fault_sequence.bpf.h: faults that follow one another in order, at the least that they can cost.
 *
 * Most faults of a program that fills its memory differ from the one before by the page alone: the
 * same instruction writes to the next one, which is as empty, in the same area, and the thread has
 * done nothing else that memtoll sees. Such a fault is known by the few words of struct order and
 * its page-table entry; it is counted there, and nothing else is looked at or written. When
 * the open fault is settled, those that have followed it are added to its run.
 */
#ifndef MEMTOLL_FAULT_SEQUENCE_BPF_H
#define MEMTOLL_FAULT_SEQUENCE_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/pages.h"
#include "state/settings.bpf.h"
#include "state/thread.bpf.h"
#include "state/windows.bpf.h"
#include "memory/page_state.bpf.h"
#include "memory/pagetable.bpf.h"

/*
 * Reading the clock is a sixth of what a fault costs that continues in order. Such a fault reuses
 * the timestamp of the one before, up to this many times: some tens of microseconds.
 */
#define STAMP_FAULTS 16

/* Nothing follows the open fault, which is over or whose end is needed. */
static __always_inline void order_end(struct thread *thread)
{
	thread->order.left = 0;
	thread->order.followed = 0;
}

/* The open fault has begun, by a write in user mode to a page of which there was none. */
static __always_inline void order_begin(struct thread *thread)
{
	const struct open_fault *fault = &thread->fault;
	struct order *order = &thread->order;
	__u64 end = (fault->address | (TABLE_PAGES * MEMTOLL_PAGE_SIZE - 1)) + 1, pages, stamps;

	if (end > thread->area.end)
		end = thread->area.end;
	pages = (end - fault->address) / MEMTOLL_PAGE_SIZE - 1;
	stamps = STAMP_FAULTS - 1 - thread->sweep.faults % STAMP_FAULTS;
	order->next = fault->address + MEMTOLL_PAGE_SIZE;
	order->ip = fault->ip;
	order->table = fault->walked.table;
	order->table_at = fault->walked.table_at;
	order->area_generation = thread->area.generation;
	order->block_generation = fault->block_generation;
	order->followed = 0;
	order->left = pages < stamps ? pages : stamps;
}

/*
 * Count a fault by a write in user mode, if it follows in order. It has the owner and the timestamp
 * of the last one: no mapping and no block has changed since, and the end of this one, which is
 * minor, is not observed.
 */
static __always_inline bool order_follows(struct thread *thread, __u64 address, __u64 ip)
{
	struct order *order = &thread->order;
	__u64 page = address & ~(MEMTOLL_PAGE_SIZE - 1);

	if (!order->left || page != order->next || ip != order->ip || thread->in_fn ||
	    ends_are_seen() || thread->drained != drain_epoch ||
	    order->area_generation != area_generation ||
	    order->block_generation != block_generation ||
	    !slot_is_empty(order->table, order->table_at, address))
		return false;
	order->next = page + MEMTOLL_PAGE_SIZE;
	order->followed++;
	order->left--;
	return true;
}

#endif /* MEMTOLL_FAULT_SEQUENCE_BPF_H */
