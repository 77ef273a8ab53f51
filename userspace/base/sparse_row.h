/* SPDX-License-Identifier: GPL-2.0 */
/* sparse_row.h: compact storage for rows of counters that are mostly 0. */
#ifndef MEMTOLL_SPARSE_ROW_H
#define MEMTOLL_SPARSE_ROW_H

#include <stddef.h>
#include <stdint.h>

/* Maximum length of a row. */
#define SPARSE_ROW_WORDS 128

/* Freed by g_free(). NULL is a row of zeros. */
struct sparse_row;

void sparse_row_read(const struct sparse_row *row, uint64_t *words, size_t count);

/* Replace `row`, which may be freed, by one that holds these words. */
struct sparse_row *sparse_row_write(struct sparse_row *row, const uint64_t *words, size_t count);

#endif /* MEMTOLL_SPARSE_ROW_H */
