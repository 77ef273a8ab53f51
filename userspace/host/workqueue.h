/* SPDX-License-Identifier: GPL-2.0 */
/*
 * workqueue.h: system calls that wait for the kernel's grace periods, run by threads, many at once:
 * detaching probes, putting tables into maps of maps.
 */
#ifndef MEMTOLL_WORKQUEUE_H
#define MEMTOLL_WORKQUEUE_H

#include <glib.h>
#include <stdbool.h>

struct workqueue {
	GMutex lock;
	GCond changed;
	GQueue waiting;	      /* of struct job */
	unsigned int threads; /* running */
	unsigned int left;    /* jobs not done yet */
};

/* Not needed for a static workqueue. There is nothing to destroy. */
void workqueue_init(struct workqueue *queue);

/*
 * Have a thread call work(what). Where no thread can be created (a limit of processes or memory) it
 * is called here: a probe that stays attached is worse than a wait.
 */
void workqueue_push(struct workqueue *queue, void (*work)(void *), void *what);

/* Whether a job has not been done yet. */
bool workqueue_is_busy(struct workqueue *queue);

/* How many have not. */
unsigned int workqueue_pending(struct workqueue *queue);

/* Wait for all jobs. More can be pushed afterwards. */
void workqueue_wait(struct workqueue *queue);

#endif /* MEMTOLL_WORKQUEUE_H */
