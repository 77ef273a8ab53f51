// SPDX-License-Identifier: GPL-2.0
/* Finds the files of a process that define the malloc family, and where to probe them. */
#define _GNU_SOURCE 1 /* memmem */

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocators/allocator_kind.h"
#include "allocators/modules.h"
#include "symbols/image.h"

/* Results of one pass over a symbol table. */
struct scan {
	struct chosen_symbol found[FAMILY_MAX];
	enum allocator_kind kind; /* by symbols that only one allocator defines */
};

static void scan_table(const struct image *image, uint32_t section_type, const char *prefix,
		       struct scan *scan)
{
	size_t skip = strlen(prefix);
	struct symbol_table table;
	struct symbol symbol;

	memset(scan, 0, sizeof(*scan));
	if (!image_symbols(image, section_type, &table))
		return;
	for (size_t i = 0; i < table.count; i++) {
		if (!symbol_table_get(&table, i, &symbol) || !symbol.defined)
			continue;
		if (scan->kind == ALLOCATOR_UNKNOWN)
			scan->kind = allocator_kind_of_symbol(symbol.name);
		if (symbol.type != STT_FUNC || strncmp(symbol.name, prefix, skip))
			continue;
		for (size_t k = 0; k < family_count; k++)
			if (strcmp(symbol.name + skip, family_functions[k].name) == 0)
				symbol_choose(&scan->found[k], &symbol);
	}
}

/*
 * The prefix of an allocator that was built into this file beside the C library's: "je_",
 * "_rjem_", "mi_". Found by functions that only one allocator has.
 */
static bool find_prefix(const struct image *image, uint32_t section_type, char *prefix, size_t size,
			enum allocator_kind *kind)
{
	struct symbol_table table;
	struct symbol symbol;

	if (!image_symbols(image, section_type, &table))
		return false;
	for (size_t i = 0; i < table.count; i++)
		if (symbol_table_get(&table, i, &symbol) && symbol.defined &&
		    symbol.type == STT_FUNC && allocator_prefix(symbol.name, prefix, size, kind))
			return true;
	return false;
}

static bool is_c_library(enum allocator_kind kind)
{
	return kind == ALLOCATOR_GLIBC || kind == ALLOCATOR_MUSL;
}

static void place_point(const struct image *image, const struct family_function *function,
			uint64_t available, uint64_t size, struct probe_point *point)
{
	uint32_t arguments = function->arguments;
	uint8_t code[PLACEMENT_WINDOW];
	ssize_t got;

	point->arguments = arguments;
	available = MIN(available, sizeof(code));
	if (size)
		available = MIN(available, size);
	got = pread(image->fd, code, available, (off_t)point->symbol_offset);
	if (got < 0)
		got = 0;
	/*
	 * A return probe replaces the word that the stack pointer points to, so the stack pointer
	 * must not have moved. free returns nothing and needs none.
	 */
	if (!placement_find(code, (size_t)got, arguments, true, &point->place))
		return;
	if (point->fn == FN_FREE)
		placement_find(code, (size_t)got, arguments, false, &point->place);
	/*
	 * glibc's reallocarray first multiplies its arguments (mul, which overwrites rdx), then
	 * tests for overflow: at that jo the product, the requested size, is in rax.
	 */
	if (point->fn == FN_REALLOCARRAY &&
	    !placement_find(code, (size_t)got, PLACEMENT_RDI, true, &point->place)) {
		point->product = !strncmp(point->place.instruction, "jo ", 3);
		point->arguments = PLACEMENT_RDI;
		if (!point->product) {
			point->place.found = false;
			snprintf(point->place.refusal, sizeof(point->place.refusal),
				 "arguments are gone before any emulated instruction");
		}
	}
}

/* Whether it only jumps to a function that has a point, or through the PLT. */
static bool only_forwards(const struct image *image, const struct allocator_module *module,
			  uint64_t address, const struct placement *place)
{
	uint64_t target = address + (uint64_t)place->target, offset, available;

	if (!place->found || !place->forwards)
		return false;
	if (image_in_section(image, ".plt", target))
		return true;
	if (!image_code_offset(image, target, &offset, &available))
		return false;
	for (size_t i = 0; i < module->point_count; i++)
		if (module->points[i].symbol_offset == offset)
			return true;
	return false;
}

/*
 * One point for each address: the first of several names (glibc has aliases) is used. Operators
 * that only jump to malloc or free are left out, since they are seen there.
 */
static void add_points(const struct image *image, const struct scan *scan, const char *prefix,
		       bool operators, struct allocator_module *module)
{
	for (size_t k = 0; k < family_count; k++) {
		const struct family_function *function = &family_functions[k];
		struct probe_point *point = &module->points[module->point_count];
		uint64_t address = scan->found[k].value, offset, available;
		bool shared = false;

		if (module->point_count == FAMILY_MAX || !address ||
		    (function->is_operator && !operators) ||
		    !image_code_offset(image, address, &offset, &available))
			continue;
		for (size_t i = 0; i < module->point_count; i++)
			shared |= module->points[i].symbol_offset == offset;
		if (shared)
			continue;
		memset(point, 0, sizeof(*point));
		point->fn = function->fn;
		snprintf(point->symbol, sizeof(point->symbol), "%s%s", prefix, function->name);
		point->symbol_offset = offset;
		place_point(image, function, available, scan->found[k].size, point);
		if (function->is_operator && only_forwards(image, module, address, &point->place))
			module->forwarded++;
		else
			module->point_count++;
	}
}

/* Functions without a prefix, then those of an allocator built in under a prefix. */
static void find_points(const struct image *image, struct allocator_module *module)
{
	uint32_t section = image_symbol_section(image);
	enum allocator_kind kind;
	struct scan scan;
	char prefix[24];

	scan_table(image, section, "", &scan);
	module->kind = scan.kind;
	add_points(image, &scan, "", !is_c_library(scan.kind) && scan.found[0].value, module);
	if (module->kind != ALLOCATOR_UNKNOWN && !is_c_library(module->kind))
		return;
	if (module->point_count && !image->is_main)
		return;
	if (!find_prefix(image, SHT_DYNSYM, prefix, sizeof(prefix), &kind)) {
		section = SHT_SYMTAB;
		if (!find_prefix(image, SHT_SYMTAB, prefix, sizeof(prefix), &kind))
			return;
	} else {
		section = SHT_DYNSYM;
	}
	scan_table(image, section, prefix, &scan);
	if (!scan.found[0].value)
		return;
	module->kind = kind;
	module->linkage = LINKAGE_EMBEDDED;
	add_points(image, &scan, prefix, false, module);
}

/*
 * The mapping of the program interpreter, by AT_BASE (getauxval(3)): PT_INTERP's path would have to
 * be resolved in the process's root.
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

/* musl's interpreter is its C library; others have a malloc only for themselves, if any. */
static bool is_mere_loader(const struct image *image, const struct mapping *mapping,
			   const struct mapping *interpreter)
{
	bool is_loader = (interpreter && is_same_file(mapping, interpreter)) ||
			 g_str_has_prefix(image->soname, "ld-") ||
			 g_str_has_prefix(image->soname, "ld.so") ||
			 g_str_has_prefix(image->soname, "ld64.so");

	return is_loader && !allocator_is_musl(image, mapping->path) &&
	       !image_has_text(image, "musl libc", NULL, 1);
}

/* AT_STATX_DONT_SYNC: without asking the server of a network file system. */
static bool read_state(int fd, uint64_t *size, struct timespec *modified)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE | STATX_MTIME, &st))
		return false;
	*size = st.stx_size;
	modified->tv_sec = st.stx_mtime.tv_sec;
	modified->tv_nsec = st.stx_mtime.tv_nsec;
	return true;
}

bool allocator_module_is_rewritten(const struct allocator_module *module)
{
	struct timespec modified;
	uint64_t size;

	return !read_state(module->fd, &size, &modified) || size != module->size ||
	       modified.tv_sec != module->modified.tv_sec ||
	       modified.tv_nsec != module->modified.tv_nsec;
}

/* 1 and the module if the mapped file has an allocator; 0 if not; or -errno. */
static int examine(pid_t pid, const struct mapping *mapping, const struct mapping *interpreter,
		   struct allocator_module *module)
{
	struct image image;
	bool is_static;
	int err;

	memset(module, 0, sizeof(*module));
	module->fd = -1;
	err = image_open(pid, mapping, &image);
	if (err)
		goto out;
	/* First, so that writes from here on are noticed as changes. */
	if (!read_state(image.fd, &module->size, &module->modified)) {
		err = -EIO;
		goto out;
	}
	is_static = image.is_main && !image.has_interp;
	find_points(&image, module);
	if (is_mere_loader(&image, mapping, interpreter) ||
	    (module->point_count == 0 && !image.is_main))
		goto out;
	allocator_recognise(&image, mapping->path, module);
	if (module->point_count == 0 && module->kind == ALLOCATOR_UNKNOWN && !is_static)
		goto out;
	if (is_static)
		module->linkage = LINKAGE_STATIC;
	else if (image.is_main)
		module->linkage = LINKAGE_EMBEDDED;
	snprintf(module->soname, sizeof(module->soname), "%s", image.soname);
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
	/* A file that cannot be opened matters only if no allocator was found. */
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

/* Whether a word of LD_PRELOAD is this module: its path, its soname, or the same file. */
static bool is_word(pid_t pid, const struct allocator_module *module, const char *word)
{
	g_autofree char *name = g_path_get_basename(word);
	g_autofree char *path = NULL;
	struct stat status;

	if (strcmp(name, module->soname) == 0 || g_str_has_suffix(module->path, name))
		return true;
	if (!strchr(word, '/'))
		return false;
	path = g_strdup_printf("/proc/%d/%s%s", pid, *word == '/' ? "root" : "cwd/", word);
	return stat(path, &status) == 0 && status.st_ino == module->inode;
}

enum allocator_linkage allocator_linkage(pid_t pid, const struct allocator_module *module)
{
	g_autofree char *preload = proc_environment(pid, "LD_PRELOAD");
	enum allocator_linkage linkage = module->linkage;
	char **words;

	if (!preload || linkage != LINKAGE_DYNAMIC)
		return linkage;
	words = g_strsplit_set(preload, " :", -1); /* ld.so(8) */
	for (size_t i = 0; words[i]; i++)
		if (*words[i] && is_word(pid, module, words[i]))
			linkage = LINKAGE_PRELOADED;
	g_strfreev(words);
	return linkage;
}
