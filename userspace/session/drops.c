// SPDX-License-Identifier: GPL-2.0
#include "session/drops.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "events/names.h"
#include "memtoll.skel.h"
#include "targets/targets.h"

uint64_t drops_stack(const struct memtoll_drop_key *key)
{
	return key->stack_id;
}

int drops_write(struct recording *recording, struct memtoll_bpf *bpf, struct targets *targets,
		const struct memtoll_drop_key *key, uint64_t pages)
{
	struct memtoll_dropper dropper = {};

	if (key->tgid && !targets_find(targets, key->tgid))
		bpf_map_lookup_elem(bpf_map__fd(bpf->maps.droppers), &key->tgid, &dropper);
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
