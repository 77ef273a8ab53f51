/* SPDX-License-Identifier: GPL-2.0 */
/*
 * watchdog.h: memtoll ends when it is asked to, also when it hangs.
 *
 * A read of a file system, or of a target's memory, can block for ever. A thread watches whether
 * the main loop makes progress. When the end is due, by a signal or by -d, and there has been no
 * progress for WATCHDOG_PATIENCE_MS, the process exits as it is: the kernel detaches all probes,
 * and the recording has what was written by then, as after kill -9.
 *
 * Attaching has a limit of its own, where the recording has one: it ends then, progress or not.
 *
 * Signals are blocked and read elsewhere; here it is only seen that they wait. Patience is counted
 * in ticks of a thread of this process: a process that is stopped, or gets no CPU, has none either.
 */
#ifndef MEMTOLL_WATCHDOG_H
#define MEMTOLL_WATCHDOG_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define WATCHDOG_PATIENCE_MS 5000
/* Nothing is probed any more, and a disk may be slow. A signal that waits counts as ever. */
#define WATCHDOG_FINISHING_MS 60000

/* With -d attaching may take as long as that, and so long at least. */
#define WATCHDOG_ATTACH_MS 60000

#define WATCHDOG_TICK_MS 250

/* What a tick finds. */
struct watchdog_state {
	unsigned int alive; /* signs of life so far */
	bool signal_waits;  /* and has not been read */
	bool due;	    /* or is over time, or a signal was read */
	bool finishing;
	bool late; /* attaching took too long */
};

/* All 0 at first. */
struct watchdog_patience {
	unsigned int alive;   /* as of the last tick */
	unsigned int ticks;   /* without a sign of life */
	unsigned int waiting; /* that a signal waits for */
};

/* One tick. True: patience is at its end. */
bool watchdog_tick(struct watchdog_patience *patience, const struct watchdog_state *state);

struct watchdog;

/*
 * signals: those that ask for the end, which must be blocked. NULL where no thread can be made:
 * then nobody watches, and the others take NULL.
 */
struct watchdog *watchdog_start(const sigset_t *signals);
void watchdog_stop(struct watchdog *watchdog);

/* It gets on. */
void watchdog_alive(struct watchdog *watchdog);

/* Attaching is to be over by this CLOCK_MONOTONIC time: until the next of the two below. */
void watchdog_attach_by(struct watchdog *watchdog, uint64_t at_ns);

/* The end is due at this CLOCK_MONOTONIC time, or was asked for: 0. */
void watchdog_due(struct watchdog *watchdog, uint64_t at_ns);

/* All probes are gone; what is left is to write. */
void watchdog_finishing(struct watchdog *watchdog);

#endif /* MEMTOLL_WATCHDOG_H */
