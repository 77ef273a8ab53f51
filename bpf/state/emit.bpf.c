// SPDX-License-Identifier: GPL-2.0
/* emit.bpf.c: when a record wakes userspace. */
#include "state/emit.bpf.h"

struct events_map events SEC(".maps");

volatile __u64 woken_position = 0;
volatile __u64 woken_until_ns = 0; /* so far the wake-ups of wake_is_due() are spent */

#define WAKE_NS 5000000ULL
#define WAKE_BURST 64

int wake_is_due(__u64 now)
{
	__u64 until_ns = woken_until_ns, spent_ns = until_ns < now ? now : until_ns;

	if (spent_ns - now >= WAKE_BURST * WAKE_NS)
		return 0;
	/* Of two CPUs here at once both wake. */
	woken_until_ns = spent_ns + WAKE_NS;
	return 1;
}

/*
 * A wake-up costs the target 1 to 6 us: userspace polls, and is woken only by much data, once for
 * so much: who was woken is on the way.
 */
#define WAKEUP_BYTES (256 * 1024)

int much_is_waiting(void)
{
	__u64 position;

	if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < WAKEUP_BYTES)
		return 0;
	position = bpf_ringbuf_query(&events, BPF_RB_PROD_POS);
	if (position - woken_position < WAKEUP_BYTES)
		return 0;
	/* Of two CPUs here at once both wake: it is rare. */
	woken_position = position;
	return 1;
}
