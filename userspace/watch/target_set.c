// SPDX-License-Identifier: GPL-2.0
/*
 * target_set.c: cgroups list their processes. Names are looked for in /proc, once a second, and only
 * while processes start (the last pid in /proc/loadavg): of each process a few times, as it has its
 * name only after exec, and of all once a minute.
 */
#include "watch/target_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/cgroup.h"
#include "host/container_find.h"
#include "host/proc.h"

#define S 1000000000ULL
#define LOOK_NS (1 * S)
#define ALL_NS (60 * S)
#define LOOKS 3 /* at a process, until it is a stranger; and at /proc after the last start */
/*
 * How often a cgroup that is not there is looked for. It may be a container's name, for which all
 * cgroups are walked through: where that takes long all such looks take a fiftieth of the time.
 */
#define CGROUP_NS (1 * S)
#define CGROUP_MOST_NS (30 * S)
#define CGROUP_PARTS 50

struct watched {
	bool is_cgroup;
	bool given_up; /* nobody is looked for any more; what it has counted stays */
	uint32_t number;
	char *label;
	char *directory;  /* NULL: not there now */
	uint64_t look_ns; /* when it is to be looked for */
};

struct target_set {
	GPtrArray *watched;
	uint32_t next_number;
	GHashTable *found;     /* pid -> index + 1 */
	GHashTable *strangers; /* pid -> looks */
	uint64_t looked_ns;
	uint64_t forgot_ns;
	unsigned int idle_looks;
	char *last_pid;
};

static void watched_free(gpointer data)
{
	struct watched *watched = data;

	g_free(watched->label);
	g_free(watched->directory);
	g_free(watched);
}

struct target_set *target_set_new(void)
{
	struct target_set *set = g_new0(struct target_set, 1);

	set->watched = g_ptr_array_new_with_free_func(watched_free);
	set->found = g_hash_table_new(NULL, NULL);
	set->strangers = g_hash_table_new(NULL, NULL);
	return set;
}

void target_set_free(struct target_set *set)
{
	if (!set)
		return;
	g_ptr_array_free(set->watched, TRUE);
	g_hash_table_destroy(set->found);
	g_hash_table_destroy(set->strangers);
	g_free(set->last_pid);
	g_free(set);
}

static bool add(struct target_set *set, const char *label, bool is_cgroup)
{
	struct watched *watched;
	guint i;

	for (i = 0; i < set->watched->len; i++)
		if (!strcmp(target_set_label(set, i), label))
			return false;
	if (set->watched->len == TARGETS_MAX)
		return false;
	watched = g_new0(struct watched, 1);
	watched->label = g_strdup(label);
	watched->is_cgroup = is_cgroup;
	watched->number = set->next_number++;
	g_ptr_array_add(set->watched, watched);
	return true;
}

bool target_set_add_name(struct target_set *set, const char *name)
{
	return add(set, name, false);
}

bool target_set_add_cgroup(struct target_set *set, const char *cgroup)
{
	return add(set, cgroup, true);
}

guint target_set_count(const struct target_set *set)
{
	return set->watched->len;
}

const char *target_set_label(const struct target_set *set, guint index)
{
	return ((struct watched *)g_ptr_array_index(set->watched, index))->label;
}

uint32_t target_set_number(const struct target_set *set, guint index)
{
	return ((struct watched *)g_ptr_array_index(set->watched, index))->number;
}

static struct watched *watched_of(const struct target_set *set, guint index)
{
	return g_ptr_array_index(set->watched, index);
}

const char *target_set_directory(const struct target_set *set, guint index)
{
	const struct watched *watched = watched_of(set, index);

	return watched->given_up ? NULL : watched->directory;
}

static struct watched *find_label(const struct target_set *set, const char *label)
{
	guint i;

	for (i = 0; i < set->watched->len; i++)
		if (!strcmp(target_set_label(set, i), label))
			return watched_of(set, i);
	return NULL;
}

/* Whether there are the same ones to be looked for. */
static bool is_same(const struct target_set *set, const struct target_set *wanted)
{
	guint i, live = 0;

	for (i = 0; i < set->watched->len; i++)
		live += !watched_of(set, i)->given_up;
	for (i = 0; i < wanted->watched->len; i++) {
		const struct watched *other = watched_of(wanted, i);
		const struct watched *own = find_label(set, other->label);

		if (!own || own->given_up || own->is_cgroup != other->is_cgroup)
			return false;
	}
	return live == wanted->watched->len;
}

/* Of those that are given up the first. */
static void make_room(struct target_set *set, guint more)
{
	guint i = 0;

	while (i < set->watched->len && set->watched->len + more > TARGETS_MAX)
		if (watched_of(set, i)->given_up)
			g_ptr_array_remove_index(set->watched, i);
		else
			i++;
}

bool target_set_become(struct target_set *set, const struct target_set *wanted)
{
	guint i, more = 0;

	if (is_same(set, wanted))
		return false;
	for (i = 0; i < set->watched->len; i++)
		watched_of(set, i)->given_up = !find_label(wanted, target_set_label(set, i));
	for (i = 0; i < wanted->watched->len; i++)
		more += !find_label(set, target_set_label(wanted, i));
	make_room(set, more);
	for (i = 0; i < wanted->watched->len; i++) {
		const struct watched *other = watched_of(wanted, i);

		add(set, other->label, other->is_cgroup);
		find_label(set, other->label)->is_cgroup = other->is_cgroup;
	}
	return true;
}

guint target_set_first(const struct target_set *set)
{
	guint i = 0;

	while (i + 1 < set->watched->len && watched_of(set, i)->given_up)
		i++;
	return i;
}

static void note(struct target_set *set, pid_t pid, guint index, GArray *pids)
{
	g_array_append_val(pids, pid);
	g_hash_table_insert(set->found, GINT_TO_POINTER(pid), GUINT_TO_POINTER(index + 1));
}

/* As `record -c` takes it; of several containers of one name it is none. NULL: not there now. */
static char *find_directory(const char *label)
{
	char *directory = cgroup_find(label), *ambiguous = NULL;
	g_autofree char *hierarchy = NULL;
	struct container_found found = { 0 };

	if (directory)
		return directory;
	hierarchy = cgroup_find("/");
	if (hierarchy)
		container_find(hierarchy, "", label, &found, &ambiguous);
	directory = g_steal_pointer(&found.directory);
	container_found_clear(&found);
	g_free(ambiguous);
	return directory;
}

static void find_cgroup(struct target_set *set, guint index, uint64_t now_ns, GArray *pids)
{
	struct watched *watched = g_ptr_array_index(set->watched, index);
	g_autoptr(GArray) members = g_array_new(FALSE, FALSE, sizeof(pid_t));
	uint64_t took_ns;
	guint i;

	if (!watched->directory && now_ns >= watched->look_ns) {
		took_ns = g_get_monotonic_time() * 1000;
		watched->directory = find_directory(watched->label);
		took_ns = g_get_monotonic_time() * 1000 - took_ns;
		watched->look_ns = now_ns + CLAMP(took_ns * CGROUP_PARTS * set->watched->len,
						  CGROUP_NS, CGROUP_MOST_NS);
	}
	if (watched->directory && cgroup_processes(watched->directory, members))
		g_clear_pointer(&watched->directory, g_free);
	for (i = 0; i < members->len; i++)
		note(set, g_array_index(members, pid_t, i), index, pids);
}

static bool has_kind(const struct target_set *set, bool is_cgroup)
{
	guint i;

	for (i = 0; i < set->watched->len; i++)
		if (watched_of(set, i)->is_cgroup == is_cgroup && !watched_of(set, i)->given_up)
			return true;
	return false;
}

bool target_set_has_cgroups(const struct target_set *set)
{
	return has_kind(set, true);
}

/* proc(5): its last number is the pid of who was created last. */
static bool has_started(struct target_set *set)
{
	g_autofree char *text = NULL;
	const char *last;

	if (!g_file_get_contents("/proc/loadavg", &text, NULL, NULL))
		return true;
	last = strrchr(text, ' ');
	if (set->last_pid && last && !strcmp(last, set->last_pid))
		return false;
	g_free(set->last_pid);
	set->last_pid = g_strdup(last);
	return true;
}

static void look_at(struct target_set *set, pid_t pid, GArray *pids)
{
	guint looks = GPOINTER_TO_UINT(g_hash_table_lookup(set->strangers, GINT_TO_POINTER(pid)));
	guint i;

	if (looks >= LOOKS)
		return;
	for (i = 0; i < set->watched->len; i++) {
		const struct watched *watched = g_ptr_array_index(set->watched, i);

		if (!watched->is_cgroup && !watched->given_up &&
		    proc_has_name(pid, watched->label)) {
			note(set, pid, i, pids);
			return;
		}
	}
	g_hash_table_insert(set->strangers, GINT_TO_POINTER(pid), GUINT_TO_POINTER(looks + 1));
}

static void find_names(struct target_set *set, uint64_t now_ns, GArray *pids)
{
	const char *name;
	GDir *processes;

	if (set->looked_ns && now_ns - set->looked_ns < LOOK_NS)
		return;
	set->looked_ns = now_ns;
	set->idle_looks = has_started(set) ? 0 : set->idle_looks + 1;
	if (now_ns - set->forgot_ns >= ALL_NS) {
		g_hash_table_remove_all(set->strangers);
		set->forgot_ns = now_ns;
	} else if (set->idle_looks > LOOKS) {
		return;
	}
	processes = g_dir_open("/proc", 0, NULL);
	while (processes && (name = g_dir_read_name(processes))) {
		pid_t pid = g_ascii_isdigit(name[0]) ? atoi(name) : 0;

		if (pid > 0 && pid != getpid() && pid != getppid())
			look_at(set, pid, pids);
	}
	if (processes)
		g_dir_close(processes);
}

void target_set_find(struct target_set *set, uint64_t now_ns, GArray *pids)
{
	guint i;

	for (i = 0; i < set->watched->len; i++)
		if (watched_of(set, i)->is_cgroup && !watched_of(set, i)->given_up)
			find_cgroup(set, i, now_ns, pids);
	if (has_kind(set, false))
		find_names(set, now_ns, pids);
}

int target_set_of(const struct target_set *set, pid_t pid)
{
	return GPOINTER_TO_INT(g_hash_table_lookup(set->found, GINT_TO_POINTER(pid))) - 1;
}
