/* SPDX-License-Identifier: GPL-2.0 */
/*
 * detach.h: probes are taken away aside, many at once: what detaching takes is waiting for the
 * kernel's grace periods, which costs no CPU.
 */
#ifndef MEMTOLL_DETACH_H
#define MEMTOLL_DETACH_H

#include <glib.h>
#include <stdbool.h>

struct detacher {
	GMutex lock;
	GCond changed;
	GQueue waiting;		/* of struct detaching */
	unsigned int threads;	/* at work */
	unsigned int left;	/* not yet detached */
};

/* Not for a static one, which needs it as little as its mutex does. None needs an end. */
void detacher_init(struct detacher *detacher);

/*
 * Have detach(what) called by a thread, sooner or later. Where none can be made (a limit of
 * processes, of memory) it is called here: a probe that stays is worse than a wait.
 */
void detacher_push(struct detacher *detacher, void (*detach)(void *), void *what);

/* Something pushed has not been detached yet. */
bool detacher_is_busy(struct detacher *detacher);

/* Wait for all of it. The detacher can be used again. */
void detacher_finish(struct detacher *detacher);

#endif /* MEMTOLL_DETACH_H */
