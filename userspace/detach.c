// SPDX-License-Identifier: GPL-2.0
/*
 * detach.c: a handful of threads for what waits. GLib's pool is not used: where no thread can be
 * made it aborts, or keeps what it was given for ever.
 */
#include "detach.h"

#define THREADS_MAX 16

struct detaching {
	void (*detach)(void *);
	void *what;
};

void detacher_init(struct detacher *detacher)
{
	g_mutex_init(&detacher->lock);
	g_cond_init(&detacher->changed);
	g_queue_init(&detacher->waiting);
	detacher->threads = 0;
	detacher->left = 0;
}

/* Until nothing waits any more. Called with the lock, which is given back in between. */
static void work_off(struct detacher *detacher)
{
	struct detaching *next;

	while ((next = g_queue_pop_head(&detacher->waiting))) {
		g_mutex_unlock(&detacher->lock);
		next->detach(next->what);
		g_free(next);
		g_mutex_lock(&detacher->lock);
		detacher->left--;
	}
}

static gpointer run(gpointer given)
{
	struct detacher *detacher = given;

	g_mutex_lock(&detacher->lock);
	work_off(detacher);
	detacher->threads--;
	g_cond_broadcast(&detacher->changed);
	g_mutex_unlock(&detacher->lock);
	return NULL;
}

void detacher_push(struct detacher *detacher, void (*detach)(void *), void *what)
{
	struct detaching *next = g_new(struct detaching, 1);
	GThread *thread;

	next->detach = detach;
	next->what = what;
	g_mutex_lock(&detacher->lock);
	g_queue_push_tail(&detacher->waiting, next);
	detacher->left++;
	if (detacher->threads < THREADS_MAX) {
		thread = g_thread_try_new("detach", run, detacher, NULL);
		if (thread) {
			detacher->threads++;
			g_thread_unref(thread);
		} else if (!detacher->threads) {
			work_off(detacher);
		}
	}
	g_mutex_unlock(&detacher->lock);
}

bool detacher_is_busy(struct detacher *detacher)
{
	bool busy;

	g_mutex_lock(&detacher->lock);
	busy = detacher->left > 0;
	g_mutex_unlock(&detacher->lock);
	return busy;
}

void detacher_finish(struct detacher *detacher)
{
	g_mutex_lock(&detacher->lock);
	while (detacher->threads)
		g_cond_wait(&detacher->changed, &detacher->lock);
	g_mutex_unlock(&detacher->lock);
}
