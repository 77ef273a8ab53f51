/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bounded.h: calls that another process can make wait for ever: reads of its memory
 * (userfaultfd(2), a page of a file system that does not answer), opening what lies on a file
 * system of its own.
 *
 * Such a call is made by a thread that is waited for so long. Then it is given up: the thread is
 * left to it (nothing but its end can be asked of one that waits inside the kernel), and others
 * work on.
 */
#ifndef MEMTOLL_BOUNDED_H
#define MEMTOLL_BOUNDED_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How long reads of memory are waited for, and file systems, which may be those of a network. */
#define BOUNDED_MEMORY_MS 100
#define BOUNDED_FILE_MS 500
/* Of whom a call was given up is left alone for so long, and as long as that lasts. */
#define BOUNDED_REST_MS 5000
/* Calls given up that have not ended: with so many, no more are made. */
#define BOUNDED_STUCK_MAX 16

/*
 * Have work(job) called. who: the process that may hold it up, or any other number that stands for
 * such a one. True: it was; job is the caller's as before. False: it was given up or not even
 * begun; release(job) has been called, or will be. Inside such a call another one is a part of it.
 * Where no thread can be made (a limit of processes, of memory) it is called here, and has no
 * bound.
 */
bool bounded_call(int who, unsigned int ms, void (*work)(void *job), void *job,
		  GDestroyNotify release);

/*
 * No target is asked any more: the threads end, and with them what they were allowed. Calls that
 * come nevertheless are made here, without a bound.
 */
void bounded_finish(void);

/* Calls that were given up, or not begun, since this was asked last. */
uint64_t bounded_given_up(void);

#endif /* MEMTOLL_BOUNDED_H */
