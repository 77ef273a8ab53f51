// SPDX-License-Identifier: GPL-2.0
#include "watch/metrics.h"

#include <string.h>

#include "host/memory_files.h"
#include "watch/target_set.h"

/* What a place weighed counts half with each recording that ends. */
#define FADE 0.5

static void clear_target(gpointer data)
{
	g_free(((struct metrics_target *)data)->label);
}

static struct metrics_target *find_target(const GArray *targets, uint32_t number)
{
	guint i;

	for (i = 0; i < targets->len; i++)
		if (g_array_index(targets, struct metrics_target, i).number == number)
			return &g_array_index(targets, struct metrics_target, i);
	return NULL;
}

static GArray *new_targets(void)
{
	GArray *targets = g_array_new(FALSE, TRUE, sizeof(struct metrics_target));

	g_array_set_clear_func(targets, clear_target);
	return targets;
}

void metrics_set_targets(struct metrics *metrics, const struct target_set *targets)
{
	GArray *before = metrics->targets;
	guint i;

	metrics->targets = new_targets();
	for (i = 0; i < target_set_count(targets); i++) {
		const uint32_t number = target_set_number(targets, i);
		struct metrics_target *known = find_target(before, number);
		struct metrics_target target = { .number = number };

		if (known) {
			target = *known;
			known->label = NULL; /* it is the new row's */
		} else {
			target.label = g_strdup(target_set_label(targets, i));
			memory_figures_clear(&target.memory);
		}
		g_array_append_val(metrics->targets, target);
	}
	g_array_free(before, TRUE);
}

struct metrics *metrics_new(const struct target_set *targets, unsigned int places)
{
	struct metrics *metrics = g_new0(struct metrics, 1);

	metrics->targets = new_targets();
	metrics_set_targets(metrics, targets);
	metrics->place_count_most = places;
	metrics->places = g_array_new(FALSE, TRUE, sizeof(struct metrics_place));
	metrics->new_places = g_array_new(FALSE, TRUE, sizeof(struct metrics_place));
	metrics->other = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
	metrics->started_s = g_get_real_time() / 1e6;
	return metrics;
}

void metrics_free(struct metrics *metrics)
{
	if (!metrics)
		return;
	g_array_free(metrics->targets, TRUE);
	g_array_free(metrics->places, TRUE);
	g_array_free(metrics->new_places, TRUE);
	g_hash_table_destroy(metrics->other);
	g_free(metrics);
}

/* ---- intervals ---- */

/* A counter never falls: what would take it down is kept until it has grown as much. */
static void add_to(double *counter, double *debt, double more)
{
	*debt -= more;
	if (*debt >= 0)
		return;
	*counter -= *debt;
	*debt = 0;
}

static void add_toll(struct metrics_target *target, const struct worker_toll *toll,
		     bool is_correction)
{
	guint i = 0;

	while (i < WORKER_TOLLS && target->tolls[i].name[0] &&
	       strcmp(target->tolls[i].name, toll->name))
		i++;
	if (i == WORKER_TOLLS)
		return;
	g_strlcpy(target->tolls[i].name, toll->name, WORKER_NAME);
	g_strlcpy(target->tolls[i].family, toll->family, WORKER_NAME);
	add_to(&target->tolls[i].time_ns, &target->tolls[i].time_debt, toll->time_ns);
	add_to(&target->tolls[i].count, &target->tolls[i].count_debt, toll->count);
	add_to(&target->tolls[i].bytes, &target->tolls[i].bytes_debt, toll->bytes);
	if (!is_correction)
		target->tolls[i].last_ns = toll->time_ns;
}

static void add_target(struct metrics *metrics, const struct worker_message *message)
{
	const bool is_correction = message->event == WORKER_CORRECTION;
	struct metrics_target *target = find_target(metrics->targets, message->target.number);
	guint i;

	/* A recording that ends may know one that is gone. */
	if (!target)
		return;
	add_to(&target->observed_ns, &target->observed_debt, message->target.observed_ns);
	add_to(&target->overhead_ns, &target->overhead_debt, message->target.overhead_ns);
	for (i = 0; i < WORKER_TOLLS && message->target.tolls[i].name[0]; i++)
		add_toll(target, &message->target.tolls[i], is_correction);
	if (is_correction)
		return;
	target->processes = message->target.processes;
	target->rss_bytes = message->target.rss_bytes;
	target->swap_bytes = message->target.swap_bytes;
	target->memory = message->target.memory;
	target->last_observed_ns = message->target.observed_ns;
	target->last_overhead_ns = message->target.overhead_ns;
}

static void add_loss(struct metrics *metrics, const struct worker_message *message)
{
	guint i = 0;

	while (i < metrics->loss_count && strcmp(metrics->losses[i].name, message->loss.name))
		i++;
	if (i == METRICS_LOSSES)
		return;
	metrics->loss_count = MAX(metrics->loss_count, i + 1);
	g_strlcpy(metrics->losses[i].name, message->loss.name, WORKER_NAME);
	metrics->losses[i].count += message->loss.count;
	metrics->losses[i].last_count = message->loss.count;
}

static void end_interval(struct metrics *metrics, const struct worker_message *message)
{
	metrics->start_ns = message->interval.start_ns;
	metrics->end_ns = message->interval.end_ns;
	metrics->last_interval_s = g_get_real_time() / 1e6;
	metrics->intervals++;
}

/* ---- places ---- */

static bool is_same(const struct metrics_place *a, const struct metrics_place *b)
{
	return !strcmp(a->toll, b->toll) && !strcmp(a->call, b->call) &&
	       !strcmp(a->allocated, b->allocated) && !strcmp(a->touched, b->touched);
}

static void add_place(struct metrics *metrics, const struct worker_message *message)
{
	struct metrics_place place = {
		.now_ns = message->place.time_ns,
		.count = message->place.count,
		.bytes = message->place.bytes,
	};

	g_strlcpy(place.toll, message->place.toll, sizeof(place.toll));
	g_strlcpy(place.call, message->place.call, sizeof(place.call));
	g_strlcpy(place.allocated, message->place.allocated, sizeof(place.allocated));
	g_strlcpy(place.touched, message->place.touched, sizeof(place.touched));
	g_array_append_val(metrics->new_places, place);
}

static void add_up(struct metrics_place *place, const struct metrics_place *more)
{
	place->time_ns += more->now_ns;
	place->count += more->count;
	place->bytes += more->bytes;
	place->weight += more->now_ns;
}

static void add_to_other(struct metrics *metrics, const struct metrics_place *more)
{
	struct metrics_place *other = g_hash_table_lookup(metrics->other, more->toll);

	if (!other) {
		other = g_new0(struct metrics_place, 1);
		g_strlcpy(other->toll, more->toll, sizeof(other->toll));
		/* The key lives as long as the value. */
		g_hash_table_insert(metrics->other, other->toll, other);
	}
	add_up(other, more);
}

static guint lightest(const GArray *places)
{
	guint i, least = 0;

	for (i = 1; i < places->len; i++)
		if (g_array_index(places, struct metrics_place, i).weight <
		    g_array_index(places, struct metrics_place, least).weight)
			least = i;
	return least;
}

/*
 * A place that is told by itself counts from then on. One that gives way to a heavier one ends, as
 * series do; what it had is not added to the others, whose rate would leap by it.
 */
static void settle_place(struct metrics *metrics, const struct metrics_place *more)
{
	struct metrics_place place = *more;
	guint i;

	for (i = 0; i < metrics->places->len; i++) {
		if (is_same(&g_array_index(metrics->places, struct metrics_place, i), more)) {
			add_up(&g_array_index(metrics->places, struct metrics_place, i), more);
			return;
		}
	}
	place.time_ns = place.weight = more->now_ns;
	if (metrics->places->len < metrics->place_count_most) {
		g_array_append_val(metrics->places, place);
		return;
	}
	i = metrics->places->len ? lightest(metrics->places) : 0;
	if (!metrics->places->len ||
	    g_array_index(metrics->places, struct metrics_place, i).weight >= more->now_ns) {
		add_to_other(metrics, more);
		return;
	}
	g_array_index(metrics->places, struct metrics_place, i) = place;
}

/* The places of a recording come together, the heaviest first. */
static void settle_places(struct metrics *metrics)
{
	guint i;

	for (i = 0; i < metrics->places->len; i++)
		g_array_index(metrics->places, struct metrics_place, i).weight *= FADE;
	for (i = 0; i < metrics->new_places->len; i++)
		settle_place(metrics, &g_array_index(metrics->new_places, struct metrics_place, i));
	g_array_set_size(metrics->new_places, 0);
}

void metrics_add(struct metrics *metrics, const struct worker_message *message)
{
	switch (message->event) {
	case WORKER_TARGET:
		if (message->target.first) {
			guint i;

			for (i = 0; i < metrics->loss_count; i++)
				metrics->losses[i].last_count = 0;
		}
		add_target(metrics, message);
		break;
	case WORKER_CORRECTION:
		add_target(metrics, message);
		break;
	case WORKER_LOSS:
		add_loss(metrics, message);
		break;
	case WORKER_INTERVAL:
		end_interval(metrics, message);
		break;
	case WORKER_PLACE_TOLL:
		add_place(metrics, message);
		break;
	case WORKER_DONE:
		settle_places(metrics);
		break;
	case WORKER_READY:
	case WORKER_BEGUN:
		break;
	}
}

/* ---- values by name ---- */

bool metrics_has_name(const char *name)
{
	static const char *const names[] = {
		"zeroing.share",     "swap.share",
		"cow.share",	     "file.share",
		"userfault.share",   "other.share",
		"allocator.share",   "mapping.share",
		"compute.share",     "overhead.share",
		"zero.kernel.share", "zero.libc.share",
		"zero.app.share",    "swap.in.share",
		"swap.out.share",    "reclaim.share",
		"file.fault.share",  "file.read.share",
		"fault.user.share",  "fault.other.share",
		"alloc.share",	     "map.share",
		"copy.app.share",    "rss.bytes",
		"swap.bytes",	     NULL,
	};

	return g_strv_contains(names, name);
}

bool metrics_value(const struct metrics *metrics, guint index, const char *name, double *value)
{
	const struct metrics_target *target =
		&g_array_index(metrics->targets, struct metrics_target, index);
	g_autofree char *part = g_strndup(name, strlen(name) - MIN(strlen(name), strlen(".share")));
	double ns = 0, all_ns = target->last_observed_ns;
	guint i;

	if (!strcmp(name, "rss.bytes") || !strcmp(name, "swap.bytes")) {
		*value = name[0] == 'r' ? target->rss_bytes : target->swap_bytes;
		return target->processes > 0;
	}
	if (!strcmp(part, "overhead")) {
		ns = target->last_overhead_ns;
		all_ns += ns;
	}
	for (i = 0; i < WORKER_TOLLS; i++)
		if (!strcmp(target->tolls[i].name, part) || !strcmp(target->tolls[i].family, part))
			ns += target->tolls[i].last_ns;
	if (all_ns <= 0)
		return false;
	*value = MIN(1, ns / all_ns);
	return true;
}
