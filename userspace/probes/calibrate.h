/* SPDX-License-Identifier: GPL-2.0 */
/*
 * calibrate.h: what a probe hit costs on this machine, measured at a start (see price_cache.h).
 *
 * A child of the tracer runs known loops, first bare, then with the very probes on it that the
 * target will get. The difference is the price; what the probes themselves measured beyond the
 * bare time is the part that falls inside a measured call.
 */
#ifndef MEMTOLL_CALIBRATE_H
#define MEMTOLL_CALIBRATE_H

#include "probes/attach.h"

struct price {
	double hit_ns;	  /* added to the target by one hit */
	double inside_ns; /* of it: falls into the measured duration */
	double error_ns;  /* distance of the median round from the best */
};

struct calibration_result {
	struct price malloc;
	struct price calloc;
	struct price free;
	struct price idle;	/* a hit of a probe that is attached idle */
	struct price fault;	/* start of a fault; inside a call all of it */
	struct price fault_end; /* timing of its end, in windows; inside: see below */
	struct price map;
	struct price read;	      /* of a file */
	struct price read_other;      /* read(2) on sockets, pipes and the like: not recorded */
	struct price syscall;	      /* any other system call, while some are watched */
	struct price syscall_counted; /* and by how much more while they are counted */
	double fault_begin_ns; /* of a fault's price, the part between the program's own clock reads */
	double read_program_ns; /* the same of a read's */
	double map_program_ns;	/* and of a mapping call's */
	double fault_ns;	/* a bare first touch of a 4 KiB page, entry to exit */
	/*
	 * What windows time of a fault less the fault: the probes' part between the two
	 * timestamps less the exception's entry and exit, which are outside of them. Either may
	 * be more.
	 */
	double fault_timed_inside_ns;
	double fault_timed_error_ns;
	double malloc_ns;	   /* a bare malloc(32) */
	double memset_bytes_per_s; /* 4 MiB at a time */
	/* The same of what stays in the nearest cache, in the next one, and in none. */
	double memset_near_bytes_per_s;
	double memset_middle_bytes_per_s;
	double memset_far_bytes_per_s;
	/* What a short clearing takes beyond its bytes: memset, and rep stos. */
	double memset_begin_ns;
	double string_begin_ns;
	double memcpy_bytes_per_s;   /* 2 MiB at a time */
	double loops_per_s;	     /* of the shortest loop there is: one turn takes a cycle */
	double clear_4k_bytes_per_s; /* clearing proper, pages cold */
	double clear_2m_bytes_per_s;
};

struct calibration;

/* Fork the child and measure bare; before any probe is attached. NULL after a message. */
struct calibration *calibration_begin(void);

/*
 * Measure with probes; after probes_attach(). with_uprobes: else only the tracepoints are priced.
 * 0 or -errno after a message.
 */
int calibration_run(struct calibration *calibration, struct memtoll_bpf *bpf,
		    enum uprobe_mechanism mechanism, struct probes *probes, bool with_uprobes,
		    struct calibration_result *result);

/* The programs take the probes' part out of what they time from now on. */
void calibration_apply(struct memtoll_bpf *bpf, const struct calibration_result *result);

/* End the child. */
void calibration_end(struct calibration *calibration);

#endif /* MEMTOLL_CALIBRATE_H */
