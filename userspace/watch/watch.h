/* SPDX-License-Identifier: GPL-2.0 */
/*
 * watch.h: for weeks: one recording after the other, each whole, all together within a bound; and
 * what they say, as it comes.
 */
#ifndef MEMTOLL_WATCH_H
#define MEMTOLL_WATCH_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "session/session.h"
#include "watch/listen_address.h"
#include "watch/target_set.h"

#define WATCH_KEEP_LEAST (16ULL << 20)
#define WATCH_ROTATE_LEAST_NS 2000000000ULL
#define WATCH_INTERVAL_LEAST_NS 1000000000ULL

struct watch_config {
	struct session_config session;	/* of ordinary recordings; duration_ns: of the watch */
	struct session_config detailed; /* while a trigger holds */
	struct target_set *targets;
	const char *directory;
	uint64_t rotate_ns;
	uint64_t keep_bytes;
	uint64_t interval_ns;
	unsigned int places;
	const char *metrics_path; /* NULL: none */
	bool listens;
	struct listen_address listen;
	const char *json_path;	  /* NULL: none; "-": stdout */
	GPtrArray *triggers;	  /* struct trigger */
	uint64_t detail_most_ns;  /* as long as a detailed recording takes at most */
	uint64_t detail_pause_ns; /* between two of them at least */
	const char *options_path; /* of more options; NULL: none */
	/*
	 * On SIGHUP, into one that watch_config_clear() is for: what is asked for now. False: nothing
	 * is changed, and a line has said why. NULL: nothing ever changes.
	 */
	bool (*reread)(void *context, struct watch_config *fresh);
	void *reread_context;
};

/* Targets and triggers. */
void watch_config_clear(struct watch_config *config);

/*
 * Until a signal ends it, or its duration; the configuration changes as options are read again. Exit
 * status, after a line in the log where it is not 0.
 */
int watch_run(struct watch_config *config);

#endif /* MEMTOLL_WATCH_H */
