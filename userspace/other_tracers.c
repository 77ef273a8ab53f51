// SPDX-License-Identifier: GPL-2.0
#include "other_tracers.h"

#include <bpf/bpf.h>
#include <linux/close_range.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc.h"

#define TRACER_COMM "memtoll"

struct search {
	const GArray *pids;
	uint32_t own;
	pid_t found;
};

/* By its name and its key: whoever makes such a map, and calls himself memtoll, is told of as one. */
static bool holds_targets(int fd, struct bpf_map_info *info)
{
	uint32_t size = sizeof(*info);

	memset(info, 0, size);
	return !bpf_obj_get_info_by_fd(fd, info, &size) && info->type == BPF_MAP_TYPE_HASH &&
	       info->key_size == sizeof(uint32_t) && !strcmp(info->name, "processes");
}

/* Whether a descriptor of another process is of a map, as that says itself (proc(5), fdinfo). */
static bool is_map(pid_t pid, const char *number)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/fdinfo/%s", pid, number);
	g_autofree char *text = NULL;

	return g_file_get_contents(path, &text, NULL, NULL) && strstr(text, "\nmap_id:");
}

static void search_map(struct search *search, int fd)
{
	struct bpf_map_info info;
	g_autofree void *value = NULL;
	guint i;

	/* A command that has not yet called exec has its tracer's name, and all that it holds. */
	if (!holds_targets(fd, &info) || info.id == search->own)
		return;
	value = g_malloc0(info.value_size);
	for (i = 0; i < search->pids->len && !search->found; i++) {
		uint32_t key = g_array_index(search->pids, pid_t, i);

		if (!bpf_map_lookup_elem(fd, &key, value))
			search->found = key;
	}
}

static void search_process(struct search *search, pid_t pid)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/fdinfo", pid);
	GDir *directory = g_dir_open(path, 0, NULL);
	int process = syscall(SYS_pidfd_open, pid, 0);
	const char *number;

	while (directory && process >= 0 && !search->found &&
	       (number = g_dir_read_name(directory))) {
		int fd = -1;

		if (is_map(pid, number))
			fd = syscall(SYS_pidfd_getfd, process, atoi(number), 0);
		if (fd < 0)
			continue;
		search_map(search, fd);
		close(fd);
	}
	if (process >= 0)
		close(process);
	if (directory)
		g_dir_close(directory);
}

static gpointer search_all(gpointer given)
{
	struct search *search = given;
	struct proc_stat stat;
	const char *name;
	GDir *processes;

	/*
	 * With descriptors of its own (close_range(2), Linux 5.9): what is taken from others is never among those
	 * that they in turn find here, who would think that it is traced from here.
	 */
	if (close_range(3, ~0U, CLOSE_RANGE_UNSHARE))
		return NULL;
	processes = g_dir_open("/proc", 0, NULL);
	while (processes && !search->found && (name = g_dir_read_name(processes))) {
		pid_t pid = atoi(name);

		if (pid > 0 && pid != getpid() && !proc_stat_read(pid, 0, &stat) &&
		    !strcmp(stat.comm, TRACER_COMM))
			search_process(search, pid);
	}
	if (processes)
		g_dir_close(processes);
	return NULL;
}

pid_t other_tracers_share(const GArray *pids, uint32_t own)
{
	struct search search = { .pids = pids, .own = own };
	GThread *thread = g_thread_try_new("others", search_all, &search, NULL);

	if (thread)
		g_thread_join(thread);
	return search.found;
}
