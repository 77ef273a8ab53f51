/* SPDX-License-Identifier: GPL-2.0 */
/* trees.h: a directory of a test's own goes with all that is below it. */
#ifndef MEMTOLL_TESTS_TREES_H
#define MEMTOLL_TESTS_TREES_H

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

static inline int remove_entry(const char *path, const struct stat *state, int kind,
			       struct FTW *place)
{
	(void)state;
	(void)kind;
	(void)place;
	return remove(path);
}

/* 0, or what nftw() says. */
static inline int remove_tree(const char *path)
{
	return nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

#endif /* MEMTOLL_TESTS_TREES_H */
