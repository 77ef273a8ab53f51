/* SPDX-License-Identifier: GPL-2.0 */
/*
 * progress.h: what a session is doing, on a terminal, where no command of the user's writes there,
 * too.
 */
#ifndef MEMTOLL_PROGRESS_H
#define MEMTOLL_PROGRESS_H

#include <stdint.h>

struct session_config;

/* "attaching to process 4711: loading": step. */
void progress_attaching(const struct session_config *config, const char *step);

/* "recording process 4711: 8 of 30 s; ^C ends it". */
void progress_recording(const struct session_config *config, uint64_t elapsed_ns);

/* "ending: symbols"; NULL: no line any more. */
void progress_ending(const struct session_config *config, const char *step);

#endif /* MEMTOLL_PROGRESS_H */
