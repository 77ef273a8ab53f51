/* SPDX-License-Identifier: GPL-2.0 */
/*
 * progress.h: what a session is doing, on a terminal, where no command of the user's writes there,
 * too; and what each interval costs, for whoever asked (session_config.on_interval).
 */
#ifndef MEMTOLL_PROGRESS_H
#define MEMTOLL_PROGRESS_H

#include <sqlite3.h>
#include <stdint.h>

struct progress;
struct session_config;

/* Before probes are attached: it takes a tenth of a second where there is something to be told. */
struct progress *progress_new(const struct session_config *config);
/* Before the recording is closed. */
void progress_free(struct progress *progress);

/* "attaching to process 4711: loading": step. */
void progress_attaching(const struct session_config *config, const char *step);

/*
 * A slice is in the recording, elapsed_ns after the start: "recording process 4711  8/30 s  zeroing
 * 96 %  overhead 1.2 %  ^C ends".
 */
void progress_recording(struct progress *progress, sqlite3 *recording, uint64_t elapsed_ns);
/* So is the last one. */
void progress_recorded(struct progress *progress, sqlite3 *recording);

/* "ending: symbols"; NULL: no line any more. */
void progress_ending(const struct session_config *config, const char *step);

#endif /* MEMTOLL_PROGRESS_H */
