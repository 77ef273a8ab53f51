// SPDX-License-Identifier: GPL-2.0
/*
 * One object (object.h) stands for one file, whoever maps it: the debug information of a C
 * library is large, and every process maps it. A process is a list of executable regions, each
 * of which turns an address into an offset of its file, and that into the file's own address.
 *
 * Descriptors are opened when a process is shown and kept, since the file may be deleted and the
 * process gone when its addresses are looked up. When they approach the soft limit of open files,
 * that limit is raised, up to the hard one: only then, because commands started later inherit it.
 */
#define _GNU_SOURCE 1

#include "symbols/symbolize.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glib.h>

#include "base/keyed_hash.h"
#include "base/root_open.h"
#include "host/proc.h"
#include "host/target_memory.h"
#include "symbols/object.h"
#include "symbols/perf_map.h"

/* Files kept open; each may need a second descriptor for its debug file. */
#define DESCRIPTORS_MAX 16384U
/* Left to the rest of the program. */
#define DESCRIPTORS_SPARE 256U
/* Container roots kept open; processes of further ones find only the host's debug files. */
#define ROOTS_MAX 256U
/* The longest forgotten first: a build may start a hundred thousand compilers. */
#define PROCESSES_MAX 65536U
/* vm.max_map_count's default: what a process has now and what is remembered of before. */
#define REGIONS_MAX 65530U
/* Addresses whose names are remembered; all are forgotten when they are full. */
#define NAMES_MAX (1024U * 1024)
/* Two pages today, with a wide margin. */
#define VDSO_MAX (256 * 1024ULL)
/* How often an absent perf map is looked for, microseconds. */
#define PERF_MAP_RETRY G_USEC_PER_SEC

struct file_key {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec modified;
};

struct file {
	struct file_key key;
	struct object *object;
};

struct vdso {
	GBytes *bytes;
	struct object *object;
};

struct root {
	dev_t device;
	ino_t inode;
	int fd;
};

struct region {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	const char *path;
	struct object *object;	/* NULL: no file, or it could not be opened */
};

struct process {
	pid_t pid;
	uint64_t start_ticks;	/* 0: not known */
	GArray *regions;	/* struct region, ascending, apart; shared after fork */
	struct perf_map *perf_map;
	int64_t perf_map_tried;	/* microseconds, monotonic */
	GList link;		/* in symbolizer->order */
};

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
	GHashTable *interned;	/* of these */
	GHashTable *files;	/* file_key -> struct file */
	GHashTable *processes;	/* pid -> struct process */
	GQueue order;		/* processes, the longest not shown first */
	GHashTable *names;	/* name_key -> struct names */
	GArray *vdsos;
	GArray *roots;
	unsigned int descriptors;
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
	}
	return "native";
}

static guint hash_bytes(const void *data, size_t len)
{
	const unsigned char *bytes = data;
	guint hash = 2166136261U;
	size_t i;

	for (i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * 16777619U;
	return hash;
}

static guint hash_file(gconstpointer data)
{
	const struct file_key *key = data;

	return hash_bytes(&key->inode, sizeof(key->inode));
}

static gboolean equal_file(gconstpointer left, gconstpointer right)
{
	const struct file_key *a = left;
	const struct file_key *b = right;

	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->modified.tv_sec == b->modified.tv_sec &&
	       a->modified.tv_nsec == b->modified.tv_nsec;
}

static guint hash_name(gconstpointer data)
{
	const struct name_key *key = data;

	return hash_bytes(&key->object, sizeof(key->object)) ^
	       hash_bytes(&key->address, sizeof(key->address));
}

static gboolean equal_name(gconstpointer left, gconstpointer right)
{
	const struct name_key *a = left;
	const struct name_key *b = right;

	return a->object == b->object && a->address == b->address;
}

static void free_file(gpointer data)
{
	struct file *file = data;

	object_free(file->object);
	g_free(file);
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
	symbolizer->files = g_hash_table_new_full(hash_file, equal_file, NULL, free_file);
	symbolizer->processes = g_hash_table_new(g_direct_hash, g_direct_equal);
	symbolizer->names = g_hash_table_new_full(hash_name, equal_name, NULL, g_free);
	symbolizer->vdsos = g_array_new(FALSE, FALSE, sizeof(struct vdso));
	symbolizer->roots = g_array_new(FALSE, FALSE, sizeof(struct root));
	g_queue_init(&symbolizer->order);
	object_guard_install();
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
		symbolizer->descriptors--;
		perf_map_unref(process->perf_map);
	}
	process->perf_map = map;
	if (map)
		symbolizer->descriptors++;
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
	guint i;

	if (!symbolizer)
		return;
	while (symbolizer->order.length)
		process_remove(symbolizer, symbolizer->order.head->data);
	g_hash_table_destroy(symbolizer->processes);
	g_hash_table_destroy(symbolizer->names);
	g_hash_table_destroy(symbolizer->files);
	for (i = 0; i < symbolizer->vdsos->len; i++) {
		struct vdso *vdso = &g_array_index(symbolizer->vdsos, struct vdso, i);

		g_bytes_unref(vdso->bytes);
		object_free(vdso->object);
	}
	g_array_free(symbolizer->vdsos, TRUE);
	for (i = 0; i < symbolizer->roots->len; i++)
		close(g_array_index(symbolizer->roots, struct root, i).fd);
	g_array_free(symbolizer->roots, TRUE);
	g_hash_table_destroy(symbolizer->interned);
	g_string_chunk_free(symbolizer->strings);
	object_guard_remove();
	g_free(symbolizer);
}

/* Whether one more file may be kept open. */
static bool descriptor_room(const struct symbolizer *symbolizer)
{
	rlim_t wanted = 2 * ((rlim_t)symbolizer->descriptors + 1) + DESCRIPTORS_SPARE;
	struct rlimit limit;

	if (symbolizer->descriptors >= DESCRIPTORS_MAX)
		return false;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return false;
	if (wanted <= limit.rlim_cur)
		return true;
	/* Doubled, so that it is not raised for every file. */
	limit.rlim_cur = MIN(limit.rlim_max, 2 * wanted);
	return setrlimit(RLIMIT_NOFILE, &limit) == 0 && wanted <= limit.rlim_cur;
}

/* The process's root directory, if it is not our own: a descriptor that is kept, or -1. */
static int root_of(struct symbolizer *symbolizer, pid_t pid)
{
	struct root root = { .fd = root_open(pid) };
	struct stat status;
	struct stat own;
	guint i;

	if (root.fd < 0)
		return -1;
	if (fstat(root.fd, &status) || stat("/", &own) ||
	    (status.st_dev == own.st_dev && status.st_ino == own.st_ino))
		goto unwanted;
	for (i = 0; i < symbolizer->roots->len; i++) {
		const struct root *known = &g_array_index(symbolizer->roots, struct root, i);

		if (known->device == status.st_dev && known->inode == status.st_ino) {
			close(root.fd);
			return known->fd;
		}
	}
	if (symbolizer->roots->len >= ROOTS_MAX || !descriptor_room(symbolizer))
		goto unwanted;
	root.device = status.st_dev;
	root.inode = status.st_ino;
	g_array_append_val(symbolizer->roots, root);
	symbolizer->descriptors++;
	return root.fd;
unwanted:
	close(root.fd);
	return -1;
}

static struct object *file_object(struct symbolizer *symbolizer, pid_t pid,
				  const struct mapping *mapping)
{
	struct stat status;
	struct file *file;
	bool room = descriptor_room(symbolizer);
	int fd = mapping_open(pid, mapping);

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) || !S_ISREG(status.st_mode)) {
		close(fd);
		return NULL;
	}
	/*
	 * The kernel's own description of the file: what maps says of devices differs from it on
	 * btrfs and overlayfs. A file that was rewritten in place is another one.
	 */
	file = g_new0(struct file, 1);
	file->key.device = status.st_dev;
	file->key.inode = status.st_ino;
	file->key.size = status.st_size;
	file->key.modified = status.st_mtim;
	if (g_hash_table_contains(symbolizer->files, &file->key)) {
		struct file *known = g_hash_table_lookup(symbolizer->files, &file->key);

		close(fd);
		g_free(file);
		return known->object;
	}
	file->object = object_new(fd, mapping->path, root_of(symbolizer, pid));
	if (!room)
		object_drop_fd(file->object);
	symbolizer->descriptors += object_is_open(file->object);
	g_hash_table_insert(symbolizer->files, &file->key, file);
	return file->object;
}

/* The vDSO is no file: its bytes, from the process or, where that is forbidden, our own ones. */
static GBytes *vdso_bytes(pid_t pid, const struct mapping *mapping)
{
	size_t size = (size_t)(mapping->end - mapping->start);
	const void *own = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	struct maps maps = { 0 };
	const struct mapping *mine;
	GBytes *bytes = NULL;
	char *copy;

	if (size == 0 || size > VDSO_MAX)
		return NULL;
	copy = g_malloc(size);
	if (!target_memory_read(pid, mapping->start, copy, size)) {
		bytes = g_bytes_new_take(copy, size);
		copy = NULL;
	} else if (own && maps_read(getpid(), &maps) == 0) {
		/* A 32-bit process has another one, which differs in size as a rule. */
		mine = maps_find(&maps, (uint64_t)(uintptr_t)own);
		if (mine && mine->end - mine->start == size)
			bytes = g_bytes_new(own, size);
	}
	maps_free(&maps);
	g_free(copy);
	return bytes;
}

static struct object *vdso_object(struct symbolizer *symbolizer, pid_t pid,
				  const struct mapping *mapping)
{
	struct vdso vdso = { .bytes = vdso_bytes(pid, mapping) };
	size_t size;
	const void *data;
	guint i;
	int fd;

	if (!vdso.bytes)
		return NULL;
	for (i = 0; i < symbolizer->vdsos->len; i++) {
		const struct vdso *known = &g_array_index(symbolizer->vdsos, struct vdso, i);

		if (g_bytes_equal(known->bytes, vdso.bytes)) {
			g_bytes_unref(vdso.bytes);
			return known->object;
		}
	}
	data = g_bytes_get_data(vdso.bytes, &size);
	/* A process may write to its vDSO: only so many variants are kept. */
	fd = symbolizer->vdsos->len < ROOTS_MAX && descriptor_room(symbolizer) ?
	     memfd_create("vdso", MFD_CLOEXEC) : -1;
	if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
		if (fd >= 0)
			close(fd);
		g_bytes_unref(vdso.bytes);
		return NULL;
	}
	symbolizer->descriptors++;
	vdso.object = object_new(fd, mapping->path, -1);
	g_array_append_val(symbolizer->vdsos, vdso);
	return vdso.object;
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

/* What the process had there before. */
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
		return vdso_object(symbolizer, pid, mapping);
	}
	if (mapping->path[0] != '/' || mapping->inode == 0)
		return NULL;
	if (known && known->object && known->start == mapping->start &&
	    known->end == mapping->end && known->offset == mapping->offset &&
	    same_mapping(known, mapping))
		return known->object;
	if (g_hash_table_lookup_extended(objects, mapping, NULL, &object))
		return object;
	object = file_object(symbolizer, pid, mapping);
	g_hash_table_insert(objects, (gpointer)mapping, object);
	return object;
}

static int compare_regions(const void *left, const void *right)
{
	const struct region *a = left;
	const struct region *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

/* Add to now what of before it leaves uncovered. Both ascending. */
static void keep_uncovered(GArray *now, const GArray *before)
{
	guint count = now->len;
	guint cover = 0;
	guint i;

	for (i = 0; i < before->len && now->len < REGIONS_MAX; i++) {
		struct region rest = g_array_index(before, struct region, i);
		guint at;

		while (cover < count &&
		       g_array_index(now, struct region, cover).end <= rest.start)
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

/* The process's perf map, looked for now. True if it is there. */
static bool seek_perf_map(struct symbolizer *symbolizer, struct process *process)
{
	struct perf_map *map = NULL;

	process->perf_map_tried = g_get_monotonic_time();
	if (descriptor_room(symbolizer))
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

	/* Even if the new ones cannot be read: the old program's names would be wrong. */
	if (process && replace) {
		process_remove(symbolizer, process);
		process = NULL;
	}
	if (!maps->count)
		return -ESRCH;
	/* Raises the limit in time for the files of /proc that are read on the way. */
	descriptor_room(symbolizer);
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
		region.object = mapping_object(symbolizer, pid, mapping, objects,
					       process->regions);
		region.path = intern(symbolizer, mapping->path);
		g_array_append_val(regions, region);
	}
	keep_uncovered(regions, process->regions);
	g_array_unref(process->regions);
	process->regions = regions;
	g_queue_unlink(&symbolizer->order, &process->link);
	g_queue_push_tail_link(&symbolizer->order, &process->link);
	process->start_ticks = proc_stat_read(pid, 0, &status) ? 0 : status.start_ticks;
	/* Now, for it may have exited when its addresses are looked up. */
	seek_perf_map(symbolizer, process);
	return 0;
}

int symbolizer_show(struct symbolizer *symbolizer, pid_t pid, bool replace)
{
	struct maps maps = { 0 };
	int err;

	err = maps_read(pid, &maps);
	if (err)
		maps.count = 0;
	symbolizer_show_maps(symbolizer, pid, &maps, replace);
	maps_free(&maps);
	return err;
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
	/* Whatever had this pid before. */
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

/* Code that no file holds: is it in the perf map? */
static bool jit_frame(struct symbolizer *symbolizer, struct process *process, uint64_t address,
		      uint64_t lookup, struct frame *frame)
{
	struct proc_stat status;
	const char *name;
	uint64_t start;

	/* The run-time may have begun to write it since; the pid may be another process's now. */
	if (!process->perf_map && process->start_ticks &&
	    g_get_monotonic_time() - process->perf_map_tried > PERF_MAP_RETRY &&
	    proc_stat_read(process->pid, 0, &status) == 0 &&
	    status.start_ticks == process->start_ticks)
		seek_perf_map(symbolizer, process);
	if (!process->perf_map || !perf_map_find(process->perf_map, lookup, &name, &start))
		return false;
	frame->function = intern(symbolizer, name);
	frame->module = "[jit]";
	frame->kind = FRAME_JIT;
	frame->module_offset = address;
	frame->symbol_offset = address - start;
	return true;
}

/* Memory without a name of the kernel's: "[vsyscall]" and "[uprobes]" are no generated code. */
static bool is_anonymous(const struct region *region)
{
	return region->path[0] != '[' || g_str_has_prefix(region->path, "[anon") ||
	       g_str_has_prefix(region->path, "[heap]") ||
	       g_str_has_prefix(region->path, "[stack");
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
		.function = "", .module = "", .file = "", .build_id = "", .kind = FRAME_NATIVE,
	};
	if (!process)
		return 1;
	region = find_region(process->regions, lookup);
	if (region && region->object &&
	    object_address(region->object, lookup - region->start + region->offset,
			   &file_address))
		return native_frames(symbolizer, region, file_address, address != lookup, frames,
				     capacity);
	/* Run-times that never have pages writable and executable at once: no region either. */
	if (!region) {
		jit_frame(symbolizer, process, address, lookup, &frames[0]);
		return 1;
	}
	if (is_anonymous(region) &&
	    jit_frame(symbolizer, process, address, lookup, &frames[0]))
		return 1;
	frames[0].module = region->path;
	if (region->inode == 0 && is_anonymous(region))
		frames[0].kind = FRAME_JIT;
	return 1;
}
