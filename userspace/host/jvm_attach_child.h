/* SPDX-License-Identifier: GPL-2.0 */
/* jvm_attach_child.h: the process that asks a JVM. Only jvm_attach.c includes it. */
#ifndef MEMTOLL_JVM_ATTACH_CHILD_H
#define MEMTOLL_JVM_ATTACH_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "host/jvm_attach.h"
#include "host/target_rights.h"

/* Opened and read before, with our own rights. */
struct jvm_target {
	pid_t pid;
	pid_t inside; /* its pid as it sees itself */
	struct target_rights rights;
	int pidfd;
	int root;		/* its root directory */
	int status;		/* /proc/PID/status */
	int answer;		/* a pipe, for struct jvm_said */
	enum jvm_answer signal; /* 0: it may be sent SIGQUIT */
};

#define SIGNALS_CAUGHT "\nSigCgt:"

/* Whether it is not stopped, and catches SIGQUIT. status: text of /proc/PID/status. */
enum jvm_answer jvm_handles_quit(const char *status);

/* "tmp/perf-N.map" less the directory. */
void jvm_map_name(pid_t inside, char name[64]);

/* In a forked child of a process with threads, so without malloc(). Does not return. */
void jvm_attach_child(const struct jvm_target *target) __attribute__((noreturn));

#endif /* MEMTOLL_JVM_ATTACH_CHILD_H */
