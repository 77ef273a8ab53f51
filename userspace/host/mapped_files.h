/* SPDX-License-Identifier: GPL-2.0 */
/* mapped_files.h: paths of the files behind memory areas, by device and inode. */
#ifndef MEMTOLL_MAPPED_FILES_H
#define MEMTOLL_MAPPED_FILES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire/records.h"

struct mapped_files;

struct mapped_files *mapped_files_new(void);
void mapped_files_free(struct mapped_files *mapped);

/*
 * A process took a fault in an area of this file. Its path is read from /proc/PID/maps; if the
 * process is gone, only the file's name is known, which is in the event.
 */
void mapped_files_learn(struct mapped_files *mapped, const struct memtoll_file *file);

struct maps;

/* Learn the files with code among mappings that were read for another reason. */
void mapped_files_learn_code(struct mapped_files *mapped, const struct maps *maps);

/* Path of the file, "" where it was never learnt. Valid as long as `mapped`. */
const char *mapped_files_path(const struct mapped_files *mapped, uint32_t dev, uint64_t inode);

/* Whether the file is mapped executable as well: a library, or the program itself. */
bool mapped_files_is_library(const struct mapped_files *mapped, uint32_t dev, uint64_t inode);

#endif /* MEMTOLL_MAPPED_FILES_H */
