// SPDX-License-Identifier: GPL-2.0
#include "watch.h"

#include <glib.h>
#include <string.h>
#include <time.h>

#include "attach.h"
#include "governor.h"
#include "memtoll.skel.h"
#include "names.h"
#include "rates.h"

/*
 * What the target does besides, which tells how far it came in a window, whatever its probes cost:
 * calls of each function by their number, and these.
 */
enum event {
	EVENT_FAULTS = FN_COUNT,
	EVENT_MAPS,
	EVENT_READS,		/* of files, by other than read(2) */
	EVENT_PLAIN_READS,	/* of files by read(2) */
	EVENTS,
};

struct events {
	uint64_t count[EVENTS];
};

/* A group of probes in one slice. */
struct watched {
	uint64_t windows;
	uint64_t ns;
	uint64_t cpu_ns;	/* of the target meanwhile */
	struct events events;	/* meanwhile */
	bool missed;		/* not all of the slice */
};

/* What is told of a slice. */
struct watched_slice {
	struct watched groups[PROBE_GROUPS];
	uint64_t passed[FN_COUNT];	/* calls counted after windows, and no more than that */
	uint64_t passed_cpu_ns;		/* of the target meanwhile */
	unsigned int passed_fns;
	struct events events;	/* in all of it */
	struct memtoll_gaps gaps;
	struct memtoll_gaps idle_gaps;
};

struct watch {
	struct watch_config config;
	struct governor *governor;
	unsigned int open;
	unsigned int attached;
	bool missed;
	uint64_t accounted_ns;		/* of the last change */
	uint64_t accounted_cpu_ns;
	struct memtoll_rates accounted_rates;
	struct memtoll_rates first_rates;	/* when it began */
	double fault_begin_ns;			/* as calibrated */
	struct governor_reading closed;		/* when the last window was */
	struct watched_slice slice;
	struct watched_slice ended;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

struct watch *watch_new(const struct watch_config *config, const struct calibration_result *prices)
{
	struct watch *watch = g_new0(struct watch, 1);
	int group;

	watch->config = *config;
	watch->fault_begin_ns = prices->fault_begin_ns;
	watch->open = watch->attached = GROUPS_ALL;
	if (config->limit > 0)
		watch->governor = governor_new(config->limit, config->command, prices,
					       probes_may_leave_reads(config->probes));
	for (group = 0; group < PROBE_GROUPS; group++)
		watch->slice.groups[group].windows = 1;
	return watch;
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	governor_free(watch->governor);
	g_free(watch);
}

bool watch_has_missed(const struct watch *watch)
{
	return watch->missed;
}

static struct events events_between(const struct memtoll_rates *before,
				    const struct memtoll_rates *now)
{
	uint64_t plain = now->plain_reads - before->plain_reads;
	struct events events = {
		.count = {
			[EVENT_FAULTS] = now->faults - before->faults,
			[EVENT_MAPS] = now->maps - before->maps,
			[EVENT_READS] = now->reads - before->reads - plain,
			[EVENT_PLAIN_READS] = plain,
		},
	};
	unsigned int fn;

	for (fn = FN_MALLOC; fn < FN_COUNT; fn++)
		events.count[fn] = now->calls[fn] - before->calls[fn];
	return events;
}

static void add_events(struct events *sum, const struct events *events)
{
	unsigned int event;

	for (event = 0; event < EVENTS; event++)
		sum->count[event] += events->count[event];
}

static void add_gaps(struct memtoll_gaps *sum, const struct memtoll_gaps *before,
		     const struct memtoll_gaps *now)
{
	sum->count += now->count - before->count;
	sum->low_ns += now->low_ns - before->low_ns;
}

static void account(struct watch *watch, const struct governor_reading *reading)
{
	struct events events = events_between(&watch->accounted_rates, &reading->rates);
	struct watched *watched;
	int group;

	for (group = 0; group < PROBE_GROUPS; group++) {
		watched = &watch->slice.groups[group];
		if (watch->open & 1U << group) {
			watched->ns += reading->now_ns - watch->accounted_ns;
			watched->cpu_ns += reading->cpu_ns - watch->accounted_cpu_ns;
			add_events(&watched->events, &events);
		} else {
			watched->missed = true;
		}
	}
	add_events(&watch->slice.events, &events);
	add_gaps(&watch->slice.gaps, &watch->accounted_rates.gaps, &reading->rates.gaps);
	watch->accounted_ns = reading->now_ns;
	watch->accounted_cpu_ns = reading->cpu_ns;
	watch->accounted_rates = reading->rates;
}

static void take_reading(struct watch *watch, struct governor_reading *reading)
{
	rates_read(watch->config.bpf, &reading->rates);
	reading->cpu_ns = targets_cpu_ns(watch->config.targets);
	reading->now_ns = now_ns();
}

void watch_begin(struct watch *watch)
{
	watch->accounted_ns = now_ns();
	rates_read(watch->config.bpf, &watch->accounted_rates);
	watch->first_rates = watch->accounted_rates;
	watch_step(watch);
}

static void forget_passed(struct watched_slice *slice)
{
	memset(slice->passed, 0, sizeof(slice->passed));
	slice->idle_gaps = (struct memtoll_gaps){};
	slice->passed_cpu_ns = 0;
	slice->passed_fns = 0;
}

void watch_end_slice(struct watch *watch)
{
	struct governor_reading reading;
	int group;

	take_reading(watch, &reading);
	account(watch, &reading);
	watch->ended = watch->slice;
	watch->slice.events = (struct events){};
	watch->slice.gaps = (struct memtoll_gaps){};
	forget_passed(&watch->slice);
	for (group = 0; group < PROBE_GROUPS; group++)
		watch->slice.groups[group] = (struct watched){
			.windows = watch->open >> group & 1,
			.missed = !(watch->open & 1U << group),
		};
}

/* The functions of these groups as the BPF side has them: bit n is function n. */
static uint32_t functions_of(unsigned int groups)
{
	uint32_t functions = 0;
	unsigned int fn;

	for (fn = FN_MALLOC; fn < FN_COUNT; fn++)
		if (groups & 1U << probe_group_of(fn))
			functions |= 1U << fn;
	return functions;
}

static void set_open(struct watch *watch, unsigned int open)
{
	int group;

	for (group = 0; group < PROBE_GROUPS; group++) {
		if (open & ~watch->open & 1U << group)
			watch->slice.groups[group].windows++;
		watch->slice.groups[group].missed |= !(open & 1U << group);
	}
	watch->open = open;
	watch->missed |= (open | 1U << GROUP_READ) != GROUPS_ALL;
	watch->config.bpf->bss->closed_fns = functions_of(GROUPS_ALL & ~open);
}

static void set_attached(struct watch *watch, unsigned int attached)
{
	uint32_t gone = functions_of(watch->attached & ~attached);
	uint64_t now = now_ns();
	unsigned int fn;

	/* Calls still open are given up: their returns will not be seen. */
	for (fn = FN_MALLOC; fn < FN_COUNT; fn++)
		if (gone & 1U << fn)
			watch->config.bpf->bss->detached_ns[fn] = now;
	if ((watch->attached ^ attached) & 1U << GROUP_READ)
		watch->config.bpf->bss->reads_watched_ns =
			attached & 1U << GROUP_READ ? now : UINT64_MAX;
	watch->attached = attached;
	targets_watch(watch->config.targets, attached);
}

/* Probes that are still there, and closed, are about to go: what they have counted since. */
static void account_passed(struct watch *watch, const struct governor_reading *reading)
{
	unsigned int fns = functions_of(watch->attached & ~watch->open), fn;
	struct watched_slice *slice = &watch->slice;

	/* More of them went than at first: of one slice only what all are in. */
	if (slice->passed_fns & ~fns)
		return;
	if (slice->passed_fns != fns)
		forget_passed(slice);
	slice->passed_fns = fns;
	for (fn = FN_MALLOC; fn < FN_COUNT; fn++)
		if (fns & 1U << fn)
			slice->passed[fn] +=
				reading->rates.idle[fn] - watch->closed.rates.idle[fn];
	/* Not while probes come or go: then hits have others between them that are not seen. */
	add_gaps(&slice->idle_gaps, &watch->closed.rates.idle_gaps, &reading->rates.idle_gaps);
	slice->passed_cpu_ns += reading->cpu_ns - watch->closed.cpu_ns;
}

uint64_t watch_step(struct watch *watch)
{
	struct governor_reading reading;
	struct governor_order order;

	if (!watch->governor)
		return UINT64_MAX;
	do {
		take_reading(watch, &reading);
		order = governor_step(watch->governor, &reading);
		if (order.open != watch->open) {
			account(watch, &reading);
			set_open(watch, order.open);
			watch->closed = reading;
		}
		if (order.attached != watch->attached) {
			if (watch->attached & ~order.attached)
				account_passed(watch, &reading);
			set_attached(watch, order.attached);
		}
		/* Each time: attaching may fail while the last detaching is not over. */
		probes_watch_reads(watch->config.probes, watch->config.bpf,
				   order.attached & 1U << GROUP_READ);
	} while (order.next_ns <= reading.now_ns);
	return order.next_ns;
}

bool watch_in_window(const struct watch *watch)
{
	return watch->governor && governor_in_window(watch->governor);
}

static const char *event_name(unsigned int event)
{
	switch (event) {
	case EVENT_FAULTS:
		return "fault";
	case EVENT_MAPS:
		return "map";
	case EVENT_READS:
		return "read";
	case EVENT_PLAIN_READS:
		return "plain_read";
	default:
		return fn_name(event);
	}
}

/* Whether all of these were counted in the slice that has ended. */
static bool event_is_whole(const struct watch *watch, unsigned int event)
{
	if (event < FN_COUNT)
		return event >= FN_MALLOC && !watch->ended.groups[probe_group_of(event)].missed;
	return event != EVENT_PLAIN_READS || !watch->ended.groups[GROUP_READ].missed;
}

static int write_events(struct watch *watch, const char *call, const struct watched *watched)
{
	const struct events *all = &watch->ended.events;
	unsigned int event;
	int err = 0;

	for (event = 0; event < EVENTS && !err; event++)
		if (all->count[event] && event_is_whole(watch, event))
			err = recording_watch_event(watch->config.recording, call,
						    event_name(event),
						    watched->events.count[event],
						    all->count[event]);
	return err;
}

/*
 * What hits cost as far as they were timed where they were paid: of a fault, what is beyond its
 * calibrated price, since ends of runs and places to find again are dearer than one more page; of
 * a sample, all that its program takes. Means so far, which the next slice replaces.
 */
static int write_paid_prices(struct watch *watch)
{
	const struct memtoll_rates *now = &watch->accounted_rates, *first = &watch->first_rates;
	double faults = now->faults - first->faults, samples = now->samples - first->samples;
	double more_ns, sample_ns;
	int err = 0;

	if (faults) {
		more_ns = (now->fault_ns - first->fault_ns) / faults - watch->fault_begin_ns;
		more_ns = MAX(0, more_ns);
		err = recording_price(watch->config.recording, "fault_more", more_ns, 0,
				      0.1 * more_ns);
	}
	if (samples && !err) {
		sample_ns = (now->sample_ns - first->sample_ns) / samples;
		err = recording_price(watch->config.recording, "sample", sample_ns, 0,
				      0.1 * sample_ns);
	}
	return err;
}

int watch_write(struct watch *watch)
{
	const struct watched *watched;
	unsigned int fn;
	int err = write_paid_prices(watch);

	if (watch->ended.gaps.count && !err)
		err = recording_hit_gap(watch->config.recording, "call", &watch->ended.gaps);
	if (watch->ended.idle_gaps.count && !err)
		err = recording_hit_gap(watch->config.recording, "idle", &watch->ended.idle_gaps);
	for (fn = FN_MALLOC; fn < FN_COUNT && !err; fn++) {
		watched = &watch->ended.groups[probe_group_of(fn)];
		if (!watched->missed)
			continue;
		err = recording_watch(watch->config.recording, fn_name(fn), watched->windows,
				      watched->ns, watched->cpu_ns);
		if (!err)
			err = write_events(watch, fn_name(fn), watched);
		if (!err && watch->ended.passed_fns & 1U << fn)
			err = recording_watch_passed(watch->config.recording, fn_name(fn),
						     watch->ended.passed[fn],
						     watch->ended.passed_cpu_ns);
	}
	watched = &watch->ended.groups[GROUP_READ];
	if (watched->missed && !err)
		err = recording_watch(watch->config.recording, "read_other", watched->windows,
				      watched->ns, watched->cpu_ns);
	return err;
}
