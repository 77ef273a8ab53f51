/* SPDX-License-Identifier: GPL-2.0 */
/* target_set.h: who is watched: processes of names and of cgroups, as they come and go. */
#ifndef MEMTOLL_TARGET_SET_H
#define MEMTOLL_TARGET_SET_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TARGETS_MAX 32

struct target_set;

struct target_set *target_set_new(void);
void target_set_free(struct target_set *set);

/* False where there are TARGETS_MAX already, or this one. */
bool target_set_add_name(struct target_set *set, const char *name);
bool target_set_add_cgroup(struct target_set *set, const char *cgroup);

/* Whether cgroups are looked for. */
bool target_set_has_cgroups(const struct target_set *set);
guint target_set_count(const struct target_set *set);
/* Its own, whatever its place: of one that is taken out no other has it later. */
uint32_t target_set_number(const struct target_set *set, guint index);
/* What it is called: the name, or the cgroup as it was given. */
const char *target_set_label(const struct target_set *set, guint index);

/* Of a cgroup, where it was found last; NULL: of a name, or it is not there. */
const char *target_set_directory(const struct target_set *set, guint index);

/*
 * Look for those of the other set from here on: who was told by a number before keeps it. Who is not
 * looked for any more stays, as long as there is room beside the others. False: they are the same.
 */
bool target_set_become(struct target_set *set, const struct target_set *wanted);

/* Of those that are looked for. */
guint target_set_first(const struct target_set *set);

/*
 * Append the processes of all cgroups, and those of the names where there may be new ones: looking
 * through /proc takes long.
 */
void target_set_find(struct target_set *set, uint64_t now_ns, GArray *pids);

/* Which one found the process; -1: none did. */
int target_set_of(const struct target_set *set, pid_t pid);

#endif /* MEMTOLL_TARGET_SET_H */
