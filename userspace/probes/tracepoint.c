// SPDX-License-Identifier: GPL-2.0
#include "probes/tracepoint.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

int keep_link(GPtrArray *links, struct bpf_link *link)
{
	if (!link)
		return -errno;
	g_ptr_array_add(links, link);
	return 0;
}

int tracefs_open(void)
{
	int fs, mount = -1, fd;

	fd = open("/sys/kernel/tracing/events", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	fs = fsopen("tracefs", FSOPEN_CLOEXEC);
	if (fs < 0)
		return -errno;
	if (!fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		mount = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	close(fs);
	if (mount < 0)
		return -errno;
	fd = openat(mount, "events", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(mount);
	return fd < 0 ? -errno : fd;
}

int attach_tracepoint(GPtrArray *links, struct bpf_program *program, int tracefs, const char *name)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr) };
	struct bpf_link *link;
	char path[128], text[32] = "";
	ssize_t length = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/id", name);
	fd = openat(tracefs, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		length = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (length <= 0)
		return -ENOENT;
	attr.config = strtoull(text, NULL, 10);
	/* A BPF program on a tracepoint runs on every CPU, whichever the event was opened on. */
	fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	link = bpf_program__attach_perf_event(program, fd);
	if (!link)
		close(fd);
	return keep_link(links, link);
}

static void destroy_link(void *link)
{
	bpf_link__destroy(link);
}

void detach_links(struct workqueue *queue, GPtrArray *links)
{
	guint i;

	for (i = 0; i < links->len; i++)
		workqueue_push(queue, destroy_link, g_ptr_array_index(links, i));
	g_ptr_array_free(links, TRUE);
}
