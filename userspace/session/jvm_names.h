/* SPDX-License-Identifier: GPL-2.0 */
/*
 * jvm_names.h: names of the code that Java virtual machines have made: each is asked for its perf map
 * (jvm_attach.h) when it is seen, again as code is made and freed (question_times.h), and at the end.
 * Stacks that are written already get their names then.
 */
#ifndef MEMTOLL_JVM_NAMES_H
#define MEMTOLL_JVM_NAMES_H

#include <stdint.h>
#include <sys/types.h>

struct jvm_names;
struct observers;
struct recording;
struct symbolizer;
struct targets;

/* Adds itself to the observers. */
struct jvm_names *jvm_names_new(struct symbolizer *symbolizer, struct observers *observers);
void jvm_names_free(struct jvm_names *names);

/* A stack of the process has ended in code that has no name. */
void jvm_names_want(struct jvm_names *names, pid_t pid);

/* Takes what has come, and asks where that is due. */
void jvm_names_step(struct jvm_names *names, uint64_t now_ns, struct targets *targets);

/*
 * Asks all for the last time, and waits; service(context) is called meanwhile. A line for those that
 * have no names, or where there is none at all.
 */
void jvm_names_end(struct jvm_names *names, void (*service)(void *context), void *context);

/* 0 or -errno of the recording. */
int jvm_names_write(struct jvm_names *names, struct recording *recording);

#endif /* MEMTOLL_JVM_NAMES_H */
