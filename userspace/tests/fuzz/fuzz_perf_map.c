// SPDX-License-Identifier: GPL-2.0
/* fuzz_perf_map.c: /tmp/perf-PID.map, which a traced process writes. This process has it. */
#define _GNU_SOURCE 1

#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/perf_map.h"

static char path[64];

static void remove_map(void)
{
	unlink(path);
}

static void check_place(void *context, uint64_t start, uint64_t end)
{
	uint64_t *before = context;

	if (start >= end || start < *before)
		abort();
	*before = start;
}

static void look_up(struct perf_map *map)
{
	static const uint64_t places[] = { 0, 1, 0x1000, 0x1010, 0x7f0000001000, UINT64_MAX };
	const char *name;
	uint64_t start, before = 0;
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (perf_map_find(map, places[i], &name, &start) &&
		    (start > places[i] || strlen(name) > 4096))
			abort();
	perf_map_each(map, check_place, &before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t half = size / 2;
	struct perf_map *map;
	int fd;

	if (!*path) {
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
		atexit(remove_map);
	}
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	/* It grows while it is read. */
	if (fd < 0 || write(fd, data, half) != (ssize_t)half)
		abort();
	map = perf_map_open(getpid());
	/* NULL: it could not be opened in the time that a target's file has, on a loaded machine. */
	if (map)
		look_up(map);
	if (write(fd, data + half, size - half) != (ssize_t)(size - half))
		abort();
	if (map)
		look_up(map);
	perf_map_unref(map);
	close(fd);
	return 0;
}
