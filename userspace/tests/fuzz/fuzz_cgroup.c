// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz_cgroup.c: what /proc and a cgroup's files say, with names that containers choose. Three texts
 * with an empty line between them: /proc/PID/cgroup, /proc/self/mountinfo, memory.stat.
 */
#define _GNU_SOURCE 1

#include "fuzz.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/cgroup.h"
#include "host/container.h"

#define PID 4242

static const char *const files[] = { "/proc/4242/cgroup", "/proc/self/mountinfo",
				     "/sys/fs/cgroup/a/memory.stat" };
static const char *const folders[] = { "/proc/4242",	 "/proc/self", "/proc", "/sys/fs/cgroup/a",
				       "/sys/fs/cgroup", "/sys/fs",    "/sys" };
static char *root;

static void remove_all(void)
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(files); i++) {
		g_autofree char *path = g_strconcat(root, files[i], NULL);

		unlink(path);
	}
	for (i = 0; i < G_N_ELEMENTS(folders); i++) {
		g_autofree char *path = g_strconcat(root, folders[i], NULL);

		g_rmdir(path);
	}
	g_rmdir(root);
	g_clear_pointer(&root, g_free);
}

static void make_root(void)
{
	size_t i;

	root = g_dir_make_tmp("memtoll-fuzz-cgroup-XXXXXX", NULL);
	for (i = 0; root && i < G_N_ELEMENTS(files); i++) {
		g_autofree char *path = g_strconcat(root, files[i], NULL);
		g_autofree char *directory = g_path_get_dirname(path);

		g_mkdir_with_parents(directory, 0700);
	}
	if (!root)
		abort();
	atexit(remove_all);
}

static int take_group(void *context, const struct memory_cgroup *group)
{
	(void)context;
	return group->path ? 0 : -1;
}

static int take_counter(void *context, const char *path, const char *name, int64_t count)
{
	*(int64_t *)context += count & 1;
	return path && name ? 0 : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	g_autofree char *text = g_strndup((const char *)data, size);
	g_auto(GStrv) parts = g_strsplit(text, "\n\n", G_N_ELEMENTS(files));
	struct memory_cgroups *groups;
	struct container container = { 0 };
	struct memory_cgroup group;
	int64_t odd = 0;
	const struct memory_cgroup_visitor visitor = { take_group, take_counter, &odd };
	size_t i;

	if (!root)
		make_root();
	for (i = 0; i < G_N_ELEMENTS(files) && parts[i]; i++) {
		g_autofree char *path = g_strconcat(root, files[i], NULL);

		if (!g_file_set_contents_full(path, parts[i], -1, G_FILE_SET_CONTENTS_NONE, 0600,
					      NULL))
			abort();
	}
	/* The first text is one path, too. */
	if (parts[0] && container_of_path(parts[0], &container) &&
	    container.path_length > strlen(parts[0]))
		abort();
	container_clear(&container);
	if (cgroup_of_process_below(root, PID, &group))
		memory_cgroup_free(&group);
	groups = memory_cgroups_new_below(root);
	memory_cgroups_of(groups, PID, NULL);
	if (memory_cgroups_visit(groups, &visitor))
		abort();
	memory_cgroups_free(groups);
	return 0;
}
