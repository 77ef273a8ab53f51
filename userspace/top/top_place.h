/* SPDX-License-Identifier: GPL-2.0 */
/* top_place.h: what a stack's place is called in one line, from a recording's frames. */
#ifndef MEMTOLL_TOP_PLACE_H
#define MEMTOLL_TOP_PLACE_H

#include <sqlite3.h>
#include <stdint.h>

struct top_places;
struct top_pseudonyms;

/* pseudonyms: of files, and whoever made them frees them; NULL: none. */
struct top_places *top_places_new(struct top_pseudonyms *pseudonyms);
void top_places_free(struct top_places *places);

/*
 * "main.c:12 (make) < serve < main": the program's own code first, and who calls it. NULL where the
 * stack is not in the recording. Lives as long as places.
 */
const char *top_place(struct top_places *places, sqlite3 *recording, int64_t stack);

#endif /* MEMTOLL_TOP_PLACE_H */
