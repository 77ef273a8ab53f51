// SPDX-License-Identifier: GPL-2.0
#include "budget/syscall_idle.h"

#define MS 1000000ULL
/* No news for so long: they are detached. */
#define IDLE_NS (1000 * MS)
/* So many calls in that time are news, or as many faults. */
#define NEWS 4
/*
 * Memory that is faulted in was mapped by somebody, or released by a madvise that no tracepoint
 * reports (6.17 and later). A thousand faults in a second are two thousandths of it.
 */
#define FAULTS_OF_A_CALL 256
/* Once back they stay at least so long: calls that come every few seconds are not to be missed. */
#define STAY_NS (10000 * MS)

static uint64_t news(const struct memtoll_rates *before, const struct memtoll_rates *now)
{
	return now->maps - before->maps + now->reads - before->reads + now->rested_reads -
	       before->rested_reads + now->unwatched_maps - before->unwatched_maps +
	       now->unwatched_reads - before->unwatched_reads +
	       (now->faults - before->faults) / FAULTS_OF_A_CALL;
}

static void look_from(struct syscall_idle *idle, uint64_t now_ns, const struct memtoll_rates *rates)
{
	idle->since_ns = now_ns;
	idle->since = *rates;
}

void syscall_idle_begin(struct syscall_idle *idle, uint64_t now_ns,
			const struct memtoll_rates *rates)
{
	idle->watched = true;
	idle->stays_ns = 0;
	look_from(idle, now_ns, rates);
}

bool syscall_idle_step(struct syscall_idle *idle, uint64_t now_ns,
		       const struct memtoll_rates *rates)
{
	bool is_news = news(&idle->since, rates) >= NEWS;
	bool is_over = now_ns - idle->since_ns >= IDLE_NS;

	if (!is_news && !is_over)
		return idle->watched;
	if (is_news && !idle->watched)
		idle->stays_ns = now_ns + STAY_NS;
	idle->watched = is_news || now_ns < idle->stays_ns;
	look_from(idle, now_ns, rates);
	return idle->watched;
}
