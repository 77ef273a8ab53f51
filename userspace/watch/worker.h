/* SPDX-License-Identifier: GPL-2.0 */
/*
 * worker.h: a process that makes one recording. So what a recording takes, memory, descriptors and
 * probes, is gone with it, however many weeks the watch goes on; and the next one is prepared while
 * this one still counts.
 */
#ifndef MEMTOLL_WORKER_H
#define MEMTOLL_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/memory_figures.h"
#include "session/session.h"

struct target_set;

#define WORKER_TOLLS 24
#define WORKER_NAME 32
#define WORKER_PLACE 96

enum worker_event {
	WORKER_READY,	   /* all is prepared: counting begins at worker_go() */
	WORKER_BEGUN,	   /* begun */
	WORKER_TARGET,	   /* what one of them did in an interval */
	WORKER_CORRECTION, /* what these differ by from that of the whole recording; may be below 0 */
	WORKER_LOSS,	   /* in an interval */
	WORKER_INTERVAL,   /* it is complete */
	WORKER_PLACE_TOLL, /* of the whole recording */
	WORKER_DONE,	   /* the last one */
};

struct worker_toll {
	char name[WORKER_NAME];
	char family[WORKER_NAME];
	double time_ns;
	double count;
	double bytes;
};

struct worker_message {
	enum worker_event event;
	union {
		struct {
			uint64_t first_ns; /* the first target counts */
			uint64_t at_ns;	   /* all do */
		} begun;
		struct {
			uint32_t number; /* target_set_number() */
			bool first;	 /* of its interval */
			uint32_t processes;
			int64_t rss_bytes;
			int64_t swap_bytes;
			double observed_ns;
			double overhead_ns;
			struct memory_figures memory;		/* of its cgroup */
			struct worker_toll tolls[WORKER_TOLLS]; /* until one without a name */
		} target;
		struct {
			char name[WORKER_NAME];
			uint64_t count;
		} loss;
		struct {
			uint64_t start_ns, end_ns;
			uint64_t bytes; /* of the recording */
		} interval;
		struct {
			char toll[WORKER_NAME];
			char call[WORKER_NAME];
			char allocated[WORKER_PLACE];
			char touched[WORKER_PLACE];
			double time_ns;
			double count;
			double bytes;
		} place;
		struct {
			int status; /* message.h */
			uint64_t processes;
			uint64_t end_ns; /* when counting ended */
			bool kept;	 /* the file is in its place, and whole */
			bool full;	 /* it had become too large */
		} done;
	};
};

struct worker_config {
	const struct session_config *session; /* without output */
	struct target_set *targets;
	const char *directory;
	int lock_fd;	  /* of the directory: held until the recording is settled */
	const char *name; /* of the recording */
	unsigned int places;
};

struct worker;

/* NULL after a line in the log. */
struct worker *worker_start(const struct worker_config *config);

int worker_fd(const struct worker *worker);
const char *worker_name(const struct worker *worker);

/* The next message. 1; 0: none now; -1: it has ended, and *message is none. */
int worker_read(struct worker *worker, struct worker_message *message);

void worker_go(struct worker *worker);
/* End the recording: it is finished, and settled. Twice does no harm. */
void worker_end(struct worker *worker);
/* Whatever it does. What it had written is removed. */
void worker_kill(struct worker *worker);
/* Waits for its end. */
void worker_free(struct worker *worker);

#endif /* MEMTOLL_WORKER_H */
