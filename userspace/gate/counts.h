/* SPDX-License-Identifier: GPL-2.0 */
/* counts.h: what a recording says of the bounds of a budget: views exact_count and count_doubt. */
#ifndef MEMTOLL_COUNTS_H
#define MEMTOLL_COUNTS_H

#include <glib.h>

#include "gate/bounds.h"

/* Where it is paid; of several recordings the same (view stack_site). */
struct count_site {
	char *site; /* what it is known by */
	char *place; /* "calloc_loop.c:42 (round_once)"; where there is no code, of what kind it is */
	char *call;	       /* the allocator's function, the system call; "" */
	char *function, *file; /* "": unknown */
	int line;
	char *caller; /* place of the next function of the program's own; NULL */
	double value;
};

struct count {
	double value; /* NAN: of a time */
	double lost;  /* events that may be missing; INFINITY: the value says nothing */
	char *reason; /* of that, NULL */
	char *missing; /* why the recording says nothing of it, its probes were left out; NULL: it does */
	GHashTable *sites; /* struct count_site by site */
};

struct counts {
	char *path;
	char *command;	  /* of a traced command; NULL */
	struct count *of; /* by bound */
	guint length;
};

/* Of a recording; NULL after one message. */
struct counts *counts_read(const char *path, const struct bounds *budget);
void counts_free(struct counts *counts);

#endif /* MEMTOLL_COUNTS_H */
