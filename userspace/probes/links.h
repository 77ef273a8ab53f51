/* SPDX-License-Identifier: GPL-2.0 */
/* links.h: the links that hold BPF programs on their tracepoints and events. */
#ifndef MEMTOLL_LINKS_H
#define MEMTOLL_LINKS_H

#include <glib.h>

#include "host/workqueue.h"

struct bpf_link;

/* Keep a link that was just made; NULL: -errno. */
int keep_link(GPtrArray *links, struct bpf_link *link);

/* Detach in a workqueue, which takes up to some 10 ms each; frees the array. */
void detach_links(struct workqueue *queue, GPtrArray *links);

#endif /* MEMTOLL_LINKS_H */
