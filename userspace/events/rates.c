// SPDX-License-Identifier: GPL-2.0
#include "events/rates.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <glib.h>
#include <string.h>

#include "memtoll.skel.h"

void rates_read(struct memtoll_bpf *bpf, struct memtoll_rates *rates)
{
	int cpus = libbpf_num_possible_cpus(), cpu;
	g_autofree struct memtoll_rates *counted = g_new0(struct memtoll_rates, cpus);
	uint64_t *sum = (uint64_t *)rates;
	uint32_t zero = 0;
	size_t i;

	memset(rates, 0, sizeof(*rates));
	if (bpf_map_lookup_elem(bpf_map__fd(bpf->maps.rates), &zero, counted))
		return;
	for (cpu = 0; cpu < cpus; cpu++)
		for (i = 0; i < sizeof(*rates) / sizeof(*sum); i++)
			sum[i] += ((uint64_t *)&counted[cpu])[i];
}

static uint64_t part_way(uint64_t from, uint64_t to, double part)
{
	return from + part * (to - from);
}

void rates_between(const struct memtoll_rates *first, const struct memtoll_rates *last, double part,
		   struct memtoll_rates *at)
{
	*at = *last;
	at->faults = part_way(first->faults, last->faults, part);
	at->passed_faults = part_way(first->passed_faults, last->passed_faults, part);
	at->maps = part_way(first->maps, last->maps, part);
	at->passed_maps = part_way(first->passed_maps, last->passed_maps, part);
	at->reads = part_way(first->reads, last->reads, part);
	at->passed_reads = part_way(first->passed_reads, last->passed_reads, part);
	at->plain_reads = part_way(first->plain_reads, last->plain_reads, part);
	memcpy(at->idle, first->idle, sizeof(at->idle));
	at->idle_gaps = first->idle_gaps;
}
