// SPDX-License-Identifier: GPL-2.0
#include "budget/syscall_idle.h"

#define MS 1000000ULL
/* Nothing worth telling for so long: they go. */
#define QUIET_NS (1000 * MS)
/* So much in so long is worth telling: a call, or as many faults. */
#define NEWS 4
/*
 * Memory that is faulted in was mapped by somebody, or given back by a madvise that nothing tells of (6.17
 * and later). A thousand faults in a second are two thousandths of it.
 */
#define FAULTS_OF_A_CALL 256
/* Once back they stay at least so long: calls that come every few seconds are not to be missed. */
#define STAY_NS (10000 * MS)

static uint64_t news(const struct memtoll_rates *before, const struct memtoll_rates *now)
{
	return now->maps - before->maps + now->reads - before->reads +
	       now->unwatched_maps - before->unwatched_maps +
	       now->unwatched_reads - before->unwatched_reads +
	       (now->faults - before->faults) / FAULTS_OF_A_CALL;
}

static void look_from(struct quiet *quiet, uint64_t now_ns, const struct memtoll_rates *rates)
{
	quiet->since_ns = now_ns;
	quiet->since = *rates;
}

void quiet_begin(struct quiet *quiet, uint64_t now_ns, const struct memtoll_rates *rates)
{
	quiet->watched = true;
	quiet->stays_ns = 0;
	look_from(quiet, now_ns, rates);
}

bool quiet_step(struct quiet *quiet, uint64_t now_ns, const struct memtoll_rates *rates)
{
	bool is_news = news(&quiet->since, rates) >= NEWS;
	bool is_over = now_ns - quiet->since_ns >= QUIET_NS;

	if (!is_news && !is_over)
		return quiet->watched;
	if (is_news && !quiet->watched)
		quiet->stays_ns = now_ns + STAY_NS;
	quiet->watched = is_news || now_ns < quiet->stays_ns;
	look_from(quiet, now_ns, rates);
	return quiet->watched;
}
