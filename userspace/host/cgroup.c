// SPDX-License-Identifier: GPL-2.0
#include "host/cgroup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host/proc.h"

/* In version 1 "no limit" is the largest multiple of the page size. */
#define NO_LIMIT (INT64_MAX / 2)

/* A mounted hierarchy. */
struct mount {
	int version;
	bool memory; /* version 1: with the memory controller */
	char *root;  /* the group that is shown at the mount point */
	char *point;
};

static bool is_cgroup(const char *directory)
{
	g_autofree char *procs = g_build_filename(directory, "cgroup.procs", NULL);

	return g_file_test(procs, G_FILE_TEST_IS_REGULAR);
}

/* ---- where the hierarchies are ---- */

static void mount_free(gpointer data)
{
	struct mount *mount = data;

	g_free(mount->root);
	g_free(mount->point);
	g_free(mount);
}

static bool has_option(const char *options, const char *wanted)
{
	g_auto(GStrv) words = g_strsplit(options, ",", -1);

	return g_strv_contains((const char *const *)words, wanted);
}

/*
 * "36 35 98:0 /root /point options optional... - type source super-options", proc(5). NULL: no
 * cgroup.
 */
static struct mount *parse_mount(const char *line, const char *prefix)
{
	const char *separator = strstr(line, " - ");
	g_auto(GStrv) fields = NULL, types = NULL;
	g_autofree char *point = NULL;
	struct mount *mount;
	int version;

	if (!separator)
		return NULL;
	types = g_strsplit(separator + 3, " ", 3);
	if (g_strv_length(types) < 3)
		return NULL;
	version = !strcmp(types[0], "cgroup2") ? 2 : !strcmp(types[0], "cgroup") ? 1 : 0;
	fields = g_strsplit(line, " ", 6);
	if (!version || g_strv_length(fields) < 6)
		return NULL;
	point = proc_unescape(fields[4]);
	mount = g_new0(struct mount, 1);
	mount->version = version;
	mount->memory = version == 1 && has_option(types[2], "memory");
	mount->root = proc_unescape(fields[3]);
	mount->point = g_strconcat(prefix, point, NULL);
	return mount;
}

static GPtrArray *read_mounts(const char *prefix)
{
	GPtrArray *mounts = g_ptr_array_new_with_free_func(mount_free);
	g_autofree char *path = g_strconcat(prefix, "/proc/self/mountinfo", NULL);
	g_autofree char *text = NULL;
	g_auto(GStrv) lines = NULL;
	size_t i;

	if (!g_file_get_contents(path, &text, NULL, NULL))
		return mounts;
	lines = g_strsplit(text, "\n", -1);
	for (i = 0; lines[i]; i++) {
		struct mount *mount = parse_mount(lines[i], prefix);

		if (mount)
			g_ptr_array_add(mounts, mount);
	}
	return mounts;
}

/*
 * The directory of a group, by its path in the hierarchy; NULL where the mount does not show it.
 * A path with ".." is outside of our cgroup namespace.
 */
static char *directory_in(const struct mount *mount, const char *path)
{
	const char *rest = path;
	char *directory;

	if (strcmp(mount->root, "/")) {
		if (!g_str_has_prefix(path, mount->root))
			return NULL;
		rest = path + strlen(mount->root);
		if (*rest && *rest != '/')
			return NULL;
	}
	if (!strcmp(rest, "/"))
		rest = "";
	if (!strcmp(rest, "/..") || g_str_has_prefix(rest, "/../"))
		return NULL;
	directory = g_strconcat(mount->point, rest, NULL);
	if (!is_cgroup(directory))
		g_clear_pointer(&directory, g_free);
	return directory;
}

/* The order in which hierarchies are searched for a name. */
static int rank_of(const struct mount *mount)
{
	return mount->memory ? 1 : mount->version == 2 ? 2 : 3;
}

char *cgroup_find(const char *name)
{
	g_autoptr(GPtrArray) mounts = NULL;
	g_autofree char *rooted = NULL, *below = NULL;
	int rank;
	guint i;

	if (is_cgroup(name))
		return g_canonicalize_filename(name, NULL);
	mounts = read_mounts("");
	rooted = name[0] == '/' ? g_strdup(name) : g_strconcat("/", name, NULL);
	for (rank = 1; rank <= 3; rank++) {
		for (i = 0; i < mounts->len; i++) {
			const struct mount *mount = g_ptr_array_index(mounts, i);
			g_autofree char *path = NULL;

			if (rank_of(mount) != rank)
				continue;
			path = directory_in(mount, rooted);
			if (!path)
				path = g_build_filename(mount->point, name, NULL);
			if (is_cgroup(path))
				return g_canonicalize_filename(path, NULL);
		}
	}
	/* With the hierarchy's name: "memory/docker/1234". */
	below = g_build_filename("/sys/fs/cgroup", name, NULL);
	return is_cgroup(below) ? g_canonicalize_filename(below, NULL) : NULL;
}

/* ---- the processes of a group ---- */

static int read_processes(const char *directory, GArray *pids)
{
	g_autofree char *procs = g_build_filename(directory, "cgroup.procs", NULL);
	g_autofree char *text = NULL;
	g_auto(GStrv) lines = NULL;
	size_t i;

	if (!g_file_get_contents(procs, &text, NULL, NULL))
		return -ENOENT;
	lines = g_strsplit(text, "\n", -1);
	for (i = 0; lines[i]; i++) {
		pid_t pid = atoi(lines[i]);

		/* 0: a process of a pid namespace that is not visible here. */
		if (pid > 0)
			g_array_append_val(pids, pid);
	}
	return 0;
}

int cgroup_processes(const char *directory, GArray *pids)
{
	int err = read_processes(directory, pids);
	const char *name;
	GDir *entries;

	if (err)
		return err;
	entries = g_dir_open(directory, 0, NULL);
	while (entries && (name = g_dir_read_name(entries))) {
		g_autofree char *below = g_build_filename(directory, name, NULL);

		/* A group that is removed in the meantime has no processes. */
		if (g_file_test(below, G_FILE_TEST_IS_DIR) &&
		    !g_file_test(below, G_FILE_TEST_IS_SYMLINK))
			cgroup_processes(below, pids);
	}
	if (entries)
		g_dir_close(entries);
	return 0;
}

/* ---- limits ---- */

/* A file of one number; -1: not there, "max", or what version 1 has for "max". */
static int64_t read_bytes(const char *directory, const char *file)
{
	g_autofree char *path = g_build_filename(directory, file, NULL);
	g_autofree char *text = NULL;
	uint64_t value;

	if (!g_file_get_contents(path, &text, NULL, NULL) || !g_ascii_isdigit(text[0]))
		return -1;
	value = g_ascii_strtoull(text, NULL, 10);
	return value > NO_LIMIT ? -1 : (int64_t)value;
}

static bool lower(int64_t *limit, int64_t other)
{
	if (other < 0 || (*limit >= 0 && *limit <= other))
		return false;
	*limit = other;
	return true;
}

/* The limit set by the group itself. */
static int64_t own_limit(const char *directory)
{
	int64_t limit = read_bytes(directory, "memory.limit_in_bytes");

	lower(&limit, read_bytes(directory, "memory.max"));
	lower(&limit, read_bytes(directory, "memory.high"));
	return limit;
}

uint64_t cgroup_memory_limit(const char *directory)
{
	g_autofree char *at = g_strdup(directory);
	int64_t lowest = -1;

	/* Above the mount point there is no cgroup. */
	while (is_cgroup(at)) {
		char *parent = g_path_get_dirname(at);

		lower(&lowest, own_limit(at));
		g_free(at);
		at = parent;
	}
	return lowest > 0 ? (uint64_t)lowest : 0;
}

/* Call each() for the lines "name value" of memory.stat. */
static void each_stat(const char *directory,
		      void (*each)(void *context, const char *name, int64_t value), void *context)
{
	g_autofree char *path = g_build_filename(directory, "memory.stat", NULL);
	g_autofree char *text = NULL;
	g_auto(GStrv) lines = NULL;
	size_t i;

	if (!g_file_get_contents(path, &text, NULL, NULL))
		return;
	lines = g_strsplit(text, "\n", -1);
	for (i = 0; lines[i]; i++) {
		char *blank = strchr(lines[i], ' ');

		if (!blank)
			continue;
		*blank = '\0';
		each(context, lines[i], g_ascii_strtoll(blank + 1, NULL, 10));
	}
}

/* hierarchical_*_limit of version 1: includes groups above the mount point. */
struct hierarchical {
	int64_t memory;
	int64_t memory_and_swap;
};

static void on_hierarchical(void *context, const char *name, int64_t value)
{
	struct hierarchical *found = context;

	if (value < 0 || value > NO_LIMIT)
		return;
	if (!strcmp(name, "hierarchical_memory_limit"))
		found->memory = value;
	else if (!strcmp(name, "hierarchical_memsw_limit"))
		found->memory_and_swap = value;
}

/* Remove the last part of a path; false: there was none. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash)
		return false;
	*slash = '\0';
	return true;
}

static void read_limits(const char *point, struct memory_cgroup *group)
{
	g_autofree char *at = g_strdup(group->directory), *path = g_strdup(group->path);
	struct hierarchical above = { -1, -1 };
	int64_t memory_and_swap = -1;

	group->limit_bytes = group->swap_limit_bytes = -1;
	g_clear_pointer(&group->limit_path, g_free);
	for (;;) {
		if (lower(&group->limit_bytes, own_limit(at))) {
			g_free(group->limit_path);
			group->limit_path = g_strdup(*path ? path : "/");
		}
		lower(&group->swap_limit_bytes, read_bytes(at, "memory.swap.max"));
		lower(&memory_and_swap, read_bytes(at, "memory.memsw.limit_in_bytes"));
		if (strlen(at) <= strlen(point) || !go_up(at))
			break;
		go_up(path);
	}
	if (group->version != 1)
		return;
	each_stat(group->directory, on_hierarchical, &above);
	if (lower(&group->limit_bytes, above.memory))
		g_clear_pointer(&group->limit_path, g_free);
	lower(&memory_and_swap, above.memory_and_swap);
	if (memory_and_swap >= 0)
		group->swap_limit_bytes = MAX(0, memory_and_swap - MAX(0, group->limit_bytes));
}

static void read_group(const char *point, struct memory_cgroup *group)
{
	read_limits(point, group);
	group->usage_bytes = read_bytes(
		group->directory, group->version == 2 ? "memory.current" : "memory.usage_in_bytes");
	group->peak_bytes =
		read_bytes(group->directory,
			   group->version == 2 ? "memory.peak" : "memory.max_usage_in_bytes");
}

/* ---- the group of a process ---- */

/* The path of the group that accounts memory, of lines "number:controllers:path". */
static char *process_path(const char *text, int *version)
{
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
	char *path = NULL;
	size_t i;

	for (i = 0; lines[i]; i++) {
		g_auto(GStrv) parts = g_strsplit(lines[i], ":", 3);

		if (g_strv_length(parts) < 3 || parts[2][0] != '/')
			continue;
		if (has_option(parts[1], "memory")) {
			g_free(path);
			*version = 1;
			return g_strdup(parts[2]);
		}
		if (!path && !strcmp(parts[0], "0") && !parts[1][0]) {
			*version = 2;
			path = g_strdup(parts[2]);
		}
	}
	return path;
}

static char *read_process_path(const char *prefix, pid_t pid, int *version)
{
	g_autofree char *file = g_strdup_printf("%s/proc/%d/cgroup", prefix, pid);
	g_autofree char *text = NULL;

	if (!g_file_get_contents(file, &text, NULL, NULL))
		return NULL;
	return process_path(text, version);
}

/* The mount that shows the group and the most groups above it. */
static const struct mount *find_mount(const GPtrArray *mounts, const struct memory_cgroup *group)
{
	const struct mount *best = NULL;
	guint i;

	for (i = 0; i < mounts->len; i++) {
		const struct mount *mount = g_ptr_array_index(mounts, i);
		g_autofree char *directory = NULL;

		if (mount->version != group->version || (mount->version == 1 && !mount->memory))
			continue;
		directory = directory_in(mount, group->path);
		if (directory && (!best || strlen(mount->root) < strlen(best->root)))
			best = mount;
	}
	return best;
}

static void place_group(const GPtrArray *mounts, struct memory_cgroup *group, char **point)
{
	const struct mount *mount = find_mount(mounts, group);

	if (!mount)
		return;
	group->directory = directory_in(mount, group->path);
	*point = g_strdup(mount->point);
}

static void group_init(struct memory_cgroup *group, int version, char *path)
{
	memset(group, 0, sizeof(*group));
	group->version = version;
	group->path = path;
	group->limit_bytes = group->swap_limit_bytes = -1;
	group->usage_bytes = group->peak_bytes = group->file_bytes = -1;
	group->beside_bytes = -1;
}

/*
 * An exiting process first frees its memory and then moves to the root group: the group that was
 * read is right if the process has memory afterwards.
 */
static bool has_memory(const char *prefix, pid_t pid)
{
	g_autofree char *file = g_strdup_printf("%s/proc/%d/status", prefix, pid);
	g_autofree char *text = NULL;

	return g_file_get_contents(file, &text, NULL, NULL) && strstr(text, "\nVmRSS:");
}

bool cgroup_of_process_below(const char *root, pid_t pid, struct memory_cgroup *group)
{
	g_autoptr(GPtrArray) mounts = NULL;
	g_autofree char *point = NULL;
	int version = 0;
	char *path = read_process_path(root, pid, &version);

	if (path && !has_memory(root, pid))
		g_clear_pointer(&path, g_free);
	group_init(group, version, path);
	if (!path)
		return false;
	mounts = read_mounts(root);
	place_group(mounts, group, &point);
	if (group->directory)
		read_group(point, group);
	return true;
}

bool cgroup_of_process(pid_t pid, struct memory_cgroup *group)
{
	return cgroup_of_process_below("", pid, group);
}

void memory_cgroup_free(struct memory_cgroup *group)
{
	g_clear_pointer(&group->path, g_free);
	g_clear_pointer(&group->directory, g_free);
	g_clear_pointer(&group->limit_path, g_free);
}

/* ---- all groups of the followed processes ---- */

/* Events of memory.stat; gauges have no meaning as a difference. */
static const char *const counter_names[] = {
	"pgfault",
	"pgmajfault",
	"pswpin",
	"pswpout",
	"zswpin",
	"zswpout",
	"swpin_zero",
	"swpout_zero",
	"workingset_refault_anon",
	"workingset_refault_file",
};

#define COUNTERS G_N_ELEMENTS(counter_names)

struct counter {
	bool known;
	int64_t base; /* value - base: since the group was first seen */
	int64_t last;
};

struct watched {
	struct memory_cgroup group;
	char *point;
	uint64_t inode; /* of the directory; another one: a new group of the same name */
	struct counter counters[COUNTERS];
};

struct memory_cgroups {
	char *prefix;
	GPtrArray *mounts;   /* struct mount */
	GHashTable *watched; /* path -> struct watched */
};

static void watched_free(gpointer data)
{
	struct watched *watched = data;

	memory_cgroup_free(&watched->group);
	g_free(watched->point);
	g_free(watched);
}

struct memory_cgroups *memory_cgroups_new_below(const char *root)
{
	struct memory_cgroups *groups = g_new0(struct memory_cgroups, 1);

	groups->prefix = g_strdup(root);
	groups->mounts = read_mounts(root);
	groups->watched = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, watched_free);
	return groups;
}

struct memory_cgroups *memory_cgroups_new(void)
{
	return memory_cgroups_new_below("");
}

void memory_cgroups_free(struct memory_cgroups *groups)
{
	if (!groups)
		return;
	g_hash_table_destroy(groups->watched);
	g_ptr_array_free(groups->mounts, TRUE);
	g_free(groups->prefix);
	g_free(groups);
}

static void on_counter(void *context, const char *name, int64_t value)
{
	struct watched *watched = context;
	size_t i;

	/* Version 1: plain names count the group alone, "total_" includes all below. */
	if (watched->group.version == 1) {
		if (!g_str_has_prefix(name, "total_"))
			return;
		name += strlen("total_");
	}
	if (!strcmp(name, "active_file") || !strcmp(name, "inactive_file"))
		watched->group.file_bytes += value;
	for (i = 0; i < COUNTERS; i++) {
		struct counter *counter = &watched->counters[i];

		if (strcmp(name, counter_names[i]))
			continue;
		if (!counter->known)
			counter->base = value;
		counter->known = true;
		counter->last = value;
	}
}

/* Read the counters; false: the group is not there now. */
static bool read_counters(struct watched *watched)
{
	struct stat status;
	size_t i;

	if (!watched->group.directory || stat(watched->group.directory, &status))
		return false;
	/* Removed and created again: counts from 0; add what the old group had. */
	if (watched->inode && status.st_ino != watched->inode) {
		for (i = 0; i < COUNTERS; i++) {
			watched->counters[i].base -= watched->counters[i].last;
			watched->counters[i].last = 0;
		}
	}
	watched->inode = status.st_ino;
	watched->group.file_bytes = 0;
	each_stat(watched->group.directory, on_counter, watched);
	return true;
}

static struct watched *watch(struct memory_cgroups *groups, int version, char *path)
{
	struct watched *watched = g_new0(struct watched, 1);

	group_init(&watched->group, version, path);
	place_group(groups->mounts, &watched->group, &watched->point);
	if (!watched->group.directory) {
		/* It may have been mounted since. */
		g_ptr_array_free(groups->mounts, TRUE);
		groups->mounts = read_mounts(groups->prefix);
		place_group(groups->mounts, &watched->group, &watched->point);
	}
	if (read_counters(watched))
		read_group(watched->point, &watched->group);
	g_hash_table_insert(groups->watched, watched->group.path, watched);
	return watched;
}

const char *memory_cgroups_of(struct memory_cgroups *groups, pid_t pid, const char *last)
{
	struct watched *watched;
	int version = 0;
	char *path = read_process_path(groups->prefix, pid, &version);

	if (!path)
		return NULL;
	if (last && !strcmp(path, last)) {
		g_free(path);
		return last;
	}
	if (!has_memory(groups->prefix, pid)) {
		g_free(path);
		return NULL;
	}
	watched = g_hash_table_lookup(groups->watched, path);
	if (watched)
		g_free(path);
	else
		watched = watch(groups, version, path);
	return watched->group.path;
}

void memory_cgroups_rebase(struct memory_cgroups *groups)
{
	GHashTableIter iter;
	gpointer value;
	size_t i;

	g_hash_table_iter_init(&iter, groups->watched);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct watched *watched = value;

		if (read_counters(watched))
			for (i = 0; i < COUNTERS; i++)
				watched->counters[i].base = watched->counters[i].last;
	}
}

static int visit(const struct watched *watched, const struct memory_cgroup_visitor *visitor)
{
	int err = visitor->group(visitor->context, &watched->group);
	size_t i;

	for (i = 0; i < COUNTERS && !err; i++) {
		const struct counter *counter = &watched->counters[i];

		if (counter->known)
			err = visitor->counter(visitor->context, watched->group.path,
					       counter_names[i], counter->last - counter->base);
	}
	return err;
}

/* Whoever is gone at the end has used memory all the same. */
static void add_beside(struct memory_cgroup *group)
{
	if (group->usage_bytes >= 0)
		group->beside_bytes =
			MAX(group->beside_bytes, group->usage_bytes - group->file_bytes);
}

int memory_cgroups_visit(struct memory_cgroups *groups, const struct memory_cgroup_visitor *visitor)
{
	GHashTableIter iter;
	gpointer value;
	int err = 0;

	g_hash_table_iter_init(&iter, groups->watched);
	while (!err && g_hash_table_iter_next(&iter, NULL, &value)) {
		struct watched *watched = value;

		if (read_counters(watched)) {
			read_group(watched->point, &watched->group);
			add_beside(&watched->group);
		}
		err = visit(watched, visitor);
	}
	return err;
}
