/* SPDX-License-Identifier: GPL-2.0 */
/*
 * toml_file.h: what a TOML file says, as a list: toml++ reads it, which is C++, and this is all of it
 * that the C side sees.
 */
#ifndef MEMTOLL_TOML_FILE_H
#define MEMTOLL_TOML_FILE_H

#include <glib.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum toml_kind { TOML_TEXT, TOML_INTEGER, TOML_OTHER };

/* A value that is no table: zero.libc.bytes = "10 MiB" */
struct toml_value {
	char **keys; /* "zero", "libc", "bytes"; NULL-terminated */
	enum toml_kind kind;
	char *text;	/* TOML_TEXT */
	int64_t number; /* TOML_INTEGER */
	unsigned int line;
};

/*
 * The values (struct toml_value) in the order of their lines, freed by g_ptr_array_unref(). NULL:
 * *error, freed by g_free(), says what is wrong, and *line where.
 */
GPtrArray *toml_values(const char *text, size_t length, char **error, unsigned int *line);

#ifdef __cplusplus
}
#endif

#endif /* MEMTOLL_TOML_FILE_H */
