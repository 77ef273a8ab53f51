/* SPDX-License-Identifier: GPL-2.0 */
/* top_groups.h: paths of memory cgroups by their numbers, which are those of their directories. */
#ifndef MEMTOLL_TOP_GROUPS_H
#define MEMTOLL_TOP_GROUPS_H

#include <stdint.h>

struct top_groups;
struct top_pseudonyms;

/*
 * root: where the hierarchy is mounted; NULL: it is looked for. pseudonyms: NULL, or whoever made them
 * frees them.
 */
struct top_groups *top_groups_new(const char *root, struct top_pseudonyms *pseudonyms);
void top_groups_free(struct top_groups *groups);

/*
 * "/neighbour", of a container what it is called ("web"); of one that is gone what it was, or its
 * number. Lives until the next call.
 */
const char *top_group(struct top_groups *groups, uint64_t number);

/* The paths of today are to be found: directories are read again once at most until the next call. */
void top_groups_refresh(struct top_groups *groups);

#endif /* MEMTOLL_TOP_GROUPS_H */
