// SPDX-License-Identifier: GPL-2.0
#include "unwind/unwind_load.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <glib.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "bpf/wire/unwind_rows.h"
#include "host/proc.h"
#include "host/workqueue.h"
#include "memtoll.skel.h"
#include "symbols/debugfile.h"
#include "symbols/image.h"
#include "unwind/unwind_cache.h"
#include "unwind/unwind_table.h"

/* One file, or the vdso. */
struct module {
	uint32_t table; /* 0: it has no rows, or there was no room */
	uint64_t base;	/* of unwind_table */
};

/* Code of a process's own making. */
struct generated {
	struct module module;
	unsigned int given; /* times */
};

/* Rules are cached by the number of a table: those of generated code never get it back. */
#define GENERATED_MOST 24U

struct process {
	uint32_t table;
	uint64_t left_out;  /* mappings without room in it */
	unsigned int users; /* itself and forked children without a table of their own */
};

/*
 * Tables of one chunk, enough for most processes, are put into the map of tables in advance:
 * updating a map of maps waits for a grace period, filling a table in it does not.
 */
#define SPARES 64
/* Freed numbers rest: a child just forked may still use its parent's (targets_forked()). */
#define NUMBERS_RESTING 128

/* Mappings in a process's table, and how many of one file where there is no room for all. */
#define MAPPINGS_MAX ((unsigned int)(UNWIND_MAPPING_CHUNKS * UNWIND_CHUNK_MAPPINGS))
#define FILE_SHARE 8

/* Created tables: numbers and descriptors, in parallel arrays. */
struct tables {
	int map; /* the map of tables */
	int err; /* of putting them there */
	GArray *numbers;
	GArray *fds;
};

struct unwinder {
	struct memtoll_bpf *bpf;
	GHashTable *modules;   /* unwind_file_key() -> struct module */
	GHashTable *processes; /* pid -> struct process */
	GHashTable *generated; /* pid -> struct generated */
	GQueue free_tables;    /* numbers to be used again, the longest free first */
	struct tables fresh;   /* filled, not yet in the map of tables */
	struct tables spare;   /* in it, empty */
	struct tables coming;  /* spares that the installer is putting there */
	struct workqueue installer;
	uint32_t next_table;
	size_t bytes_of[UNWIND_TABLES];
	size_t bytes;
	uint64_t left_out;
};

static int table_create(uint32_t chunks)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_INNER_MAP);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_table", sizeof(uint32_t),
				UNWIND_CHUNK_BYTES, chunks, &opts);

	return fd < 0 ? -errno : fd;
}

int unwinder_prepare(struct memtoll_bpf *bpf)
{
	int fd = table_create(1);
	int err;

	if (fd < 0)
		return fd;
	err = bpf_map__set_inner_map_fd(bpf->maps.unwind_tables, fd);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

static void process_unref(gpointer data)
{
	struct process *process = data;

	if (!--process->users)
		g_free(process);
}

static void tables_init(struct tables *tables, int map)
{
	tables->map = map;
	tables->err = 0;
	tables->numbers = g_array_new(FALSE, FALSE, sizeof(uint32_t));
	tables->fds = g_array_new(FALSE, FALSE, sizeof(int));
}

static void tables_add(struct tables *tables, uint32_t number, int fd)
{
	g_array_append_val(tables->numbers, number);
	g_array_append_val(tables->fds, fd);
}

/* Close the descriptors; the tables stay in the map. */
static void tables_close(struct tables *tables)
{
	guint i;

	for (i = 0; i < tables->fds->len; i++)
		close(g_array_index(tables->fds, int, i));
	g_array_set_size(tables->numbers, 0);
	g_array_set_size(tables->fds, 0);
}

static void tables_free(struct tables *tables)
{
	tables_close(tables);
	g_array_free(tables->numbers, TRUE);
	g_array_free(tables->fds, TRUE);
}

static uint32_t number_take(struct unwinder *unwinder)
{
	if (unwinder->next_table < UNWIND_TABLES &&
	    g_queue_get_length(&unwinder->free_tables) < NUMBERS_RESTING)
		return unwinder->next_table++;
	return GPOINTER_TO_UINT(g_queue_pop_head(&unwinder->free_tables));
}

static void number_give(struct unwinder *unwinder, uint32_t number)
{
	g_queue_push_tail(&unwinder->free_tables, GUINT_TO_POINTER(number));
}

/*
 * All in one batch: after a change of a map of maps the kernel waits until no program uses the old
 * value any more (maybe_wait_bpf_programs), 8 to 16 ms, once for a batch.
 */
static void tables_install(struct tables *tables)
{
	const uint32_t *numbers = (const uint32_t *)tables->numbers->data;
	const int *fds = (const int *)tables->fds->data;
	uint32_t count = tables->numbers->len, done = count;
	int err = 0;

	/* Older kernels have no batches for maps of maps. */
	if (count && bpf_map_update_batch(tables->map, numbers, fds, &done, NULL))
		done = 0;
	for (; done < count && !err; done++)
		err = bpf_map_update_elem(tables->map, &numbers[done], &fds[done], BPF_ANY) ?
			      -errno :
			      0;
	tables->err = err;
}

static void install_job(void *tables)
{
	tables_install(tables);
}

static int fresh_install(struct unwinder *unwinder)
{
	tables_install(&unwinder->fresh);
	tables_close(&unwinder->fresh);
	return unwinder->fresh.err;
}

/* Create more spares and have the workqueue install them. */
static void spares_order(struct unwinder *unwinder)
{
	uint32_t number;
	int fd;

	while (unwinder->coming.numbers->len < SPARES) {
		if (unwinder->bytes + UNWIND_CHUNK_BYTES > UNWIND_BYTES_MAX)
			break;
		number = number_take(unwinder);
		if (!number)
			break;
		fd = table_create(1);
		if (fd < 0) {
			number_give(unwinder, number);
			break;
		}
		/* What had the number before goes. */
		unwinder->bytes += UNWIND_CHUNK_BYTES - unwinder->bytes_of[number];
		unwinder->bytes_of[number] = UNWIND_CHUNK_BYTES;
		tables_add(&unwinder->coming, number, fd);
	}
	if (unwinder->coming.numbers->len)
		workqueue_push(&unwinder->installer, install_job, &unwinder->coming);
}

struct unwinder *unwinder_new(struct memtoll_bpf *bpf)
{
	struct unwinder *unwinder = g_new0(struct unwinder, 1);
	int map = bpf_map__fd(bpf->maps.unwind_tables);

	unwinder->bpf = bpf;
	unwinder->next_table = 1;
	unwinder->modules = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	unwinder->processes = g_hash_table_new_full(NULL, NULL, NULL, process_unref);
	unwinder->generated = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	g_queue_init(&unwinder->free_tables);
	tables_init(&unwinder->fresh, map);
	tables_init(&unwinder->spare, map);
	tables_init(&unwinder->coming, map);
	workqueue_init(&unwinder->installer);
	spares_order(unwinder);
	return unwinder;
}

void unwinder_free(struct unwinder *unwinder)
{
	if (!unwinder)
		return;
	g_hash_table_destroy(unwinder->modules);
	g_hash_table_destroy(unwinder->processes);
	g_hash_table_destroy(unwinder->generated);
	workqueue_wait(&unwinder->installer);
	g_queue_clear(&unwinder->free_tables);
	tables_free(&unwinder->fresh);
	tables_free(&unwinder->spare);
	tables_free(&unwinder->coming);
	g_free(unwinder);
}

/* Take over the spares that have been installed. */
static void spares_accept(struct unwinder *unwinder)
{
	struct tables *coming = &unwinder->coming, *spare = &unwinder->spare;
	guint i;

	if (coming->err) {
		for (i = 0; i < coming->numbers->len; i++)
			number_give(unwinder, g_array_index(coming->numbers, uint32_t, i));
		tables_close(coming);
	}
	if (!coming->numbers->len)
		return;
	g_array_append_vals(spare->numbers, coming->numbers->data, coming->numbers->len);
	g_array_append_vals(spare->fds, coming->fds->data, coming->fds->len);
	g_array_set_size(coming->numbers, 0);
	g_array_set_size(coming->fds, 0);
}

/* Number of a spare table filled with these mappings, or 0. Waits only if no spare is installed. */
static uint32_t spare_fill(struct unwinder *unwinder, const GArray *mappings)
{
	g_autofree char *chunk = g_malloc(UNWIND_CHUNK_BYTES);
	struct tables *spare = &unwinder->spare;
	uint32_t key = 0, number;
	int fd;

	if (!spare->numbers->len)
		workqueue_wait(&unwinder->installer);
	if (!workqueue_is_busy(&unwinder->installer)) {
		spares_accept(unwinder);
		if (spare->numbers->len <= SPARES / 2)
			spares_order(unwinder);
	}
	if (!spare->numbers->len) {
		workqueue_wait(&unwinder->installer);
		spares_accept(unwinder);
	}
	if (!spare->numbers->len)
		return 0;
	number = g_array_index(spare->numbers, uint32_t, spare->numbers->len - 1);
	fd = g_array_index(spare->fds, int, spare->fds->len - 1);
	g_array_set_size(spare->numbers, spare->numbers->len - 1);
	g_array_set_size(spare->fds, spare->fds->len - 1);
	memset(chunk, 0xff, UNWIND_CHUNK_BYTES);
	memcpy(chunk, mappings->data, mappings->len * sizeof(struct memtoll_unwind_mapping));
	if (bpf_map_update_elem(fd, &key, chunk, BPF_ANY)) {
		number_give(unwinder, number);
		number = 0;
	}
	close(fd);
	return number;
}

/*
 * Create a table of `count` values of `size` bytes, padded with ones to whole chunks; if `index`,
 * after an index of the chunks' first values. fresh_install() puts it under its number. 0 or
 * -errno.
 */
static int table_put(struct unwinder *unwinder, uint32_t number, const void *values, size_t count,
		     size_t size, bool index)
{
	size_t per_chunk = UNWIND_CHUNK_BYTES / size, i;
	size_t chunks = (count + per_chunk - 1) / per_chunk;
	g_autofree char *chunk = g_malloc(UNWIND_CHUNK_BYTES);
	uint32_t first = index ? 1 : 0, key;
	size_t bytes = (chunks + first) * UNWIND_CHUNK_BYTES;
	int fd = -1, err = -ENOSPC;

	if (chunks > UNWIND_INDEX_ENTRIES || unwinder->bytes + bytes > UNWIND_BYTES_MAX)
		goto out;
	err = fd = table_create(chunks + first);
	if (fd < 0)
		goto out;
	if (index) {
		uint32_t *firsts = (uint32_t *)chunk;

		memset(chunk, 0xff, UNWIND_CHUNK_BYTES);
		for (i = 0; i < chunks; i++)
			memcpy(&firsts[i], (const char *)values + i * per_chunk * size,
			       sizeof(*firsts));
		key = 0;
		err = bpf_map_update_elem(fd, &key, chunk, BPF_ANY) ? -errno : 0;
		if (err)
			goto out;
	}
	for (i = 0; i < chunks; i++) {
		size_t from = i * per_chunk, here = MIN(per_chunk, count - from);

		memset(chunk, 0xff, UNWIND_CHUNK_BYTES);
		memcpy(chunk, (const char *)values + from * size, here * size);
		key = i + first;
		err = bpf_map_update_elem(fd, &key, chunk, BPF_ANY) ? -errno : 0;
		if (err)
			goto out;
	}
	tables_add(&unwinder->fresh, number, fd);
	fd = -1;
	/* What had the number before goes. */
	unwinder->bytes += bytes - unwinder->bytes_of[number];
	unwinder->bytes_of[number] = bytes;
	err = 0;
out:
	if (fd >= 0)
		close(fd);
	return err;
}

static void module_load(struct unwinder *unwinder, struct module *module,
			const struct unwind_table *table)
{
	uint32_t number = number_take(unwinder);

	module->base = table->base;
	if (number &&
	    !table_put(unwinder, number, table->rows, table->count, sizeof(*table->rows), true)) {
		module->table = number;
		return;
	}
	unwinder->left_out++;
	if (number)
		number_give(unwinder, number);
}

static bool is_vdso(const struct mapping *mapping)
{
	return !strcmp(mapping->path, "[vdso]");
}

/* All processes have the same vdso, at different addresses: compiled from our own. */
static struct module *vdso_module(struct unwinder *unwinder, const struct mapping *mapping)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct module *module = g_hash_table_lookup(unwinder->modules, "[vdso]");
	struct unwind_table table = {};

	if (module)
		return module;
	module = g_new0(struct module, 1);
	g_hash_table_insert(unwinder->modules, g_strdup("[vdso]"), module);
	if (image && !unwind_table_compile_memory(image, mapping->end - mapping->start, &table))
		module_load(unwinder, module, &table);
	unwind_table_free(&table);
	return module;
}

/* A file mapped by the process being shown; opened once for all its mappings. */
struct opened {
	struct module *module; /* NULL: no x86-64 ELF file, or it could not be opened */
	struct image image;    /* only the segments are kept */
	unsigned int mappings; /* executable ones, so far */
};

static void opened_free(gpointer data)
{
	struct opened *opened = data;

	image_close(&opened->image);
	g_free(opened);
}

static struct module *module_of(struct unwinder *unwinder, const struct image *image)
{
	struct unwind_table table = {};
	char build_id[2 * 64 + 1] = "";
	g_autofree char *key = NULL;
	struct module *module;

	build_id_of(image->elf, build_id);
	key = unwind_file_key(build_id, image->fd);
	module = key ? g_hash_table_lookup(unwinder->modules, key) : NULL;
	if (!key || module)
		return module;
	module = g_new0(struct module, 1);
	/* Files of a read-only image may all have the same times: not cached without a build id. */
	if (!unwind_cache_get(*build_id ? key : "", image->fd, &table))
		module_load(unwinder, module, &table);
	g_hash_table_insert(unwinder->modules, g_steal_pointer(&key), module);
	unwind_table_free(&table);
	return module;
}

static struct opened *open_file(struct unwinder *unwinder, pid_t pid, const struct mapping *mapping,
				GHashTable *files)
{
	struct opened *opened = g_hash_table_lookup(files, mapping);
	struct image *image;

	if (opened)
		return opened;
	opened = g_new0(struct opened, 1);
	image = &opened->image;
	g_hash_table_insert(files, (gpointer)mapping, opened);
	if (!image_open(pid, mapping, image))
		opened->module = module_of(unwinder, image);
	image_drop_file(image);
	return opened;
}

/* "[uprobes]" is the kernel's return trampoline, which the walk handles by itself. */
static bool is_code(const struct mapping *mapping)
{
	return mapping->exec && strcmp(mapping->path, "[uprobes]");
}

/* Where rows reach: 32 bits from their base. */
static bool may_hold(const struct generated *generated, const struct mapping *mapping)
{
	return generated && !mapping->inode && mapping->start >= generated->module.base &&
	       mapping->end - generated->module.base <= UINT32_MAX;
}

static void add_mapping(struct unwinder *unwinder, const struct mapping *mapping,
			const struct opened *opened, const struct generated *generated,
			GArray *mappings)
{
	struct memtoll_unwind_mapping entry = {
		.start = mapping->start,
		.end = mapping->end,
	};
	const struct module *module = NULL;
	uint64_t bias = 0;

	if (is_vdso(mapping)) {
		module = vdso_module(unwinder, mapping);
		bias = mapping->start;
	} else if (opened && image_bias(&opened->image, mapping, &bias)) {
		module = opened->module;
	} else if (may_hold(generated, mapping)) {
		module = &generated->module;
	}
	if (module) {
		entry.table = module->table;
		entry.bias = bias + module->base;
	}
	g_array_append_val(mappings, entry);
}

static bool have_room(const struct maps *maps)
{
	size_t code = 0, i;

	for (i = 0; i < maps->count; i++)
		code += is_code(&maps->entries[i]);
	return code <= MAPPINGS_MAX;
}

static GArray *mappings_of(struct unwinder *unwinder, pid_t pid, const struct maps *maps,
			   uint64_t *left_out)
{
	g_autoptr(GHashTable) files =
		g_hash_table_new_full(mapping_file_hash, mapping_file_equal, NULL, opened_free);
	GArray *mappings = g_array_new(FALSE, TRUE, sizeof(struct memtoll_unwind_mapping));
	const struct generated *generated =
		g_hash_table_lookup(unwinder->generated, GINT_TO_POINTER(pid));
	bool all = have_room(maps);
	unsigned int anonymous = 0;
	size_t i;

	*left_out = 0;
	for (i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->entries[i];
		struct opened *opened = NULL;
		bool fair;

		if (!is_code(mapping))
			continue;
		if (mapping->inode && mappings->len < MAPPINGS_MAX)
			opened = open_file(unwinder, pid, mapping, files);
		fair = opened ? opened->mappings++ < FILE_SHARE : anonymous++ < MAPPINGS_MAX / 2;
		if (mappings->len < MAPPINGS_MAX && (all || fair))
			add_mapping(unwinder, mapping, opened, generated, mappings);
		else
			++*left_out;
	}
	return mappings;
}

/* Number of a table with a process's mappings, or 0. Large ones still need fresh_install(). */
static uint32_t mappings_put(struct unwinder *unwinder, const GArray *mappings)
{
	uint32_t number;

	if (mappings->len <= UNWIND_CHUNK_MAPPINGS)
		return spare_fill(unwinder, mappings);
	number = number_take(unwinder);
	if (number && table_put(unwinder, number, mappings->data, mappings->len,
				sizeof(struct memtoll_unwind_mapping), false)) {
		number_give(unwinder, number);
		return 0;
	}
	return number;
}

/*
 * Always a new table, since BPF programs may be reading the old one; that stays unchanged until its
 * number is used again.
 */
uint32_t unwinder_show(struct unwinder *unwinder, pid_t pid, const struct maps *maps)
{
	uint64_t left_out, left_out_before = 0;
	g_autoptr(GArray) mappings = NULL;
	struct process *process;
	uint32_t number = 0;

	if (!maps->count)
		goto out;
	process = g_hash_table_lookup(unwinder->processes, GINT_TO_POINTER(pid));
	if (process)
		left_out_before = process->left_out;
	mappings = mappings_of(unwinder, pid, maps, &left_out);
	/* Counted once, however often the process is shown. */
	if (left_out > left_out_before)
		unwinder->left_out += left_out - left_out_before;
	number = mappings_put(unwinder, mappings);
	if (!number) {
		unwinder->left_out++;
		goto out;
	}
	unwinder_exit(unwinder, pid);
	process = g_new0(struct process, 1);
	process->table = number;
	process->left_out = MAX(left_out, left_out_before);
	process->users = 1;
	g_hash_table_insert(unwinder->processes, GINT_TO_POINTER(pid), process);
out:
	if (fresh_install(unwinder))
		unwinder->left_out++;
	return number;
}

int unwinder_generated(struct unwinder *unwinder, pid_t pid, uint64_t base,
		       const struct memtoll_unwind_row *rows, size_t count)
{
	struct generated *generated =
		g_hash_table_lookup(unwinder->generated, GINT_TO_POINTER(pid));
	const struct unwind_table table = {
		.rows = (struct memtoll_unwind_row *)rows,
		.count = count,
		.base = base,
	};
	uint64_t left_out = unwinder->left_out;

	if (!generated) {
		generated = g_new0(struct generated, 1);
		g_hash_table_insert(unwinder->generated, GINT_TO_POINTER(pid), generated);
	}
	if (generated->given >= GENERATED_MOST)
		return -ENOSPC;
	generated->given++;
	generated->module.table = 0;
	module_load(unwinder, &generated->module, &table);
	return left_out == unwinder->left_out ? 0 : -ENOSPC;
}

void unwinder_forget_generated(struct unwinder *unwinder, pid_t pid)
{
	g_hash_table_remove(unwinder->generated, GINT_TO_POINTER(pid));
}

uint32_t unwinder_fork(struct unwinder *unwinder, pid_t parent, pid_t child)
{
	struct process *process = g_hash_table_lookup(unwinder->processes, GINT_TO_POINTER(parent));

	if (!process)
		return 0;
	process->users++;
	g_hash_table_insert(unwinder->processes, GINT_TO_POINTER(child), process);
	return process->table;
}

void unwinder_exit(struct unwinder *unwinder, pid_t pid)
{
	struct process *process = g_hash_table_lookup(unwinder->processes, GINT_TO_POINTER(pid));

	if (!process)
		return;
	/* Forked children without a table of their own still use it. */
	if (process->users == 1)
		number_give(unwinder, process->table);
	g_hash_table_remove(unwinder->processes, GINT_TO_POINTER(pid));
}

uint64_t unwinder_left_out(struct unwinder *unwinder)
{
	uint64_t left_out = unwinder->left_out;

	unwinder->left_out = 0;
	return left_out;
}
