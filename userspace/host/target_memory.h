/* SPDX-License-Identifier: GPL-2.0 */
/*
 * target_memory.h: what is read out of another process's memory. All such reads are here: that memory
 * may never answer (timed_call.h), and then a read fails with -ETIMEDOUT.
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
	bool read;		/* afterwards: all of it is there */
};

/*
 * Read several ranges, each wholly or not at all. A read for each that cannot be read, besides one,
 * process_vm_readv(2). 0, or -errno where none could be read.
 */
int target_memory_read_all(pid_t pid, struct memory_range *ranges, size_t count);

/* One range. 0 or -errno: -EFAULT where there is no such memory. */
int target_memory_read(pid_t pid, uint64_t address, void *to, size_t size);

/*
 * A file of /proc/PID that lies in the process's memory ("cmdline", "environ"; proc(5)), up to limit
 * bytes of it. 0 or -errno; the content is then what could be read.
 */
int target_memory_file(pid_t pid, const char *name, size_t limit, GString *content);

#endif /* MEMTOLL_TARGET_MEMORY_H */
