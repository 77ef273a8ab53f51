// SPDX-License-Identifier: GPL-2.0
/*
 * memory_code.c: the code that memset and memcpy run in a process, and their like. Where they are
 * IFUNCs, the resolver's choice is only in the process's memory: in the slot of the defining file's
 * R_X86_64_IRELATIVE relocation for that resolver (glibc calls its own memset through one), or in
 * slots of other files bound to the symbol.
 */
#include <elf.h>
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "allocators/modules.h"
#include "host/target_memory.h"
#include "symbols/image.h"

/* In order of importance, should the caller's array be short. */
static const char *const names[] = { "memset", "bzero",	  "explicit_bzero", "memset_explicit",
				     "memcpy", "memmove", "mempcpy" };
#define NAMES G_N_ELEMENTS(names)
#define COPIES 4 /* the names from here on copy */

/*
 * Limits on files that define the names, and on places one is loaded at: dlmopen(3) allows 16
 * (DL_NNS). A hostile process may map a thousand copies of a C library, a thousand times each.
 */
#define DEFINERS_MAX 16
#define PLACES_MAX 16
#define IMPORTERS_MAX 1024

/* A file that defines some of the names. */
struct definer {
	struct image image;
	const struct mapping *mapping;
	struct chosen_symbol symbols[NAMES]; /* of an IFUNC, value is the resolver */
};

struct search {
	pid_t pid;
	const struct maps *maps;
	GPtrArray *definers;
	GArray *ranges;	    /* struct code_range */
	int err;	    /* first failure to open a file or to read memory */
	bool unresolved;    /* some IFUNC has no slot in its own file */
	unsigned int relas; /* relocations looked at */
	unsigned int slots; /* slots read: each takes a round trip to another thread */
};

/* A hostile file may have any number of either: enough for the largest real ones. */
#define RELAS_MAX (16U << 20)
#define SLOTS_MAX 4096U

/* False: the limit has been reached. */
static bool take_rela(struct search *search)
{
	return search->relas++ < RELAS_MAX && search->slots < SLOTS_MAX;
}

static size_t name_index(const char *name)
{
	size_t i = 0;

	while (i < NAMES && strcmp(name, names[i]) != 0)
		i++;
	return i;
}

static void note_failure(struct search *search, int err)
{
	if (err != -ENOEXEC && !search->err)
		search->err = err;
}

/* Find those of the names that the table defines; false if there are none. */
static bool find_symbols(struct definer *definer, uint32_t section_type)
{
	struct symbol_table table;
	struct symbol symbol;
	bool any = false;

	if (!image_symbols(&definer->image, section_type, &table))
		return false;
	for (size_t i = 0; i < table.count; i++) {
		size_t n;

		if (!symbol_table_get(&table, i, &symbol) || !symbol.defined ||
		    (symbol.type != STT_FUNC && symbol.type != STT_GNU_IFUNC))
			continue;
		n = name_index(symbol.name);
		if (n < NAMES)
			symbol_choose(&definer->symbols[n], &symbol);
	}
	for (size_t n = 0; n < NAMES; n++)
		any |= definer->symbols[n].value != 0;
	return any;
}

static void free_definer(gpointer pointer)
{
	struct definer *definer = pointer;

	image_close(&definer->image);
	g_free(definer);
}

static void find_definers(struct search *search, const size_t *files, size_t count)
{
	for (size_t i = 0; i < count && search->definers->len < DEFINERS_MAX; i++) {
		struct definer *definer = g_new0(struct definer, 1);
		int err;

		definer->mapping = &search->maps->entries[files[i]];
		err = image_open(search->pid, definer->mapping, &definer->image);
		if (err)
			note_failure(search, err);
		else if (find_symbols(definer, image_symbol_section(&definer->image))) {
			g_ptr_array_add(search->definers, definer);
			continue;
		}
		free_definer(definer);
	}
}

/* Call for each address the file is loaded at: with dlmopen(3) there are several. */
static void each_bias(const struct search *search, const struct image *image,
		      const struct mapping *file, void (*callback)(uint64_t bias, void *argument),
		      void *argument)
{
	uint64_t bias, last = 0;
	unsigned int places = 0;

	for (size_t i = 0; i < search->maps->count && places < PLACES_MAX; i++) {
		const struct mapping *mapping = &search->maps->entries[i];

		if (!mapping->exec || !is_same_file(mapping, file) ||
		    !image_bias(image, mapping, &bias) || (places && bias == last))
			continue;
		places++;
		last = bias;
		callback(bias, argument);
	}
}

static bool read_slot(struct search *search, uint64_t address, uint64_t *value)
{
	int err = target_memory_read(search->pid, address, value, sizeof(*value));

	search->slots++;
	if (err && err != -EFAULT)
		note_failure(search, err);
	return !err;
}

static void add_range(struct search *search, size_t name, uint64_t start, uint64_t end)
{
	struct code_range range = { start, end, name >= COPIES };

	for (size_t i = 0; i < search->ranges->len; i++) {
		const struct code_range *known =
			&g_array_index(search->ranges, struct code_range, i);

		if (start >= known->start && end <= known->end)
			return;
	}
	g_array_append_val(search->ranges, range);
}

/* Take a slot's value if it points into the text of the definer loaded at bias. */
static bool take_target(struct search *search, const struct definer *definer, size_t name,
			uint64_t bias, uint64_t value)
{
	const struct mapping *mapping = maps_find(search->maps, value);
	uint64_t start, end;

	if (!mapping || !mapping->exec || !is_same_file(mapping, definer->mapping) ||
	    !image_function(&definer->image, value - bias, &start, &end))
		return false;
	add_range(search, name, start + bias, end + bias);
	return true;
}

/* Argument of the relocation walk: one name of one definer at one bias. */
struct resolution {
	struct search *search;
	const struct definer *definer;
	size_t name;
	uint64_t bias;
	bool resolved;
};

static bool on_irelative(const GElf_Rela *rela, size_t symbol_section, void *argument)
{
	struct resolution *resolution = argument;
	uint64_t value;

	(void)symbol_section;
	if (!take_rela(resolution->search))
		return false;
	if (GELF_R_TYPE(rela->r_info) == R_X86_64_IRELATIVE &&
	    (uint64_t)rela->r_addend == resolution->definer->symbols[resolution->name].value &&
	    read_slot(resolution->search, resolution->bias + rela->r_offset, &value) &&
	    take_target(resolution->search, resolution->definer, resolution->name, resolution->bias,
			value))
		resolution->resolved = true;
	return !resolution->resolved;
}

static void resolve_at(uint64_t bias, void *argument)
{
	struct resolution *resolution = argument;
	const struct definer *definer = resolution->definer;
	uint64_t value = definer->symbols[resolution->name].value;
	uint64_t size = definer->symbols[resolution->name].size;
	uint64_t start = value, end = value + size;

	resolution->bias = bias;
	if (definer->symbols[resolution->name].type == STT_GNU_IFUNC) {
		resolution->resolved = false;
		image_each_rela(&definer->image, on_irelative, resolution);
		/* Copying that is not found is not worth looking through all files for. */
		resolution->search->unresolved |=
			!resolution->resolved && resolution->name < COPIES;
	} else if ((size && image_is_code(&definer->image, start, end)) ||
		   image_function(&definer->image, value, &start, &end)) {
		add_range(resolution->search, resolution->name, start + bias, end + bias);
	}
}

static void resolve_in_definers(struct search *search)
{
	for (size_t name = 0; name < NAMES; name++) {
		for (size_t i = 0; i < search->definers->len; i++) {
			struct definer *definer = g_ptr_array_index(search->definers, i);
			struct resolution resolution = { search, definer, name, 0, false };

			if (definer->symbols[name].value)
				each_bias(search, &definer->image, definer->mapping, resolve_at,
					  &resolution);
		}
	}
}

/* A file that may call memset of another one. */
struct importer {
	struct search *search;
	struct symbol_table table;
	uint64_t bias;
	struct image image;
};

/* Arguments of take_target(), for each_bias(). */
struct target {
	struct search *search;
	const struct definer *definer;
	size_t name;
	uint64_t value;
};

static void take_at(uint64_t bias, void *argument)
{
	const struct target *target = argument;

	if (image_is_code(&target->definer->image, target->value - bias, target->value - bias + 1))
		take_target(target->search, target->definer, target->name, bias, target->value);
}

static bool on_bound_slot(const GElf_Rela *rela, size_t symbol_section, void *argument)
{
	struct importer *importer = argument;
	struct search *search = importer->search;
	uint32_t type = (uint32_t)GELF_R_TYPE(rela->r_info);
	struct target target = { .search = search };
	struct symbol symbol;

	if (!take_rela(search))
		return false;
	if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) ||
	    symbol_section != importer->table.section ||
	    !symbol_table_get(&importer->table, GELF_R_SYM(rela->r_info), &symbol) ||
	    (target.name = name_index(symbol.name)) >= COPIES ||
	    !read_slot(search, importer->bias + rela->r_offset, &target.value))
		return true;
	for (size_t i = 0; i < search->definers->len; i++) {
		target.definer = g_ptr_array_index(search->definers, i);
		each_bias(search, &target.definer->image, target.definer->mapping, take_at,
			  &target);
	}
	return true;
}

static void resolve_importer_at(uint64_t bias, void *argument)
{
	struct importer *importer = argument;

	importer->bias = bias;
	image_each_rela(&importer->image, on_bound_slot, importer);
}

/* Slots bound to the names in any file. Lazily bound ones still point into their own PLT. */
static void resolve_in_importers(struct search *search, const size_t *files, size_t count)
{
	for (size_t i = 0; i < MIN(count, IMPORTERS_MAX); i++) {
		const struct mapping *mapping = &search->maps->entries[files[i]];
		struct importer importer = { .search = search };

		if (image_open(search->pid, mapping, &importer.image) == 0 &&
		    image_symbols(&importer.image, SHT_DYNSYM, &importer.table))
			each_bias(search, &importer.image, mapping, resolve_importer_at, &importer);
		image_close(&importer.image);
	}
}

ssize_t memory_code(pid_t pid, const struct maps *maps, struct code_range *ranges, size_t capacity)
{
	struct search search = { .pid = pid, .maps = maps };
	size_t *files, file_count, count;

	search.definers = g_ptr_array_new_with_free_func(free_definer);
	search.ranges = g_array_new(FALSE, FALSE, sizeof(struct code_range));
	file_count = executable_files(maps, &files);
	find_definers(&search, files, file_count);
	resolve_in_definers(&search);
	/* Resolvers return the same to every caller: other files only where that is not known. */
	if (search.unresolved)
		resolve_in_importers(&search, files, file_count);
	count = MIN(search.ranges->len, capacity);
	if (count)
		memcpy(ranges, search.ranges->data, count * sizeof(*ranges));
	g_free(files);
	g_array_free(search.ranges, TRUE);
	g_ptr_array_free(search.definers, TRUE);
	return count || !search.err ? (ssize_t)count : search.err;
}
