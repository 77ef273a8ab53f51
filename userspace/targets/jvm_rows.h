/* SPDX-License-Identifier: GPL-2.0 */
/* jvm_rows.h: how stacks are walked through the code that a Java virtual machine has made. */
#ifndef MEMTOLL_JVM_ROWS_H
#define MEMTOLL_JVM_ROWS_H

#include <sys/types.h>

struct symbolizer;
struct targets;

/*
 * Of all code that its perf map names, which has just been written: read, and its rows (unwind_hotspot.h)
 * published. Its memory is read within bounds.
 */
void jvm_rows_show(struct targets *targets, struct symbolizer *symbolizer, pid_t pid);

#endif /* MEMTOLL_JVM_ROWS_H */
