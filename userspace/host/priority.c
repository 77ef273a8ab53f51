// SPDX-License-Identifier: GPL-2.0
#include "host/priority.h"

#include <glib.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static uint64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* On Linux each thread has its own nice value, inherited by threads it creates (sched(7)). */
static void set_all(int nice)
{
	GDir *tasks = g_dir_open("/proc/self/task", 0, NULL);
	const char *tid;

	if (!tasks)
		return;
	while ((tid = g_dir_read_name(tasks)))
		setpriority(PRIO_PROCESS, (id_t)atoi(tid), nice);
	g_dir_close(tasks);
}

static void set_raised(struct priority *priority, bool raised)
{
	priority->raised = raised;
	priority->above = 0;
	set_all(raised ? MIN(PRIORITY_NICE, priority->usual) : priority->usual);
}

bool priority_wanted(struct priority *priority, uint64_t cpu_ns, uint64_t wall_ns)
{
	double share = (double)cpu_ns / (double)MAX(wall_ns, 1);

	if (!priority->raised)
		return share <= PRIORITY_SHARE / 2;
	priority->above = share > PRIORITY_SHARE ? priority->above + 1 : 0;
	return priority->above < PRIORITY_PATIENCE;
}

void priority_begin(struct priority *priority)
{
	priority->usual = getpriority(PRIO_PROCESS, 0);
	priority->cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
	priority->at_ns = read_clock(CLOCK_MONOTONIC);
	set_raised(priority, true);
}

void priority_step(struct priority *priority)
{
	uint64_t cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t now = read_clock(CLOCK_MONOTONIC);
	bool wanted = priority_wanted(priority, cpu_ns - priority->cpu_ns, now - priority->at_ns);

	if (wanted != priority->raised)
		set_raised(priority, wanted);
	priority->cpu_ns = cpu_ns;
	priority->at_ns = now;
}

void priority_end(struct priority *priority)
{
	if (priority->raised)
		set_raised(priority, false);
}
