// SPDX-License-Identifier: GPL-2.0
/* losses.bpf.c: counters: of losses, and of hits. */
#include "state/losses.bpf.h"
#include "state/rates.bpf.h"

struct losses_map losses SEC(".maps");

struct rates_map rates SEC(".maps");

int lose(__u32 what, __u64 count)
{
	__u64 *counter = bpf_map_lookup_elem(&losses, &what);

	if (counter)
		__sync_fetch_and_add(counter, count);
	return 0;
}
