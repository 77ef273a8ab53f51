// SPDX-License-Identifier: GPL-2.0
#include "budget/governor.h"

#include <glib.h>

#include "budget/paid_prices.h"

#define MS 1000000.0

/*
 * As long as everything can be watched within the limit, it is; a little below: prices have an
 * error. Where windows must do, two fifths of it are paid for: of 5 % that is 2, and below the 3 %
 * that the default may take of a program there is room for what no price covers, as caches that a
 * hit leaves cold, and probes that come and go: with a half, 3.2 % were gone of a Python program.
 */
#define SETPOINT 0.9
#define SETPOINT_WINDOWS 0.4
/*
 * What may be spent before the first CPU time is seen; of a command, whose start is part of the
 * question.
 */
#define START_NS (10 * MS)
#define START_COMMAND_NS (50 * MS)
/*
 * In so much of a command's CPU time it is not charged for what is never detached beyond what it
 * pays in: an interpreter that starts faults and maps a lot, from many places, and no group is to
 * go for that.
 */
#define START_COMMAND_CPU_NS (1000 * MS)
/*
 * A window shorter than this is not worth its attaching and detaching, some 10 ms in which hits
 * cost half and give no data.
 */
#define WINDOW_NS (30 * MS)
/*
 * After a window hits are only counted for so long, at less than half the price: they show better
 * how far the target came in that time. Calls in progress get that long to return.
 */
#define COUNT_NS (8 * MS)
/* The least and the longest time between two looks. */
#define LOOK_LEAST_NS (2 * MS)
#define LOOK_NS (20 * MS)
/*
 * Should the tracer be stopped, windows end by themselves as soon as the account does not pay for
 * them any more and it is so late, as happens on a busy machine. Where hits cost next to nothing it
 * may come so much later.
 */
#define LATE_NS (100 * MS)
#define STOPPED_NS (2000 * MS)
/* Probes stay detached at least so long. */
#define DETACHED_NS (200 * MS)
/* In lasting debt they are attached so often all the same: they may have become cheap. */
#define PEEK_NS (5000 * MS)
/* Processes come too fast to be looked at, until none has for so long. */
#define STORM_NS (1000 * MS)
/* Over how long the cost of each group is judged. */
#define JUDGE_NS (500 * MS)
/* What may be saved up: the income of so long, or a window. */
#define SAVED_NS (1000 * MS)
/* A debt that shows that the groups still counting cost too much by themselves. */
#define DEBT_NS (10 * MS)
/* One file among so many reads by read(2): its probes are not waste. */
#define OTHER_READS_PER_FILE 1000
/* So many files were read unwatched: the probes of read(2) come back, and stay so long. */
#define UNWATCHED_READS 4
#define READS_STAY_NS (10000 * MS)
/*
 * A group that takes less than this part of the limit, or of what is never detached, is next to
 * nothing.
 */
#define LOAD_LEAST 0.1
/* Of the target's own CPU time at least this part is believed to be there. */
#define OWN_LEAST 0.1
/* Hits that take less than this part of it leave enough to know it by. */
#define SURE_PART 0.5

enum state {
	STATE_COUNTING,	     /* everything is attached and counted */
	STATE_ATTACHED_IDLE, /* what is to be detached no longer counts */
	STATE_DETACHED,	     /* nor is it attached */
	STATE_ATTACHING,     /* attached again, not yet counted */
};

/* What was spent over some time. */
struct spending {
	double cpu_ns;
	double group_ns[PROBE_GROUPS];
	double fixed_ns; /* by what is never detached */
	double idle_ns;	 /* hits of probes that were attached idle */
	double wall_ns;
	double plain_reads; /* of files by read(2) */
	double other_reads;
};

struct governor {
	double limit;
	double start_ns;     /* what is in the account at first */
	double start_cpu_ns; /* CPU time left of a command's start */
	struct calibration_result prices;
	struct paid_prices paid;
	struct memtoll_rates first_rates; /* of the first reading */
	enum state state;
	unsigned int to_detach; /* groups whose hits are not counted outside of windows */
	unsigned int detached;	/* those of them that are not attached now */
	double account_ns;
	struct governor_reading last;
	bool started;
	bool unjudged;		   /* since the window began */
	uint64_t state_ns;	   /* when the state was entered */
	struct spending judged;	   /* since the last judgement */
	double load[PROBE_GROUPS]; /* cost per nanosecond of the target's own time, when counting */
	double fixed_load;
	double window_rate; /* cost of a window per nanosecond */
	double switch_ns;   /* cost of attaching and detaching for one */
	double switch_now_ns;
	double cpu_rate; /* CPU time of the target per nanosecond */
	bool may_leave_reads;
	uint64_t unwatched_reads; /* as of when read(2) was last watched */
	uint64_t reads_stay_ns;	  /* until then it stays watched */
	uint64_t storm_ends_ns;
};

struct governor *governor_new(double limit, bool command, const struct calibration_result *prices,
			      bool may_leave_reads)
{
	struct governor *governor = g_new0(struct governor, 1);

	governor->limit = limit;
	governor->prices = *prices;
	governor->paid = paid_prices_of(prices);
	governor->may_leave_reads = may_leave_reads;
	governor->start_ns = command ? START_COMMAND_NS : START_NS;
	governor->start_cpu_ns = command ? START_COMMAND_CPU_NS : 0;
	governor->account_ns = governor->start_ns;
	governor->unjudged = true;
	return governor;
}

void governor_free(struct governor *governor)
{
	g_free(governor);
}

static double call_price(const struct governor *governor, unsigned int fn)
{
	switch (fn) {
	case FN_CALLOC:
		return governor->prices.calloc.hit_ns;
	case FN_FREE:
		return governor->prices.free.hit_ns;
	default:
		return governor->prices.malloc.hit_ns;
	}
}

static uint64_t idle_hits(const struct memtoll_rates *rates)
{
	uint64_t hits = 0;
	unsigned int fn;

	for (fn = FN_MALLOC; fn < FN_COUNT; fn++)
		hits += rates->idle[fn];
	return hits;
}

static struct spending spent_since(const struct governor *governor,
				   const struct governor_reading *reading)
{
	const struct memtoll_rates *now = &reading->rates, *before = &governor->last.rates;
	struct spending spent = {
		.cpu_ns = reading->cpu_ns - governor->last.cpu_ns,
		.wall_ns = reading->now_ns - governor->last.now_ns,
		.idle_ns = (idle_hits(now) - idle_hits(before)) * governor->prices.idle.hit_ns,
		.fixed_ns = paid_fixed_ns(&governor->paid, &governor->first_rates, before, now) +
			    (reading->syscalls - governor->last.syscalls) *
				    governor->prices.syscall.hit_ns,
		.plain_reads = now->plain_reads - before->plain_reads,
		.other_reads = now->other_reads - before->other_reads,
	};
	unsigned int fn;

	spent.group_ns[GROUP_READ] = spent.other_reads * governor->prices.read_other.hit_ns;
	for (fn = FN_MALLOC; fn < FN_COUNT; fn++)
		spent.group_ns[probe_group_of(fn)] +=
			(now->calls[fn] - before->calls[fn]) * call_price(governor, fn);
	return spent;
}

static double total(const struct spending *spent)
{
	double ns = spent->fixed_ns + spent->idle_ns;
	int group;

	for (group = 0; group < PROBE_GROUPS; group++)
		ns += spent->group_ns[group];
	return ns;
}

static void add(struct spending *sum, const struct spending *spent)
{
	int group;

	for (group = 0; group < PROBE_GROUPS; group++)
		sum->group_ns[group] += spent->group_ns[group];
	sum->cpu_ns += spent->cpu_ns;
	sum->fixed_ns += spent->fixed_ns;
	sum->idle_ns += spent->idle_ns;
	sum->wall_ns += spent->wall_ns;
	sum->plain_reads += spent->plain_reads;
	sum->other_reads += spent->other_reads;
}

/* Hardly any file is read by read(2): its probes cost and give no data. */
static bool reads_are_waste(const struct governor *governor, const struct spending *spent)
{
	return governor->may_leave_reads && governor->last.now_ns >= governor->reads_stay_ns &&
	       spent->plain_reads * OTHER_READS_PER_FILE < spent->other_reads;
}

static int dearest(const struct spending *spent)
{
	int group, most = 0;

	for (group = 1; group < PROBE_GROUPS; group++)
		if (spent->group_ns[group] > spent->group_ns[most])
			most = group;
	return most;
}

/* What may be there per nanosecond of the target's own time. */
static double allowed_load(const struct governor *governor)
{
	return SETPOINT * governor->limit / (1 - governor->limit);
}

/*
 * What these groups cost, which were counting all the time since the last judgement; reads that are
 * no waste are among what is never detached. Where hits of groups that can be detached were most of
 * that time, the program's own is what their price's error makes of it: then only the dearest group
 * is judged, the cause of it; the others and the rest are when that one is detached. But what is too
 * much of all of that time, whatever of it is the program's own, is not left to go on until then: it
 * would take more than the window did.
 */
static void judge(struct governor *governor, unsigned int counting)
{
	struct spending *judged = &governor->judged;
	double own = MAX(judged->cpu_ns - total(judged), OWN_LEAST * judged->cpu_ns);
	double hits_ns = 0, at_least;
	unsigned int seen;
	bool surely;
	int group;

	if (counting & 1U << GROUP_READ && !reads_are_waste(governor, judged)) {
		judged->fixed_ns += judged->group_ns[GROUP_READ];
		judged->group_ns[GROUP_READ] = 0;
	}
	for (group = 0; group < PROBE_GROUPS; group++)
		hits_ns += judged->group_ns[group];
	surely = hits_ns < SURE_PART * judged->cpu_ns;
	seen = surely ? counting : counting & 1U << dearest(judged);
	if (own > 0) {
		for (group = 0; group < PROBE_GROUPS; group++) {
			at_least = judged->group_ns[group] / judged->cpu_ns;
			if (seen & 1U << group)
				governor->load[group] = judged->group_ns[group] / own;
			else if (counting & 1U << group && at_least > allowed_load(governor))
				governor->load[group] = at_least;
		}
		if (surely)
			governor->fixed_load = judged->fixed_ns / own;
	}
	governor->unjudged = false;
	*judged = (struct spending){};
}

static bool in_storm(const struct governor *governor)
{
	return governor->last.now_ns < governor->storm_ends_ns;
}

/*
 * The groups to detach so that what remains stays within the limit: waste first, then malloc
 * and free, then calloc, then the rest. Groups that cost next to nothing stay, and so may all of
 * them: where faults alone are over the limit, a few calls a second are neither the cause nor the
 * cure.
 */
static unsigned int groups_to_detach(const struct governor *governor)
{
	double allowed = allowed_load(governor);
	double load = governor->fixed_load, least = LOAD_LEAST * MAX(allowed, load), most = least;
	unsigned int to_detach = 0, largest = 0;
	int group;

	for (group = 0; group < PROBE_GROUPS; group++) {
		load += governor->load[group];
		if (governor->load[group] >= most) {
			most = governor->load[group];
			largest = 1U << group;
		}
	}
	for (group = 0; group < PROBE_GROUPS && load > allowed; group++) {
		if (governor->load[group] < least)
			continue;
		to_detach |= 1U << group;
		load -= governor->load[group];
	}
	/* In debt for a burst: the dearest one pays it back. */
	return to_detach ? to_detach : largest;
}

/*
 * In debt: to_detach, and in a storm all of the allocator's. A process that is not looked at has the
 * breakpoints of the one that it was forked from, and no program runs for it: what its calls cost is
 * not seen, however much it is. Where nothing that is seen has to go they do once a window has shown
 * what there is to be seen.
 */
static unsigned int with_unseen(const struct governor *governor, unsigned int to_detach)
{
	bool window_is_over = governor->last.now_ns - governor->state_ns >= WINDOW_NS;

	if (in_storm(governor) && (to_detach || window_is_over))
		to_detach |= GROUPS_ALL & ~(1U << GROUP_READ);
	return to_detach;
}

static void enter(struct governor *governor, enum state state, uint64_t now)
{
	governor->state = state;
	governor->state_ns = now;
}

/* What a window of the least useful length would cost. */
static double window_price(const struct governor *governor)
{
	return governor->switch_ns + governor->window_rate * WINDOW_NS;
}

static void pay(struct governor *governor, const struct spending *spent)
{
	double part = governor->state == STATE_COUNTING ? SETPOINT : SETPOINT_WINDOWS;
	double ns = total(spent), income = part * governor->limit, saved;

	if (governor->start_cpu_ns > 0) {
		ns -= MAX(0, spent->fixed_ns - income * spent->cpu_ns);
		governor->start_cpu_ns -= spent->cpu_ns;
	}
	/*
	 * The larger the part of the time that hits take, the more is charged, up to all of it: so
	 * that the budget is kept even where a hit costs twice as much in this target as in the
	 * calibration, which happens where caches and the neighbouring core are busy.
	 */
	if (spent->cpu_ns > 0)
		ns = MAX(ns, MIN(spent->cpu_ns, ns * (1 + 2 * ns / spent->cpu_ns)));
	governor->account_ns += income * spent->cpu_ns - ns;
	if (spent->wall_ns > 0)
		governor->cpu_rate += (spent->cpu_ns / spent->wall_ns - governor->cpu_rate) *
				      MIN(1.0, spent->wall_ns / SAVED_NS);
	saved = MAX(income * governor->cpu_rate * SAVED_NS, 1.2 * window_price(governor));
	governor->account_ns = MIN(governor->account_ns, MAX(saved, governor->start_ns));
	if (governor->state != STATE_COUNTING)
		governor->switch_now_ns += spent->idle_ns;
	add(&governor->judged, spent);
}

/* When the account will be empty if spending goes on like this. */
static double look_again(const struct governor *governor, const struct spending *spent)
{
	double rate = spent->wall_ns > 0 ? total(spent) / spent->wall_ns : 0;
	double left = rate > 0 ? governor->account_ns / rate : LOOK_NS;

	/* In debt, and nothing to be done about it. */
	if (governor->account_ns < 0 && !governor->to_detach)
		return LOOK_NS;
	return CLAMP(left, LOOK_LEAST_NS, LOOK_NS);
}

/* What counts is to be detached sooner or later. */
static bool in_window(const struct governor *governor)
{
	return governor->state == STATE_COUNTING &&
	       (governor->to_detach || (governor->account_ns < 0 && in_storm(governor)));
}

static bool in_young_window(const struct governor *governor)
{
	return in_window(governor) && governor->last.now_ns - governor->state_ns < 4 * WINDOW_NS;
}

/* When counting ends, should nobody ask again. */
static double until(const struct governor *governor, const struct spending *spent)
{
	double rate = spent->wall_ns > 0 ? total(spent) / spent->wall_ns : 0, left = STOPPED_NS;

	/* Its first moment is no measure. */
	if (in_young_window(governor))
		rate = MAX(rate, governor->window_rate);
	/* Outside of windows, or in a debt that is none of theirs, what counts costs next to
	 * nothing. */
	if (governor->state == STATE_COUNTING &&
	    (governor->account_ns >= 0 || in_window(governor)) && rate > 0)
		left = MIN(left, MAX(governor->account_ns, 0) / rate);
	return governor->last.now_ns + LATE_NS + left;
}

static void in_counting(struct governor *governor, uint64_t now)
{
	struct spending *judged = &governor->judged;

	if (governor->account_ns < 0) {
		if (judged->wall_ns > 0)
			governor->window_rate =
				MIN(total(judged), judged->cpu_ns) / judged->wall_ns;
		/* A moment after the last judgement is no measure. */
		if (judged->wall_ns >= LOOK_NS || governor->unjudged)
			judge(governor, GROUPS_ALL);
		governor->to_detach = with_unseen(governor, groups_to_detach(governor));
		if (!governor->to_detach)
			return;
		governor->switch_now_ns = 0;
		enter(governor, STATE_ATTACHED_IDLE, now);
	} else if (judged->wall_ns >= JUDGE_NS) {
		judge(governor, GROUPS_ALL);
	}
}

static void in_detached(struct governor *governor, uint64_t now)
{
	unsigned int to_detach;

	if (governor->judged.wall_ns >=
	    (governor->account_ns < -DEBT_NS ? DETACHED_NS / 2 : DETACHED_NS))
		judge(governor, GROUPS_ALL & ~governor->to_detach);
	if (now - governor->state_ns >=
	    (governor->account_ns >= window_price(governor) ? DETACHED_NS : PEEK_NS)) {
		enter(governor, STATE_ATTACHING, now);
		governor->detached = 0;
		return;
	}
	if (governor->account_ns >= -DEBT_NS || governor->to_detach == GROUPS_ALL)
		return;
	to_detach = with_unseen(governor, governor->to_detach | groups_to_detach(governor));
	if (to_detach != governor->to_detach) {
		governor->to_detach = to_detach;
		enter(governor, STATE_ATTACHED_IDLE, now);
	}
}

/*
 * Files are read by read(2) after all: seen while its group is detached, or while no system call is
 * watched at all, in whichever state the group is.
 */
static void bring_reads_back(struct governor *governor, uint64_t unwatched_reads)
{
	bool detached = governor->to_detach & 1U << GROUP_READ && governor->state == STATE_DETACHED;
	bool back = unwatched_reads - governor->unwatched_reads >= UNWATCHED_READS;

	if (back) {
		governor->reads_stay_ns = governor->last.now_ns + (uint64_t)READS_STAY_NS;
		governor->load[GROUP_READ] = 0;
	}
	if (back && detached) {
		governor->to_detach &= ~(1U << GROUP_READ);
		governor->detached = governor->to_detach;
	}
	if (back || !detached)
		governor->unwatched_reads = unwatched_reads;
}

struct governor_order governor_step(struct governor *governor,
				    const struct governor_reading *reading)
{
	uint64_t now = reading->now_ns;
	struct spending spent = {};
	struct governor_order order;

	if (governor->started) {
		spent = spent_since(governor, reading);
		pay(governor, &spent);
	}
	/* Idle hits are charged, and are no measure of what hits cost that count. */
	if (reading->shut) {
		governor->judged = (struct spending){};
		spent = (struct spending){};
		governor->unjudged = true;
	}
	if (!governor->started)
		governor->first_rates = reading->rates;
	else if (reading->rates.brief_starts > governor->last.rates.brief_starts)
		governor->storm_ends_ns = now + (uint64_t)STORM_NS;
	governor->started = true;
	governor->last = *reading;
	bring_reads_back(governor, reading->rates.unwatched_reads);
	switch (governor->state) {
	case STATE_COUNTING:
		in_counting(governor, now);
		break;
	case STATE_ATTACHED_IDLE:
		if (now - governor->state_ns >= COUNT_NS) {
			enter(governor, STATE_DETACHED, now);
			governor->detached = governor->to_detach;
			governor->judged = (struct spending){};
		}
		break;
	case STATE_DETACHED:
		in_detached(governor, now);
		break;
	case STATE_ATTACHING:
		governor->switch_ns = governor->switch_now_ns;
		enter(governor, STATE_COUNTING, now);
		governor->unjudged = true;
		governor->judged = (struct spending){};
		break;
	}
	order.counting =
		governor->state == STATE_COUNTING ? GROUPS_ALL : GROUPS_ALL & ~governor->to_detach;
	order.attached = GROUPS_ALL & ~governor->detached;
	order.until_ns = until(governor, &spent);
	if (governor->state == STATE_ATTACHING)
		order.next_ns = now;
	else if (governor->state == STATE_ATTACHED_IDLE)
		order.next_ns = governor->state_ns + (uint64_t)COUNT_NS;
	else if (governor->state == STATE_COUNTING)
		order.next_ns = now + (uint64_t)look_again(governor, &spent);
	else
		order.next_ns = now + (uint64_t)LOOK_NS;
	return order;
}

bool governor_in_window(const struct governor *governor)
{
	return governor->state == STATE_ATTACHED_IDLE || governor->state == STATE_ATTACHING ||
	       in_young_window(governor);
}
