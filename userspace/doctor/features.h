/* SPDX-License-Identifier: GPL-2.0 */
/* features.h: what this kernel and these privileges allow, found by trying. */
#ifndef MEMTOLL_FEATURES_H
#define MEMTOLL_FEATURES_H

#include <stdbool.h>
#include <stddef.h>

struct feature {
	const char *name;
	bool required; /* without it nothing works */
	bool works;
	char detail[160];   /* what was found, or why not */
	const char *source; /* kernel version or commit that introduced it */
};

/* Try all features. Number written (at most capacity). */
size_t features_find(struct feature *features, size_t capacity);

#endif /* MEMTOLL_FEATURES_H */
