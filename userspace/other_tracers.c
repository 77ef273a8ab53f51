// SPDX-License-Identifier: GPL-2.0
#include "other_tracers.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "privileges.h"
#include "proc.h"

#define TRACER_COMM "memtoll"

/*
 * Whoever calls himself so, and however much he holds: the search ends, and is waited for no
 * longer.
 */
#define SEARCH_US 300000
#define ANSWER_US 500000

/* Both who asks and the thread that searches hold it: the one may not wait for the other. */
struct search {
	GMutex lock;
	GCond ended;
	bool done;
	GArray *pids;
	uint32_t own;
	gint64 until_us;	/* g_get_monotonic_time() */
	pid_t found;
};

static void search_clear(gpointer data)
{
	struct search *search = data;

	g_mutex_clear(&search->lock);
	g_cond_clear(&search->ended);
	g_array_unref(search->pids);
}

static bool is_over(const struct search *search)
{
	return search->found || g_get_monotonic_time() > search->until_us;
}

/*
 * By its name and its key: whoever makes such a map, and calls himself memtoll, is told of as one.
 */
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
	char path[64], text[1024];
	ssize_t got = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", pid, number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	/* In its first lines; what others have to say may be long. */
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

static void search_all(struct search *search)
{
	struct proc_stat stat;
	const char *name;
	GDir *processes;

	/*
	 * With descriptors of its own (close_range(2), Linux 5.9): what is taken from others is
	 * never among those that they in turn find here, who would think that it is traced from
	 * here.
	 */
	if (close_range(3, ~0U, CLOSE_RANGE_UNSHARE))
		return;
	processes = g_dir_open("/proc", 0, NULL);
	while (processes && !is_over(search) && (name = g_dir_read_name(processes))) {
		pid_t pid = atoi(name);

		if (pid > 0 && pid != getpid() && !proc_stat_read(pid, 0, &stat) &&
		    !strcmp(stat.comm, TRACER_COMM))
			search_process(search, pid);
	}
	if (processes)
		g_dir_close(processes);
}

static gpointer run(gpointer given)
{
	struct search *search = given;

	privileges_keep(PRIVILEGES_FOLLOW);
	search_all(search);
	g_mutex_lock(&search->lock);
	search->done = true;
	g_cond_signal(&search->ended);
	g_mutex_unlock(&search->lock);
	g_atomic_rc_box_release_full(search, search_clear);
	return NULL;
}

pid_t other_tracers_share(const GArray *pids, uint32_t own)
{
	struct search *search = g_atomic_rc_box_new0(struct search);
	gint64 begin_us = g_get_monotonic_time();
	GThread *thread;
	pid_t found = 0;

	g_mutex_init(&search->lock);
	g_cond_init(&search->ended);
	search->pids = g_array_copy((GArray *)pids);
	search->own = own;
	search->until_us = begin_us + SEARCH_US;
	thread = g_thread_try_new("others", run, g_atomic_rc_box_acquire(search), NULL);
	if (thread) {
		g_thread_unref(thread);
		g_mutex_lock(&search->lock);
		while (!search->done &&
		       g_cond_wait_until(&search->ended, &search->lock, begin_us + ANSWER_US))
			;
		found = search->done ? search->found : 0;
		g_mutex_unlock(&search->lock);
	} else {
		g_atomic_rc_box_release_full(search, search_clear);
	}
	g_atomic_rc_box_release_full(search, search_clear);
	return found;
}
