// SPDX-License-Identifier: GPL-2.0
#include "probes/map_lock.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "memtoll.skel.h"
#include "probes/programs.h"

/* A call ends when it has begun: what ends it is attached first. */
static const char *const tracepoints[] = { "mmap_lock_released", "vm_unmapped_area",
					   "mmap_lock_acquire_returned" };

/* The programs alone: the object they come from takes megabytes. */
struct map_lock {
	int programs[G_N_ELEMENTS(tracepoints)];
};

static int keep_program(const struct bpf_program *program)
{
	return fcntl(bpf_program__fd(program), F_DUPFD_CLOEXEC, 0);
}

struct map_lock *map_lock_load(const struct memtoll_bpf *bpf)
{
	struct memtoll_bpf *late = programs_load_map_lock(bpf);
	struct map_lock *lock;

	if (!late)
		return NULL;
	lock = g_new0(struct map_lock, 1);
	lock->programs[0] = keep_program(late->progs.map_released);
	lock->programs[1] = keep_program(late->progs.map_placed);
	lock->programs[2] = keep_program(late->progs.map_locked);
	memtoll_bpf__destroy(late);
	if (lock->programs[0] >= 0 && lock->programs[1] >= 0 && lock->programs[2] >= 0)
		return lock;
	map_lock_free(lock);
	errno = EMFILE;
	return NULL;
}

void map_lock_free(struct map_lock *lock)
{
	size_t i;

	if (!lock)
		return;
	for (i = 0; i < G_N_ELEMENTS(lock->programs); i++)
		if (lock->programs[i] >= 0)
			close(lock->programs[i]);
	g_free(lock);
}

static void close_link(gpointer fd)
{
	close(GPOINTER_TO_INT(fd));
}

GPtrArray *map_lock_attach(const struct map_lock *lock)
{
	GPtrArray *links = g_ptr_array_new_with_free_func(close_link);
	size_t i;
	int fd;

	for (i = 0; i < G_N_ELEMENTS(tracepoints); i++) {
		fd = bpf_raw_tracepoint_open(tracepoints[i], lock->programs[i]);
		if (fd < 0) {
			g_ptr_array_free(links, TRUE);
			return NULL;
		}
		/* They are detached from the first on: what begins a call before what ends it. */
		g_ptr_array_insert(links, 0, GINT_TO_POINTER(fd));
	}
	return links;
}
