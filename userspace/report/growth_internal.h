/* SPDX-License-Identifier: GPL-2.0 */
/* growth_internal.h: what growth.c finds, and growth_words.c says. */
#ifndef MEMTOLL_GROWTH_INTERNAL_H
#define MEMTOLL_GROWTH_INTERNAL_H

#include <glib.h>
#include <stdbool.h>

enum { BEFORE, AFTER, GROWTH_SIDES };

/* What a site cost on both sides; texts are of the later one, where it has the site. */
struct site_growth {
	char *key;
	char *toll, *call, *area;
	char *allocated, *touched; /* as a sentence names them; "" */
	char *file;		   /* of the allocation, or of the code that touched; "" */
	gint64 line;
	double time_ns[GROWTH_SIDES], count[GROWTH_SIDES], bytes[GROWTH_SIDES];
	double largest_ns; /* of the rows that were joined to it: the texts are that one's */
	bool is_later;	   /* the later side has it */
	bool sampled, estimated;
	bool at_least; /* of its bytes no more is known than that they are so many */
	double error;  /* of estimates: how far off they may be, as a part of them */
	/* Calls of the allocator at the same place; 0, 0: none were seen. */
	double calls[GROWTH_SIDES], asked[GROWTH_SIDES];
	bool calls_estimated;
	bool said;	/* the calls of a line about the same place: the reason in it */
	double cost_ns; /* what the growth takes */
};

/* Of the figures of a run that go by it: bytes, or else how often. */
bool growth_by_bytes(const struct site_growth *site);

/* What grew, without figures. */
const char *growth_title(const struct site_growth *site);
/* "1.00 GiB in 1,024 times", with "~" where it is an estimate, " a second" where not per run. */
char *growth_figure(const struct site_growth *site, int side, bool per_second);
/* The likely reason, one sentence. */
char *growth_reason(const struct site_growth *site);
/* "parse_row, by calloc, touched at rows.c:49 (fill)". */
char *growth_site(const struct site_growth *site);

#endif /* MEMTOLL_GROWTH_INTERNAL_H */
