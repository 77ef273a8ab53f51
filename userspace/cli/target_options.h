/* SPDX-License-Identifier: GPL-2.0 */
/* target_options.h: which processes a command traces: -p, -n, -c or -- COMMAND. */
#ifndef MEMTOLL_TARGET_OPTIONS_H
#define MEMTOLL_TARGET_OPTIONS_H

#include <argp.h>
#include <glib.h>
#include <stdbool.h>

#include "session/session.h"

/* clang-format off */
#define TARGET_OPTIONS                                                                             \
	{ NULL, 0, NULL, 0, "Target (one of these, or -- COMMAND ARGS...):", 1 },                  \
	{ "pid", 'p', "PID[,PID...]", 0, "running processes; their children are followed", 1 },    \
	{ "name", 'n', "NAME", 0, "the one process with this name", 1 },                           \
	{ "cgroup", 'c', "NAME", 0,                                                                \
	  "all processes of a cgroup, by its path, or of a container or pod, by its name or how its " \
	  "id begins, as they come and go", 1 }
/* clang-format on */

struct target_options {
	const char *pids;
	const char *name;
	const char *cgroup;
	char **command;
	GArray *found; /* of pid_t */
	char *directory, *container;
};

/* For a parser of argp's: its result. A bad value ends memtoll. */
error_t take_target(struct target_options *options, int key, char *value, struct argp_state *state);

bool has_target(const struct target_options *options);

/* Exit status, after a message where there is not exactly one. */
int want_target(const struct target_options *options);

/* Look for it, and put it into config, for as long as options is. Exit status, after a message. */
int find_target(struct target_options *options, struct session_config *config);

void clear_target(struct target_options *options);

#endif /* MEMTOLL_TARGET_OPTIONS_H */
