// SPDX-License-Identifier: GPL-2.0
#include "cgroup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the hierarchies are mounted by systemd and by hand; the memory controller first. */
static const char *const roots[] = {
	"/sys/fs/cgroup/memory", "/sys/fs/cgroup", "/sys/fs/cgroup/unified",
};

/* Version 1 says "no limit" by the greatest number of whole pages. */
#define NO_LIMIT (INT64_MAX / 2)

static bool is_cgroup(const char *directory)
{
	g_autofree char *procs = g_build_filename(directory, "cgroup.procs", NULL);

	return g_file_test(procs, G_FILE_TEST_IS_REGULAR);
}

char *cgroup_find(const char *name)
{
	size_t i;

	if (is_cgroup(name))
		return g_canonicalize_filename(name, NULL);
	for (i = 0; i < G_N_ELEMENTS(roots); i++) {
		g_autofree char *path = g_build_filename(roots[i], name, NULL);

		if (is_cgroup(path))
			return g_canonicalize_filename(path, NULL);
	}
	return NULL;
}

static int read_processes(const char *directory, GArray *pids)
{
	g_autofree char *procs = g_build_filename(directory, "cgroup.procs", NULL);
	g_autofree char *text = NULL;
	g_auto(GStrv) lines = NULL;
	size_t i;

	if (!g_file_get_contents(procs, &text, NULL, NULL))
		return -ENOENT;
	lines = g_strsplit(text, "\n", -1);
	for (i = 0; lines[i]; i++) {
		pid_t pid = atoi(lines[i]);

		/* 0: a process of a pid namespace that we do not see. */
		if (pid > 0)
			g_array_append_val(pids, pid);
	}
	return 0;
}

int cgroup_processes(const char *directory, GArray *pids)
{
	int err = read_processes(directory, pids);
	const char *name;
	GDir *entries;

	if (err)
		return err;
	entries = g_dir_open(directory, 0, NULL);
	while (entries && (name = g_dir_read_name(entries))) {
		g_autofree char *below = g_build_filename(directory, name, NULL);

		/* A group that is removed meanwhile has no processes. */
		if (g_file_test(below, G_FILE_TEST_IS_DIR) &&
		    !g_file_test(below, G_FILE_TEST_IS_SYMLINK))
			cgroup_processes(below, pids);
	}
	if (entries)
		g_dir_close(entries);
	return 0;
}

static uint64_t own_limit(const char *directory)
{
	static const char *const files[] = { "memory.max", "memory.limit_in_bytes" };
	uint64_t limit = 0;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(files) && !limit; i++) {
		g_autofree char *path = g_build_filename(directory, files[i], NULL);
		g_autofree char *text = NULL;

		/* "max" reads as 0. */
		if (g_file_get_contents(path, &text, NULL, NULL))
			limit = g_ascii_strtoull(text, NULL, 10);
	}
	return limit > NO_LIMIT ? 0 : limit;
}

uint64_t cgroup_memory_limit(const char *directory)
{
	g_autofree char *at = g_strdup(directory);
	uint64_t lowest = 0;

	while (g_str_has_prefix(at, "/sys/fs/cgroup") && is_cgroup(at)) {
		uint64_t limit = own_limit(at);
		char *parent = g_path_get_dirname(at);

		if (limit && (!lowest || limit < lowest))
			lowest = limit;
		g_free(at);
		at = parent;
	}
	return lowest;
}
