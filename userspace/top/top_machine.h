/* SPDX-License-Identifier: GPL-2.0 */
/*
 * top_machine.h: snapshots of the whole machine: who has pages cleared, who waits for pages, who
 * reclaims; and the matrix of cgroups, who pushed out whose pages.
 */
#ifndef MEMTOLL_TOP_MACHINE_H
#define MEMTOLL_TOP_MACHINE_H

#include "top/top_show.h"

struct machine_config {
	double limit; /* part of the machine; 0: none */
	uint64_t interval_ns;
	uint64_t duration_ns;		   /* 0: until a signal comes */
	struct top_pseudonyms *pseudonyms; /* NULL: names */
};

/* Until the end is asked for. Exit status, after a message. The signals are blocked (top_show.h). */
int top_machine_run(const struct machine_config *config, struct top_show *show);

#endif /* MEMTOLL_TOP_MACHINE_H */
