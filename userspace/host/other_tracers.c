// SPDX-License-Identifier: GPL-2.0
#include "host/other_tracers.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/proc.h"
#include "host/timed_call.h"

#define TRACER_COMM "memtoll"

/* Bound on the search, whatever processes call themselves memtoll. */
#define SEARCH_US 300000
/* Stands for no process in timed_call(). */
#define NOBODY 0

struct search {
	GArray *pids;
	uint32_t own;
	pid_t parent;	 /* whose other children do not count; 0: nobody's */
	gint64 until_us; /* g_get_monotonic_time() */
	pid_t found;
};

static void search_free(gpointer data)
{
	struct search *search = data;

	g_array_unref(search->pids);
	g_free(search);
}

static bool is_over(const struct search *search)
{
	return search->found || g_get_monotonic_time() > search->until_us;
}

/* By name and key: a process called memtoll with such a map is taken for one. */
static bool holds_targets(int fd, struct bpf_map_info *info)
{
	uint32_t size = sizeof(*info);

	memset(info, 0, size);
	return !bpf_obj_get_info_by_fd(fd, info, &size) && info->type == BPF_MAP_TYPE_HASH &&
	       info->key_size == sizeof(uint32_t) && !strcmp(info->name, "processes");
}

/* Whether a descriptor of another process is a BPF map, by its fdinfo (proc(5)). */
static bool is_map(pid_t pid, const char *number)
{
	char path[64], text[1024];
	ssize_t got = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", pid, number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	/* In the first lines; fdinfo of other files may be long. */
	if (fd >= 0)
		got = read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[MAX(got, 0)] = '\0';
	return strstr(text, "\nmap_id:");
}

static void search_map(struct search *search, int fd)
{
	struct bpf_map_info info;
	g_autofree void *value = NULL;
	guint i;

	/* A command before its exec still has the tracer's name and descriptors. */
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

	while (directory && process >= 0 && !is_over(search) &&
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

/* Of the parent's other children, and of theirs (calibrate_child.c), which have the same maps. */
static bool is_related(const struct search *search, const struct proc_stat *stat)
{
	struct proc_stat parent;

	if (!search->parent)
		return false;
	return stat->ppid == search->parent ||
	       (!proc_stat_read(stat->ppid, 0, &parent) && parent.ppid == search->parent);
}

static gpointer search_all(gpointer given)
{
	struct search *search = given;
	struct proc_stat stat;
	const char *name;
	GDir *processes;

	/*
	 * A private descriptor table (close_range(2), Linux 5.9): otherwise the others would find
	 * their own maps, duplicated here, and take them for ours.
	 */
	if (close_range(3, ~0U, CLOSE_RANGE_UNSHARE))
		return NULL;
	processes = g_dir_open("/proc", 0, NULL);
	while (processes && !is_over(search) && (name = g_dir_read_name(processes))) {
		pid_t pid = atoi(name);

		if (pid > 0 && pid != getpid() && !proc_stat_read(pid, 0, &stat) &&
		    !strcmp(stat.comm, TRACER_COMM) && !is_related(search, &stat))
			search_process(search, pid);
	}
	if (processes)
		g_dir_close(processes);
	return NULL;
}

static void search_work(void *search)
{
	GThread *thread = g_thread_try_new("others", search_all, search, NULL);

	if (thread)
		g_thread_join(thread);
}

pid_t other_tracers_share(const GArray *pids, uint32_t own, bool relieving)
{
	struct search *search = g_new0(struct search, 1);
	pid_t found;

	search->pids = g_array_copy((GArray *)pids);
	search->own = own;
	search->parent = relieving ? getppid() : 0;
	search->until_us = g_get_monotonic_time() + SEARCH_US;
	if (!timed_call(NOBODY, TIMED_CALL_FILE_MS, search_work, search, search_free))
		return 0;
	found = search->found;
	search_free(search);
	return found;
}
