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
