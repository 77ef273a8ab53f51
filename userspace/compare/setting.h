/* SPDX-License-Identifier: GPL-2.0 */
/*
 * setting.h: a change of the command's environment, "VARIABLE=VALUE", added to what is there.
 * Variables that are lists of settings keep those that the change does not name.
 */
#ifndef MEMTOLL_SETTING_H
#define MEMTOLL_SETTING_H

#include <glib.h>

/* The value that a variable gets; before: what it has, or NULL. Freed by g_free(). */
char *setting_merge(const char *name, const char *before, const char *value);

/* Make the changes (char *) in the environment of this process, in their order. */
void setting_enter(const GPtrArray *changes);

/*
 * The command with the changes: `env VAR=... prog` would take them back, so it gets them as the
 * last assignments before prog. environment: what it starts with, before the changes. Freed by
 * g_strfreev().
 */
char **setting_command(char *const *command, const GPtrArray *changes, char **environment);

/*
 * A word of the command that sets a variable of the changes where setting_command() does not reach
 * (a shell's script, env -S), or NULL.
 */
const char *setting_out_of_reach(char *const *command, const GPtrArray *changes);

#endif /* MEMTOLL_SETTING_H */
