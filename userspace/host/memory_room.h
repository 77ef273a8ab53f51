/* SPDX-License-Identifier: GPL-2.0 */
/* memory_room.h: how much more memory a process could have. */
#ifndef MEMTOLL_MEMORY_ROOM_H
#define MEMTOLL_MEMORY_ROOM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct memory_room {
	int64_t bytes; /* INT64_MAX: not known */
	bool in_group; /* its memory cgroup has no more left, the machine has */
};

/* What the machine has available (MemAvailable of proc(5)), and the process's memory cgroup left. */
struct memory_room memory_room_of(pid_t pid);

#endif /* MEMTOLL_MEMORY_ROOM_H */
