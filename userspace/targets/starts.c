// SPDX-License-Identifier: GPL-2.0
#include "targets/starts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpf/wire/targets.h"
#include "host/proc.h"
#include "host/target_memory.h"
#include "memtoll.skel.h"
#include "symbols/image.h"

#define LOADER_FUNCTION "_dl_debug_state"
#define LOADER_VARIABLE "_r_debug"
/* Its r_state, after a version and two addresses (struct r_debug, elf/link.h of glibc). */
#define STATE_OFFSET 24
/* At most so many are remembered; further ones are held at each call. A loader is a descriptor. */
#define KNOWN_MAX 4096
#define LOADERS_MAX 64

/* A dynamic loader: where its function is in its file, and its state in memory. */
struct loader {
	int fd; /* -1: it has none that can be probed */
	uint64_t offset;
	uint64_t state; /* address of r_state, as in the file */
};

struct starts {
	struct memtoll_bpf *bpf;
	bool able;
	GHashTable *loaders; /* file_key() -> struct loader */
	GHashTable *known;   /* start_key() -> GPtrArray of struct allocator_module */
};

struct starting {
	struct starts *starts;
	pid_t pid;
	char *key;
	const GPtrArray *modules; /* as known before, or NULL */
	struct uprobe_attachment *link;
};

static void loader_free(gpointer data)
{
	struct loader *loader = data;

	if (loader->fd >= 0)
		close(loader->fd);
	g_free(loader);
}

static void modules_free(gpointer modules)
{
	g_ptr_array_free(modules, TRUE);
}

struct starts *starts_new(struct memtoll_bpf *bpf, enum uprobe_mechanism mechanism)
{
	struct starts *starts = g_new0(struct starts, 1);

	starts->bpf = bpf;
	starts->able = bpf_program__fd(bpf->progs.loader_mapped) >= 0 && mechanism != UPROBE_PERF;
	starts->loaders = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, loader_free);
	starts->known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, modules_free);
	return starts;
}

void starts_free(struct starts *starts)
{
	if (!starts)
		return;
	g_hash_table_destroy(starts->loaders);
	g_hash_table_destroy(starts->known);
	g_free(starts);
}

/*
 * Which file, and in which state, as the kernel knows it: no FUSE server is asked. NULL: unknown.
 */
static char *file_key(int at, const char *path)
{
	struct statx st;

	if (statx(at, path, AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st))
		return NULL;
	return g_strdup_printf("%u:%u %" PRIu64 " %" PRIu64 " %" PRId64 ".%09u %" PRId64 ".%09u",
			       st.stx_dev_major, st.stx_dev_minor, (uint64_t)st.stx_ino,
			       (uint64_t)st.stx_size, (int64_t)st.stx_mtime.tv_sec,
			       st.stx_mtime.tv_nsec, (int64_t)st.stx_ctime.tv_sec,
			       st.stx_ctime.tv_nsec);
}

/*
 * Does nothing but return (ret, perhaps after endbr64): the file is its owner's, who may call
 * anything by this name, and a probe belongs at the beginning of an instruction that the kernel
 * knows how to step over.
 */
static bool is_empty_function(int fd, uint64_t offset)
{
	static const unsigned char endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	unsigned char code[sizeof(endbr64) + 1];
	const unsigned char *at = code;

	if (pread(fd, code, sizeof(code), offset) != sizeof(code))
		return false;
	if (!memcmp(code, endbr64, sizeof(endbr64)))
		at += sizeof(endbr64);
	return *at == 0xc3;
}

static bool find_symbols(const struct image *image, struct loader *loader)
{
	struct chosen_symbol function = {}, variable = {};
	struct symbol_table table;
	struct symbol symbol;
	uint64_t available;
	size_t i;

	if (!image_symbols(image, SHT_DYNSYM, &table))
		return false;
	for (i = 0; i < table.count; i++) {
		if (!symbol_table_get(&table, i, &symbol) || !symbol.defined)
			continue;
		if (symbol.type == STT_FUNC && !strcmp(symbol.name, LOADER_FUNCTION))
			symbol_choose(&function, &symbol);
		if (symbol.type == STT_OBJECT && !strcmp(symbol.name, LOADER_VARIABLE))
			symbol_choose(&variable, &symbol);
	}
	loader->state = variable.value + STATE_OFFSET;
	return function.value && variable.value &&
	       image_code_offset(image, function.value, &loader->offset, &available) &&
	       is_empty_function(image->fd, loader->offset);
}

static struct loader *loader_get(struct starts *starts, pid_t pid, const struct mapping *mapping)
{
	struct image image = { .fd = -1 };
	struct loader *loader = NULL;
	g_autofree char *key = NULL;
	int fd = mapping_open(pid, mapping);

	if (fd >= 0)
		key = file_key(fd, "");
	if (!key)
		goto out;
	loader = g_hash_table_lookup(starts->loaders, key);
	if (loader || g_hash_table_size(starts->loaders) >= LOADERS_MAX)
		goto out;
	loader = g_new0(struct loader, 1);
	loader->fd = -1;
	if (!image_open(pid, mapping, &image) && find_symbols(&image, loader)) {
		loader->fd = image.fd;
		image.fd = -1;
	}
	image_close(&image);
	g_hash_table_insert(starts->loaders, g_steal_pointer(&key), loader);
out:
	if (fd >= 0)
		close(fd);
	return loader;
}

static struct loader *loader_at(struct starts *starts, pid_t pid, const struct maps *maps,
				uint64_t base)
{
	const struct mapping *first = maps_find(maps, base);
	struct loader *loader = NULL;
	size_t i;

	for (i = 0; first && i < maps->count && !loader; i++)
		if (maps->entries[i].exec && is_same_file(&maps->entries[i], first))
			loader = loader_get(starts, pid, &maps->entries[i]);
	return loader;
}

/*
 * The program, its loader, and the loader's settings in the environment, which may be long: a hash
 * of them.
 */
static char *start_key(pid_t pid, const struct loader *loader)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/exe", pid);
	g_autoptr(GString) environment = g_string_new(NULL);
	g_autofree char *program = file_key(AT_FDCWD, path);
	GString *text;
	char *key;
	gsize at;

	if (!program || target_memory_file(pid, "environ", PROC_ENVIRONMENT_MAX, environment))
		return NULL;
	text = g_string_new(program);
	g_string_append_printf(text, " %d %" PRIu64, loader->fd, loader->offset);
	for (at = 0; at < environment->len; at += strlen(environment->str + at) + 1)
		if (g_str_has_prefix(environment->str + at, "LD_"))
			g_string_append_printf(text, "\n%s", environment->str + at);
	key = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text->str, text->len);
	g_string_free(text, TRUE);
	return key;
}

static int starts_fd(const struct starts *starts)
{
	return bpf_map__fd(starts->bpf->maps.starts);
}

struct starting *starting_new(struct starts *starts, pid_t pid, const struct maps *maps,
			      uint64_t base)
{
	struct loader *loader = starts->able ? loader_at(starts, pid, maps, base) : NULL;
	struct starting *starting = NULL;
	struct memtoll_start row = {};
	uint32_t key = pid;

	if (!loader || loader->fd < 0)
		return NULL;
	starting = g_new0(struct starting, 1);
	starting->starts = starts;
	starting->pid = pid;
	starting->key = start_key(pid, loader);
	if (!starting->key)
		goto fail;
	starting->modules = g_hash_table_lookup(starts->known, starting->key);
	row.state_at = base + loader->state;
	row.awaited = starting->modules != NULL;
	if (bpf_map_update_elem(starts_fd(starts), &key, &row, BPF_ANY))
		goto fail;
	starting->link =
		uprobe_attach_at(starts->bpf->progs.loader_mapped, pid, loader->fd, loader->offset);
	if (!starting->link)
		goto fail;
	return starting;
fail:
	starting_end(starting, NULL);
	return NULL;
}

const GPtrArray *starting_modules(const struct starting *starting)
{
	return starting->modules;
}

static struct memtoll_start row_of(const struct starting *starting)
{
	struct memtoll_start row = {};
	uint32_t key = starting->pid;

	bpf_map_lookup_elem(starts_fd(starting->starts), &key, &row);
	return row;
}

bool starting_is_over(const struct starting *starting)
{
	return row_of(starting).mapped;
}

/*
 * One whose loader never sent SIGURG is held at each call the next time, too. Only that it was
 * about to map: the rest may come after what the process was held for. What is known stays as it
 * is: others that start like this one hold it.
 */
static void learn(struct starting *starting, GPtrArray *modules)
{
	GHashTable *known = starting->starts->known;

	if (g_hash_table_contains(known, starting->key) || !row_of(starting).adding ||
	    g_hash_table_size(known) >= KNOWN_MAX)
		g_ptr_array_free(modules, TRUE);
	else
		g_hash_table_insert(known, g_steal_pointer(&starting->key), modules);
}

void starting_end(struct starting *starting, GPtrArray *modules)
{
	uint32_t key;

	if (!starting)
		return;
	if (modules)
		learn(starting, modules);
	key = starting->pid;
	bpf_map_delete_elem(starts_fd(starting->starts), &key);
	/* Hit only when a library is loaded later: more costly ones are detached first. */
	uprobe_detach_dead(starting->link);
	g_free(starting->key);
	g_free(starting);
}
