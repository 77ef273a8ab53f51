// SPDX-License-Identifier: GPL-2.0
#include "budget/reads_settled.h"

#include "bpf/wire/syscalls.h"
#include "events/rates.h"
#include "memtoll.skel.h"
#include "probes/syscalls.h"
#include "probes/thread_iterator.h"

void settle_reads(struct memtoll_bpf *bpf)
{
	bpf->bss->reads_settle = 1;
	threads_iterate(bpf);
	bpf->bss->reads_settle = 0;
}

int rest_calls(struct memtoll_bpf *bpf, struct probes *probes, bool rest)
{
	if (!rest && probes_calls_rest(probes)) {
		syscalls_see(probes_syscalls(probes), false);
		settle_reads(bpf);
	}
	return probes_rest_calls(probes, rest);
}

bool has_read_between(struct memtoll_bpf *bpf, struct syscall_idle *idle, uint64_t now_ns,
		      struct memtoll_rates *rates)
{
	if (bpf->bss->calls_rest != CALLS_REST)
		return false;
	if (bpf->bss->calls_watched_ns != UINT64_MAX)
		return true;
	settle_reads(bpf);
	rates_read(bpf, rates);
	return syscall_idle_step(idle, now_ns, rates);
}
