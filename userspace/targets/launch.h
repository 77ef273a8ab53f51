/* SPDX-License-Identifier: GPL-2.0 */
/*
 * launch.h: run a command so that it can be traced from its first instruction.
 *
 * The command and its descendants are followed by ptrace (PTRACE_SEIZE), to hold a process after
 * exec until its libraries are mapped and probed, a forked child until it is probed, and each
 * thread for a moment at its end, while its memory can still be looked at. In between they run
 * freely; should the tracer die, the kernel lets them go.
 *
 * In a storm of processes who makes them is let go: they run at once, and only few are held
 * (storm.h).
 *
 * Threads of a process that makes very many are not held, and followed only if they live long
 * enough (launch_adopt_threads): what a young one forks or becomes by exec is not followed from the
 * first instruction, but from when the kernel side tells of it (launch_adopt).
 */
#ifndef MEMTOLL_LAUNCH_H
#define MEMTOLL_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct launch;

/* Called while the process is held. */
struct launch_events {
	/*
	 * A new program image; nothing of it has run. caller: the thread that called exec, the
	 * number it had before. loader: where its dynamic loader is mapped; 0: it has none.
	 * may_signal: SIGURG would be seen here. True: its loader will send that when everything
	 * is mapped, and the process runs freely until then; started() says whether it has.
	 */
	bool (*exec)(void *context, pid_t pid, pid_t caller, uint64_t loader, bool may_signal);
	bool (*started)(void *context, pid_t pid);
	/* The dynamic loader has mapped a file executable: perhaps libc. */
	void (*mapped)(void *context, pid_t pid);
	/* All libraries are mapped and relocated; no code outside the loader has run. */
	void (*ready)(void *context, pid_t pid);
	/* parent: 0 where the child was seen first; it still has that parent then. */
	void (*forked)(void *context, pid_t child, pid_t parent);
	/*
	 * A thread is about to end; what it has of its process's memory is still there. Called
	 * for every thread that is held at its end, in any order when all end at once.
	 */
	void (*dying)(void *context, pid_t tid);
	/* Dead, not yet reaped: /proc/PID/stat and the CPU clock can still be read. */
	void (*exiting)(void *context, pid_t pid, int wait_status);
};

/*
 * Fork, and hold the child before exec. NULL on failure, after a message. launch_go() lets it
 * exec and returns once it has: 0, or -errno when the command could not be run.
 */
struct launch *launch_new(char *const argv[], const struct launch_events *events, void *context);
int launch_go(struct launch *launch);
pid_t launch_pid(const struct launch *launch);

/*
 * How long processes were held, one after the other, from when it was noticed that they had
 * stopped, or ended: a lower bound of what ptrace takes from them.
 */
uint64_t launch_held_ns(const struct launch *launch);

/*
 * Handle what happened to the followed processes; call on SIGCHLD. True: it took long, and there is
 * more, for which no signal will come.
 */
bool launch_poll(struct launch *launch);

/*
 * Processes are held as long as they do not start faster than one in so long, 0: all of them. Of a
 * storm few are, and the kernel side tells of the others: launch_started(), of each.
 */
void launch_pay_starts(struct launch *launch, uint64_t every_ns);
void launch_started(struct launch *launch);
/* From time to time: those that make the processes of a storm, when it is over, or for a sample. */
void launch_follow_again(struct launch *launch);

/* A process of the command that is not followed: its maker, or who called exec, was not. */
void launch_adopt(struct launch *launch, pid_t pid);

/* Threads that nobody was held for when they were made. */
void launch_adopt_threads(struct launch *launch);

/* The command itself has ended; *wait_status as wait(2) has it. */
bool launch_ended(const struct launch *launch, int *wait_status);

/* Ask the command to end (SIGTERM), as when the recording's time is over. */
void launch_terminate(struct launch *launch);

/* Detach from every followed process, and free. */
void launch_free(struct launch *launch);

#endif /* MEMTOLL_LAUNCH_H */
