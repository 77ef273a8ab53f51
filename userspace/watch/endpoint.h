/* SPDX-License-Identifier: GPL-2.0 */
/*
 * endpoint.h: the metrics over HTTP, on this machine only. What strangers send is read by a process
 * of its own without privileges.
 */
#ifndef MEMTOLL_ENDPOINT_H
#define MEMTOLL_ENDPOINT_H

#include <glib.h>

struct endpoint;
struct listen_address;

/* NULL after a line in the log, which also tells the port where 0 was asked for. */
struct endpoint *endpoint_start(const struct listen_address *address);
/* What it answers with from now on. One that has died is started again. */
void endpoint_show(struct endpoint *endpoint, const GString *text);
void endpoint_stop(struct endpoint *endpoint);

#endif /* MEMTOLL_ENDPOINT_H */
