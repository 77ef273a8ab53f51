// SPDX-License-Identifier: GPL-2.0
#include "budget/budget_executor.h"

#include <glib.h>
#include <string.h>

#include "base/clock.h"
#include "budget/governor.h"
#include "budget/syscall_idle.h"
#include "events/names.h"
#include "events/rates.h"
#include "memtoll.skel.h"
#include "probes/attach.h"
#include "probes/syscalls.h"

/* How often it is looked whether there are system calls to be told of. */
#define LOOK_NS 20000000ULL
/* Who comes so much too late comes on. */
#define LATE_NS 100000000ULL
/*
 * In a window in which system calls are counted at least this part of the CPU time is the
 * program's.
 */
#define OWN_LEAST 0.1

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
	struct watched calls;		/* mapping calls, and calls that read */
	uint64_t passed[FN_COUNT];	/* calls counted after windows, and no more than that */
	uint64_t passed_cpu_ns;		/* of the target meanwhile */
	unsigned int passed_fns;
	struct events events;	/* in all of it */
	struct memtoll_gaps gaps;
	struct memtoll_gaps idle_gaps;
};

/*
 * How many system calls there are: by those in windows, over the program's own CPU time there, of
 * about the last second. What counting them costs is taken out of that time.
 */
struct syscall_rate {
	bool counting;
	struct governor_reading opened;
	uint64_t until_ns;			/* a window closes by itself then; UINT64_MAX: never */
	double calls, own_ns;			/* of about the last second */
	double slice_own_ns;			/* likewise, of this slice */
	double ended_scale;			/* of the slice that has ended: see budget_executor.h */
	uint64_t cpu_ns;			/* the estimate is as of then */
	double estimate;			/* of all since the start, while they were watched */
};

struct watch {
	struct watch_config config;
	struct governor *governor;
	unsigned int open;
	unsigned int attached;
	struct quiet quiet;
	bool may_leave_calls;
	bool calls;			/* system calls are watched */
	bool plain_reads;		/* read(2) is, with them */
	uint64_t unwatched_maps;	/* that targets were told of */
	struct syscall_rate syscalls;
	double counting_price_ns;	/* of one more system call in a window */
	bool missed;
	uint64_t accounted_ns;		/* of the last change */
	uint64_t accounted_cpu_ns;
	struct memtoll_rates accounted_rates;
	struct memtoll_rates first_rates;	/* when it began */
	double fault_begin_ns;			/* as calibrated */
	struct governor_reading closed;		/* when the last window was */
	struct governor_reading looked;		/* the last one */
	uint64_t until_ns;	/* what is open closes by itself then; UINT64_MAX: never */
	struct watched_slice slice;
	struct watched_slice ended;
};

struct watch *watch_new(const struct watch_config *config, const struct calibration_result *prices)
{
	const struct syscalls *calls = probes_syscalls(config->probes);
	struct watch *watch = g_new0(struct watch, 1);
	int group;

	watch->config = *config;
	watch->fault_begin_ns = prices->fault_begin_ns;
	watch->counting_price_ns = prices->syscall_counted.hit_ns;
	watch->open = watch->attached = GROUPS_ALL;
	watch->calls = watch->plain_reads = true;
	watch->until_ns = watch->syscalls.until_ns = UINT64_MAX;
	watch->may_leave_calls = config->may_leave_calls && syscalls_may_leave(calls);
	if (config->limit > 0)
		watch->governor = governor_new(config->limit, config->command, prices,
					       syscalls_may_leave_plain_reads(calls));
	for (group = 0; group < PROBE_GROUPS; group++)
		watch->slice.groups[group].windows = 1;
	watch->slice.calls.windows = 1;
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

/* The time since the last change was one in which this was watched, or not. */
static void account_one(const struct watch *watch, const struct governor_reading *reading,
			const struct events *events, bool open, struct watched *watched)
{
	if (!open) {
		watched->missed = true;
		return;
	}
	watched->ns += reading->now_ns - watch->accounted_ns;
	watched->cpu_ns += reading->cpu_ns - watch->accounted_cpu_ns;
	add_events(&watched->events, events);
}

static void account(struct watch *watch, const struct governor_reading *reading)
{
	struct events events = events_between(&watch->accounted_rates, &reading->rates);
	int group;

	for (group = 0; group < PROBE_GROUPS; group++)
		account_one(watch, reading, &events, watch->open & 1U << group,
			    &watch->slice.groups[group]);
	account_one(watch, reading, &events, watch->calls, &watch->slice.calls);
	add_events(&watch->slice.events, &events);
	add_gaps(&watch->slice.gaps, &watch->accounted_rates.gaps, &reading->rates.gaps);
	watch->accounted_ns = reading->now_ns;
	watch->accounted_cpu_ns = reading->cpu_ns;
	watch->accounted_rates = reading->rates;
}

static void take_reading(struct watch *watch, struct governor_reading *reading)
{
	reading->shut = false;
	rates_read(watch->config.bpf, &reading->rates);
	reading->cpu_ns = targets_cpu_ns(watch->config.targets);
	reading->now_ns = now_ns();
	reading->syscalls = watch->syscalls.estimate;
}

/* What they are slower by is charged as the program goes on. */
static void estimate_syscalls(struct watch *watch, struct governor_reading *reading)
{
	struct syscall_rate *rate = &watch->syscalls;

	if (watch->calls && rate->own_ns > 0)
		rate->estimate += rate->calls / rate->own_ns * (reading->cpu_ns - rate->cpu_ns);
	rate->cpu_ns = reading->cpu_ns;
	reading->syscalls = rate->estimate;
}

/* A window has ended, or the slice in one. */
static void add_window(struct watch *watch)
{
	struct syscall_rate *rate = &watch->syscalls;
	uint64_t shut_ns = watch->config.bpf->bss->timed_shut_ns;
	struct governor_reading now;
	double calls, own_ns;

	take_reading(watch, &now);
	calls = now.rates.syscalls - rate->opened.rates.syscalls;
	own_ns = now.cpu_ns - rate->opened.cpu_ns;
	/* Nobody moved its end on: they were counted until then. */
	if (shut_ns > rate->until_ns)
		own_ns *= 1.0 * (MAX(shut_ns, rate->opened.now_ns) - rate->opened.now_ns) /
			  (now.now_ns - rate->opened.now_ns);
	own_ns = MAX(own_ns - calls * watch->counting_price_ns, OWN_LEAST * own_ns);
	rate->calls += calls;
	rate->own_ns += own_ns;
	rate->slice_own_ns += own_ns;
	rate->opened = now;
}

void watch_window(struct watch *watch, bool open)
{
	struct syscalls *syscalls = probes_syscalls(watch->config.probes);

	if (!open && watch->syscalls.counting)
		add_window(watch);
	watch->syscalls.counting = syscalls_count(syscalls, open);
	if (watch->syscalls.counting)
		take_reading(watch, &watch->syscalls.opened);
}

void watch_window_until(struct watch *watch, uint64_t until_ns)
{
	struct syscall_rate *rate = &watch->syscalls;

	/* It had closed by itself, and opens again. */
	if (rate->counting && watch->config.bpf->bss->timed_shut_ns > rate->until_ns)
		add_window(watch);
	watch->config.bpf->data->timed_until_ns = rate->until_ns = until_ns;
}

double watch_syscalls_scale(const struct watch *watch)
{
	return watch->syscalls.ended_scale;
}

/* The slice has ended: what its windows saw is told of all of it. */
static void end_syscalls_slice(struct watch *watch)
{
	struct syscall_rate *rate = &watch->syscalls;

	if (rate->counting)
		add_window(watch);
	rate->ended_scale = rate->slice_own_ns > 0 ?
			    MAX(1.0, watch->ended.calls.cpu_ns / rate->slice_own_ns) : 0;
	rate->slice_own_ns = 0;
	/* Of what was longer ago half is forgotten. */
	rate->calls /= 2;
	rate->own_ns /= 2;
}

void watch_begin(struct watch *watch)
{
	watch->accounted_ns = now_ns();
	rates_read(watch->config.bpf, &watch->accounted_rates);
	watch->first_rates = watch->accounted_rates;
	quiet_begin(&watch->quiet, watch->accounted_ns, &watch->accounted_rates);
	watch->unwatched_maps = watch->accounted_rates.unwatched_maps;
	watch->looked.rates = watch->accounted_rates;
	watch->looked.now_ns = watch->accounted_ns;
	watch_step(watch);
	/*
	 * To find what is to be probed takes as long as it takes: from the next step on there are
	 * ends.
	 */
	watch->config.bpf->data->open_until_ns = watch->until_ns = UINT64_MAX;
}

static void forget_passed(struct watched_slice *slice)
{
	memset(slice->passed, 0, sizeof(slice->passed));
	slice->idle_gaps = (struct memtoll_gaps){};
	slice->passed_cpu_ns = 0;
	slice->passed_fns = 0;
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

/*
 * Where windows that had ended by themselves open again, hits are passed over until the BPF side knows
 * it: the reading that says how many is one taken after that.
 */
static void change_open(struct watch *watch, unsigned int open, struct governor_reading *reading)
{
	if (reading->shut && open & ~watch->open) {
		watch->config.bpf->bss->closed_fns = functions_of(GROUPS_ALL & ~open);
		take_reading(watch, reading);
		account_passed(watch, reading);
	}
	account(watch, reading);
	set_open(watch, open);
	watch->closed = *reading;
}

static uint64_t part_way(uint64_t from, uint64_t to, double part)
{
	return from + part * (to - from);
}

/*
 * What a reading at that time between two others would have been: nobody took one. What goes on the
 * same is divided by the clock; the calls counted were all before, the hits passed over after.
 */
static struct governor_reading between(const struct governor_reading *before,
				       const struct governor_reading *after, uint64_t at_ns)
{
	double part = 1.0 * (at_ns - before->now_ns) / (after->now_ns - before->now_ns);
	const struct memtoll_rates *first = &before->rates, *last = &after->rates;
	struct governor_reading at = *after;

	at.now_ns = at_ns;
	at.cpu_ns = part_way(before->cpu_ns, after->cpu_ns, part);
	at.rates.faults = part_way(first->faults, last->faults, part);
	at.rates.maps = part_way(first->maps, last->maps, part);
	at.rates.reads = part_way(first->reads, last->reads, part);
	at.rates.plain_reads = part_way(first->plain_reads, last->plain_reads, part);
	memcpy(at.rates.idle, first->idle, sizeof(at.rates.idle));
	at.rates.idle_gaps = first->idle_gaps;
	return at;
}

/*
 * What is open stays so until then. Where nobody had moved its end on in time, and a hit has found
 * it past, hits were counted from then on, and no more than that. Without a hit nothing was missed.
 */
static void open_until(struct watch *watch, uint64_t until_ns, struct governor_reading *reading)
{
	uint64_t ended_ns = watch->until_ns, shut_ns;
	struct governor_reading ended;

	watch->config.bpf->data->open_until_ns = watch->until_ns = until_ns;
	shut_ns = watch->config.bpf->bss->shut_ns;
	if (shut_ns <= ended_ns)
		return;
	take_reading(watch, reading);
	reading->shut = true;
	ended = between(&watch->looked, reading,
			CLAMP(shut_ns, watch->looked.now_ns, reading->now_ns));
	account(watch, &ended);
	set_open(watch, watch->open & 1U << GROUP_READ);
	watch->closed = ended;
	account(watch, reading);
	account_passed(watch, reading);
	watch->closed = *reading;
}

static void look(struct watch *watch, struct governor_reading *reading)
{
	take_reading(watch, reading);
	if (reading->now_ns > watch->until_ns)
		open_until(watch, reading->now_ns + LATE_NS, reading);
	watch->looked = *reading;
}

void watch_end_slice(struct watch *watch)
{
	struct governor_reading reading;
	int group;

	look(watch, &reading);
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
	watch->slice.calls = (struct watched){ .windows = watch->calls, .missed = !watch->calls };
	end_syscalls_slice(watch);
}

/* Since when ends of calls are seen, or that they are not. */
static void set_watched_ns(volatile __u64 *since_ns, bool watched)
{
	*since_ns = watched ? now_ns() : UINT64_MAX;
}

/*
 * System calls are to be watched from now on, or not; read(2) with them, as far as the budget
 * allows it. A beginning counts before the probes are there, an end when something else tells of
 * calls.
 */
static void set_calls(struct watch *watch, bool calls, bool plain_reads)
{
	struct syscalls *syscalls = probes_syscalls(watch->config.probes);
	struct watched *slice = &watch->slice.calls;

	if (calls && !watch->calls)
		set_watched_ns(&watch->config.bpf->bss->calls_watched_ns, true);
	if (plain_reads && !watch->plain_reads)
		set_watched_ns(&watch->config.bpf->bss->reads_watched_ns, true);
	/* Each time: what is still being detached cannot be attached yet. */
	syscalls_watch(syscalls, calls, plain_reads);
	calls = syscalls_are_watched(syscalls);
	plain_reads = syscalls_plain_reads_are_watched(syscalls);
	/* Calls that nothing slows any more are not to be charged. */
	if (!calls && watch->calls)
		watch_window(watch, false);
	if (!calls && watch->calls)
		set_watched_ns(&watch->config.bpf->bss->calls_watched_ns, false);
	if (!plain_reads && watch->plain_reads)
		set_watched_ns(&watch->config.bpf->bss->reads_watched_ns, false);
	slice->windows += calls && !watch->calls;
	slice->missed |= !calls;
	watch->calls = calls;
	watch->plain_reads = plain_reads;
}

/* Whether system calls are to be watched, as far as they tell something. */
static bool look_for_calls(struct watch *watch, const struct governor_reading *reading)
{
	if (!watch->may_leave_calls)
		return true;
	/* Code may have been among what was mapped. */
	if (reading->rates.unwatched_maps != watch->unwatched_maps)
		targets_suspect_code(watch->config.targets);
	watch->unwatched_maps = reading->rates.unwatched_maps;
	return quiet_step(&watch->quiet, reading->now_ns, &reading->rates);
}

uint64_t watch_step(struct watch *watch)
{
	struct governor_reading reading;
	struct governor_order order = { .attached = GROUPS_ALL, .open = GROUPS_ALL };
	bool calls;

	if (!watch->governor && !watch->may_leave_calls)
		return UINT64_MAX;
	do {
		look(watch, &reading);
		estimate_syscalls(watch, &reading);
		if (watch->governor) {
			order = governor_step(watch->governor, &reading);
			open_until(watch, order.until_ns, &reading);
		} else {
			order.next_ns = reading.now_ns + LOOK_NS;
		}
		calls = look_for_calls(watch, &reading);
		if (!calls)
			order.open &= ~(1U << GROUP_READ);
		if (calls != watch->calls && order.open == watch->open)
			account(watch, &reading);
		if (order.open != watch->open)
			change_open(watch, order.open, &reading);
		if (order.attached != watch->attached) {
			if (watch->attached & ~order.attached)
				account_passed(watch, &reading);
			set_attached(watch, order.attached);
		}
		set_calls(watch, calls, calls && order.attached & 1U << GROUP_READ);
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
	if (event == EVENT_PLAIN_READS)
		return !watch->ended.groups[GROUP_READ].missed;
	return event == EVENT_FAULTS || !watch->ended.calls.missed;
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
	watched = &watch->ended.calls;
	if (watched->missed && !err)
		err = recording_watch(watch->config.recording, "syscall", watched->windows,
				      watched->ns, watched->cpu_ns);
	return err;
}
