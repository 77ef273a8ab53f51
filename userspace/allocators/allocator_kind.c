// SPDX-License-Identifier: GPL-2.0
#include "allocators/allocator_kind.h"

#include <elf.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *allocator_kind_name(enum allocator_kind kind)
{
	static const char *const names[] = {
		[ALLOCATOR_UNKNOWN] = "unknown",
		[ALLOCATOR_GLIBC] = "glibc",
		[ALLOCATOR_MUSL] = "musl",
		[ALLOCATOR_JEMALLOC] = "jemalloc",
		[ALLOCATOR_TCMALLOC] = "tcmalloc",
		[ALLOCATOR_MIMALLOC] = "mimalloc",
		[ALLOCATOR_GO] = "go",
	};

	return (size_t)kind < G_N_ELEMENTS(names) ? names[kind] : names[ALLOCATOR_UNKNOWN];
}

const char *allocator_linkage_name(enum allocator_linkage linkage)
{
	static const char *const names[] = { "dynamic", "static", "embedded", "preloaded" };

	return (size_t)linkage < G_N_ELEMENTS(names) ? names[linkage] : "";
}

enum allocator_kind allocator_kind_of_symbol(const char *name)
{
	/*
	 * The last two are local to glibc's malloc.c and to musl; static programs have no other
	 * sign of their C library.
	 */
	static const struct {
		const char *name;
		bool prefix;
		enum allocator_kind kind;
	} signs[] = {
		{ "mallctl", false, ALLOCATOR_JEMALLOC },
		{ "tc_malloc", false, ALLOCATOR_TCMALLOC },
		{ "MallocExtension_", true, ALLOCATOR_TCMALLOC },
		{ "_ZN15MallocExtension", true, ALLOCATOR_TCMALLOC },
		{ "_ZN8tcmalloc15MallocExtension", true, ALLOCATOR_TCMALLOC },
		{ "mi_malloc", false, ALLOCATOR_MIMALLOC },
		{ "_int_malloc", false, ALLOCATOR_GLIBC },
		{ "__libc_malloc_impl", false, ALLOCATOR_MUSL },
	};

	for (size_t i = 0; i < G_N_ELEMENTS(signs); i++)
		if (signs[i].prefix ? g_str_has_prefix(name, signs[i].name) :
				      strcmp(name, signs[i].name) == 0)
			return signs[i].kind;
	return ALLOCATOR_UNKNOWN;
}

bool allocator_prefix(const char *name, char *prefix, size_t size, enum allocator_kind *kind)
{
	static const struct {
		const char *suffix;
		const char *prefix; /* NULL: any */
		enum allocator_kind kind;
	} signs[] = {
		/* --with-jemalloc-prefix */
		{ "mallctl", NULL, ALLOCATOR_JEMALLOC },
		{ "malloc", "mi_", ALLOCATOR_MIMALLOC },
		{ "malloc", "tc_", ALLOCATOR_TCMALLOC },
	};

	for (size_t i = 0; i < G_N_ELEMENTS(signs); i++) {
		size_t length;

		if (!g_str_has_suffix(name, signs[i].suffix))
			continue;
		length = strlen(name) - strlen(signs[i].suffix);
		if (length == 0 || length >= size ||
		    (signs[i].prefix && (strlen(signs[i].prefix) != length ||
					 memcmp(name, signs[i].prefix, length) != 0)))
			continue;
		memcpy(prefix, name, length);
		prefix[length] = '\0';
		*kind = signs[i].kind;
		return true;
	}
	return false;
}

/* By the soname; musl may have none, so by the file's name as well. */
static bool is_named(const struct image *image, const char *path, const char *prefix)
{
	const char *slash = strrchr(path, '/');

	return g_str_has_prefix(image->soname, prefix) ||
	       g_str_has_prefix(slash ? slash + 1 : path, prefix);
}

bool allocator_is_musl(const struct image *image, const char *path)
{
	if (is_named(image, path, "libc.musl-") || is_named(image, path, "ld-musl"))
		return true;
	return is_named(image, path, "libc.so") && image_has_text(image, "musl libc", NULL, 1);
}

/* Texts of each allocator's error messages, without the first letter: see note_error_text(). */
static const struct {
	const char *rest;
	enum allocator_kind kind;
} error_texts[] = {
	{ "jemalloc>: ", ALLOCATOR_JEMALLOC },
	{ "cmalloc: ", ALLOCATOR_TCMALLOC },
	{ "imalloc: ", ALLOCATOR_MIMALLOC },
	{ "ree(): invalid pointer", ALLOCATOR_GLIBC },
};

/*
 * The first match in error_texts[] wins: a program may have glibc's messages as well as another's.
 * memtoll itself has them all, so the table leaves out their first letters.
 */
static bool note_error_text(const char *string, void *argument)
{
	size_t *best = argument;

	for (size_t i = 0; i < *best; i++)
		if (strchr("<tmf", string[0]) && g_str_has_prefix(string + 1, error_texts[i].rest))
			*best = i;
	return *best == 0;
}

static enum allocator_kind kind_of_strings(const struct image *image)
{
	size_t best = G_N_ELEMENTS(error_texts);

	image_each_string(image, note_error_text, &best);
	return best < G_N_ELEMENTS(error_texts) ? error_texts[best].kind : ALLOCATOR_UNKNOWN;
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

/* Length of a version such as "5.3.0" at the start of text, 0 without two dots. */
static size_t dotted_length(const char *text)
{
	size_t length = strspn(text, "0123456789.");
	int dots = 0;

	for (size_t i = 0; i < length; i++)
		dots += text[i] == '.';
	return dots == 2 && text[0] != '.' && text[length - 1] != '.' ? length : 0;
}

struct version_search {
	enum allocator_kind kind;
	char *version;
	size_t size;
};

/* "5.3.0-0-g54eaed1d8b...", "gperftools 2.10", "1.2.3" of musl. */
static bool note_version(const char *string, void *argument)
{
	static const char gperftools[] = "gperftools ";
	const struct version_search *search = argument;
	size_t length = dotted_length(string);

	if (search->kind == ALLOCATOR_TCMALLOC && g_str_has_prefix(string, gperftools)) {
		string += sizeof(gperftools) - 1;
		length = strlen(string);
	} else if (search->kind == ALLOCATOR_JEMALLOC ? !strstr(string + length, "-g") :
							string[length] != '\0') {
		return false;
	}
	if (!length || search->kind == ALLOCATOR_MIMALLOC)
		return false;
	snprintf(search->version, search->size, "%.*s", (int)length, string);
	return true;
}

/*
 * The version of mimalloc is only in the code of a function: `mov $209, %eax; ret` is 2.0.9
 * (MI_MALLOC_VERSION in mimalloc.h).
 */
static void read_mimalloc_version(const struct image *image, char *version, size_t size)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint64_t offset, available;
	struct symbol_table table;
	struct symbol symbol;
	uint8_t code[10] = {};
	const uint8_t *at = code;
	uint32_t number;

	if (!image_symbols(image, SHT_DYNSYM, &table) && !image_symbols(image, SHT_SYMTAB, &table))
		return;
	for (size_t i = 0; i < table.count; i++) {
		if (!symbol_table_get(&table, i, &symbol) || !symbol.defined ||
		    strcmp(symbol.name, "mi_version") != 0)
			continue;
		if (!image_code_offset(image, symbol.raw.st_value, &offset, &available) ||
		    available < sizeof(code) ||
		    pread(image->fd, code, sizeof(code), (off_t)offset) != sizeof(code))
			return;
		if (memcmp(at, endbr64, sizeof(endbr64)) == 0)
			at += sizeof(endbr64);
		memcpy(&number, at + 1, sizeof(number));
		if (at[0] == 0xb8 && at[5] == 0xc3 && number >= 100 && number < 1000)
			snprintf(version, size, "%u.%u.%u", number / 100, number / 10 % 10,
				 number % 10);
		return;
	}
}

/*
 * The build information of Go's linker (debug/buildinfo of Go): 14 bytes of magic, the pointer
 * size, flags; with flag 2, since Go 1.18, the version follows at byte 32 behind its length.
 */
static bool read_go(const struct image *image, char *version, size_t size)
{
	static const char magic[] = "\xff Go buildinf:";
	char bytes[128];
	size_t got = image_section_read(image, ".go.buildinfo", bytes, sizeof(bytes));
	size_t length;

	if (got < 33 || memcmp(bytes, magic, sizeof(magic) - 1) != 0)
		return false;
	length = (unsigned char)bytes[32];
	if ((bytes[15] & 2) && length < 64 && 33 + length <= got &&
	    g_str_has_prefix(bytes + 33, "go"))
		snprintf(version, size, "%.*s", (int)length - 2, bytes + 35);
	return true;
}

void allocator_recognise(const struct image *image, const char *path,
			 struct allocator_module *module)
{
	struct version_search search = { .version = module->version,
					 .size = sizeof(module->version) };
	bool is_static = image->is_main && !image->has_interp;

	if (module->kind == ALLOCATOR_UNKNOWN && image->is_main && !module->point_count &&
	    read_go(image, module->version, sizeof(module->version))) {
		module->kind = ALLOCATOR_GO;
		return;
	}
	if (module->kind == ALLOCATOR_UNKNOWN) {
		if (allocator_is_musl(image, path))
			module->kind = ALLOCATOR_MUSL;
		else if ((is_static || strcmp(image->soname, "libc.so.6") == 0) &&
			 image_has_text(image, "GNU C Library", NULL, 1))
			module->kind = ALLOCATOR_GLIBC;
		else
			module->kind = kind_of_strings(image);
	}
	search.kind = module->kind;
	if (module->kind == ALLOCATOR_GLIBC)
		read_glibc_version(image, module->version, sizeof(module->version));
	else if (module->kind == ALLOCATOR_MIMALLOC)
		read_mimalloc_version(image, module->version, sizeof(module->version));
	else if (module->kind == ALLOCATOR_JEMALLOC || module->kind == ALLOCATOR_TCMALLOC ||
		 (module->kind == ALLOCATOR_MUSL && !is_static))
		image_each_string(image, note_version, &search);
}
