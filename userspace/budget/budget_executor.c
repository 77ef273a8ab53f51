// SPDX-License-Identifier: GPL-2.0
#include "budget/budget_executor.h"

#include <glib.h>
#include <string.h>

#include "base/clock.h"
#include "base/message.h"
#include "budget/governor.h"
#include "budget/paid_prices.h"
#include "budget/syscall_idle.h"
#include "budget/thinning.h"
#include "budget/watched_slice.h"
#include "budget/watched_times.h"
#include "events/names.h"
#include "events/rates.h"
#include "memtoll.skel.h"
#include "probes/attach.h"
#include "probes/syscalls.h"

/* How often to check whether there are system calls worth watching. */
#define LOOK_NS 20000000ULL
/* A tracer that comes so much too late is still at work. */
#define LATE_NS 100000000ULL
/* The start of a command is as interesting as the rest: all of its faults are looked at. */
#define SPARED_CPU_NS 1000000000ULL
/* The program's own part, at least, of the CPU time in a window that counts system calls. */
#define OWN_LEAST 0.1

/*
 * How many system calls there are: by those in windows, over the program's own CPU time there, of
 * about the last second. What counting them costs is taken out of that time.
 */
struct syscall_rate {
	bool counting;
	struct governor_reading opened;
	uint64_t until_ns;    /* a window ends by itself then; UINT64_MAX: never */
	double calls, own_ns; /* of about the last second */
	double slice_own_ns;  /* of this slice */
	double ended_scale;   /* of the slice that has ended: see budget_executor.h */
	uint64_t cpu_ns;      /* the estimate is as of then */
	double estimate;      /* of all since the start, while they were watched */
};

struct budget {
	struct budget_config config;
	struct governor *governor;
	struct thinning thinning;
	unsigned int counting;
	unsigned int attached;
	struct syscall_idle syscall_idle;
	bool may_leave_calls;
	bool calls;		 /* system calls are watched */
	bool plain_reads;	 /* read(2) is, with them */
	uint64_t unwatched_maps; /* as of when targets were last suspected of new code */
	struct syscall_rate syscalls;
	double counting_price_ns, syscall_price_ns; /* of one more in a window, and of any */
	bool thinned;
	bool shut; /* windows have ended by themselves; perhaps a slice's end has found it */
	uint64_t accounted_ns; /* of the last change */
	uint64_t accounted_cpu_ns;
	struct memtoll_rates accounted_rates;
	struct memtoll_rates first_rates; /* when it began */
	struct paid_prices paid;
	struct governor_reading idle_since; /* when the last window ended */
	struct governor_reading looked;	    /* the last one */
	uint64_t until_ns;		    /* counting ends by itself then; UINT64_MAX: never */
	struct watched_slice slice;
	struct watched_slice ended;
	struct watched_times *times; /* of each process */
};

struct budget *budget_new(const struct budget_config *config,
			  const struct calibration_result *prices)
{
	const struct syscalls *calls = probes_syscalls(config->probes);
	struct budget *budget = g_new0(struct budget, 1);
	int group;

	budget->config = *config;
	budget->paid = paid_prices_of(prices);
	budget->times = watched_times_new();
	budget->counting_price_ns = prices->syscall_counted.hit_ns;
	budget->syscall_price_ns = prices->syscall.hit_ns;
	budget->counting = budget->attached = GROUPS_ALL;
	budget->calls = budget->plain_reads = true;
	budget->until_ns = budget->syscalls.until_ns = UINT64_MAX;
	budget->may_leave_calls = config->may_leave_calls && syscalls_may_leave(calls);
	if (config->limit > 0)
		budget->governor = governor_new(config->limit, config->command, prices,
						syscalls_may_leave_plain_reads(calls));
	thinning_begin(&budget->thinning, config->limit, prices,
		       config->command ? SPARED_CPU_NS : 0);
	for (group = 0; group < PROBE_GROUPS; group++)
		budget->slice.groups[group].windows = 1;
	budget->slice.calls.windows = 1;
	return budget;
}

void budget_free(struct budget *budget)
{
	if (!budget)
		return;
	governor_free(budget->governor);
	watched_times_free(budget->times);
	g_free(budget);
}

bool budget_has_thinned(const struct budget *budget)
{
	return budget->thinned;
}

static void add_gaps(struct memtoll_gaps *sum, const struct memtoll_gaps *before,
		     const struct memtoll_gaps *now)
{
	sum->count += now->count - before->count;
	sum->low_ns += now->low_ns - before->low_ns;
}

/* The time since the last change was one in which this was watched, or not. */
static void account_one(const struct budget *budget, const struct governor_reading *reading,
			const struct watched_events *events, bool counting, struct watched *watched)
{
	if (!counting) {
		watched->missed = true;
		return;
	}
	watched->ns += reading->now_ns - budget->accounted_ns;
	watched->cpu_ns += reading->cpu_ns - budget->accounted_cpu_ns;
	watched_events_add(&watched->events, events);
}

static void account(struct budget *budget, const struct governor_reading *reading)
{
	struct watched_events events =
		watched_events_between(&budget->accounted_rates, &reading->rates);
	int group;

	for (group = 0; group < PROBE_GROUPS; group++)
		account_one(budget, reading, &events, budget->counting & 1U << group,
			    &budget->slice.groups[group]);
	account_one(budget, reading, &events, budget->calls, &budget->slice.calls);
	thinned_add(&budget->slice.thinned, &budget->accounted_rates, &reading->rates);
	watched_events_add(&budget->slice.events, &events);
	add_gaps(&budget->slice.gaps, &budget->accounted_rates.gaps, &reading->rates.gaps);
	budget->accounted_ns = reading->now_ns;
	budget->accounted_cpu_ns = reading->cpu_ns;
	budget->accounted_rates = reading->rates;
}

static void take_reading(struct budget *budget, struct governor_reading *reading)
{
	reading->shut = budget->shut;
	rates_read(budget->config.bpf, &reading->rates);
	reading->cpu_ns = targets_cpu_ns(budget->config.targets);
	reading->now_ns = now_ns();
	reading->syscalls = budget->syscalls.estimate;
}

/* What they are slower by is charged as the program goes on. */
static void estimate_syscalls(struct budget *budget, struct governor_reading *reading)
{
	struct syscall_rate *rate = &budget->syscalls;

	if (budget->calls && rate->own_ns > 0 && !probes_calls_rest(budget->config.probes))
		rate->estimate += rate->calls / rate->own_ns * (reading->cpu_ns - rate->cpu_ns);
	rate->cpu_ns = reading->cpu_ns;
	reading->syscalls = rate->estimate;
}

/* A window has ended, or the slice in one. */
static void add_window(struct budget *budget)
{
	struct syscall_rate *rate = &budget->syscalls;
	uint64_t shut_ns = budget->config.bpf->bss->timed_shut_ns;
	struct governor_reading now;
	double calls, own_ns;

	take_reading(budget, &now);
	calls = now.rates.syscalls - rate->opened.rates.syscalls;
	own_ns = now.cpu_ns - rate->opened.cpu_ns;
	/* Its end was not moved on: they were counted until then. */
	if (shut_ns > rate->until_ns)
		own_ns *= 1.0 * (MAX(shut_ns, rate->opened.now_ns) - rate->opened.now_ns) /
			  (now.now_ns - rate->opened.now_ns);
	own_ns = MAX(own_ns - calls * budget->counting_price_ns, OWN_LEAST * own_ns);
	rate->calls += calls;
	rate->own_ns += own_ns;
	rate->slice_own_ns += own_ns;
	rate->opened = now;
}

void budget_window(struct budget *budget, bool open)
{
	struct syscalls *syscalls = probes_syscalls(budget->config.probes);

	if (!open && budget->syscalls.counting)
		add_window(budget);
	budget->syscalls.counting = syscalls_count(syscalls, open);
	if (budget->syscalls.counting)
		take_reading(budget, &budget->syscalls.opened);
}

void budget_window_until(struct budget *budget, uint64_t until_ns)
{
	struct syscall_rate *rate = &budget->syscalls;

	/* It had ended by itself, and begins again. */
	if (rate->counting && budget->config.bpf->bss->timed_shut_ns > rate->until_ns)
		add_window(budget);
	budget->config.bpf->data->timed_until_ns = rate->until_ns = until_ns;
}

double budget_syscalls_scale(const struct budget *budget)
{
	return budget->syscalls.ended_scale;
}

/* The slice has ended: what its windows saw is scaled up to all of it. */
static void end_syscalls_slice(struct budget *budget)
{
	struct syscall_rate *rate = &budget->syscalls;

	if (rate->counting)
		add_window(budget);
	rate->ended_scale = rate->slice_own_ns > 0 ?
				    MAX(1.0, budget->ended.calls.cpu_ns / rate->slice_own_ns) :
				    0;
	/* Where they rest all pay in windows only: as much again in those that do not count. */
	if (probes_calls_rest(budget->config.probes))
		rate->ended_scale = MIN(rate->ended_scale, 2);
	rate->slice_own_ns = 0;
	/* Of what was longer ago half is forgotten. */
	rate->calls /= 2;
	rate->own_ns /= 2;
}

void budget_begin(struct budget *budget)
{
	budget->accounted_ns = now_ns();
	rates_read(budget->config.bpf, &budget->accounted_rates);
	budget->first_rates = budget->accounted_rates;
	syscall_idle_begin(&budget->syscall_idle, budget->accounted_ns, &budget->accounted_rates);
	budget->unwatched_maps = budget->accounted_rates.unwatched_maps;
	budget->looked.rates = budget->accounted_rates;
	budget->looked.now_ns = budget->accounted_ns;
	watched_times_change(budget->times, budget->accounted_ns, budget->counting);
	budget_step(budget);
	/*
	 * Finding what to probe may take any time: counting ends by itself only from the next step
	 * on.
	 */
	budget->config.bpf->data->open_until_ns = budget->until_ns = UINT64_MAX;
}

static void forget_idle(struct watched_slice *slice)
{
	memset(slice->idle_calls, 0, sizeof(slice->idle_calls));
	slice->idle_gaps = (struct memtoll_gaps){};
	slice->idle_cpu_ns = 0;
	slice->idle_fns = 0;
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

static void set_counting(struct budget *budget, unsigned int counting, uint64_t now)
{
	int group;

	for (group = 0; group < PROBE_GROUPS; group++) {
		if (counting & ~budget->counting & 1U << group)
			budget->slice.groups[group].windows++;
		budget->slice.groups[group].missed |= !(counting & 1U << group);
	}
	budget->counting = counting;
	budget->config.bpf->bss->idle_fns = functions_of(GROUPS_ALL & ~counting);
	watched_times_change(budget->times, now, counting);
}

static void set_attached(struct budget *budget, unsigned int attached)
{
	uint32_t gone = functions_of(budget->attached & ~attached);
	uint64_t now = now_ns();
	unsigned int fn;

	/* Calls in progress are dropped: their returns will not be seen. */
	for (fn = FN_MALLOC; fn < FN_COUNT; fn++)
		if (gone & 1U << fn)
			budget->config.bpf->bss->detached_ns[fn] = now;
	budget->attached = attached;
	targets_watch(budget->config.targets, attached);
}

/* Probes that are attached idle are about to be detached: what they have counted since. */
static void account_idle(struct budget *budget, const struct governor_reading *reading)
{
	unsigned int fns = functions_of(budget->attached & ~budget->counting), fn;
	struct watched_slice *slice = &budget->slice;

	/* More were idle before: of one slice only the time in which all of these were. */
	if (slice->idle_fns & ~fns)
		return;
	if (slice->idle_fns != fns)
		forget_idle(slice);
	slice->idle_fns = fns;
	for (fn = FN_MALLOC; fn < FN_COUNT; fn++)
		if (fns & 1U << fn)
			slice->idle_calls[fn] +=
				reading->rates.idle[fn] - budget->idle_since.rates.idle[fn];
	/* Not while probes come or go: then hits have others between them that are not seen. */
	add_gaps(&slice->idle_gaps, &budget->idle_since.rates.idle_gaps, &reading->rates.idle_gaps);
	slice->idle_cpu_ns += reading->cpu_ns - budget->idle_since.cpu_ns;
}

/*
 * Where windows that had ended by themselves begin again, hits are idle until the BPF side knows
 * it: the reading that says how many is one taken after that.
 */
static void change_counting(struct budget *budget, unsigned int counting,
			    struct governor_reading *reading)
{
	if (reading->shut && counting & ~budget->counting) {
		budget->config.bpf->bss->idle_fns = functions_of(GROUPS_ALL & ~counting);
		take_reading(budget, reading);
		account_idle(budget, reading);
	}
	account(budget, reading);
	set_counting(budget, counting, reading->now_ns);
	budget->idle_since = *reading;
}

/* An estimated reading at a time between two others: what goes on steadily is divided by the clock. */
static struct governor_reading between(const struct governor_reading *before,
				       const struct governor_reading *after, uint64_t at_ns)
{
	double part = 1.0 * (at_ns - before->now_ns) / (after->now_ns - before->now_ns);
	struct governor_reading at = *after;

	at.now_ns = at_ns;
	at.cpu_ns = before->cpu_ns + part * (after->cpu_ns - before->cpu_ns);
	rates_between(&before->rates, &after->rates, part, &at.rates);
	return at;
}

/*
 * Counting goes on until then. Where nobody had moved its end on in time, and a hit has found it
 * past, hits were idle from then on. Without a hit nothing was missed.
 */
static void count_until(struct budget *budget, uint64_t until_ns, struct governor_reading *reading)
{
	uint64_t ended_ns = budget->until_ns, shut_ns;
	struct governor_reading ended;

	budget->config.bpf->data->open_until_ns = budget->until_ns = until_ns;
	shut_ns = budget->config.bpf->bss->shut_ns;
	if (shut_ns <= ended_ns)
		return;
	take_reading(budget, reading);
	reading->shut = budget->shut = true;
	ended = between(&budget->looked, reading,
			CLAMP(shut_ns, budget->looked.now_ns, reading->now_ns));
	account(budget, &ended);
	set_counting(budget, budget->counting & 1U << GROUP_READ, ended.now_ns);
	budget->idle_since = ended;
	account(budget, reading);
	account_idle(budget, reading);
	budget->idle_since = *reading;
}

static void divide_time(void *context, struct target *target)
{
	struct budget *budget = context;

	watched_times_read(budget->times, target->pid, target->start_ns,
			   target->exited ? target->ended_ns : budget->looked.now_ns,
			   target->cpu_seen_ns);
}

static void look(struct budget *budget, struct governor_reading *reading)
{
	take_reading(budget, reading);
	if (reading->now_ns > budget->until_ns)
		count_until(budget, reading->now_ns + LATE_NS, reading);
	budget->looked = *reading;
	if (budget->governor)
		targets_each(budget->config.targets, divide_time, budget);
}

void budget_end(struct budget *budget)
{
	struct governor_reading reading;

	look(budget, &reading);
	if (budget->attached & ~budget->counting) {
		account_idle(budget, &reading);
		budget->idle_since = reading;
	}
	budget_end_slice(budget);
}

void budget_end_slice(struct budget *budget)
{
	struct governor_reading reading;
	int group;

	look(budget, &reading);
	account(budget, &reading);
	watched_times_end_slice(budget->times);
	budget->ended = budget->slice;
	budget->slice.events = (struct watched_events){};
	budget->slice.thinned = (struct thinned){};
	budget->slice.gaps = (struct memtoll_gaps){};
	forget_idle(&budget->slice);
	for (group = 0; group < PROBE_GROUPS; group++)
		budget->slice.groups[group] = (struct watched){
			.windows = budget->counting >> group & 1,
			.missed = !(budget->counting & 1U << group),
		};
	budget->slice.calls =
		(struct watched){ .windows = budget->calls, .missed = !budget->calls };
	end_syscalls_slice(budget);
}

/* The time since when ends of calls are seen, or that they are not. */
static void set_watched_ns(volatile __u64 *since_ns, bool watched)
{
	*since_ns = watched ? now_ns() : UINT64_MAX;
}

/*
 * System calls are to be watched from now on, or not; read(2) with them, as far as the budget
 * allows it. A beginning counts before the probes are there, an end when unwatched calls are
 * counted by something else.
 */
static void set_calls(struct budget *budget, bool calls, bool plain_reads)
{
	struct syscalls *syscalls = probes_syscalls(budget->config.probes);
	struct watched *slice = &budget->slice.calls;

	/* Reads that nobody has seen meanwhile are none that rested. */
	if ((calls && !budget->calls) || (plain_reads && !budget->plain_reads))
		budget->config.bpf->bss->reads_epoch++;
	if (!calls && budget->calls)
		probes_rest_calls(budget->config.probes, false);
	if (calls && !budget->calls)
		set_watched_ns(&budget->config.bpf->bss->calls_watched_ns, true);
	if (plain_reads && !budget->plain_reads)
		set_watched_ns(&budget->config.bpf->bss->reads_watched_ns, true);
	syscalls_watch(syscalls, calls, plain_reads);
	calls = syscalls_are_watched(syscalls);
	plain_reads = syscalls_plain_reads_are_watched(syscalls);
	/* Calls that are no longer slowed down are not to be charged. */
	if (!calls && budget->calls)
		budget_window(budget, false);
	if (!calls && budget->calls)
		set_watched_ns(&budget->config.bpf->bss->calls_watched_ns, false);
	if (!plain_reads && budget->plain_reads)
		set_watched_ns(&budget->config.bpf->bss->reads_watched_ns, false);
	slice->windows += calls && !budget->calls;
	slice->missed |= !calls;
	budget->calls = calls;
	budget->plain_reads = plain_reads;
}

/* Whether there are system calls worth watching. */
static bool look_for_calls(struct budget *budget, struct governor_reading *reading)
{
	if (!budget->may_leave_calls)
		return true;
	/* Code may have been among what was mapped. */
	if (reading->rates.unwatched_maps != budget->unwatched_maps)
		targets_suspect_code(budget->config.targets);
	budget->unwatched_maps = reading->rates.unwatched_maps;
	if (syscall_idle_step(&budget->syscall_idle, reading->now_ns, &reading->rates) ||
	    !budget->calls || !syscalls_settle(probes_syscalls(budget->config.probes)))
		return budget->syscall_idle.watched;
	rates_read(budget->config.bpf, &reading->rates);
	return syscall_idle_step(&budget->syscall_idle, reading->now_ns, &reading->rates);
}

/* Of how many faults one is looked at. */
static void thin(struct budget *budget, const struct governor_reading *reading)
{
	const struct syscall_rate *rate = &budget->syscalls;
	struct thinning *thinning = &budget->thinning;
	struct probes *probes = budget->config.probes;
	bool faults = thinning->faults.rests;
	unsigned int before = thinning->one_in, one_in;

	thinning->calls_may_rest = budget->calls && syscalls_may_rest(probes_syscalls(probes));
	thinning->maps_are_seen = syscalls_see_maps_resting(probes_syscalls(probes));
	thinning->other_calls = rate->calls * budget->syscall_price_ns / MAX(rate->own_ns, 1);
	one_in = thinning_step(thinning, reading->now_ns, reading->cpu_ns, &reading->rates);
	budget->thinned |= one_in > 1 || thinning->faults.rests;
	if (one_in != before)
		budget->config.bpf->data->fault_draw = thinning_draw(one_in);
	if (thinning->faults.rests != faults && probes_rest_faults(probes, !faults))
		message("faults are seen in windows only from now on");
	/* A rest ends where none is watched, too. */
	if (probes_rest_calls(probes, thinning->calls.rests))
		message("system calls are seen in windows only from now on");
	thinning->calls.rests = probes_calls_rest(probes);
}

uint64_t budget_step(struct budget *budget)
{
	struct governor_reading reading;
	struct governor_order order = { .attached = GROUPS_ALL, .counting = GROUPS_ALL };
	bool calls;

	if (!budget->governor && !budget->may_leave_calls)
		return UINT64_MAX;
	do {
		look(budget, &reading);
		estimate_syscalls(budget, &reading);
		if (budget->governor) {
			thin(budget, &reading);
			order = governor_step(budget->governor, &reading);
			/* Where they rest they are seen with the others. */
			if (probes_calls_rest(budget->config.probes)) {
				order.attached |= 1U << GROUP_READ;
				order.counting |= 1U << GROUP_READ;
			}
			count_until(budget, order.until_ns, &reading);
		} else {
			order.next_ns = reading.now_ns + LOOK_NS;
		}
		calls = look_for_calls(budget, &reading);
		if (!calls)
			order.counting &= ~(1U << GROUP_READ);
		if (calls != budget->calls && order.counting == budget->counting)
			account(budget, &reading);
		if (order.counting != budget->counting)
			change_counting(budget, order.counting, &reading);
		if (order.attached != budget->attached) {
			if (budget->attached & ~order.attached)
				account_idle(budget, &reading);
			set_attached(budget, order.attached);
		}
		set_calls(budget, calls, calls && order.attached & 1U << GROUP_READ);
		budget->shut = false;
	} while (order.next_ns <= reading.now_ns);
	return order.next_ns;
}

bool budget_in_window(const struct budget *budget)
{
	return budget->governor && governor_in_window(budget->governor);
}

void budget_called(struct budget *budget, pid_t pid)
{
	watched_times_called(budget->times, pid);
}

int budget_write(struct budget *budget)
{
	struct recording *recording = budget->config.recording;
	int err = paid_prices_write(&budget->paid, &budget->first_rates, &budget->accounted_rates,
				    recording);

	if (!err)
		err = watched_slice_write(&budget->ended, recording);
	return err ? err :
		     watched_times_write(budget->times, watched_slice_missed(&budget->ended),
					 recording);
}
