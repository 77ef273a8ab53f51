// SPDX-License-Identifier: GPL-2.0
#include "hold/locked_ranges.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "host/timed_call.h"

#define READ_MS 5000
#define RANGES_MAX 65536U /* as many as there may be mappings, by default */

GArray *locked_ranges_parse(FILE *smaps)
{
	GArray *ranges = g_array_new(FALSE, FALSE, sizeof(struct locked_range));
	struct locked_range range = { 0 };
	char *line = NULL;
	size_t size = 0;

	/* "VmFlags: rd wr mr lo ", the last line of a mapping. */
	while (getline(&line, &size, smaps) > 0 && ranges->len < RANGES_MAX) {
		uint64_t start, end;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &start, &end) == 2)
			range = (struct locked_range){ start, end };
		else if (g_str_has_prefix(line, "VmFlags:") && strstr(line, " lo"))
			g_array_append_val(ranges, range);
	}
	free(line);
	return ranges;
}

struct locked_job {
	pid_t pid;
	GArray *ranges; /* NULL: none */
};

static void locked_job_free(gpointer data)
{
	struct locked_job *job = data;

	g_clear_pointer(&job->ranges, g_array_unref);
	g_free(job);
}

static FILE *open_file(pid_t pid, const char *name)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/%s", pid, name);

	return fopen(path, "re");
}

/* What all mappings are asked for costs more: only where the process has something locked. */
static bool has_locked(pid_t pid)
{
	FILE *file = open_file(pid, "status");
	char line[256];
	bool has = false;

	while (file && fgets(line, sizeof(line), file))
		if (g_str_has_prefix(line, "VmLck:"))
			has = strtoull(line + 6, NULL, 10) > 0;
	if (file)
		fclose(file);
	return has;
}

static void read_ranges(void *data)
{
	struct locked_job *job = data;
	FILE *smaps = has_locked(job->pid) ? open_file(job->pid, "smaps") : NULL;

	if (!smaps)
		return;
	job->ranges = locked_ranges_parse(smaps);
	fclose(smaps);
}

GArray *locked_ranges_read(pid_t pid)
{
	struct locked_job *job = g_new0(struct locked_job, 1);
	GArray *ranges = NULL;

	job->pid = pid;
	if (timed_call(pid, READ_MS, read_ranges, job, locked_job_free)) {
		ranges = g_steal_pointer(&job->ranges);
		locked_job_free(job);
	}
	return ranges ? ranges : g_array_new(FALSE, FALSE, sizeof(struct locked_range));
}

uint64_t locked_ranges_first(const GArray *ranges, uint64_t start, uint64_t end)
{
	guint low = 0, high = ranges ? ranges->len : 0;

	/* The first that ends behind start. */
	while (low < high) {
		const guint middle = low + (high - low) / 2;

		if (g_array_index(ranges, struct locked_range, middle).end > start)
			high = middle;
		else
			low = middle + 1;
	}
	if (!ranges || low == ranges->len)
		return end;
	return MIN(MAX(g_array_index(ranges, struct locked_range, low).start, start), end);
}
