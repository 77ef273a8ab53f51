// SPDX-License-Identifier: GPL-2.0
/* Not a GThreadPool: where no thread can be created that aborts, or never runs the job. */
#include "host/workqueue.h"

#include "host/privileges.h"

#define THREADS_MAX 16

struct job {
	void (*work)(void *);
	void *what;
};

void workqueue_init(struct workqueue *queue)
{
	g_mutex_init(&queue->lock);
	g_cond_init(&queue->changed);
	g_queue_init(&queue->waiting);
	queue->threads = 0;
	queue->left = 0;
}

/* Run jobs until the queue is empty. Called with the lock, which it drops for each job. */
static void work_off(struct workqueue *queue)
{
	struct job *next;

	while ((next = g_queue_pop_head(&queue->waiting))) {
		g_mutex_unlock(&queue->lock);
		next->work(next->what);
		g_free(next);
		g_mutex_lock(&queue->lock);
		queue->left--;
	}
}

static gpointer run(gpointer given)
{
	struct workqueue *queue = given;

	privileges_keep(PRIVILEGES_FOLLOW);
	g_mutex_lock(&queue->lock);
	work_off(queue);
	queue->threads--;
	g_cond_broadcast(&queue->changed);
	g_mutex_unlock(&queue->lock);
	return NULL;
}

void workqueue_push(struct workqueue *queue, void (*work)(void *), void *what)
{
	struct job *next = g_new(struct job, 1);
	GThread *thread;

	next->work = work;
	next->what = what;
	g_mutex_lock(&queue->lock);
	g_queue_push_tail(&queue->waiting, next);
	queue->left++;
	if (queue->threads < THREADS_MAX) {
		thread = g_thread_try_new("workqueue", run, queue, NULL);
		if (thread) {
			queue->threads++;
			g_thread_unref(thread);
		} else if (!queue->threads) {
			work_off(queue);
		}
	}
	g_mutex_unlock(&queue->lock);
}

unsigned int workqueue_pending(struct workqueue *queue)
{
	unsigned int left;

	g_mutex_lock(&queue->lock);
	left = queue->left;
	g_mutex_unlock(&queue->lock);
	return left;
}

bool workqueue_is_busy(struct workqueue *queue)
{
	return workqueue_pending(queue) > 0;
}

void workqueue_wait(struct workqueue *queue)
{
	g_mutex_lock(&queue->lock);
	while (queue->threads)
		g_cond_wait(&queue->changed, &queue->lock);
	g_mutex_unlock(&queue->lock);
}
