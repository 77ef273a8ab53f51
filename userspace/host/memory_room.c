// SPDX-License-Identifier: GPL-2.0
#include "host/memory_room.h"

#include <glib.h>
#include <inttypes.h>
#include <stdio.h>

#include "host/cgroup.h"

static int64_t available_bytes(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	int64_t kib = -1;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %" SCNd64 " kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib < 0 ? INT64_MAX : kib * 1024;
}

struct memory_room memory_room_of(pid_t pid)
{
	struct memory_room room = { .bytes = available_bytes() };
	struct memory_cgroup group;
	int64_t left;

	if (!cgroup_of_process(pid, &group))
		return room;
	left = MAX(group.limit_bytes - group.usage_bytes, 0);
	if (group.limit_bytes >= 0 && group.usage_bytes >= 0 && left < room.bytes)
		room = (struct memory_room){ .bytes = left, .in_group = true };
	memory_cgroup_free(&group);
	return room;
}
