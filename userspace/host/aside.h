/* SPDX-License-Identifier: GPL-2.0 */
/*
 * aside.h: what waits for the kernel's grace periods is done by threads, many at once, and costs no
 * CPU: probes are taken away so, and tables put into maps of maps.
 */
#ifndef MEMTOLL_ASIDE_H
#define MEMTOLL_ASIDE_H

#include <glib.h>
#include <stdbool.h>

struct aside {
	GMutex lock;
	GCond changed;
	GQueue waiting;		/* of struct job */
	unsigned int threads;	/* at work */
	unsigned int left;	/* not yet done */
};

/* Not for a static one, which needs it as little as its mutex does. None needs an end. */
void aside_init(struct aside *aside);

/*
 * Have work(what) called by a thread, sooner or later. Where none can be made (a limit of processes,
 * of memory) it is called here: a probe that stays is worse than a wait.
 */
void aside_push(struct aside *aside, void (*work)(void *), void *what);

/* Something pushed has not been done yet. */
bool aside_is_busy(struct aside *aside);

/* How much has not. */
unsigned int aside_left(struct aside *aside);

/* Wait for all of it. More can be pushed afterwards. */
void aside_finish(struct aside *aside);

#endif /* MEMTOLL_ASIDE_H */
