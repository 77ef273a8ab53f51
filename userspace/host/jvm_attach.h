/* SPDX-License-Identifier: GPL-2.0 */
/*
 * jvm_attach.h: asks a running HotSpot JVM, 17 or newer, to write /tmp/perf-PID.map: what
 * `jcmd PID Compiler.perfmap` does, without a JDK.
 *
 * The protocol (OpenJDK, attachListener_linux.cpp and VirtualMachineImpl.java): the JVM listens on
 * /tmp/.java_pidN, N its own pid. Where it does not yet, a file /tmp/.attach_pidN of its user and
 * SIGQUIT make it. A request is five strings that end with a zero byte; the answer a number, 0 where
 * all is well, and a text.
 *
 * SIGQUIT ends a process that does not catch it. It is sent only where it is caught, libjvm.so is
 * mapped, and HotSpot's thread for such signals is there; once; not where a socket is there already.
 * All else is done by a process of its own that has become the JVM's user, without capabilities, in
 * the JVM's root directory, and that ends by itself.
 */
#ifndef MEMTOLL_JVM_ATTACH_H
#define MEMTOLL_JVM_ATTACH_H

#include <stdbool.h>
#include <sys/types.h>

enum jvm_answer {
	JVM_WROTE,
	JVM_GONE,	 /* the process has ended */
	JVM_STOPPED,	 /* it is stopped: a signal would be handled some time */
	JVM_NOT_READY,	 /* SIGQUIT is not caught, or not by HotSpot: it may still start */
	JVM_OTHER,	 /* libjvm.so of OpenJ9 */
	JVM_DISABLED,	 /* -XX:+DisableAttachMechanism */
	JVM_RIGHTS,	 /* we cannot become its user */
	JVM_FOREIGN,	 /* a file of that name in its /tmp is another's */
	JVM_DEAF,	 /* no socket came */
	JVM_SILENT,	 /* it did not answer */
	JVM_REFUSED,	 /* its answer is an error: it is older than 17, say */
	JVM_WITHOUT_MAP, /* it answered, and there is no map */
	JVM_FAILED,	 /* a system call of ours did */
	JVM_ANSWERS
};

/* For people: "what", of the process. */
const char *jvm_answer_text(enum jvm_answer answer);

struct jvm_said {
	enum jvm_answer answer;
	bool was_there; /* a map, before it was asked */
};

struct maps;

/* Whether it has the code of a JVM. */
bool jvm_in_maps(const struct maps *maps);

/*
 * Ask; the answer comes later. A descriptor that is readable then, -1: said has the answer already.
 * The process must be one that jvm_in_maps() is true of.
 */
int jvm_attach_begin(pid_t pid, struct jvm_said *said);

/* False: it has not come yet. True: fd is closed. */
bool jvm_attach_take(int fd, struct jvm_said *said);

/* Longer than an answer takes to come. */
#define JVM_ATTACH_MS 12000

/* With the JVM's rights, remove the map that it has written. */
void jvm_remove_map(pid_t pid);

#endif /* MEMTOLL_JVM_ATTACH_H */
