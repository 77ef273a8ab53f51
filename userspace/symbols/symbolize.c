// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE 1

#include "symbols/symbolize.h"

#include <errno.h>
#include <string.h>

#include <glib.h>

#include "base/hash.h"
#include "base/keyed_hash.h"
#include "host/proc.h"
#include "symbols/object.h"
#include "symbols/object_cache.h"
#include "symbols/jit_name.h"
#include "symbols/perf_map.h"

/* Beyond this the least recently shown is dropped: a build may start 100,000 compilers. */
#define PROCESSES_MAX 65536U
/* Regions of a process, present and earlier ones: the default of vm.max_map_count. */
#define REGIONS_MAX 65530U
/* Cached names of addresses; the cache is emptied when it is full. */
#define NAMES_MAX (1024U * 1024)
/* How often an absent perf map is looked for, microseconds. */
#define PERF_MAP_RETRY G_USEC_PER_SEC

struct region {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	const char *path;
	struct object *object; /* NULL: no file, or it could not be opened */
};

struct process {
	pid_t pid;
	uint64_t start_ticks; /* 0: not known */
	GArray *regions;      /* struct region, ascending, disjoint; shared after fork */
	struct perf_map *perf_map;
	int64_t perf_map_tried; /* microseconds, monotonic */
	GList link;		/* in symbolizer->order */
};

/* 16 bytes, for key16_hash(). */
struct name_key {
	const struct object *object;
	uint64_t address;
};

struct name {
	const char *function;
	const char *file;
	uint64_t start;
	uint32_t line;
};

struct names {
	struct name_key key;
	size_t count;
	struct name list[];
};

struct symbolizer {
	GStringChunk *strings;
	GHashTable *interned; /* set of strings */
	struct object_cache *objects;
	GHashTable *processes; /* pid -> struct process */
	GQueue order;	       /* processes, least recently shown first */
	GHashTable *names;     /* name_key -> struct names */
	struct jit_name jit;
};

const char *frame_kind_name(enum frame_kind kind)
{
	switch (kind) {
	case FRAME_NATIVE:
		return "native";
	case FRAME_PYTHON:
		return "python";
	case FRAME_JIT:
		return "jit";
	case FRAME_RUBY:
		return "ruby";
	case FRAME_PHP:
		return "php";
	case FRAME_JAVASCRIPT:
		return "javascript";
	case FRAME_JAVA:
		return "java";
	}
	return "native";
}

static const char *intern(struct symbolizer *symbolizer, const char *text)
{
	char *known;

	if (!*text)
		return "";
	known = g_hash_table_lookup(symbolizer->interned, text);
	if (!known) {
		known = g_string_chunk_insert(symbolizer->strings, text);
		g_hash_table_add(symbolizer->interned, known);
	}
	return known;
}

struct symbolizer *symbolizer__new(void)
{
	struct symbolizer *symbolizer = g_new0(struct symbolizer, 1);

	symbolizer->strings = g_string_chunk_new(1 << 14);
	symbolizer->interned = g_hash_table_new(keyed_hash_text, g_str_equal);
	symbolizer->objects = object_cache_new();
	symbolizer->processes = g_hash_table_new(g_direct_hash, g_direct_equal);
	symbolizer->names = g_hash_table_new_full(key16_hash, key16_equal, NULL, g_free);
	symbolizer->jit.function = g_string_new(NULL);
	symbolizer->jit.file = g_string_new(NULL);
	g_queue_init(&symbolizer->order);
	return symbolizer;
}

static struct process *process_of(const struct symbolizer *symbolizer, pid_t pid)
{
	return g_hash_table_lookup(symbolizer->processes, GINT_TO_POINTER(pid));
}

static void set_perf_map(struct symbolizer *symbolizer, struct process *process,
			 struct perf_map *map)
{
	if (process->perf_map) {
		object_cache_count(symbolizer->objects, -1);
		perf_map_unref(process->perf_map);
	}
	process->perf_map = map;
	if (map)
		object_cache_count(symbolizer->objects, 1);
}

static void process_remove(struct symbolizer *symbolizer, struct process *process)
{
	g_hash_table_remove(symbolizer->processes, GINT_TO_POINTER(process->pid));
	g_queue_unlink(&symbolizer->order, &process->link);
	set_perf_map(symbolizer, process, NULL);
	g_array_unref(process->regions);
	g_free(process);
}

static struct process *process_add(struct symbolizer *symbolizer, pid_t pid)
{
	struct process *process;

	if (symbolizer->order.length >= PROCESSES_MAX)
		process_remove(symbolizer, symbolizer->order.head->data);
	process = g_new0(struct process, 1);
	process->pid = pid;
	process->regions = g_array_new(FALSE, FALSE, sizeof(struct region));
	process->link.data = process;
	g_queue_push_tail_link(&symbolizer->order, &process->link);
	g_hash_table_insert(symbolizer->processes, GINT_TO_POINTER(pid), process);
	return process;
}

void symbolizer__free(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	while (symbolizer->order.length)
		process_remove(symbolizer, symbolizer->order.head->data);
	g_hash_table_destroy(symbolizer->processes);
	g_hash_table_destroy(symbolizer->names);
	object_cache_free(symbolizer->objects);
	g_hash_table_destroy(symbolizer->interned);
	g_string_chunk_free(symbolizer->strings);
	g_string_free(symbolizer->jit.function, true);
	g_string_free(symbolizer->jit.file, true);
	g_free(symbolizer);
}

static const struct region *find_region(const GArray *regions, uint64_t address)
{
	guint low = 0;
	guint high = regions->len;

	while (low < high) {
		guint middle = low + (high - low) / 2;
		const struct region *region = &g_array_index(regions, struct region, middle);

		if (address < region->start)
			high = middle;
		else if (address >= region->end)
			low = middle + 1;
		else
			return region;
	}
	return NULL;
}

/* Whether the region is of the same file as the mapping that is there now. */
static bool same_mapping(const struct region *region, const struct mapping *mapping)
{
	return region->inode == mapping->inode && region->dev_major == mapping->dev_major &&
	       region->dev_minor == mapping->dev_minor && strcmp(region->path, mapping->path) == 0;
}

static struct object *mapping_object(struct symbolizer *symbolizer, pid_t pid,
				     const struct mapping *mapping, GHashTable *objects,
				     const GArray *before)
{
	const struct region *known = find_region(before, mapping->start);
	gpointer object;

	if (strcmp(mapping->path, "[vdso]") == 0) {
		if (known && known->object && known->start == mapping->start &&
		    known->end == mapping->end && same_mapping(known, mapping))
			return known->object;
		return object_cache_vdso(symbolizer->objects, pid, mapping);
	}
	if (mapping->path[0] != '/' || mapping->inode == 0)
		return NULL;
	if (known && known->object && known->start == mapping->start &&
	    known->end == mapping->end && known->offset == mapping->offset &&
	    same_mapping(known, mapping))
		return known->object;
	if (g_hash_table_lookup_extended(objects, mapping, NULL, &object))
		return object;
	object = object_cache_file(symbolizer->objects, pid, mapping);
	g_hash_table_insert(objects, (gpointer)mapping, object);
	return object;
}

static int compare_regions(const void *left, const void *right)
{
	const struct region *a = left;
	const struct region *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

/* Add to `now` those parts of `before` that it does not cover. Both ascending. */
static void keep_uncovered(GArray *now, const GArray *before)
{
	guint count = now->len;
	guint cover = 0;
	guint i;

	for (i = 0; i < before->len && now->len < REGIONS_MAX; i++) {
		struct region rest = g_array_index(before, struct region, i);
		guint at;

		while (cover < count && g_array_index(now, struct region, cover).end <= rest.start)
			cover++;
		for (at = cover; at < count && rest.start < rest.end; at++) {
			uint64_t start = g_array_index(now, struct region, at).start;
			uint64_t end = g_array_index(now, struct region, at).end;
			struct region piece = rest;

			if (start >= rest.end)
				break;
			if (rest.start < start) {
				piece.end = start;
				g_array_append_val(now, piece);
			}
			if (end >= rest.end) {
				rest.start = rest.end;
			} else {
				rest.offset += end - rest.start;
				rest.start = end;
			}
		}
		if (rest.start < rest.end)
			g_array_append_val(now, rest);
	}
	g_array_sort(now, compare_regions);
}

/* Look for the process's perf map. True if there is one. */
static bool seek_perf_map(struct symbolizer *symbolizer, struct process *process)
{
	struct perf_map *map = NULL;

	process->perf_map_tried = g_get_monotonic_time();
	if (object_cache_has_room(symbolizer->objects))
		map = perf_map_open(process->pid);
	if (map && !perf_map_same(map, process->perf_map))
		set_perf_map(symbolizer, process, map);
	else
		perf_map_unref(map);
	return process->perf_map;
}

int symbolizer_show_maps(struct symbolizer *symbolizer, pid_t pid, const struct maps *maps,
			 bool replace)
{
	struct process *process = process_of(symbolizer, pid);
	g_autoptr(GHashTable) objects = NULL;
	struct proc_stat status;
	GArray *regions;
	size_t i;

	/* Even if the new mappings cannot be read: names of the old program would be wrong. */
	if (process && replace) {
		process_remove(symbolizer, process);
		process = NULL;
	}
	if (!maps->count)
		return -ESRCH;
	/* Called for its side effect: raises the limit before files of /proc are opened. */
	object_cache_has_room(symbolizer->objects);
	objects = g_hash_table_new(mapping_file_hash, mapping_file_equal);
	if (!process)
		process = process_add(symbolizer, pid);
	regions = g_array_new(FALSE, FALSE, sizeof(struct region));
	for (i = 0; i < maps->count && regions->len < REGIONS_MAX; i++) {
		const struct mapping *mapping = &maps->entries[i];
		struct region region = {
			.start = mapping->start,
			.end = mapping->end,
			.offset = mapping->offset,
			.inode = mapping->inode,
			.dev_major = mapping->dev_major,
			.dev_minor = mapping->dev_minor,
		};

		if (!mapping->exec)
			continue;
		region.object = mapping_object(symbolizer, pid, mapping, objects, process->regions);
		region.path = intern(symbolizer, mapping->path);
		g_array_append_val(regions, region);
	}
	keep_uncovered(regions, process->regions);
	g_array_unref(process->regions);
	process->regions = regions;
	g_queue_unlink(&symbolizer->order, &process->link);
	g_queue_push_tail_link(&symbolizer->order, &process->link);
	process->start_ticks = proc_stat_read(pid, 0, &status) ? 0 : status.start_ticks;
	/* Now, since the process may have exited when its addresses are looked up. */
	seek_perf_map(symbolizer, process);
	return 0;
}

bool symbolizer_take_perf_map(struct symbolizer *symbolizer, pid_t pid)
{
	struct process *process = process_of(symbolizer, pid);
	struct perf_map *map = NULL;

	if (process && object_cache_has_room(symbolizer->objects))
		map = perf_map_open(pid);
	/* Also where it is the same file: what was written over is no longer in it. */
	if (map)
		set_perf_map(symbolizer, process, map);
	return map;
}

void symbolizer_each_generated(struct symbolizer *symbolizer, pid_t pid,
			       void (*each)(void *context, uint64_t start, uint64_t end),
			       void *context)
{
	struct process *process = process_of(symbolizer, pid);

	if (process && process->perf_map)
		perf_map_each(process->perf_map, each, context);
}

void symbolizer_forget(struct symbolizer *symbolizer, pid_t pid)
{
	struct process *process = process_of(symbolizer, pid);

	if (process)
		process_remove(symbolizer, process);
}

bool symbolizer_has_code(const struct symbolizer *symbolizer, pid_t pid, uint64_t address)
{
	const struct process *process = process_of(symbolizer, pid);

	return process && (process->perf_map || find_region(process->regions, address) ||
			   find_region(process->regions, address - 1));
}

int symbolizer_fork(struct symbolizer *symbolizer, pid_t parent, pid_t child)
{
	struct process *from;
	struct process *to;

	if (parent == child)
		return -EINVAL;
	/* An earlier process of this pid. */
	to = process_of(symbolizer, child);
	if (to)
		process_remove(symbolizer, to);
	if (!process_of(symbolizer, parent))
		return -ESRCH;
	to = process_add(symbolizer, child);
	/* Again: making room may have dropped the parent. */
	from = process_of(symbolizer, parent);
	if (!from)
		return -ESRCH;
	g_array_unref(to->regions);
	to->regions = g_array_ref(from->regions);
	set_perf_map(symbolizer, to, perf_map_ref(from->perf_map));
	return 0;
}

static const struct names *find_names(struct symbolizer *symbolizer, struct object *object,
				      uint64_t address)
{
	struct name_key key = { .object = object, .address = address };
	struct names *names = g_hash_table_lookup(symbolizer->names, &key);
	struct object_frame frames[OBJECT_FRAMES_MAX];
	size_t count;
	size_t i;

	if (names)
		return names;
	count = object_find(object, address, frames);
	names = g_malloc0(sizeof(*names) + count * sizeof(names->list[0]));
	names->key = key;
	names->count = count;
	for (i = 0; i < count; i++) {
		names->list[i].function = intern(symbolizer, frames[i].function);
		names->list[i].file = intern(symbolizer, frames[i].file);
		names->list[i].line = frames[i].line;
		names->list[i].start = frames[i].start;
	}
	object_frames_free(frames, count);
	if (g_hash_table_size(symbolizer->names) >= NAMES_MAX)
		g_hash_table_remove_all(symbolizer->names);
	g_hash_table_insert(symbolizer->names, &names->key, names);
	return names;
}

/* Whether a function begins at the address, where all code has lines: what has none is padding. */
static bool begins_function(const struct names *names, uint64_t address)
{
	return names->count && *names->list[0].function && names->list[0].line &&
	       names->list[0].start == address;
}

/*
 * module_offset and symbol_offset count from the address that was given, as gdb prints them; the
 * names of a return address are those of the byte before it.
 */
static size_t native_frames(struct symbolizer *symbolizer, const struct region *region,
			    uint64_t file_address, bool is_return_address, struct frame *frames,
			    size_t capacity)
{
	const struct names *names = find_names(symbolizer, region->object, file_address);
	uint64_t given = file_address + is_return_address;
	struct frame frame = {
		.function = "",
		.module = region->path,
		.file = "",
		.kind = FRAME_NATIVE,
		.build_id = object_build_id(region->object),
		.module_offset = given,
	};
	size_t i;

	/* A signal's handler returns to a function that has not called it, with padding before it. */
	if (is_return_address && (!names->count || !*names->list[0].function)) {
		names = find_names(symbolizer, region->object, given);
		if (!begins_function(names, given))
			names = find_names(symbolizer, region->object, file_address);
	}
	frames[0] = frame;
	for (i = 0; i < names->count && i < capacity; i++) {
		frames[i] = frame;
		frames[i].function = names->list[i].function;
		frames[i].file = names->list[i].file;
		frames[i].line = names->list[i].line;
		if (names->list[i].start && names->list[i].start <= given)
			frames[i].symbol_offset = given - names->list[i].start;
	}
	return MAX(i, 1);
}

/* Name code that is in no file by the perf map. */
static bool jit_frame(struct symbolizer *symbolizer, struct process *process, uint64_t address,
		      uint64_t lookup, struct frame *frame)
{
	struct proc_stat status;
	const char *name;
	uint64_t start;

	/* The runtime may have created it since; but the pid may belong to another process now. */
	if (!process->perf_map && process->start_ticks &&
	    g_get_monotonic_time() - process->perf_map_tried > PERF_MAP_RETRY &&
	    proc_stat_read(process->pid, 0, &status) == 0 &&
	    status.start_ticks == process->start_ticks)
		seek_perf_map(symbolizer, process);
	if (!process->perf_map || !perf_map_find(process->perf_map, lookup, &name, &start))
		return false;
	jit_name_split(name, &symbolizer->jit);
	frame->function = intern(symbolizer, symbolizer->jit.function->str);
	frame->file = intern(symbolizer, symbolizer->jit.file->str);
	frame->line = symbolizer->jit.line;
	frame->module = "[jit]";
	frame->kind = FRAME_JIT;
	frame->module_offset = address;
	frame->symbol_offset = address - start;
	return true;
}

/* Anonymous memory may hold generated code; "[vsyscall]" and "[uprobes]" do not. */
static bool is_anonymous(const struct region *region)
{
	return region->path[0] != '[' || g_str_has_prefix(region->path, "[anon") ||
	       g_str_has_prefix(region->path, "[heap]") || g_str_has_prefix(region->path, "[stack");
}

size_t symbolizer_user(struct symbolizer *symbolizer, pid_t pid, uint64_t address,
		       bool is_return_address, struct frame *frames, size_t capacity)
{
	struct process *process = process_of(symbolizer, pid);
	uint64_t lookup = address - (is_return_address && address > 0);
	const struct region *region;
	uint64_t file_address;

	if (capacity == 0)
		return 0;
	frames[0] = (struct frame){
		.function = "",
		.module = "",
		.file = "",
		.build_id = "",
		.kind = FRAME_NATIVE,
	};
	if (!process)
		return 1;
	region = find_region(process->regions, lookup);
	if (region && region->object &&
	    object_address(region->object, lookup - region->start + region->offset, &file_address))
		return native_frames(symbolizer, region, file_address, address != lookup, frames,
				     capacity);
	/* Runtimes that toggle between writable and executable: the region may not be known. */
	if (!region) {
		jit_frame(symbolizer, process, address, lookup, &frames[0]);
		return 1;
	}
	if (is_anonymous(region) && jit_frame(symbolizer, process, address, lookup, &frames[0]))
		return 1;
	frames[0].module = region->path;
	if (region->inode == 0 && is_anonymous(region))
		frames[0].kind = FRAME_JIT;
	return 1;
}
