/* SPDX-License-Identifier: GPL-2.0 */
/*
 * target_memory.h: all reads of another process's memory. They have a time limit (timed_call.h) and
 * then fail with -ETIMEDOUT.
 */
#ifndef MEMTOLL_TARGET_MEMORY_H
#define MEMTOLL_TARGET_MEMORY_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct memory_range {
	uint64_t address;
	void *to;
	size_t size;
	bool read; /* result: the whole range was read */
};

/*
 * Read several ranges, each wholly or not at all. What processes share since a fork stays shared.
 * 0, or -errno where none could be read.
 */
int target_memory_read_all(pid_t pid, struct memory_range *ranges, size_t count);

/* One range. 0 or -errno: -EFAULT where there is no such memory. */
int target_memory_read(pid_t pid, uint64_t address, void *to, size_t size);

/*
 * How many pages of [address, +size) are not all zeros. 0 or -errno: -ENOENT where one of them is
 * not there. None is faulted in, unless it goes away in that moment.
 */
int target_memory_used(pid_t pid, uint64_t address, size_t size, uint64_t *used);

/*
 * A file of /proc/PID whose contents are in the process's memory ("cmdline", "environ"; proc(5)),
 * up to limit bytes. 0 or -errno; after an error content has what could be read.
 */
int target_memory_file(pid_t pid, const char *name, size_t limit, GString *content);

#endif /* MEMTOLL_TARGET_MEMORY_H */
