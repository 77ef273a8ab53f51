/* SPDX-License-Identifier: GPL-2.0 */
/* cgroup.h: the processes of a control group, version 1 or 2 (cgroups(7)). */
#ifndef MEMTOLL_CGROUP_H
#define MEMTOLL_CGROUP_H

#include <glib.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The directory of a cgroup: a path that exists, or one below a mounted hierarchy
 * ("/docker/1234", "system.slice/nginx.service"), of which that of the memory controller comes
 * first. NULL where there is none. Freed by the caller with g_free().
 */
char *cgroup_find(const char *name);

/* Append the processes of a cgroup and of all below it. 0, or -errno when it is gone. */
int cgroup_processes(const char *directory, GArray *pids);

/*
 * The lowest memory limit of a cgroup and of all above it, in bytes (memory.max,
 * memory.limit_in_bytes); 0 where there is none.
 */
uint64_t cgroup_memory_limit(const char *directory);

#endif /* MEMTOLL_CGROUP_H */
