// SPDX-License-Identifier: GPL-2.0
#include "budget/watched_slice.h"

#include "events/names.h"

struct watched_events watched_events_between(const struct memtoll_rates *before,
					     const struct memtoll_rates *now)
{
	uint64_t plain = now->plain_reads - before->plain_reads;
	struct watched_events events = {
		.count = {
			[EVENT_FAULTS] = now->faults - before->faults + now->passed_faults -
					 before->passed_faults, /* none where they rest */
			[EVENT_MAPS] = now->maps - before->maps,
			[EVENT_READS] = now->reads - before->reads - plain + now->passed_reads -
					before->passed_reads,
			[EVENT_PLAIN_READS] = plain,
		},
	};
	unsigned int fn;

	for (fn = FN_MALLOC; fn < FN_COUNT; fn++)
		events.count[fn] = now->calls[fn] - before->calls[fn];
	return events;
}

void watched_events_add(struct watched_events *sum, const struct watched_events *events)
{
	unsigned int event;

	for (event = 0; event < EVENTS; event++)
		sum->count[event] += events->count[event];
}

static const char *event_name(unsigned int event)
{
	static const char *const names[] = { "fault", "map", "read", "plain_read" };

	return event < FN_COUNT ? fn_name(event) : names[event - EVENT_FAULTS];
}

/* Whether all of these were counted in the slice. */
static bool event_is_whole(const struct watched_slice *slice, unsigned int event)
{
	if (event < FN_COUNT)
		return event >= FN_MALLOC && !slice->groups[probe_group_of(event)].missed;
	if ((event == EVENT_READS || event == EVENT_PLAIN_READS) && slice->thinned.rested_reads)
		return false;
	if (event == EVENT_PLAIN_READS)
		return !slice->groups[GROUP_READ].missed;
	if (event == EVENT_FAULTS)
		return !slice->thinned.rested_faults;
	return !slice->calls.missed;
}

static int write_events(const struct watched_slice *slice, const char *call,
			const struct watched *watched, struct recording *recording)
{
	const struct watched_events *all = &slice->events;
	unsigned int event;
	int err = 0;

	for (event = 0; event < EVENTS && !err; event++)
		if (all->count[event] && event_is_whole(slice, event))
			err = recording_watch_event(recording, call, event_name(event),
						    watched->events.count[event],
						    all->count[event]);
	return err;
}

static int write_missed(const char *call, const struct watched *watched,
			struct recording *recording)
{
	if (!watched->missed)
		return 0;
	return recording_watch(recording, call, watched->windows, watched->ns, watched->cpu_ns);
}

static int write_function(const struct watched_slice *slice, unsigned int fn,
			  struct recording *recording)
{
	const struct watched *watched = &slice->groups[probe_group_of(fn)];
	int err = write_missed(fn_name(fn), watched, recording);

	if (!err && watched->missed)
		err = write_events(slice, fn_name(fn), watched, recording);
	if (!err && watched->missed && slice->idle_fns & 1U << fn)
		err = recording_watch_passed(recording, fn_name(fn), slice->idle_calls[fn],
					     slice->idle_cpu_ns);
	return err;
}

unsigned int watched_slice_missed(const struct watched_slice *slice)
{
	unsigned int group, missed = 0;

	for (group = 0; group < PROBE_GROUPS; group++)
		missed |= (unsigned int)slice->groups[group].missed << group;
	return missed;
}

int watched_slice_write(const struct watched_slice *slice, struct recording *recording)
{
	int err = thinned_write(&slice->thinned, recording);
	unsigned int fn;

	if (slice->gaps.count && !err)
		err = recording_hit_gap(recording, "call", &slice->gaps);
	if (slice->idle_gaps.count && !err)
		err = recording_hit_gap(recording, "idle", &slice->idle_gaps);
	for (fn = FN_MALLOC; fn < FN_COUNT && !err; fn++)
		err = write_function(slice, fn, recording);
	if (!err)
		err = write_missed("read_other", &slice->groups[GROUP_READ], recording);
	return err ? err : write_missed("syscall", &slice->calls, recording);
}
