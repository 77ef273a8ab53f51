/* SPDX-License-Identifier: GPL-2.0 */
/* option_file.h: options in a file, as on the command line; lines that begin with # are comments. */
#ifndef MEMTOLL_OPTION_FILE_H
#define MEMTOLL_OPTION_FILE_H

#include <glib.h>

struct option_line {
	unsigned int number;
	char **words; /* as a shell takes them apart; NULL-terminated */
};

/*
 * Its lines with words: struct option_line, freed with the array. NULL: *error says where and why, and
 * is freed by the caller with g_free().
 */
GPtrArray *option_file_read(const char *path, char **error);

#endif /* MEMTOLL_OPTION_FILE_H */
