/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rotation.h: one recording after the other, without a gap: the next one is prepared, with all its
 * probes, while this one counts; it begins; and only then this one ends.
 */
#ifndef MEMTOLL_ROTATION_H
#define MEMTOLL_ROTATION_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "watch/worker.h"

#define ROTATION_WORKERS 4 /* at most: the one that counts, the next, and two that end */

/* What the next ones are made with. */
struct rotation_options {
	struct session_config ordinary, detailed;
	uint64_t rotate_ns;
	uint64_t file_bytes; /* from here on a recording does not go on */
};

struct rotation_config {
	struct target_set *targets;
	const char *directory;
	struct keep *keep; /* what they are named by */
	int lock_fd;
	unsigned int places;
	/* Of any of them, but for the first two; name: of its recording. detailed: it is one. */
	void (*on_message)(void *context, const struct worker_message *message, const char *name,
			   bool detailed);
	/* Counting has begun in one. */
	void (*on_begun)(void *context, const char *name, bool detailed);
	/* Of two in a row: below 0 counting was in none for so long, above in both. */
	void (*on_switched)(void *context, int64_t overlap_ns);
	void (*on_failure)(void *context);
	void *context;
};

struct rotation;

struct rotation *rotation_new(const struct rotation_config *config,
			      const struct rotation_options *options);
void rotation_free(struct rotation *rotation);

/* One that is prepared already is given up. */
void rotation_change(struct rotation *rotation, const struct rotation_options *options);

/* As soon as possible. */
void rotation_switch(struct rotation *rotation, uint64_t now_ns);
/* Of which kind the next ones are; switches where this one is of the other kind. */
void rotation_want_detailed(struct rotation *rotation, bool detailed, uint64_t now_ns);

/* No more of them; true: all have ended. */
bool rotation_end(struct rotation *rotation);

/* fds of all; how many. Then messages, and what is due; to be called each second at least. */
unsigned int rotation_fds(const struct rotation *rotation, struct pollfd *fds);
void rotation_step(struct rotation *rotation, uint64_t now_ns);

/* Of the one that counts; "" where none does. */
const char *rotation_name(const struct rotation *rotation);

#endif /* MEMTOLL_ROTATION_H */
