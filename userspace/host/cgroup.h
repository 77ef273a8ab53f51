/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cgroup.h: control groups, version 1 or 2 (cgroups(7)): their processes, and the limits and
 * counters of memory cgroups. Hierarchies are found by /proc/self/mountinfo; in a container often
 * only a part of them is visible.
 */
#ifndef MEMTOLL_CGROUP_H
#define MEMTOLL_CGROUP_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The directory of a cgroup: an existing path, or one below a mounted hierarchy ("/docker/1234",
 * "system.slice/nginx.service"), that of the memory controller first. NULL where there is none.
 * Freed by the caller with g_free().
 */
char *cgroup_find(const char *name);

/* Append the processes of a cgroup and of all below it. 0, or -errno when it is gone. */
int cgroup_processes(const char *directory, GArray *pids);

/*
 * The lowest memory limit of a cgroup and of all above it that can be seen, in bytes (memory.max,
 * memory.high, memory.limit_in_bytes); 0 where there is none.
 */
uint64_t cgroup_memory_limit(const char *directory);

/* The group that a process's memory is accounted to. Bytes are -1 where unknown. */
struct memory_cgroup {
	int version;
	char *path;		  /* within its hierarchy, as /proc/PID/cgroup has it */
	char *directory;	  /* where it is mounted; NULL: not visible here */
	int64_t limit_bytes;	  /* lowest of it and of all above; -1: none */
	char *limit_path;	  /* the group that sets it; NULL: none, or not visible here */
	int64_t swap_limit_bytes; /* swap it may use; -1: no limit */
	int64_t usage_bytes;
	int64_t peak_bytes;
	int64_t file_bytes;   /* page cache of files, where the group is watched */
	int64_t beside_bytes; /* usage_bytes less that, the most of all visits */
};

/* False when the process has ended or the kernel has no memory cgroups. */
bool cgroup_of_process(pid_t pid, struct memory_cgroup *group);
/* The same below a directory that stands for the root; for tests. */
bool cgroup_of_process_below(const char *root, pid_t pid, struct memory_cgroup *group);
void memory_cgroup_free(struct memory_cgroup *group);

/* All memory cgroups that followed processes are or were in. */
struct memory_cgroups;

struct memory_cgroups *memory_cgroups_new(void);
struct memory_cgroups *memory_cgroups_new_below(const char *root); /* for tests */
void memory_cgroups_free(struct memory_cgroups *groups);

/*
 * The path of the group that a process is in now. The group is watched from then on: its counters
 * start with the first call that returns it. Valid as long as groups. NULL where
 * cgroup_of_process() is false. last: the last result for this process, or NULL; while that is
 * right only one file is read.
 */
const char *memory_cgroups_of(struct memory_cgroups *groups, pid_t pid, const char *last);

/* Counters start now, of all groups that are watched. */
void memory_cgroups_rebase(struct memory_cgroups *groups);

/* Called for each group and each counter since the group is watched. 0 or -errno. */
struct memory_cgroup_visitor {
	int (*group)(void *context, const struct memory_cgroup *group);
	int (*counter)(void *context, const char *path, const char *name, int64_t count);
	void *context;
};

/*
 * Read limits, usage and counters of all groups and visit them; a removed group has its last known
 * values. 0, or the visitor's error.
 */
int memory_cgroups_visit(struct memory_cgroups *groups,
			 const struct memory_cgroup_visitor *visitor);

#endif /* MEMTOLL_CGROUP_H */
