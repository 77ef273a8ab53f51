/* SPDX-License-Identifier: GPL-2.0 */
/* options.h: values on the command line. */
#ifndef MEMTOLL_OPTIONS_H
#define MEMTOLL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* "10s", "500ms", "2m", "1h", "1.5" (seconds): nanoseconds. False unless positive and whole. */
bool parse_duration(const char *text, uint64_t *ns);

/* "65536", "64K", "1M", "2G" (powers of 1024; "KiB" too): bytes. False where it is no size. */
bool parse_size(const char *text, uint64_t *bytes);

/* "0", "12": a number of things. False for signs, blanks, and beyond UINT_MAX. */
bool parse_count(const char *text, unsigned int *count);

#endif /* MEMTOLL_OPTIONS_H */
