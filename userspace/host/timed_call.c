// SPDX-License-Identifier: GPL-2.0
#include "host/timed_call.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/privileges.h"
#include "host/proc.h"

/* Waits that last too long for a caller without a CPU: who blocks may be who keeps the CPUs busy. */
#define LATE_MOST 8
/* Of a process: one that wants a CPU is among the first, or there are few such. */
#define THREADS_LOOKED_AT 64
/* A process is left alone for as many times as long as a call about it took. */
#define REST_TIMES 10

struct worker {
	GCond wake;
	GCond done;
	pid_t tid; /* 0: not running yet */
	int who;   /* may block the call */
	gint64 begun_us;
	void (*work)(void *job);
	void *job; /* NULL: idle */
	GDestroyNotify release;
	bool given_up;
	bool ended; /* to be freed by its thread */
};

/* A process about which a call was given up. */
struct refused {
	bool stuck;	 /* the call has not ended */
	gint64 until_us; /* g_get_monotonic_time() */
};

static __thread bool inside;	   /* a worker thread */
static GMutex lock;		   /* of all below */
static GQueue idle = G_QUEUE_INIT; /* of struct worker */
static GHashTable *refused;	   /* who -> struct refused */
static unsigned int stuck;
static uint64_t given_up;
static bool over;	      /* timed_call_finish() was called */
static unsigned int patience; /* calls that may be given up yet */

static void worker_free(struct worker *worker)
{
	g_cond_clear(&worker->wake);
	g_cond_clear(&worker->done);
	g_free(worker);
}

/* Called with the lock, when nobody waits for the worker. */
static void put_idle(struct worker *worker)
{
	if (!over) {
		g_queue_push_head(&idle, worker);
		return;
	}
	worker->ended = true;
	g_cond_signal(&worker->wake);
}

/* A call that was given up has ended after all. Called with the lock, which it drops. */
static void finish_late(struct worker *worker)
{
	struct refused *entry = g_hash_table_lookup(refused, GINT_TO_POINTER(worker->who));
	gint64 now = g_get_monotonic_time();

	if (entry) {
		entry->stuck = false;
		entry->until_us = MIN(entry->until_us, now + REST_TIMES * (now - worker->begun_us));
	}
	worker->given_up = false;
	/* Closing a file may block, too. */
	g_mutex_unlock(&lock);
	worker->release(worker->job);
	g_mutex_lock(&lock);
	stuck--;
}

static gpointer run(gpointer given)
{
	struct worker *worker = given;

	inside = true;
	privileges_keep(PRIVILEGES_FOLLOW);
	g_mutex_lock(&lock);
	worker->tid = gettid();
	for (;;) {
		while (!worker->job && !worker->ended)
			g_cond_wait(&worker->wake, &lock);
		if (worker->ended)
			break;
		g_mutex_unlock(&lock);
		worker->work(worker->job);
		g_mutex_lock(&lock);
		if (worker->given_up) {
			finish_late(worker);
			put_idle(worker);
		}
		worker->job = NULL;
		g_cond_signal(&worker->done);
	}
	g_mutex_unlock(&lock);
	worker_free(worker);
	return NULL;
}

/* A forked child has none of its parent's threads. */
static void forget_workers(void)
{
	g_mutex_init(&lock);
	g_queue_init(&idle);
	stuck = 0;
	inside = false;
}

/* An idle worker. NULL: no thread can be created. Called with the lock. */
static struct worker *worker_take(void)
{
	struct worker *worker = g_queue_pop_head(&idle);
	GThread *thread;

	if (worker)
		return worker;
	worker = g_new0(struct worker, 1);
	g_cond_init(&worker->wake);
	g_cond_init(&worker->done);
	thread = g_thread_try_new("timed-call", run, worker, NULL);
	if (!thread) {
		worker_free(worker);
		return NULL;
	}
	g_thread_unref(thread);
	return worker;
}

static bool is_refused(int who)
{
	const struct refused *entry;

	if (!refused) {
		refused = g_hash_table_new_full(NULL, NULL, NULL, g_free);
		pthread_atfork(NULL, NULL, forget_workers);
	}
	entry = g_hash_table_lookup(refused, GINT_TO_POINTER(who));
	if (stuck >= TIMED_CALL_STUCK_MAX)
		return true;
	if (!entry)
		return false;
	if (entry->stuck || g_get_monotonic_time() < entry->until_us)
		return true;
	g_hash_table_remove(refused, GINT_TO_POINTER(who));
	return false;
}

static void give_up(struct worker *worker)
{
	struct refused *entry = g_new0(struct refused, 1);
	gint64 now = g_get_monotonic_time();

	entry->stuck = true;
	entry->until_us =
		now + MAX(TIMED_CALL_REST_MS * 1000, REST_TIMES * (now - worker->begun_us));
	g_hash_table_replace(refused, GINT_TO_POINTER(worker->who), entry);
	worker->given_up = true;
	patience -= !!patience;
	stuck++;
	given_up++;
}

/* The worker could go on but has no CPU. */
static bool is_runnable(const struct worker *worker)
{
	struct proc_stat stat;

	return !worker->tid || (!proc_stat_read(getpid(), worker->tid, &stat) && stat.state == 'R');
}

/*
 * The process that the call is about wants a CPU: of its threads one may hold the lock of its map,
 * which readers wait for, and get on with it when it has one.
 */
static bool wants_cpu(int who)
{
	unsigned int looked_at = 0;
	struct proc_stat stat;
	char path[32];
	const char *tid;
	bool wants = false;
	GDir *threads;

	/* Others stand for something else. */
	if (who < -PROC_PID_MAX || who > PROC_PID_MAX)
		return false;
	who = abs(who);
	g_snprintf(path, sizeof(path), "/proc/%d/task", who);
	threads = g_dir_open(path, 0, NULL);
	while (threads && !wants && looked_at++ < THREADS_LOOKED_AT &&
	       (tid = g_dir_read_name(threads)))
		wants = !proc_stat_read(who, atoi(tid), &stat) && stat.state == 'R';
	g_clear_pointer(&threads, g_dir_close);
	return wants;
}

/* Called with the lock: until the call has ended, or so long. By how much the wait was too long. */
static gint64 wait_once(struct worker *worker, gint64 us)
{
	gint64 until = g_get_monotonic_time() + us;

	while (worker->job)
		if (!g_cond_wait_until(&worker->done, &lock, until))
			break;
	return g_get_monotonic_time() - until;
}

/*
 * True: the call has ended. Called with the lock. Who comes back from a wait far too late was stopped
 * or had no CPU, and so had the worker: that time counts as none. A runnable worker without a CPU
 * gets longer: the machine is busy, no process blocks it. So does a call about a process that may
 * be waiting for one, and a worker that gets on: pages come from a slow disk, one by one.
 */
static bool wait_done(struct worker *worker, unsigned int ms)
{
	const gint64 once = (patience ? MAX(ms, TIMED_CALL_PATIENCE_MS) : ms) * 1000;
	unsigned int late_waits = 0;
	uint64_t before;
	gint64 waited = 0, late_us;
	bool late, gets_on;

	do {
		/* Half of it is enough for nearly all calls: then nothing more is looked at. */
		late_us = wait_once(worker, once / 2);
		before = worker->job ? proc_turns(getpid(), worker->tid) : 0;
		late_us = MAX(late_us, 0) + wait_once(worker, once / 2);
		late = late_us > once / 4 && late_waits++ < LATE_MOST;
		waited += late ? 0 : once;
		gets_on = worker->job && proc_turns(getpid(), worker->tid) > before;
	} while (worker->job &&
		 (late || (waited < TIMED_CALL_PATIENCE_MS * 1000 &&
			   (gets_on || is_runnable(worker) || wants_cpu(worker->who)))));
	return !worker->job;
}

bool timed_call(int who, unsigned int ms, void (*work)(void *job), void *job,
		GDestroyNotify release)
{
	bool here = inside, done = false, refuse = false;
	struct worker *worker = NULL;

	g_mutex_lock(&lock);
	here |= over;
	if (!here)
		refuse = is_refused(who);
	if (!here && !refuse) {
		worker = worker_take();
		here = !worker;
	}
	if (worker) {
		worker->who = who;
		worker->work = work;
		worker->release = release;
		worker->job = job;
		worker->begun_us = g_get_monotonic_time();
		g_cond_signal(&worker->wake);
		done = wait_done(worker, ms);
		/* Here, not in run(): until now the caller had not seen that it is done. */
		if (done)
			put_idle(worker);
		else
			give_up(worker);
	}
	given_up += refuse;
	g_mutex_unlock(&lock);
	if (here)
		work(job);
	else if (refuse)
		release(job);
	return done || here;
}

void timed_calls_be_patient(unsigned int times)
{
	g_mutex_lock(&lock);
	patience = times;
	g_mutex_unlock(&lock);
}

void timed_call_finish(void)
{
	struct worker *worker;

	g_mutex_lock(&lock);
	over = true;
	while ((worker = g_queue_pop_head(&idle)))
		put_idle(worker);
	g_mutex_unlock(&lock);
}

uint64_t timed_calls_given_up(void)
{
	uint64_t count;

	g_mutex_lock(&lock);
	count = given_up;
	given_up = 0;
	g_mutex_unlock(&lock);
	return count;
}
