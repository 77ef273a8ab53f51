// SPDX-License-Identifier: GPL-2.0
#include "gate/bounds_write.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/version.h"
#include "gate/counts.h"

/* Of what the kernel decides a few runs do not show all there is. */
#define KERNEL_PART 0.01
#define KERNEL_EVENTS 16
#define KERNEL_BYTES 65536
/* What the program decides, and varies all the same: with hash seeds, by which thread was first. */
#define PROGRAM_PART 0.005
/* What is the same in all runs differs all the same in another directory or environment. */
#define SAME_PART 0.001

struct range {
	double low, high;
	unsigned int runs;
	const char *reason; /* that there is none */
};

static const struct gate_toll *toll_of(const struct bound *bound)
{
	size_t i;

	for (i = 0; i < gate_toll_count; i++)
		if (!strcmp(gate_tolls[i].name, bound->of))
			return &gate_tolls[i];
	g_assert_not_reached();
}

static struct range range_of(const GPtrArray *runs, guint bound)
{
	struct range range = { INFINITY, -INFINITY, runs->len, NULL };
	guint i;

	for (i = 0; i < runs->len; i++) {
		const struct count *count =
			&((struct counts *)g_ptr_array_index(runs, i))->of[bound];

		range.low = MIN(range.low, count->value);
		range.high = MAX(range.high, count->value);
		if (!range.reason)
			range.reason = count->missing  ? count->missing :
				       count->lost > 0 ? count->reason :
							 NULL;
	}
	return range;
}

/* The most that the count may be; why: the comment. */
static double margin(const struct bound *bound, const struct range *range, char **why)
{
	const struct gate_toll *toll = toll_of(bound);
	const bool kernels = toll->flags & GATE_BY_KERNEL;
	double spread = range->high - range->low, least;
	char low[64], high[64];

	format_count(low, sizeof(low), llround(range->low));
	format_count(high, sizeof(high), llround(range->high));
	if (range->runs == 1) {
		*why = g_strdup_printf("%s in the one run, and room: how it varies is not known",
				       high);
		return floor(range->high * (1 + toll->part)) +
		       (bound->metric == GATE_BYTES ? toll->bytes : toll->events);
	}
	if (!spread && !kernels) {
		*why = g_strdup_printf("%s in all %u runs", high, range->runs);
		return range->high +
		       MAX(floor(SAME_PART * range->high),
			   bound->metric == GATE_BYTES ? toll->few_bytes : toll->few_events);
	}
	least = kernels ? MAX(KERNEL_PART * range->high,
			      bound->metric == GATE_BYTES ? KERNEL_BYTES : KERNEL_EVENTS) :
			  PROGRAM_PART * range->high;
	if (spread)
		*why = g_strdup_printf("varies by itself: %s to %s in %u runs", low, high,
				       range->runs);
	else
		*why = g_strdup_printf("%s in all %u runs, and room, as the kernel decides", high,
				       range->runs);
	return range->high + ceil(MAX(spread, least));
}

static void write_bound(FILE *out, const struct bound *bound, const struct range *range)
{
	g_autofree char *why = NULL, *reason = NULL;
	double most;

	if (range->reason) {
		reason = text_printable(range->reason);
		fprintf(out, "# %s: no bound: %s\n", bound->name, reason);
		return;
	}
	most = margin(bound, range, &why);
	fprintf(out, "%s = %.0f\t# %s\n", bound->name, most, why);
}

int bounds_write(FILE *out, const struct bounds *usual, const GPtrArray *runs, const char *command)
{
	guint i;

	fprintf(out,
		"# Bounds for memtoll gate, written by memtoll %s from %u run%s. Each is the most that\n"
		"# is allowed; edit them, and add bounds of sites (man memtoll-gate).\n",
		memtoll_version, runs->len, runs->len == 1 ? "" : "s");
	if (command) {
		g_autofree char *shown = text_printable(command);

		fprintf(out, "# Command: %s\n", shown);
	}
	fputs("# Faults on files and swap are left out: memory and the page cache decide on them.\n\n",
	      out);
	for (i = 0; i < usual->list->len; i++) {
		const struct range range = range_of(runs, i);

		write_bound(out, g_ptr_array_index(usual->list, i), &range);
	}
	return fflush(out) ? -errno : 0;
}
