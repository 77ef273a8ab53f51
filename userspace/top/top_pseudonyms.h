/* SPDX-License-Identifier: GPL-2.0 */
/*
 * top_pseudonyms.h: with --redact, what is shown instead of names of programs, files and cgroups:
 * "program-1", "file-3.c". Each has the same one for as long as top runs; those of a recording, which
 * are made at its end, are others. Where there are no pseudonyms (NULL) names stay as they are.
 */
#ifndef MEMTOLL_TOP_PSEUDONYMS_H
#define MEMTOLL_TOP_PSEUDONYMS_H

struct top_pseudonyms;

struct top_pseudonyms *top_pseudonyms_new(void);
void top_pseudonyms_free(struct top_pseudonyms *pseudonyms);

/* kind: "program", "group". Freed by the caller. */
char *top_pseudonym(struct top_pseudonyms *pseudonyms, const char *kind, const char *name);
/* What kind of source it is stays: ".c". */
char *top_pseudonym_file(struct top_pseudonyms *pseudonyms, const char *base);
/* As it is, unless it names a file, as code that was made at run time may. */
char *top_pseudonym_function(struct top_pseudonyms *pseudonyms, const char *function);
/* "library libc.so.6", "stack worker", "heap": what comes after the first word. */
char *top_pseudonym_area(struct top_pseudonyms *pseudonyms, const char *area);

#endif /* MEMTOLL_TOP_PSEUDONYMS_H */
