// SPDX-License-Identifier: GPL-2.0
/* budget_facts.c: what was watched only in part, and how much of it. */
#include "recording/recording.h"

#include "recording/recording_store.h"

int recording_watch(struct recording *recording, const char *call, uint64_t windows,
		    uint64_t watched_ns, uint64_t watched_cpu_ns)
{
	return STORE(recording, STMT_WATCH, signed_int(recording->slice), text(call),
		     count(windows), count(watched_ns), count(watched_cpu_ns));
}

int recording_watch_process(struct recording *recording, const char *call, pid_t pid,
			    uint64_t windows, uint64_t cpu_ns, uint64_t watched_cpu_ns)
{
	return STORE(recording, STMT_WATCH_PROCESS, signed_int(recording->slice), text(call),
		     signed_int(pid), count(windows), count(cpu_ns), count(watched_cpu_ns));
}

int recording_watch_passed(struct recording *recording, const char *call, uint64_t calls,
			   uint64_t cpu_ns)
{
	return STORE(recording, STMT_WATCH_PASSED, signed_int(recording->slice), text(call),
		     count(calls), count(cpu_ns));
}

int recording_watch_event(struct recording *recording, const char *call, const char *event,
			  uint64_t watched, uint64_t all)
{
	return STORE(recording, STMT_WATCH_EVENT, signed_int(recording->slice), text(call),
		     text(event), count(watched), count(all));
}

int recording_thinned(struct recording *recording, const char *what, uint64_t seen, uint64_t passed)
{
	return STORE(recording, STMT_THINNED, signed_int(recording->slice), text(what), count(seen),
		     count(passed));
}

int recording_hit_gap(struct recording *recording, const char *hit, const struct memtoll_gaps *gaps)
{
	return STORE(recording, STMT_HIT_GAP, signed_int(recording->slice), text(hit),
		     count(gaps->count), count(gaps->low_ns));
}
