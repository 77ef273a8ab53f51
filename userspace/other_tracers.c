// SPDX-License-Identifier: GPL-2.0
#include "other_tracers.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc.h"

#define TRACER_COMM "memtoll"

struct other_map {
	int fd;
	uint32_t value_size;
};

static void close_map(gpointer map)
{
	close(((struct other_map *)map)->fd);
}

/* By its name and its key: whoever makes such a map, and calls himself memtoll, is told of as one. */
static bool holds_targets(int fd, uint32_t *value_size)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &size) || info.type != BPF_MAP_TYPE_HASH ||
	    info.key_size != sizeof(uint32_t) || strcmp(info.name, "processes"))
		return false;
	*value_size = info.value_size;
	return true;
}

/* Whether a descriptor of another process is of a map, as that says itself (proc(5), fdinfo). */
static bool is_map(pid_t pid, const char *number)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/fdinfo/%s", pid, number);
	g_autofree char *text = NULL;

	return g_file_get_contents(path, &text, NULL, NULL) && strstr(text, "\nmap_id:");
}

static void add_maps_of(GArray *maps, pid_t pid)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/fdinfo", pid);
	GDir *directory = g_dir_open(path, 0, NULL);
	int process = syscall(SYS_pidfd_open, pid, 0);
	const char *number;

	while (directory && process >= 0 && (number = g_dir_read_name(directory))) {
		struct other_map map = { .fd = -1 };

		if (is_map(pid, number))
			map.fd = syscall(SYS_pidfd_getfd, process, atoi(number), 0);
		if (map.fd < 0)
			continue;
		if (holds_targets(map.fd, &map.value_size))
			g_array_append_val(maps, map);
		else
			close(map.fd);
	}
	if (process >= 0)
		close(process);
	if (directory)
		g_dir_close(directory);
}

GArray *other_tracers_find(void)
{
	GArray *maps = g_array_new(FALSE, FALSE, sizeof(struct other_map));
	GDir *processes = g_dir_open("/proc", 0, NULL);
	struct proc_stat stat;
	const char *name;

	g_array_set_clear_func(maps, close_map);
	while (processes && (name = g_dir_read_name(processes))) {
		pid_t pid = atoi(name);

		if (pid > 0 && pid != getpid() && !proc_stat_read(pid, 0, &stat) &&
		    !strcmp(stat.comm, TRACER_COMM))
			add_maps_of(maps, pid);
	}
	if (processes)
		g_dir_close(processes);
	return maps;
}

bool other_tracers_have(const GArray *maps, pid_t pid)
{
	uint32_t key = pid;
	guint i;

	for (i = 0; i < maps->len; i++) {
		const struct other_map *map = &g_array_index(maps, struct other_map, i);
		g_autofree void *value = g_malloc0(map->value_size);

		if (!bpf_map_lookup_elem(map->fd, &key, value))
			return true;
	}
	return false;
}
