/* SPDX-License-Identifier: GPL-2.0 */
/*
 * store_spread.h: over how much memory the stores of a place are spread, by the pages that its
 * samples were at. Pure.
 */
#ifndef MEMTOLL_STORE_SPREAD_H
#define MEMTOLL_STORE_SPREAD_H

#include <stdint.h>

struct store_spread;

struct store_spread *store_spread_new(void);
void store_spread_free(struct store_spread *spread);

/* One sample: code that is called `place` here stores at address. */
void store_spread_add(struct store_spread *spread, uint64_t place, uint64_t address);

/* In bytes, a page at least. 0: too few samples tell. */
uint64_t store_spread_bytes(const struct store_spread *spread, uint64_t place);

/* A slice is written: what had samples enough begins again. */
void store_spread_next(struct store_spread *spread);

#endif /* MEMTOLL_STORE_SPREAD_H */
