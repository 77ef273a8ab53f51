// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz_maps.c: /proc/PID/maps, of which a traced process chooses how many lines there are and every
 * path; and of files by device and inode what is made of them.
 */
#define _GNU_SOURCE 1

#include "fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/maps.h"
#include "host/mapped_files.h"

/* Whoever bisects the entries, or adds up their sizes, relies on their order. */
static void check_entries(const struct maps *maps)
{
	const struct mapping *last = NULL, *mapping;
	size_t i;

	for (i = 0; i < maps->count; i++) {
		mapping = &maps->entries[i];
		if (mapping->start >= mapping->end || (last && mapping->start < last->end))
			abort();
		if (maps_find(maps, mapping->start) != mapping ||
		    maps_find(maps, mapping->end - 1) != mapping)
			abort();
		if (!mapping->path || (mapping->deleted && *mapping->path != '/'))
			abort();
		last = mapping;
	}
	if (maps->count > MAPS_CODE_MAX + MAPS_DATA_MAX)
		abort();
}

static void check_files(const struct maps *maps)
{
	struct mapped_files *files = mapped_files_new();
	size_t i;

	mapped_files_learn_code(files, maps);
	for (i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->entries[i];
		uint32_t dev = mapping->dev_major << 20 | mapping->dev_minor;

		if (mapping->exec && mapping->inode &&
		    !mapped_files_is_library(files, dev, mapping->inode))
			abort();
		if (strlen(mapped_files_path(files, dev, mapping->inode)) > MAPS_PATHS_MAX)
			abort();
	}
	mapped_files_free(files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = open(fuzz_file(data, size), O_RDONLY | O_CLOEXEC);
	struct maps maps = {};

	if (fd < 0)
		abort();
	if (!maps_read_open(fd, &maps)) {
		check_entries(&maps);
		check_files(&maps);
	}
	maps_free(&maps);
	close(fd);
	return 0;
}
