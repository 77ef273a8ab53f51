/* SPDX-License-Identifier: GPL-2.0 */
/* keep.h: a directory of recordings, and its bound: the oldest of its own go first. */
#ifndef MEMTOLL_KEEP_H
#define MEMTOLL_KEEP_H

#include <stdbool.h>
#include <stdint.h>

/* Which of the recordings this watch has made, one after the other, whatever the clock says. */
struct keep;

struct keep *keep_new(void);
void keep_free(struct keep *keep);

/* The name of a recording that begins now, in UTC. Freed by the caller. */
char *keep_name(struct keep *keep, bool detailed);
/* Whether a watch has made a file of this name. */
bool keep_is_name(const char *name);

/*
 * Made where it is not there. The descriptor that holds it: one watch has a directory. -1 after a
 * line in the log.
 */
int keep_lock(const char *directory);

/* What a watch that was killed has left unfinished. */
void keep_remove_unfinished(const char *directory);

struct kept {
	uint64_t bytes; /* of what is whole, and of what is being written */
	uint64_t files; /* that are whole */
	uint64_t removed;
};

/*
 * Remove the oldest until all together have most_bytes; only recordings, and files of ours. The age
 * of those of earlier watches is what their names say; one that is yet to come by its name was made
 * before the clock was set back.
 */
struct kept keep_within(struct keep *keep, const char *directory, uint64_t most_bytes);

/* What a recording that is being written takes now, with its journal. */
uint64_t keep_part_bytes(const char *directory, const char *name);

#endif /* MEMTOLL_KEEP_H */
