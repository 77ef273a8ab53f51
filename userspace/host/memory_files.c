// SPDX-License-Identifier: GPL-2.0
#include "host/memory_files.h"

#include <glib.h>
#include <string.h>

/* Of version 1 "total_" has what is below, too; it calls anon rss, and file cache. */
static const struct {
	const char *name;
	const char *file; /* of version 2 */
	const char *old;  /* of version 1: name and file; NULL: it has none */
	const char *old_file;
} figures_of[MEMORY_FIGURES] = {
	[MEMORY_USAGE] = { "usage", "memory.current", "usage", "memory.usage_in_bytes" },
	[MEMORY_ANON] = { "anon", "memory.stat", "total_rss", "memory.stat" },
	[MEMORY_FILE] = { "file", "memory.stat", "total_cache", "memory.stat" },
	[MEMORY_SHMEM] = { "shmem", "memory.stat", "total_shmem", "memory.stat" },
	[MEMORY_FAULTS] = { "pgfault", "memory.stat", "total_pgfault", "memory.stat" },
	[MEMORY_MAJOR_FAULTS] = { "pgmajfault", "memory.stat", "total_pgmajfault", "memory.stat" },
	[MEMORY_REFAULTS_ANON] = { "workingset_refault_anon", "memory.stat",
				   "total_workingset_refault_anon", "memory.stat" },
	[MEMORY_REFAULTS_FILE] = { "workingset_refault_file", "memory.stat",
				   "total_workingset_refault_file", "memory.stat" },
	[MEMORY_SCANNED] = { "pgscan", "memory.stat", NULL, NULL },
	[MEMORY_STOLEN] = { "pgsteal", "memory.stat", NULL, NULL },
	[MEMORY_HIGH] = { "high", "memory.events", NULL, NULL },
	[MEMORY_MAX] = { "max", "memory.events", NULL, NULL },
	[MEMORY_OOM_KILLS] = { "oom_kill", "memory.events", "oom_kill", "memory.oom_control" },
};

const char *memory_figure_name(enum memory_figure figure)
{
	return figures_of[figure].name;
}

void memory_figures_clear(struct memory_figures *figures)
{
	memset(figures, 0, sizeof(*figures));
	memset(figures->values, -1, sizeof(figures->values));
}

/* Of lines "name value", or of a file that is one number. */
static bool find_value(const char *text, const char *name, int64_t *value)
{
	const size_t length = strlen(name);
	const char *line = text;

	if (g_ascii_isdigit(*text)) {
		*value = g_ascii_strtoll(text, NULL, 10);
		return true;
	}
	while (line && *line) {
		if (!strncmp(line, name, length) && line[length] == ' ') {
			*value = g_ascii_strtoll(line + length, NULL, 10);
			return true;
		}
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return false;
}

static bool read_version(const char *directory, struct memory_figures *figures, bool is_old)
{
	g_autofree char *text = NULL;
	const char *read = "";
	bool any = false;
	size_t i;

	for (i = 0; i < MEMORY_FIGURES; i++) {
		const char *file = is_old ? figures_of[i].old_file : figures_of[i].file;
		const char *name = is_old ? figures_of[i].old : figures_of[i].name;
		g_autofree char *path = NULL;
		int64_t value;

		if (!file)
			continue;
		/* Those of a file stand together. */
		if (strcmp(read, file) != 0) {
			path = g_build_filename(directory, file, NULL);
			g_clear_pointer(&text, g_free);
			g_file_get_contents(path, &text, NULL, NULL);
			read = file;
		}
		if (!text || !find_value(text, name, &value))
			continue;
		figures->values[i] = value;
		any = true;
	}
	return any;
}

bool memory_files_read(const char *directory, struct memory_figures *figures)
{
	g_autofree char *old = g_build_filename(directory, "memory.usage_in_bytes", NULL);

	memory_figures_clear(figures);
	return read_version(directory, figures, g_file_test(old, G_FILE_TEST_EXISTS));
}
