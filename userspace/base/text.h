/* SPDX-License-Identifier: GPL-2.0 */
/* text.h: figures and paragraphs for a terminal. */
#ifndef MEMTOLL_TEXT_H
#define MEMTOLL_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TEXT_WIDTH 80

/*
 * Names come from traced programs and from files of others: nothing in them may steer the terminal,
 * or pass for a line of ours. '?' stands for what would, and for what is no UTF-8. All text that
 * leaves the process goes through here, or through text_json(). Freed by g_free().
 */
char *text_printable(const char *text);

/* The same for JSON, where such characters are in strings only: escaped, and the value is the same. */
char *text_json(const char *json);

/* At most columns characters, the end cut off and marked. In place. */
void text_cut(char *text, long columns);

/*
 * Words in lines of at most TEXT_WIDTH columns, each after indent spaces, the first one after what
 * prefix says instead. A word that is longer stands by itself.
 */
void text_wrap(FILE *out, const char *prefix, int indent, const char *text);

/* Three digits and a unit: "1.23 ms", "10.0 MiB". */
void format_time(char *text, size_t size, double ns);
void format_bytes(char *text, size_t size, double bytes);
void format_share(char *text, size_t size, double share);
/* With a comma before every three digits, in any locale. */
void format_count(char *text, size_t size, int64_t number);

#endif /* MEMTOLL_TEXT_H */
