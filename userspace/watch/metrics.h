/* SPDX-License-Identifier: GPL-2.0 */
/*
 * metrics.h: what was seen since the watch began, added up over all recordings, and what the last
 * interval had. Its size has a bound: so many targets, tolls, losses and places.
 */
#ifndef MEMTOLL_METRICS_H
#define MEMTOLL_METRICS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire/losses.h"
#include "watch/worker.h"

#define METRICS_LOSSES MEMTOLL_LOSS_COUNT

struct metrics_toll {
	char name[WORKER_NAME]; /* "": none, and none after it */
	char family[WORKER_NAME];
	double time_ns, count, bytes;		  /* in all */
	double time_debt, count_debt, bytes_debt; /* by which they are too large: grown into */
	double last_ns;				  /* in the last interval */
};

struct metrics_target {
	uint32_t number; /* target_set_number() */
	char *label;
	uint32_t processes; /* now, as the next two */
	int64_t rss_bytes;
	int64_t swap_bytes;
	struct memory_figures memory; /* now, or since the cgroup was made */
	double observed_ns, overhead_ns;
	double observed_debt, overhead_debt;
	double last_observed_ns, last_overhead_ns;
	struct metrics_toll tolls[WORKER_TOLLS];
};

struct metrics_loss {
	char name[WORKER_NAME];
	uint64_t count, last_count;
};

struct metrics_place {
	char toll[WORKER_NAME];
	char call[WORKER_NAME];
	char allocated[WORKER_PLACE];
	char touched[WORKER_PLACE];
	double time_ns, count, bytes;
	double weight; /* by which it is one of the few that are told: time, of long ago less */
	double now_ns; /* in the recording that is added */
};

struct metrics {
	GArray *targets; /* struct metrics_target */
	struct metrics_loss losses[METRICS_LOSSES];
	guint loss_count;
	guint place_count_most;
	GArray *places;		   /* struct metrics_place: each told by itself */
	GHashTable *other;	   /* toll -> struct metrics_place: the rest */
	GArray *new_places;	   /* of the recording that has just ended */
	uint64_t start_ns, end_ns; /* of the last interval, CLOCK_MONOTONIC */
	uint64_t intervals;
	double last_interval_s; /* since 1970 */
	double started_s;
	uint64_t recordings[2]; /* finished: ordinary, detailed */
	uint64_t failed;
	uint64_t removed;
	uint64_t kept_bytes;
	uint64_t kept_files;
	uint64_t triggered;
	bool detailed;
	double unwatched_ns; /* between two recordings */
	double twice_ns;     /* in two at once */
};

struct target_set;

struct metrics *metrics_new(const struct target_set *targets, unsigned int places);
void metrics_free(struct metrics *metrics);

/* Those of the set from here on; who was there before goes on counting. */
void metrics_set_targets(struct metrics *metrics, const struct target_set *targets);

/* Of a worker, as it comes. */
void metrics_add(struct metrics *metrics, const struct worker_message *message);

/*
 * A value by its name, of one target's last interval: "swap.share" (a family, or a toll), 0 to 1 of
 * what was observed; "overhead.share"; "rss.bytes", "swap.bytes". False where nothing was observed.
 */
bool metrics_value(const struct metrics *metrics, guint target, const char *name, double *value);
bool metrics_has_name(const char *name);

#endif /* MEMTOLL_METRICS_H */
