// SPDX-License-Identifier: GPL-2.0
#include "top/top_counters.h"

#include <stdlib.h>
#include <string.h>

#define PATH "/proc/vmstat"

/* Pages, but for major faults. Several lines of the kernel's may be one measure. */
static const struct {
	const char *name, *family;
	const char *prefixes[2];
} measures[] = {
	{ "swap in", "swap", { "pswpin " } },
	{ "swap out", "swap", { "pswpout " } },
	{ "refaults", "file", { "workingset_refault_file ", "workingset_refault_anon " } },
	{ "reclaimed", "swap", { "pgsteal_direct ", "pgsteal_kswapd " } },
	{ "major", "file", { "pgmajfault " } },
	{ "huge faults", "zeroing", { "thp_fault_alloc " } },
};

struct top_counters {
	uint64_t last[G_N_ELEMENTS(measures)];
};

static uint64_t value_of(const char *text, const char *prefix)
{
	const char *line = text;

	while (line && *line) {
		if (g_str_has_prefix(line, prefix))
			return g_ascii_strtoull(line + strlen(prefix), NULL, 10);
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return 0;
}

static void read_counters(uint64_t values[G_N_ELEMENTS(measures)])
{
	g_autofree char *text = NULL;
	size_t i, k;

	memset(values, 0, G_N_ELEMENTS(measures) * sizeof(*values));
	if (!g_file_get_contents(PATH, &text, NULL, NULL))
		return;
	for (i = 0; i < G_N_ELEMENTS(measures); i++)
		for (k = 0; k < 2 && measures[i].prefixes[k]; k++)
			values[i] += value_of(text, measures[i].prefixes[k]);
}

struct top_counters *top_counters_new(void)
{
	struct top_counters *counters = g_new0(struct top_counters, 1);

	read_counters(counters->last);
	return counters;
}

void top_counters_free(struct top_counters *counters)
{
	g_free(counters);
}

void top_counters_add(struct top_counters *counters, struct top_snapshot *snapshot)
{
	double seconds = MAX(1e-9, snapshot->interval_ns / 1e9), zeroed = 0;
	uint64_t values[G_N_ELEMENTS(measures)];
	guint i;

	for (i = 0; i < snapshot->processes.rows->len; i++)
		/* The second column: bytes that were cleared. */
		zeroed += ((struct top_row *)g_ptr_array_index(snapshot->processes.rows, i))
				  ->values[1];
	g_array_append_val(snapshot->measures,
			   ((struct top_measure){ .name = "zeroed",
						  .family = "zeroing",
						  .value = zeroed / 4096 / seconds }));
	read_counters(values);
	for (i = 0; i < G_N_ELEMENTS(measures); i++) {
		const struct top_measure measure = {
			.name = measures[i].name,
			.family = measures[i].family,
			.value = values[i] > counters->last[i] ?
					 (double)(values[i] - counters->last[i]) / seconds :
					 0,
		};

		g_array_append_val(snapshot->measures, measure);
	}
	memcpy(counters->last, values, sizeof(values));
}
