/* SPDX-License-Identifier: GPL-2.0 */
/*
 * top_machine_probes.h: the programs of bpf/machine/, and what they may cost: those that fire often
 * are attached a part of the time only, where they would take too much of the machine.
 */
#ifndef MEMTOLL_TOP_MACHINE_PROBES_H
#define MEMTOLL_TOP_MACHINE_PROBES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire/machine.h"

struct machine_probes;

/* limit: part of the machine; 0: none. NULL after a message; *unsupported: the kernel refuses. */
struct machine_probes *machine_probes_open(double limit, bool *unsupported);
void machine_probes_close(struct machine_probes *probes);

/* Descriptors of the maps. */
int machine_probes_processes(const struct machine_probes *probes);
int machine_probes_groups(const struct machine_probes *probes);
int machine_probes_pushes(const struct machine_probes *probes);

/*
 * A new interval begins, where the last one ended; then, now and again in it: attach or detach what
 * is due.
 */
void machine_probes_begin(struct machine_probes *probes, uint64_t now, uint64_t length_ns);
void machine_probes_step(struct machine_probes *probes, uint64_t now);

/* Of the interval that ends now. */
struct machine_cost {
	double overhead;  /* part of the machine's processors: programs and this process */
	double watched;	  /* part of the time that the frequent programs were attached */
	uint64_t lost[2]; /* processes and groups that had no room */
};

void machine_probes_end(struct machine_probes *probes, uint64_t now, struct machine_cost *cost);

/* What part of the time to watch next, from what it was and what that cost of what it may cost. */
double machine_duty(double duty, double cost, double limit);

#endif /* MEMTOLL_TOP_MACHINE_PROBES_H */
