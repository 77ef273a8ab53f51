// SPDX-License-Identifier: GPL-2.0
#include "events/sampling_table.h"

#include <linux/types.h>
#include <math.h>

#include "bpf/wire/sampling.h"

void sampling_fill(uint32_t *log)
{
	int i;

	for (i = 0; i <= SAMPLING_LOG_STEPS; i++)
		log[i] = lround(log2(1 + (double)i / SAMPLING_LOG_STEPS) * (1 << SAMPLING_UNIT));
}
