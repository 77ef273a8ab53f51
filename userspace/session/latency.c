// SPDX-License-Identifier: GPL-2.0
#include "session/latency.h"

#include <glib.h>

#include "events/latency_buckets.h"
#include "events/names.h"
#include "memtoll.skel.h"

/* Records of one slice; the kernel sends a few more that are far longer than the floor. */
#define OUTLIERS_PER_SLICE 256
#define PREEMPTED_PER_SLICE 128
/*
 * So many in a slice are too many to read: the floor rises, until there are fewer than the second.
 */
#define OUTLIERS_MANY 32
#define OUTLIERS_FEW 4
#define FLOOR_MIN_NS 50000ULL
#define FLOOR_MAX_NS 1000000000ULL

struct latency {
	GArray *outliers; /* struct memtoll_outlier */
};

struct latency *latency_new(void)
{
	struct latency *latency = g_new0(struct latency, 1);

	latency->outliers = g_array_new(FALSE, FALSE, sizeof(struct memtoll_outlier));
	return latency;
}

void latency_free(struct latency *latency)
{
	if (!latency)
		return;
	g_array_free(latency->outliers, TRUE);
	g_free(latency);
}

int latency_write(struct recording *recording, const struct memtoll_call_key *key,
		  const uint32_t *counts)
{
	unsigned int bucket;
	int err = 0;

	for (bucket = 0; bucket < LATENCY_BUCKETS && !err; bucket++)
		if (counts[bucket])
			err = recording_latency(recording,
						&(struct latency_fact){
							.pid = key->tgid,
							.call = fn_name(key->fn),
							.stack_id = key->stack_id,
							.low_ns = latency_bound(bucket),
							.high_ns = latency_bound(bucket + 1),
							.calls = counts[bucket],
						});
	return err;
}

void latency_outlier(struct latency *latency, const struct memtoll_outlier *outlier)
{
	g_array_append_val(latency->outliers, *outlier);
}

int latency_commit(struct latency *latency, struct recording *recording, struct memtoll_bpf *bpf,
		   void (*want_stack)(void *context, uint64_t stack_id), void *context)
{
	uint64_t floor_ns = bpf->data->outlier_floor_ns;
	guint i, count = 0;
	int err = 0;

	for (i = 0; i < latency->outliers->len && !err; i++) {
		const struct memtoll_outlier *outlier =
			&g_array_index(latency->outliers, struct memtoll_outlier, i);

		if (outlier->voluntary || outlier->cpu_ns >= floor_ns)
			count++;
		want_stack(context, outlier->stack_id);
		err = recording_outlier(recording, fn_name(outlier->fn), outlier);
	}
	g_array_set_size(latency->outliers, 0);
	if (count > OUTLIERS_MANY)
		bpf->data->outlier_floor_ns = MIN(2 * floor_ns, FLOOR_MAX_NS);
	else if (count < OUTLIERS_FEW)
		bpf->data->outlier_floor_ns = MAX(floor_ns / 2, FLOOR_MIN_NS);
	bpf->data->outliers_left = OUTLIERS_PER_SLICE;
	bpf->data->preempted_left = PREEMPTED_PER_SLICE;
	return err;
}
