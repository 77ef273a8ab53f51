/* SPDX-License-Identifier: GPL-2.0 */
/* examples.h: recordings that are part of the binary, for those who cannot make one. */
#ifndef MEMTOLL_EXAMPLES_H
#define MEMTOLL_EXAMPLES_H

#include <stddef.h>

struct example {
	const char *name;
	const char *what; /* what its program does */
	const unsigned char *begin, *end;
};

extern const struct example examples[];
extern const size_t examples_count;

/* NULL: there is none of that name. */
const struct example *example_find(const char *name);

#endif /* MEMTOLL_EXAMPLES_H */
