/* SPDX-License-Identifier: GPL-2.0 */
/* arguments.h: glibc's argp with errors of one line. */
#ifndef MEMTOLL_ARGUMENTS_H
#define MEMTOLL_ARGUMENTS_H

#include <argp.h>
#include <stdint.h>

/*
 * Parse; --help is printed and ends the program. Everything from the first word that is no option
 * on is left to ARGP_KEY_ARG(S). An exit status: 0, or 2 after one message; a parser that
 * knows better what is wrong refuses.
 */
int parse_arguments(const struct argp *argp, int argc, char **argv, void *input);

/*
 * From here on each message begins with the place that the arguments are of ("FILE:3: "), and ends
 * with what follows; both "": nothing, as on the command line.
 */
void arguments_are_of(const char *place, const char *consequence);

/* For parsers: one message, and exit status 2. */
void refuse(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The one recording that a command works on: *file is set, or was already and this refuses. */
void take_recording(const char **file, const char *command, const char *value);
/* At the end: it must have been named. */
void want_recording(const char *file, const char *command);

/* --max-size of a recording that is to be made, in bytes. */
uint64_t take_max_size(const char *value);

#endif /* MEMTOLL_ARGUMENTS_H */
