/* SPDX-License-Identifier: GPL-2.0 */
/*
 * top_live.h: snapshots of a target, from the recording that is being made of it: the rows of the
 * last slices alone (interval.h), so that a long recording costs no more than a short one.
 */
#ifndef MEMTOLL_TOP_LIVE_H
#define MEMTOLL_TOP_LIVE_H

#include "recording/interval.h"
#include "top/top_snapshot.h"

struct top_live;
struct top_pseudonyms;

/*
 * target: in words. limit: of the overhead. keep: the recording is the user's, not only ours.
 * pseudonyms: NULL, or whoever made them frees them later.
 */
struct top_live *top_live_new(const char *target, double limit, bool keep,
			      struct top_pseudonyms *pseudonyms);
void top_live_free(struct top_live *live);

struct top_snapshot *top_live_snapshot(struct top_live *live, const struct interval *interval);

/* A note, with the time that the interval ends at. 0 or -EIO. */
int top_live_mark(const struct interval *interval, const char *note);

#endif /* MEMTOLL_TOP_LIVE_H */
