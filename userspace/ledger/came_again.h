/* SPDX-License-Identifier: GPL-2.0 */
/*
 * came_again.h: where faults are passed over for whom no other has spoken (unspoken.c), how many of
 * their pages had been given back: as many as of those that were seen of the process lately, and by
 * the same calls.
 */
#ifndef MEMTOLL_CAME_AGAIN_H
#define MEMTOLL_CAME_AGAIN_H

#include <glib.h>

#include "bpf/wire/records.h"
#include "ledger/giveback.h"

struct came_again;

struct came_again *came_again_new(void);
void came_again_free(struct came_again *came);

/* Its pages, with those that they stand for, were brought in, given back before or not. */
void came_again_brought(struct came_again *came, const struct memtoll_run *run);

/* So many faults, with so many pages, of this process and class; nothing else of it counts. */
void came_again_unspoken(struct came_again *came, const struct memtoll_run *part);

/*
 * The sums (struct giveback_sum) are about to be drained. on_part has one for each way in which pages
 * of those faults came again, to be added. What was seen by now counts for half from then on.
 */
void came_again_settle(struct came_again *came, GHashTable *sums, giveback_fn *on_part,
		       void *context);

#endif /* MEMTOLL_CAME_AGAIN_H */
