// SPDX-License-Identifier: GPL-2.0
#include "budget/thinned.h"

#include <stddef.h>

void thinned_add(struct thinned *thinned, const struct memtoll_rates *before,
		 const struct memtoll_rates *now)
{
	thinned->faults += now->faults - before->faults;
	thinned->passed_faults += now->passed_faults - before->passed_faults + now->rested_faults -
				  before->rested_faults;
	thinned->rested_faults += now->rested_faults - before->rested_faults;
	thinned->reads += now->reads - before->reads;
	thinned->passed_reads +=
		now->passed_reads - before->passed_reads + now->rested_reads - before->rested_reads;
	thinned->rested_reads += now->rested_reads - before->rested_reads;
	thinned->walked_calls += now->walked_calls - before->walked_calls;
	thinned->held_calls += now->held_calls - before->held_calls;
	thinned->drawn_maps += now->drawn_maps - before->drawn_maps;
	thinned->passed_maps += now->passed_maps - before->passed_maps;
}

int thinned_write(const struct thinned *thinned, struct recording *recording)
{
	const struct {
		const char *what;
		uint64_t seen;
		uint64_t passed;
	} rows[] = {
		{ "fault", thinned->faults, thinned->passed_faults },
		{ "read", thinned->reads, thinned->passed_reads },
		{ "map", thinned->walked_calls, thinned->held_calls },
		{ "small_map", thinned->drawn_maps, thinned->passed_maps },
	};
	int err = 0;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]) && !err; i++)
		if (rows[i].passed)
			err = recording_thinned(recording, rows[i].what, rows[i].seen,
						rows[i].passed);
	return err;
}
