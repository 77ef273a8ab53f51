/* SPDX-License-Identifier: GPL-2.0 */
/*
 * timed_call.h: calls with a time limit, for what another process can block for ever: reads of its
 * memory (a page of a file system that does not answer), opening a file of a file system that it
 * serves.
 *
 * A worker thread makes the call and the caller waits for it that long. After that the call is
 * given up: its thread stays blocked, since a call inside the kernel cannot be cancelled, and
 * further calls take another thread.
 */
#ifndef MEMTOLL_TIMED_CALL_H
#define MEMTOLL_TIMED_CALL_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Limits for reads of memory, and for file systems, which may be on a network. */
#define TIMED_CALL_MEMORY_MS 100
#define TIMED_CALL_FILE_MS 500
/*
 * So long where the process, or the call's own thread, wants a CPU: threads that hold the lock of a
 * busy process's map can be without one for longer than the limits above. So long, too, where the
 * call gets on, step by step: pages from a slow disk are many waits, none of them long. Who asks
 * once, and has nothing that would wait meanwhile, waits so long in any case.
 */
#define TIMED_CALL_PATIENCE_MS 2000
/*
 * After a call was given up its process is left alone while the call is stuck, and for so long, or
 * ten times as long as the caller waited; shorter where the call ended soon after.
 */
#define TIMED_CALL_REST_MS 5000
/* Calls given up that have not ended: beyond that many, none are made. */
#define TIMED_CALL_STUCK_MAX 16

/*
 * Have work(job) called. who: the process that may block it, or any other number that stands for
 * one. True: it was; job still belongs to the caller. False: it was given up or never started;
 * release(job) has been called, or will be. A call inside a call is part of it, without a limit of
 * its own. Where no thread can be created (a limit of processes or memory) work is called here, and
 * has no limit.
 */
bool timed_call(int who, unsigned int ms, void (*work)(void *job), void *job,
		GDestroyNotify release);

/*
 * From here on no limit is below TIMED_CALL_PATIENCE_MS, until so many calls were given up all the
 * same: many processes that never answer are not waited for one after the other. 0: as before.
 */
void timed_calls_be_patient(unsigned int times);

/*
 * At the end of a session: the threads exit, and with them the privileges they hold. Later calls
 * are made by the caller itself, without a limit.
 */
void timed_call_finish(void);

/* Calls given up or never started, since the last call of this. */
uint64_t timed_calls_given_up(void);

#endif /* MEMTOLL_TIMED_CALL_H */
