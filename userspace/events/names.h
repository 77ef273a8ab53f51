/* SPDX-License-Identifier: GPL-2.0 */
/* names.h: the words of recording.sql and the report for the enums of bpf/wire/. */
#ifndef MEMTOLL_NAMES_H
#define MEMTOLL_NAMES_H

#include <linux/types.h>
#include <stdbool.h>

#include "events/refined.h"

/* "malloc" ..; "" for FN_NONE. */
const char *fn_name(unsigned int fn);
/* "mmap" ..; "" for MAP_FN_NONE. */
const char *map_fn_name(unsigned int map_fn);
/* A row of table fault_class. */
const char *fault_class_name(unsigned int fault_class, bool major);
const char *area_name(unsigned int area);
/* Column what of table swap. */
const char *swap_what_name(unsigned int what);
const char *drop_how_name(unsigned int how);
/* "UFFDIO_COPY" ..; "" for what is no request that wakes. */
const char *handler_request_name(unsigned int request);
/* Column call of table file_read; "" for READ_FN_NONE. */
const char *read_fn_name(unsigned int read_fn);

#endif /* MEMTOLL_NAMES_H */
