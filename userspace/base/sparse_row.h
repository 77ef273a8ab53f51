/* SPDX-License-Identifier: GPL-2.0 */
/* sparse_row.h: rows of counters most of which are 0, kept in the room that the others need. */
#ifndef MEMTOLL_SPARSE_ROW_H
#define MEMTOLL_SPARSE_ROW_H

#include <stddef.h>
#include <stdint.h>

/* Words that a row may have at most. */
#define PACKED_WORDS 128

/* Freed by g_free(). NULL is a row of zeros. */
struct packed;

void packed_read(const struct packed *packed, uint64_t *words, size_t count);

/* The row that holds these words, in the place of `packed`, which is given up. */
struct packed *packed_write(struct packed *packed, const uint64_t *words, size_t count);

#endif /* MEMTOLL_SPARSE_ROW_H */
