/* SPDX-License-Identifier: GPL-2.0 */
/* malloc_numbers.h: parameters and counters of glibc's allocator, struct malloc_par mp_. */
#ifndef MEMTOLL_MALLOC_NUMBERS_H
#define MEMTOLL_MALLOC_NUMBERS_H

#include "hold/malloc_state.h"

/* par: address of mp_; 0: nothing is known. version: 236 is glibc 2.36; 0: not known. */
void malloc_numbers_read(const struct memory_view *view, uint64_t par, unsigned int version,
			 struct malloc_numbers *numbers);

#endif /* MEMTOLL_MALLOC_NUMBERS_H */
