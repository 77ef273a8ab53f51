/* SPDX-License-Identifier: GPL-2.0 */
/* text.h: formatting of numbers and paragraphs for a terminal. */
#ifndef MEMTOLL_TEXT_H
#define MEMTOLL_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TEXT_WIDTH 80

/*
 * Names come from traced programs and other people's files: they must not control the terminal, nor
 * pass for a line of ours. Such characters, and bytes that are not UTF-8, become '?'. All output
 * goes through here or through text_json(). Freed by g_free().
 */
char *text_printable(const char *text);

/* The same for JSON, where they are in strings only: escaped, so that values are kept. */
char *text_json(const char *json);

/* Cut to at most `columns` characters, three at least, with a mark at the end. In place. */
void text_cut(char *text, long columns);

/*
 * Fill lines of at most TEXT_WIDTH columns with the words of text, indented by spaces, the first
 * one by prefix instead. A longer word has a line of its own.
 */
void text_wrap(FILE *out, const char *prefix, int indent, const char *text);

/* The same, with lines of at most so many columns. */
void text_wrap_to(FILE *out, long columns, const char *prefix, int indent, const char *text);

/* Three digits and a unit: "1.23 ms", "10.0 MiB". */
void format_time(char *text, size_t size, double ns);
void format_bytes(char *text, size_t size, double bytes);
void format_share(char *text, size_t size, double share);
/* Of an estimate: "~12 M", "~830". */
void format_estimate(char *text, size_t size, int64_t number);
/* Of a lower bound: ">= 12,345". */
void format_at_least(char *text, size_t size, int64_t number);
/* With a comma before every three digits, in any locale. */
void format_count(char *text, size_t size, int64_t number);

/* Levenshtein's distance: how many letters must be put in, taken out or changed. */
size_t text_distance(const char *a, const char *b);

#endif /* MEMTOLL_TEXT_H */
