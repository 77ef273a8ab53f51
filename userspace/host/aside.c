// SPDX-License-Identifier: GPL-2.0
/*
 * aside.c: a handful of threads for what waits. GLib's pool is not used: where no thread can be
 * made it aborts, or keeps what it was given for ever.
 */
#include "host/aside.h"

#include "host/privileges.h"

#define THREADS_MAX 16

struct job {
	void (*work)(void *);
	void *what;
};

void aside_init(struct aside *aside)
{
	g_mutex_init(&aside->lock);
	g_cond_init(&aside->changed);
	g_queue_init(&aside->waiting);
	aside->threads = 0;
	aside->left = 0;
}

/* Until nothing waits any more. Called with the lock, which is given back in between. */
static void work_off(struct aside *aside)
{
	struct job *next;

	while ((next = g_queue_pop_head(&aside->waiting))) {
		g_mutex_unlock(&aside->lock);
		next->work(next->what);
		g_free(next);
		g_mutex_lock(&aside->lock);
		aside->left--;
	}
}

static gpointer run(gpointer given)
{
	struct aside *aside = given;

	privileges_keep(PRIVILEGES_FOLLOW);
	g_mutex_lock(&aside->lock);
	work_off(aside);
	aside->threads--;
	g_cond_broadcast(&aside->changed);
	g_mutex_unlock(&aside->lock);
	return NULL;
}

void aside_push(struct aside *aside, void (*work)(void *), void *what)
{
	struct job *next = g_new(struct job, 1);
	GThread *thread;

	next->work = work;
	next->what = what;
	g_mutex_lock(&aside->lock);
	g_queue_push_tail(&aside->waiting, next);
	aside->left++;
	if (aside->threads < THREADS_MAX) {
		thread = g_thread_try_new("aside", run, aside, NULL);
		if (thread) {
			aside->threads++;
			g_thread_unref(thread);
		} else if (!aside->threads) {
			work_off(aside);
		}
	}
	g_mutex_unlock(&aside->lock);
}

unsigned int aside_left(struct aside *aside)
{
	unsigned int left;

	g_mutex_lock(&aside->lock);
	left = aside->left;
	g_mutex_unlock(&aside->lock);
	return left;
}

bool aside_is_busy(struct aside *aside)
{
	return aside_left(aside) > 0;
}

void aside_finish(struct aside *aside)
{
	g_mutex_lock(&aside->lock);
	while (aside->threads)
		g_cond_wait(&aside->changed, &aside->lock);
	g_mutex_unlock(&aside->lock);
}
