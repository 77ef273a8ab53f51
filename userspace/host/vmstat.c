// SPDX-License-Identifier: GPL-2.0
#include "host/vmstat.h"

#include <glib.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct system_counters {
	GHashTable *values; /* name -> int64_t */
};

/* Counters of events; gauges such as nr_free_pages have no meaning as a difference. */
static const char *const names[] = {
	"pgfault",
	"pgmajfault",
	"pswpin",
	"pswpout",
	"swap_ra",
	"swap_ra_hit",
	"zswpin",
	"zswpout",
	"swpin_zero",
	"swpout_zero",
	"thp_fault_alloc",
	"thp_fault_fallback",
	"allocstall_normal",
	"allocstall_movable",
	"workingset_refault_anon",
	"workingset_refault_file",
	"numa_hint_faults",
	"oom_kill",
};

static bool is_wanted(const char *name)
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(names); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

struct system_counters *system_counters_read(void)
{
	struct system_counters *counters = g_new0(struct system_counters, 1);
	FILE *file = fopen("/proc/vmstat", "re");
	char name[64];
	int64_t value;

	counters->values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	while (file && fscanf(file, "%63s %" SCNd64, name, &value) == 2)
		if (is_wanted(name))
			g_hash_table_insert(counters->values, g_strdup(name),
					    g_memdup2(&value, sizeof(value)));
	if (file)
		fclose(file);
	return counters;
}

int system_counters_each(const struct system_counters *since,
			 int (*each)(void *context, const char *name, int64_t count), void *context)
{
	struct system_counters *now = system_counters_read();
	GHashTableIter iter;
	gpointer name, value;
	int err = 0;

	g_hash_table_iter_init(&iter, now->values);
	while (!err && g_hash_table_iter_next(&iter, &name, &value)) {
		const int64_t *before = g_hash_table_lookup(since->values, name);

		if (before)
			err = each(context, name, *(int64_t *)value - *before);
	}
	system_counters_free(now);
	return err;
}

void system_counters_free(struct system_counters *counters)
{
	if (!counters)
		return;
	g_hash_table_destroy(counters->values);
	g_free(counters);
}
