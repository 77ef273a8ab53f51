/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pinning.h: live blocks because of which free memory stays resident, one by one, so that who made
 * them can be told: those on the pages of what is free, and those at the ends of heaps.
 */
#ifndef MEMTOLL_PINNING_H
#define MEMTOLL_PINNING_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define PINNING_MAX (1U << 18) /* of one process; of more each stands for several */
#define HINT_MAX 96

/* address: what malloc returned. size: of the chunk. */
struct pinning_block {
	uint64_t address;
	uint64_t size;
	uint64_t bytes; /* resident, free, and on pages that stay; also of those it stands for */
};

/* A heap's last live block, where more is free below than lives above that. */
struct pinning_end {
	uint64_t address;
	uint64_t size;
	uint64_t below; /* resident bytes of the largest free stretch */
	uint64_t above; /* bytes from there to the block's end */
	char hint[HINT_MAX];
};

struct pinning {
	GArray *blocks; /* of struct pinning_block, ascending */
	GArray *ends;	/* of struct pinning_end, most below first */
};

void pinning_init(struct pinning *pinning);
void pinning_free(struct pinning *pinning);
void pinning_add(struct pinning *pinning, const struct pinning_block *block);

/*
 * At most so many: of two neighbours one stays, by a chance that is proportional to its bytes, and
 * has those of both. Sums of bytes by whatever property of the blocks are then unbiased estimates.
 */
void pinning_thin(struct pinning *pinning, guint most);

#endif /* MEMTOLL_PINNING_H */
