/* SPDX-License-Identifier: GPL-2.0 */
/*
 * latency.bpf.h: how long calls of the allocator take, in buckets, and the records of those that
 * take far longer than the rest. Included by alloc.bpf.c alone.
 *
 * A call is an outlier where it takes outlier_floor_ns and OUTLIER_FACTOR times the running median
 * of its thread's calls of that function. Userspace moves the floor by how many there are.
 */
#ifndef MEMTOLL_LATENCY_BPF_H
#define MEMTOLL_LATENCY_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/records.h"
#include "wire/sums.h"
#include "state/buckets.bpf.h"
#include "state/emit.bpf.h"
#include "state/losses.bpf.h"
#include "state/numbers.bpf.h"
#include "state/settings.bpf.h"
#include "state/thread.bpf.h"

#define OUTLIER_FACTOR 64
/* When there is no more room, still calls of this many times the floor, up to a second limit. */
#define OUTLIER_LARGE 16
#define OUTLIER_RESERVE 64

/*
 * The median moves towards each call by a fixed part of itself, and so rests where as many calls
 * are above as below (Robbins and Monro, 1951). The first calls move it faster.
 */
#define PACE_YOUNG 32
#define PACE_YOUNG_SHIFT 1
#define PACE_SHIFT 4
#define PACE_FIRST_NS 1024
#define PACE_MAX_NS (1ULL << 30)

/* Wall time of a call without the probes' calibrated part. */
static __always_inline __u64 latency_net(const struct open_call *call, __u32 fn, __u64 now)
{
	__u64 ns = now - call->start.ns, price = call->probe_ns;

	if (fn < FN_COUNT)
		price += price_inside_ns[fn];
	price += (__u64)call->faults * price_fault_ns;
	return sub_sat(ns, price);
}

static __always_inline bool is_outlier(struct thread *thread, __u32 fn, __u64 net_ns)
{
	__u32 ns = net_ns < PACE_MAX_NS ? net_ns : PACE_MAX_NS, step;
	struct pace *pace;
	bool outlier;

	if (fn >= FN_COUNT)
		return false;
	pace = &thread->paces[fn];
	outlier = net_ns >= outlier_floor_ns && net_ns >= (__u64)pace->median_ns * OUTLIER_FACTOR;
	if (pace->calls < PACE_YOUNG) {
		if (!pace->calls++)
			pace->median_ns = PACE_FIRST_NS;
		step = (pace->median_ns >> PACE_YOUNG_SHIFT) + 1;
	} else {
		step = (pace->median_ns >> PACE_SHIFT) + 1;
	}
	if (ns > pace->median_ns)
		pace->median_ns += step;
	else
		pace->median_ns -= step < pace->median_ns ? step : pace->median_ns;
	return outlier;
}

static __always_inline void latency_add(struct memtoll_call *site, const struct open_call *call,
					const struct call_end *end)
{
	__u32 bucket = latency_bucket(end->net_ns);

	if (bucket < LATENCY_BUCKETS)
		__sync_fetch_and_add(&site->latency[bucket], 1);
	if (end->net_ns >= LATENCY_SLOW_NS || call->faults || call->map_calls) {
		__sync_fetch_and_add(&site->sum.slow_calls, 1);
		__sync_fetch_and_add(&site->sum.slow_cpu_ns, end->cpu_ns);
	}
	if (end->off_ns)
		__sync_fetch_and_add(&site->sum.off_ns, end->off_ns);
	if (call->lock_waits) {
		__sync_fetch_and_add(&site->sum.lock_waits, call->lock_waits);
		__sync_fetch_and_add(&site->sum.lock_ns, call->lock_ns);
	} else if (end->slept && !call->faults && !call->map_calls) {
		/* It slept for nothing else that there is; futex calls are not watched, or rest. */
		__sync_fetch_and_add(&site->sum.lock_waits, 1);
		__sync_fetch_and_add(&site->sum.lock_ns, end->off_ns);
		if (!lock_suspected)
			lock_suspected = 1;
	}
}

/*
 * Whether there is still room for one more in this slice. Calls that were merely preempted are due
 * to the machine, not to the allocator, and on a busy one are many: they have room of their own.
 */
static __always_inline bool outlier_wanted(const struct call_end *end)
{
	__s64 limit = end->net_ns / OUTLIER_LARGE >= outlier_floor_ns ? -OUTLIER_RESERVE : 0;

	if (!end->slept && sub_sat(end->net_ns, end->off_ns) < outlier_floor_ns) {
		if (preempted_left > 0) {
			__sync_fetch_and_add(&preempted_left, -1);
			return true;
		}
		lose(LOST_OUTLIERS_PREEMPTED, 1);
		return false;
	}
	if (outliers_left > limit) {
		__sync_fetch_and_add(&outliers_left, -1);
		return true;
	}
	lose(LOST_OUTLIERS, 1);
	return false;
}

static __always_inline void outlier_inside(struct memtoll_outlier *event,
					   const struct open_call *call)
{
	const struct call_inside *inside = &call->inside;
	int i;

	for (i = 0; i < FAULT_KINDS; i++) {
		event->faults[i] = call->faults ? inside->faults[i] : 0;
		event->timed[i] = call->faults ? inside->timed[i] : 0;
		event->fault_ns[i] = call->faults ? inside->fault_ns[i] : 0;
	}
	for (i = 0; i < MAP_FN_IN_CALLS; i++)
		event->map_calls[i] = call->map_calls ? inside->map_calls[i] : 0;
	event->map_ns = call->map_calls ? inside->map_ns : 0;
}

/* Of the call that the thread has ended. Seldom: a function that the verifier looks at once. */
__noinline int outlier_emit(struct thread *thread, __u64 stack_id)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct memtoll_outlier *event;
	const struct open_call *call;
	const struct call_end *end;
	__u32 fn;

	if (!thread)
		return 0;
	call = &thread->call;
	end = &thread->ended;
	fn = thread->in_fn;
	if (!outlier_wanted(end))
		return 0;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		lose(LOST_RING_OUTLIER, 1);
		return 0;
	}
	event->kind = EVENT_OUTLIER;
	event->tgid = task->tgid;
	event->tid = task->pid;
	event->fn = fn;
	event->flags = end->flags | (call->glibc ? BLOCK_GLIBC : 0);
	event->size = call->size;
	event->start_ns = call->start.ns;
	event->wall_ns = end->net_ns;
	event->cpu_ns = sub_sat(end->net_ns, end->off_ns);
	event->median_ns = fn < FN_COUNT ? thread->paces[fn].median_ns : 0;
	event->frees = thread->frees;
	event->cleared_bytes = end->cleared;
	event->lock_ns = call->lock_ns;
	event->reclaim_ns = call->reclaim_ns;
	event->stack_id = stack_id;
	event->lock_waits = call->lock_waits;
	event->voluntary = task->nvcsw - call->start.voluntary;
	event->involuntary = task->nivcsw - call->start.involuntary;
	event->unused = 0;
	outlier_inside(event, call);
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif /* MEMTOLL_LATENCY_BPF_H */
