/* SPDX-License-Identifier: GPL-2.0 */
/* doctor_load.h: measures what probes would cost a running process, by watching 1 % of its time. */
#ifndef MEMTOLL_DOCTOR_LOAD_H
#define MEMTOLL_DOCTOR_LOAD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/functions.h"

#define DOCTOR_LOADS_MAX 8

struct probe_load {
	char probes[32];   /* "malloc, free" */
	double hits_per_s; /* of the program's own CPU time */
	double hit_ns;
	double cost_pct; /* of the CPU time, if always watched */
};

/* Of a hit, by the calibration and what was seen; 0: not known. */
struct probe_prices {
	double ns[FN_COUNT]; /* of a call, by enum memtoll_fn */
	double once_ns;	     /* where no return is waited for */
};

/* Takes two seconds. Rows written, 0 for a process that does nothing, or -1 after a message. */
ssize_t probe_loads_measure(pid_t pid, struct probe_load *loads, size_t capacity,
			    struct probe_prices *prices);

#endif /* MEMTOLL_DOCTOR_LOAD_H */
