/* SPDX-License-Identifier: GPL-2.0 */
/*
 * json_out.h: lines to a file, whose disk may be full, or to a reader that may be slow: a watch never
 * waits for it. What was not taken is kept up to a bound, and lines beyond it are left out, each as a
 * whole.
 */
#ifndef MEMTOLL_JSON_OUT_H
#define MEMTOLL_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>

#define JSON_OUT_KEPT (1U << 20)

struct json_out;

/* Appended to; "-": stdout. NULL, and errno. */
struct json_out *json_out_open(const char *path);
/* Of a descriptor, which stays open. */
struct json_out *json_out_new(int fd);

/* 0; -ENOBUFS: the line is left out; another error: nobody will read it. */
int json_out_add(struct json_out *out, const char *line, size_t length);
/* As much as the reader takes now. 0 or -errno. */
int json_out_flush(struct json_out *out);

/* What is kept has a second yet. */
void json_out_free(struct json_out *out);

#endif /* MEMTOLL_JSON_OUT_H */
