/* SPDX-License-Identifier: GPL-2.0 */
/*
 * output_file.h: files that the user names: never through a link, over another file only when asked,
 * for the user behind sudo, and whole or not at all.
 */
#ifndef MEMTOLL_OUTPUT_FILE_H
#define MEMTOLL_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* 0, or -errno after the line that says why the path cannot be had. */
int output_file_check(const char *path, bool force);

/* An empty file, mode 0600; messages call it shown. Its descriptor, or -errno after a message. */
int output_file_create(const char *path, const char *shown);

/*
 * A file or directory that was just made belongs to the user behind sudo, if there is one. A failure
 * leaves it with root; the first one is told.
 */
void give_to_invoker(int fd);

/*
 * open(2) of what may be there already, and then stays whose it is. flags without O_CREAT. -1 with errno
 * set.
 */
int open_or_make(const char *path, int flags, mode_t mode);

struct output_file;

/*
 * It has no name until it is finished, and none if we are killed before; at_once: it is there from
 * the first line on. NULL after a message.
 */
struct output_file *output_file_open(const char *path, bool force, bool at_once);
FILE *output_file_stream(struct output_file *file);

/* The first line of one that is there at once: what it replaces is gone from now on. */
void output_file_show(struct output_file *file);

/* Under its name now, or gone: 0, or -errno after a message. Frees it; NULL does nothing. */
int output_file_finish(struct output_file *file);
void output_file_remove(struct output_file *file);

#endif /* MEMTOLL_OUTPUT_FILE_H */
