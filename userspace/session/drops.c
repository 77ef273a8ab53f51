// SPDX-License-Identifier: GPL-2.0
#include "session/drops.h"

#include <bpf/bpf.h>

#include "events/names.h"

int drops_write(struct recording *recording, int names, bool traced,
		const struct memtoll_drop_key *key, uint64_t pages)
{
	struct memtoll_dropper dropper = {};

	if (key->tgid && !traced)
		bpf_map_lookup_elem(names, &key->tgid, &dropper);
	dropper.comm[sizeof(dropper.comm) - 1] = '\0';
	dropper.group[sizeof(dropper.group) - 1] = '\0';
	return recording_page_drop(recording,
				   &(struct page_drop_fact){
					   .pid = key->tgid,
					   .what = key->what == DROP_SWAP ? "swap" : "file",
					   .how = drop_how_name(key->how),
					   .stack_id = key->stack_id,
					   .comm = dropper.comm,
					   .memory_cgroup = dropper.group,
					   .pages = pages,
				   });
}
