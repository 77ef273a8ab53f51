// SPDX-License-Identifier: GPL-2.0
#include "unwind_load.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <glib.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "../bpf/events.h"
#include "debugfile.h"
#include "image.h"
#include "memtoll.skel.h"
#include "proc.h"
#include "unwind_cache.h"
#include "unwind_table.h"

/* One file, or the vdso. */
struct module {
	uint32_t table;		/* 0: it has no rows, or there was no room */
	uint64_t base;		/* of unwind_table */
};

struct process {
	uint32_t table;
	unsigned int users;	/* it and the children that have not been shown themselves */
};

struct unwinder {
	struct memtoll_bpf *bpf;
	GHashTable *modules;	/* build id, or device and inode -> struct module */
	GHashTable *processes;	/* pid -> struct process */
	GArray *free_tables;	/* numbers to be used again */
	GArray *new_numbers;	/* of tables that are made and not yet in the map of tables */
	GArray *new_fds;
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

struct unwinder *unwinder_new(struct memtoll_bpf *bpf)
{
	struct unwinder *unwinder = g_new0(struct unwinder, 1);

	unwinder->bpf = bpf;
	unwinder->next_table = 1;
	unwinder->modules = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	unwinder->processes = g_hash_table_new_full(NULL, NULL, NULL, process_unref);
	unwinder->free_tables = g_array_new(FALSE, FALSE, sizeof(uint32_t));
	unwinder->new_numbers = g_array_new(FALSE, FALSE, sizeof(uint32_t));
	unwinder->new_fds = g_array_new(FALSE, FALSE, sizeof(int));
	return unwinder;
}

void unwinder_free(struct unwinder *unwinder)
{
	if (!unwinder)
		return;
	g_hash_table_destroy(unwinder->modules);
	g_hash_table_destroy(unwinder->processes);
	g_array_free(unwinder->free_tables, TRUE);
	g_array_free(unwinder->new_numbers, TRUE);
	g_array_free(unwinder->new_fds, TRUE);
	g_free(unwinder);
}

static uint32_t number_take(struct unwinder *unwinder)
{
	GArray *free_tables = unwinder->free_tables;
	uint32_t number;

	if (free_tables->len) {
		number = g_array_index(free_tables, uint32_t, free_tables->len - 1);
		g_array_set_size(free_tables, free_tables->len - 1);
		return number;
	}
	return unwinder->next_table < UNWIND_TABLES ? unwinder->next_table++ : 0;
}

/*
 * Put the new tables into the map, all at once: after a change of such a map the kernel waits until
 * no program can use the old value any more (maybe_wait_bpf_programs): 8 to 16 ms, once for a
 * batch.
 */
static int tables_install(struct unwinder *unwinder)
{
	int map = bpf_map__fd(unwinder->bpf->maps.unwind_tables);
	const uint32_t *numbers = (const uint32_t *)unwinder->new_numbers->data;
	const int *fds = (const int *)unwinder->new_fds->data;
	uint32_t count = unwinder->new_numbers->len, done = count;
	int err = 0;

	/* Older kernels do not know batches of maps. */
	if (count && bpf_map_update_batch(map, numbers, fds, &done, NULL))
		done = 0;
	for (; done < count && !err; done++)
		err = bpf_map_update_elem(map, &numbers[done], &fds[done], BPF_ANY) ? -errno : 0;
	for (done = 0; done < count; done++)
		close(fds[done]);
	g_array_set_size(unwinder->new_numbers, 0);
	g_array_set_size(unwinder->new_fds, 0);
	return err;
}

/*
 * A table of `count` values of `size` bytes, padded with ones to whole chunks, after an index of
 * the chunks' first values where there is to be one. It takes its number's place with
 * tables_install(). 0 or -errno.
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
	g_array_append_val(unwinder->new_numbers, number);
	g_array_append_val(unwinder->new_fds, fd);
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
	if (number && !table_put(unwinder, number, table->rows, table->count,
				 sizeof(*table->rows), true)) {
		module->table = number;
		return;
	}
	unwinder->left_out++;
	if (number)
		g_array_append_val(unwinder->free_tables, number);
}

static bool is_vdso(const struct mapping *mapping)
{
	return !strcmp(mapping->path, "[vdso]");
}

/* All processes have the same vdso, at addresses of their own: ours is read. */
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

/* The module of a file; what to add to its addresses to get the process's, in *bias. */
static struct module *file_module(struct unwinder *unwinder, pid_t pid,
				  const struct mapping *mapping, uint64_t *bias)
{
	struct unwind_table table = {};
	struct module *module = NULL;
	struct image image = { .fd = -1 };
	char build_id[2 * 64 + 1] = "";
	g_autofree char *key = NULL;

	if (image_open(pid, mapping, &image) || !image_bias(&image, mapping, bias))
		goto out;
	build_id_of(image.elf, build_id);
	key = *build_id ? g_strdup(build_id) :
	      g_strdup_printf("%u:%u:%lu", mapping->dev_major, mapping->dev_minor,
			      (unsigned long)mapping->inode);
	module = g_hash_table_lookup(unwinder->modules, key);
	if (module)
		goto out;
	module = g_new0(struct module, 1);
	g_hash_table_insert(unwinder->modules, g_steal_pointer(&key), module);
	if (!unwind_cache_get(build_id, image.fd, &table))
		module_load(unwinder, module, &table);
	unwind_table_free(&table);
out:
	image_close(&image);
	return module;
}

static GArray *mappings_of(struct unwinder *unwinder, pid_t pid, const struct maps *maps)
{
	GArray *mappings = g_array_new(FALSE, TRUE, sizeof(struct memtoll_unwind_mapping));
	size_t i;

	for (i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->entries[i];
		struct memtoll_unwind_mapping entry = {
			.start = mapping->start,
			.end = mapping->end,
		};
		const struct module *module = NULL;
		uint64_t bias = 0;

		/* The kernel's return trampoline: the walk sees through it. */
		if (!mapping->exec || !strcmp(mapping->path, "[uprobes]"))
			continue;
		if (is_vdso(mapping)) {
			module = vdso_module(unwinder, mapping);
			bias = mapping->start;
		} else if (mapping->inode) {
			module = file_module(unwinder, pid, mapping, &bias);
		}
		if (module) {
			entry.table = module->table;
			entry.bias = bias + module->base;
		}
		if (mappings->len < UNWIND_MAPPING_CHUNKS * UNWIND_CHUNK_MAPPINGS)
			g_array_append_val(mappings, entry);
		else
			unwinder->left_out++;
	}
	return mappings;
}

uint32_t unwinder_show(struct unwinder *unwinder, pid_t pid)
{
	struct process *process = g_hash_table_lookup(unwinder->processes, GINT_TO_POINTER(pid));
	g_autoptr(GArray) mappings = NULL;
	struct maps maps = {};
	uint32_t number = 0;

	if (maps_read(pid, &maps))
		goto out;
	mappings = mappings_of(unwinder, pid, &maps);
	if (process && process->users > 1) {	/* shared with children: they keep it */
		g_hash_table_remove(unwinder->processes, GINT_TO_POINTER(pid));
		process = NULL;
	}
	number = process ? process->table : number_take(unwinder);
	if (!number || table_put(unwinder, number, mappings->data, mappings->len,
				 sizeof(struct memtoll_unwind_mapping), false)) {
		if (number && !process)
			g_array_append_val(unwinder->free_tables, number);
		unwinder->left_out++;
		number = process ? number : 0;
		goto out;
	}
	if (!process) {
		process = g_new0(struct process, 1);
		process->table = number;
		process->users = 1;
		g_hash_table_insert(unwinder->processes, GINT_TO_POINTER(pid), process);
	}
out:
	if (tables_install(unwinder))
		unwinder->left_out++;
	maps_free(&maps);
	return number;
}

void unwinder_fork(struct unwinder *unwinder, pid_t parent, pid_t child)
{
	struct process *process = g_hash_table_lookup(unwinder->processes,
						      GINT_TO_POINTER(parent));

	if (!process)
		return;
	process->users++;
	g_hash_table_insert(unwinder->processes, GINT_TO_POINTER(child), process);
}

void unwinder_exit(struct unwinder *unwinder, pid_t pid)
{
	struct process *process = g_hash_table_lookup(unwinder->processes, GINT_TO_POINTER(pid));

	if (!process)
		return;
	/* Its table stays until the number is used again: to take it out is to wait, see above. */
	if (process->users == 1)
		g_array_append_val(unwinder->free_tables, process->table);
	g_hash_table_remove(unwinder->processes, GINT_TO_POINTER(pid));
}

uint64_t unwinder_left_out(struct unwinder *unwinder)
{
	uint64_t left_out = unwinder->left_out;

	unwinder->left_out = 0;
	return left_out;
}

size_t unwinder_bytes(const struct unwinder *unwinder)
{
	return unwinder->bytes;
}
