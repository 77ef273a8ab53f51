/* SPDX-License-Identifier: GPL-2.0 */
/* worker_child.h: what the process of a recording does. */
#ifndef MEMTOLL_WORKER_CHILD_H
#define MEMTOLL_WORKER_CHILD_H

struct worker_config;

/* After fork: fd is connected to whoever started it. */
void worker_child(const struct worker_config *config, int fd) __attribute__((noreturn));

#endif /* MEMTOLL_WORKER_CHILD_H */
