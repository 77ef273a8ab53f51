/* SPDX-License-Identifier: GPL-2.0 */
/* mapped_files.h: the files behind memory areas, by device and inode: what to call them. */
#ifndef MEMTOLL_MAPPED_FILES_H
#define MEMTOLL_MAPPED_FILES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire/events.h"

struct areas;

struct areas *areas_new(void);
void areas_free(struct areas *areas);

/*
 * A process took a fault in an area of this file. Its path is read from /proc/PID/maps; where the
 * process is gone, the last part of the path, which the event brings, has to do.
 */
void areas_learn(struct areas *areas, const struct memtoll_file *file);

struct maps;

/* What a process maps now, read for other reasons too: the files with code in it. */
void areas_learn_code(struct areas *areas, const struct maps *maps);

/* Path of the file, "" where it was never told. Valid as long as areas. */
const char *areas_path(const struct areas *areas, uint32_t dev, uint64_t inode);

/* The file is mapped executable too: a library, or the program itself. */
bool areas_is_library(const struct areas *areas, uint32_t dev, uint64_t inode);

#endif /* MEMTOLL_MAPPED_FILES_H */
