// SPDX-License-Identifier: GPL-2.0
#include "session/rested.h"

#include <glib.h>
#include <stdint.h>

#include "bpf/wire/faults.h"
#include "ledger/ledger.h"
#include "memtoll.skel.h"
#include "targets/targets.h"

/* Where nothing is known they wait for what will be seen. */
static void settle(struct ledger *ledger, pid_t pid, uint64_t *pool, bool over)
{
	uint64_t faults = __atomic_exchange_n(pool, 0, __ATOMIC_ACQ_REL);

	if (!ledger_unspoken(ledger, pid, faults, over))
		__atomic_fetch_add(pool, faults, __ATOMIC_ACQ_REL);
}

void rested_settle(struct memtoll_bpf *bpf, struct targets *targets, struct ledger *ledger,
		   bool over)
{
	bool rest = !over && bpf->bss->faults_rest == FAULTS_REST, gone;
	uint32_t tgid;
	size_t i;

	if (bpf->bss->faults_rest == FAULTS_ALL_SEEN)
		return;
	for (i = 0; i < G_N_ELEMENTS(bpf->bss->rest_owners); i++) {
		tgid = __atomic_load_n(&bpf->bss->rest_owners[i], __ATOMIC_ACQUIRE);
		gone = tgid && targets_owner(targets, (pid_t)tgid) == OWNER_GONE;
		if (!tgid || (rest && !gone))
			continue;
		settle(ledger, (pid_t)tgid, (uint64_t *)&bpf->bss->rest_pools[i], over);
		if (gone && !bpf->bss->rest_pools[i])
			__atomic_store_n(&bpf->bss->rest_owners[i], 0, __ATOMIC_RELEASE);
	}
	settle(ledger, 0, (uint64_t *)&bpf->bss->rest_open, over);
}
