/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bounds.h: the bounds that a gate holds counts against, from a file, or those that are used where
 * there is none. userspace/doc/gate.md says what a file may have.
 */
#ifndef MEMTOLL_BOUNDS_H
#define MEMTOLL_BOUNDS_H

#include <glib.h>
#include <stdbool.h>

enum gate_probes {
	GATE_ALLOC = 1,
	GATE_FAULTS = 2,
	GATE_MAPPINGS = 4,
	GATE_READS = 8,
	GATE_SAMPLES = 16,
	GATE_ALL = 31,
};

enum gate_toll_flags {
	GATE_SAMPLED = 1,   /* its count is one of samples: an estimate */
	GATE_FAULT = 2,	    /* one of page faults */
	GATE_BY_KERNEL = 4, /* which decides upon faults, as the program does upon calls */
};

/* A toll of view toll_kind. */
struct gate_toll {
	const char *name, *family;
	unsigned int probes; /* that its count needs */
	unsigned int flags;  /* enum gate_toll_flags */
	/*
	 * By what a count may exceed that of another run where nobody knows how runs differ: a part
	 * of itself, and so many events or bytes. 0: it is no measure of the program, as memory and
	 * the page cache decide.
	 */
	double part, events, bytes;
	/* The same where several runs did not differ at all: the next one may be from elsewhere. */
	double few_events, few_bytes;
};

extern const struct gate_toll gate_tolls[];
extern const size_t gate_toll_count;

enum gate_scope { GATE_TOLL, GATE_FAMILY, GATE_ALL_FAULTS, GATE_OBSERVED };
enum gate_metric { GATE_COUNT, GATE_BYTES, GATE_TIME };

/* value <= factor * baseline + more */
struct bound {
	char *name;    /* as it is written: zero.libc.bytes, site."parse_*".alloc.calls */
	char *pattern; /* of a site; NULL: of all */
	char *of;      /* a toll, a family; "" of all faults and the observed time */
	enum gate_scope scope;
	enum gate_metric metric;
	double factor;	   /* 0: the baseline does not matter */
	double more;	   /* events, bytes, seconds */
	char *said;	   /* "1.05 x baseline" */
	unsigned int line; /* of the file; 0: there is none */
};

struct bounds {
	char *path;	 /* NULL: what is used where there is none */
	GPtrArray *list; /* struct bound */
};

/* NULL after one message, which names file and line. */
struct bounds *bounds_read(const char *path);

/* Against a baseline, all counts that are the program's, with room for what differs from run to run. */
struct bounds *bounds_usual(void);

void bounds_free(struct bounds *budget);

/* What must be attached for its counts. */
unsigned int bounds_probes(const struct bounds *budget);

/* A bound against a baseline, one on a time; NULL: none. */
const struct bound *bounds_against_baseline(const struct bounds *budget);
const struct bound *bounds_on_time(const struct bounds *budget);

/* "calls" where that is what is counted, "faults", "count", "bytes", "time". */
const char *bound_metric_name(const struct bound *bound);

#endif /* MEMTOLL_BOUNDS_H */
