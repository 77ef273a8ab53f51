// SPDX-License-Identifier: GPL-2.0
#include "session/store_area.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "host/maps.h"
#include "host/proc.h"

/* Of large processes it takes milliseconds. */
#define READS_PER_SECOND 8
#define PROCESSES_MAX 64
#define NAMES_MAX 4096 /* threads call themselves what they like */
#define RED_ZONE 128   /* below the stack's top a leaf function has variables, too (psABI) */

struct store_areas {
	GHashTable *maps; /* pid -> struct maps */
	GHashTable *names;
	uint64_t second_ns;
	unsigned int reads;
};

static void free_maps(gpointer maps)
{
	maps_free(maps);
	g_free(maps);
}

struct store_areas *store_areas_new(void)
{
	struct store_areas *areas = g_new0(struct store_areas, 1);

	areas->maps = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, free_maps);
	areas->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	return areas;
}

void store_areas_free(struct store_areas *areas)
{
	if (!areas)
		return;
	g_hash_table_destroy(areas->maps);
	g_hash_table_destroy(areas->names);
	g_free(areas);
}

void store_areas_forget(struct store_areas *areas, pid_t pid)
{
	g_hash_table_remove(areas->maps, GINT_TO_POINTER(pid));
}

static const char *kept(struct store_areas *areas, const char *name)
{
	char *known = g_hash_table_lookup(areas->names, name);

	if (known || g_hash_table_size(areas->names) >= NAMES_MAX)
		return known ? known : "";
	known = g_strdup(name);
	g_hash_table_insert(areas->names, known, known);
	return known;
}

static bool may_read(struct store_areas *areas, uint64_t now_ns)
{
	if (now_ns - areas->second_ns > 1000000000ULL) {
		areas->second_ns = now_ns;
		areas->reads = 0;
	}
	return areas->reads++ < READS_PER_SECOND;
}

static const struct mapping *mapping_of(struct store_areas *areas, uint32_t pid, uint64_t address,
					uint64_t now_ns, const struct maps **maps)
{
	gpointer key = GUINT_TO_POINTER(pid);
	const struct mapping *mapping = NULL;
	struct maps *known = g_hash_table_lookup(areas->maps, key);

	if (known)
		mapping = maps_find(known, address);
	if (!mapping && may_read(areas, now_ns)) {
		if (g_hash_table_size(areas->maps) >= PROCESSES_MAX)
			g_hash_table_remove_all(areas->maps);
		known = g_new0(struct maps, 1);
		if (maps_read((pid_t)pid, known))
			known->count = 0;
		g_hash_table_insert(areas->maps, key, known);
		mapping = maps_find(known, address);
	}
	*maps = known;
	return mapping;
}

/* Right below it, or NULL. */
static const struct mapping *beside(const struct maps *maps, const struct mapping *mapping)
{
	if (mapping == maps->entries || mapping[-1].end != mapping->start)
		return NULL;
	return mapping - 1;
}

/*
 * The thread's own: the first thread's has a name; others' lie above a page that nobody may touch,
 * which runtimes' heaps, with stacks of their own making in them, do not.
 */
static bool is_stack(const struct maps *maps, const struct mapping *mapping,
		     const struct memtoll_sample *sample)
{
	const struct mapping *guard = beside(maps, mapping);

	if (sample->sp < mapping->start || sample->sp >= mapping->end ||
	    sample->store + RED_ZONE < sample->sp)
		return false;
	return !strcmp(mapping->path, "[stack]") ||
	       (!*mapping->path && guard && !guard->read && !guard->write && !guard->exec);
}

/* A file's data, or what follows it and was never in the file. */
static const char *static_of(const struct maps *maps, const struct mapping *mapping)
{
	const struct mapping *data = *mapping->path ? mapping : beside(maps, mapping);

	return data && *data->path == '/' && data->write && !data->shared ? data->path : NULL;
}

struct store_area store_areas_find(struct store_areas *areas, const struct memtoll_sample *sample)
{
	struct store_area found = { .area = "", .name = "" };
	const struct mapping *mapping;
	const struct maps *maps;
	struct proc_stat thread;
	const char *path;

	mapping = mapping_of(areas, sample->tgid, sample->store, sample->time_ns, &maps);
	if (!mapping)
		return found;
	path = static_of(maps, mapping);
	if (is_stack(maps, mapping, sample)) {
		found.area = "stack";
		if (!proc_stat_read((pid_t)sample->tgid, (pid_t)sample->tid, &thread))
			found.name = kept(areas, thread.comm);
	} else if (path) {
		found.area = "static";
		found.name = kept(areas, path);
	} else if (!strcmp(mapping->path, "[heap]")) {
		found.area = "heap";
	}
	return found;
}
