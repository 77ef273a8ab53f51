// SPDX-License-Identifier: GPL-2.0
/* libc.c: which files of a process define the malloc family, whose they are, where to probe. */
#define _GNU_SOURCE 1	/* memmem */

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "image.h"
#include "libc.h"

#define RDI PLACEMENT_RDI
#define RSI PLACEMENT_RSI
#define RDX PLACEMENT_RDX

static const struct {
	const char *name;
	uint32_t arguments;	/* that the probe reads */
} functions[FN_COUNT] = {
	[FN_MALLOC] = { "malloc", RDI },
	[FN_CALLOC] = { "calloc", RDI | RSI },
	[FN_REALLOC] = { "realloc", RDI | RSI },
	[FN_REALLOCARRAY] = { "reallocarray", RDI | RSI | RDX },
	[FN_FREE] = { "free", RDI },
	[FN_POSIX_MEMALIGN] = { "posix_memalign", RDI | RSI | RDX },
	[FN_ALIGNED_ALLOC] = { "aligned_alloc", RDI | RSI },
	[FN_MEMALIGN] = { "memalign", RDI | RSI },
};

/*
 * Symbols that only one allocator defines. The last two are local to glibc's malloc.c and to
 * musl; they are seen in static programs, which carry no other sign of their C library.
 */
static const struct {
	const char *name;
	bool prefix;
	enum allocator_kind kind;
} signs[] = {
	{ "mallctl", false, ALLOCATOR_JEMALLOC },
	{ "je_malloc", true, ALLOCATOR_JEMALLOC },
	{ "je_mallctl", false, ALLOCATOR_JEMALLOC },
	{ "tc_malloc", false, ALLOCATOR_TCMALLOC },
	{ "MallocExtension_", true, ALLOCATOR_TCMALLOC },
	{ "_ZN15MallocExtension", true, ALLOCATOR_TCMALLOC },
	{ "_ZN8tcmalloc15MallocExtension", true, ALLOCATOR_TCMALLOC },
	{ "mi_malloc", false, ALLOCATOR_MIMALLOC },
	{ "_int_malloc", false, ALLOCATOR_GLIBC },
	{ "__libc_malloc_impl", false, ALLOCATOR_MUSL },
};

/* What one pass over a symbol table finds. */
struct scan {
	struct chosen_symbol found[FN_COUNT];
	bool has_sign[G_N_ELEMENTS(signs)];
};

const char *allocator_kind_name(enum allocator_kind kind)
{
	static const char *const names[] = {
		[ALLOCATOR_UNKNOWN] = "unknown",   [ALLOCATOR_GLIBC] = "glibc",
		[ALLOCATOR_MUSL] = "musl",	   [ALLOCATOR_JEMALLOC] = "jemalloc",
		[ALLOCATOR_TCMALLOC] = "tcmalloc", [ALLOCATOR_MIMALLOC] = "mimalloc",
	};

	return (size_t)kind < G_N_ELEMENTS(names) ? names[kind] : names[ALLOCATOR_UNKNOWN];
}

static void note_function(const struct symbol *symbol, struct scan *scan)
{
	if (symbol->type != STT_FUNC || !symbol->defined)
		return;
	for (size_t fn = FN_MALLOC; fn < FN_COUNT; fn++)
		if (strcmp(symbol->name, functions[fn].name) == 0)
			symbol_choose(&scan->found[fn], symbol);
}

static void note_sign(const struct symbol *symbol, struct scan *scan)
{
	if (!symbol->defined)
		return;
	for (size_t i = 0; i < G_N_ELEMENTS(signs); i++)
		if (signs[i].prefix ? g_str_has_prefix(symbol->name, signs[i].name)
				    : strcmp(symbol->name, signs[i].name) == 0)
			scan->has_sign[i] = true;
}

static void scan_table(const struct image *image, uint32_t section_type, struct scan *scan)
{
	struct symbol_table table;
	struct symbol symbol;

	memset(scan, 0, sizeof(*scan));
	if (!image_symbols(image, section_type, &table))
		return;
	for (size_t i = 0; i < table.count; i++) {
		if (!symbol_table_get(&table, i, &symbol))
			continue;
		note_function(&symbol, scan);
		note_sign(&symbol, scan);
	}
}

/* Names of the C library's file: the soname, or where musl has none, the file's own name. */
static bool is_named(const struct image *image, const char *path, const char *prefix)
{
	const char *slash = strrchr(path, '/');

	return g_str_has_prefix(image->soname, prefix) ||
	       g_str_has_prefix(slash ? slash + 1 : path, prefix);
}

static bool is_musl(const struct image *image, const char *path)
{
	if (is_named(image, path, "libc.musl-") || is_named(image, path, "ld-musl"))
		return true;
	return is_named(image, path, "libc.so") && image_has_text(image, "musl libc", NULL, 1);
}

/* "2.36" of "... stable release version 2.36.\n", the banner that glibc prints when run. */
static void read_glibc_version(const struct image *image, char *version, size_t size)
{
	char tail[32];
	size_t length;

	if (!image_has_text(image, "release version ", tail, sizeof(tail)))
		return;
	length = strspn(tail, "0123456789.");
	while (length > 0 && tail[length - 1] == '.')
		length--;
	snprintf(version, size, "%.*s", (int)length, tail);
}

static void recognise(const struct image *image, const char *path, const struct scan *scan,
		      struct allocator_module *module)
{
	bool is_static = image->is_main && !image->has_interp;

	module->kind = ALLOCATOR_UNKNOWN;
	for (size_t i = 0; i < G_N_ELEMENTS(signs); i++) {
		if (scan->has_sign[i]) {
			module->kind = signs[i].kind;
			break;
		}
	}
	if (module->kind == ALLOCATOR_UNKNOWN) {
		if (is_musl(image, path))
			module->kind = ALLOCATOR_MUSL;
		else if ((is_static || strcmp(image->soname, "libc.so.6") == 0) &&
			 image_has_text(image, "GNU C Library", NULL, 1))
			module->kind = ALLOCATOR_GLIBC;
		else if (image_has_text(image, "<jemalloc>", NULL, 1))
			module->kind = ALLOCATOR_JEMALLOC;
	}
	if (module->kind == ALLOCATOR_GLIBC)
		read_glibc_version(image, module->version, sizeof(module->version));
}

static void place_point(const struct image *image, uint64_t available, uint64_t size,
			struct probe_point *point)
{
	uint32_t arguments = functions[point->fn].arguments;
	uint8_t code[PLACEMENT_WINDOW];
	ssize_t got;

	available = MIN(available, sizeof(code));
	if (size)
		available = MIN(available, size);
	got = pread(image->fd, code, available, (off_t)point->symbol_offset);
	if (got < 0)
		got = 0;
	/*
	 * A return probe replaces the word that the stack pointer points to, so the stack pointer
	 * must not have moved. free returns nothing: there its entry alone will do.
	 */
	if (!placement_find(code, (size_t)got, arguments, true, &point->place))
		return;
	if (point->fn == FN_FREE)
		placement_find(code, (size_t)got, arguments, false, &point->place);
	/*
	 * glibc multiplies reallocarray's numbers first (mul, which overwrites rdx) and tests for
	 * overflow next: at that jo the product, the size asked, is in rax.
	 */
	if (point->fn == FN_REALLOCARRAY &&
	    !placement_find(code, (size_t)got, PLACEMENT_RDI, true, &point->place)) {
		point->product = !strncmp(point->place.instruction, "jo ", 3);
		if (!point->product) {
			point->place.found = false;
			snprintf(point->place.refusal, sizeof(point->place.refusal),
				 "arguments are gone before any emulated instruction");
		}
	}
}

/* One point for each address: names that share one (in glibc) go to the first in enum order. */
static void add_points(const struct image *image, const struct scan *scan,
		       struct allocator_module *module)
{
	for (size_t fn = FN_MALLOC; fn < FN_COUNT; fn++) {
		struct probe_point *point = &module->points[module->point_count];
		uint64_t offset, available;
		bool shared = false;

		if (!scan->found[fn].value ||
		    !image_code_offset(image, scan->found[fn].value, &offset, &available))
			continue;
		for (size_t i = 0; i < module->point_count; i++)
			shared |= module->points[i].symbol_offset == offset;
		if (shared)
			continue;
		point->fn = (enum memtoll_fn)fn;
		point->symbol_offset = offset;
		place_point(image, available, scan->found[fn].size, point);
		module->point_count++;
	}
}

/*
 * The mapping of the program interpreter, by the address that the kernel gave the program
 * (AT_BASE, getauxval(3)): PT_INTERP's path would have to be resolved in the process's root.
 */
static const struct mapping *find_interpreter(pid_t pid, const struct maps *maps)
{
	const struct mapping *found = NULL;
	Elf64_auxv_t entry;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	while (read(fd, &entry, sizeof(entry)) == sizeof(entry) && entry.a_type != AT_NULL)
		if (entry.a_type == AT_BASE)
			found = maps_find(maps, entry.a_un.a_val);
	close(fd);
	return found && found->inode ? found : NULL;
}

/* musl's interpreter is its C library; any other has a malloc for itself at most. */
static bool is_mere_loader(const struct image *image, const struct mapping *mapping,
			   const struct mapping *interpreter)
{
	bool is_loader = (interpreter && is_same_file(mapping, interpreter)) ||
			 g_str_has_prefix(image->soname, "ld-") ||
			 g_str_has_prefix(image->soname, "ld.so") ||
			 g_str_has_prefix(image->soname, "ld64.so");

	return is_loader && !is_musl(image, mapping->path) &&
	       !image_has_text(image, "musl libc", NULL, 1);
}

/* 1 and the module if the mapped file defines functions of the family; 0 if not; or -errno. */
static int examine(pid_t pid, const struct mapping *mapping, const struct mapping *interpreter,
		   struct allocator_module *module)
{
	struct image image;
	struct scan scan;
	int err;

	memset(module, 0, sizeof(*module));
	module->fd = -1;
	err = image_open(pid, mapping, &image);
	if (err)
		goto out;
	scan_table(&image, image_symbol_section(&image), &scan);
	add_points(&image, &scan, module);
	if (module->point_count == 0 || is_mere_loader(&image, mapping, interpreter))
		goto out;
	recognise(&image, mapping->path, &scan, module);
	module->path = g_strdup(mapping->path);
	module->inode = mapping->inode;
	module->dev_major = mapping->dev_major;
	module->dev_minor = mapping->dev_minor;
	module->fd = image.fd;
	image.fd = -1;
	err = 1;
out:
	image_close(&image);
	return err;
}

int allocator_modules_find(pid_t pid, const struct maps *maps, struct allocator_module **modules,
			   size_t *count)
{
	const struct mapping *interpreter = find_interpreter(pid, maps);
	GArray *found = g_array_new(FALSE, FALSE, sizeof(struct allocator_module));
	struct allocator_module module;
	size_t *files, file_count;
	int err = 0;

	file_count = executable_files(maps, &files);
	for (size_t i = 0; i < file_count; i++) {
		int result = examine(pid, &maps->entries[files[i]], interpreter, &module);

		if (result > 0)
			g_array_append_val(found, module);
		else if (result < 0 && result != -ENOEXEC && !err)
			err = result;
	}
	g_free(files);
	*count = found->len;
	*modules = (struct allocator_module *)(void *)g_array_free(found, FALSE);
	/* A file that cannot be opened matters only where it may have been the allocator. */
	return *count ? 0 : err;
}

void allocator_modules_free(struct allocator_module *modules, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (modules[i].fd >= 0)
			close(modules[i].fd);
		g_free(modules[i].path);
	}
	g_free(modules);
}
