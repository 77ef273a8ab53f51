/* SPDX-License-Identifier: GPL-2.0 */
/* tracepoint.h: BPF programs onto tracepoints by their names, where tracefs may not be mounted. */
#ifndef MEMTOLL_TRACEPOINT_H
#define MEMTOLL_TRACEPOINT_H

#include <glib.h>

#include "host/workqueue.h"

struct bpf_link;
struct bpf_program;

/*
 * Directory "events" of tracefs: of the one mounted, or of an unnamed mount of our own that nobody
 * sees and that ends with the descriptor (fsmount(2), 5.2). A descriptor, or -errno.
 */
int tracefs_open(void);

/* Keep a link that was just made; NULL: -errno. */
int keep_link(GPtrArray *links, struct bpf_link *link);

/*
 * Attach and keep. name: "system/event". 0, or -errno; -ENOENT: this kernel has none of that name.
 */
int attach_tracepoint(GPtrArray *links, struct bpf_program *program, int tracefs, const char *name);

/*
 * Detach in a workqueue, 40 to 70 ms a tracepoint; frees the array. To attach while it is busy
 * would block: the kernel has one lock for both.
 */
void detach_links(struct workqueue *queue, GPtrArray *links);

#endif /* MEMTOLL_TRACEPOINT_H */
