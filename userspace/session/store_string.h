/* SPDX-License-Identifier: GPL-2.0 */
/* store_string.h: rep stos and rep movs, and what waits for their stores. */
#ifndef MEMTOLL_STORE_STRING_H
#define MEMTOLL_STORE_STRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/instruction.h"
#include "session/store_loop.h"

/* At a place, or just done. */
bool store_string_at(const struct code *code, size_t at, struct store_loop *loop);

/*
 * What reads the stack behind a rep stos has to wait for its stores, and a sample is taken when it
 * is done: the time is the clearing's. That a call is done means that its return has read it.
 */
bool store_string_behind(const struct code *code, size_t at, struct store_loop *loop);

/*
 * A function, from its first byte on: does it clear by rep stos and come to its end? Then its return,
 * which reads the stack, waits for the stores. stores: offset of the rep stos that is last; loop:
 * what a sample at that return tells of it.
 */
bool store_string_waits(const uint8_t *code, size_t len, size_t *stores, struct store_loop *loop);

#endif /* MEMTOLL_STORE_STRING_H */
