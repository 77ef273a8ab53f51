/* SPDX-License-Identifier: GPL-2.0 */
/* part_file.h: a recording has its name only when it is whole. */
#ifndef MEMTOLL_PART_FILE_H
#define MEMTOLL_PART_FILE_H

/* The path it is written at, ".NAME.part". Freed by the caller. */
char *part_file_path(const char *directory, const char *name);

/* It is whole: under its name, unless something has that already. 0 or -errno. */
int part_file_settle(const char *directory, const char *name);

/* With its journal, where they are. */
void part_file_remove(const char *directory, const char *name);

#endif /* MEMTOLL_PART_FILE_H */
