/* SPDX-License-Identifier: GPL-2.0 */
/* dispatch.h: records of the ring buffer, each to those that consume its kind. */
#ifndef MEMTOLL_DISPATCH_H
#define MEMTOLL_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct consumers;
struct observers;
struct swap_devices;
struct targets;

struct dispatch {
	struct consumers *consumers;
	struct targets *targets;
	struct observers *observers;
	const struct swap_devices *swap_devices;
	bool *swap_types_seen; /* SWAP_TYPES of them: set here, cleared where the devices change */
	bool launched;	       /* ptrace holds processes at fork and exec, but for some: */
	void (*adopt)(void *context, pid_t pid); /* it does from now on; or NULL */
	void (*started)(void *context);		 /* a process that it did not hold; or NULL */
	void *adopt_context;
};

/*
 * Callback of the ring buffer; context is a struct dispatch. A record that is shorter than its
 * kind, or of no kind that is known, is dropped and counted. Always 0.
 */
int dispatch_event(void *context, void *data, size_t size);

#endif /* MEMTOLL_DISPATCH_H */
