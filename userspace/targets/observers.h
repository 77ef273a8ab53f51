/* SPDX-License-Identifier: GPL-2.0 */
/*
 * observers.h: one table of the modules that keep state of processes. Each registers once, and is
 * called when a process forks, calls exec, exits, maps code, and is forgotten. A process that
 * ptrace holds is seen before the ring buffer has the records of what it did until then. Modules
 * that join records are called in the order of the records; modules that read the process are
 * called at once, as it may be gone by then.
 */
#ifndef MEMTOLL_OBSERVERS_H
#define MEMTOLL_OBSERVERS_H

#include <stdbool.h>
#include <sys/types.h>

struct maps;
struct observers;

enum observer_moment { WITH_RECORDS, AT_ONCE };

struct observer {
	enum observer_moment moment;
	void *state;
	/* Any may be NULL. */
	void (*forked)(void *state, pid_t parent, pid_t child);
	void (*executed)(void *state, pid_t pid);
	void (*exited)(void *state, pid_t pid);
	/* Of either moment: what it maps now. new_image: all before is gone. */
	void (*mapped)(void *state, pid_t pid, const struct maps *maps, bool new_image);
	/* All that was ever seen of it is written. Of either moment. */
	void (*forgotten)(void *state, pid_t pid);
};

struct observers *observers_new(void);
void observers_free(struct observers *observers);

/* Called in the order in which they were added. */
void observers_add(struct observers *observers, const struct observer *observer);

void observers_forked(const struct observers *observers, enum observer_moment moment, pid_t parent,
		      pid_t child);
void observers_executed(const struct observers *observers, enum observer_moment moment, pid_t pid);
void observers_exited(const struct observers *observers, enum observer_moment moment, pid_t pid);
void observers_mapped(const struct observers *observers, pid_t pid, const struct maps *maps,
		      bool new_image);
void observers_forgotten(const struct observers *observers, pid_t pid);

#endif /* MEMTOLL_OBSERVERS_H */
