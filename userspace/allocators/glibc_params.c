// SPDX-License-Identifier: GPL-2.0
#include "allocators/glibc_params.h"

#include <glib.h>
#include <string.h>
#include <unistd.h>

#include "host/target_memory.h"
#include "symbols/debugfile.h"
#include "symbols/image.h"

/* Initial values of the struct's fields, and where to look for n_mmaps_max, which varies. */
#define INITIAL (128ULL << 10)
#define ARENA_TEST 8
#define MMAPS_MAX 65536
#define WORDS 16
#define DATA_MAX (16U << 20)

/* The struct's first fields, in order. */
static const enum threshold_name order[THRESHOLD_NAMES] = { THRESHOLD_TRIM, THRESHOLD_TOP_PAD,
							    THRESHOLD_MMAP };

static bool in_own_symbols(const struct image *image, uint64_t *value)
{
	struct symbol_table table;
	struct symbol symbol;
	unsigned int found = 0;
	size_t i;

	if (!image_symbols(image, SHT_SYMTAB, &table))
		return false;
	for (i = 0; i < table.count; i++) {
		if (!symbol_table_get(&table, i, &symbol) || !symbol.defined ||
		    symbol.type != STT_OBJECT || strcmp(symbol.name, "mp_") ||
		    symbol.raw.st_size < WORDS * 4)
			continue;
		*value = symbol.raw.st_value;
		found++;
	}
	return found == 1;
}

/* The same by a separate debug file. */
static bool in_symbols_of(Elf *elf, uint64_t *value)
{
	unsigned int found = 0;
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		Elf_Data *data;
		size_t i, count;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_SYMTAB ||
		    !header.sh_entsize)
			continue;
		data = elf_getdata(section, NULL);
		count = data ? data->d_size / header.sh_entsize : 0;
		for (i = 0; i < count && i <= INT32_MAX; i++) {
			const char *name;
			GElf_Sym symbol;

			if (!gelf_getsym(data, i, &symbol) ||
			    GELF_ST_TYPE(symbol.st_info) != STT_OBJECT ||
			    symbol.st_size < WORDS * 4)
				continue;
			name = elf_strptr(elf, header.sh_link, symbol.st_name);
			if (name && !strcmp(name, "mp_")) {
				*value = symbol.st_value;
				found++;
			}
		}
	}
	return found == 1;
}

static bool in_debug_file(const struct image *image, const char *path, uint64_t *value)
{
	char build_id[BUILD_ID_TEXT] = "";
	struct debugfile_query query = { .path = path, .build_id = build_id, .root = -1 };
	g_autofree char *found = NULL;
	bool known = false;
	Elf *elf;
	int fd;

	build_id_of(image->elf, build_id);
	if (!*build_id)
		return false;
	fd = debugfile_open(&query, &found);
	if (fd < 0)
		return false;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf)
		known = in_symbols_of(elf, value);
	elf_end(elf);
	close(fd);
	return known;
}

static bool is_initial(const uint64_t *words)
{
	const uint32_t *halves = (const uint32_t *)words;
	unsigned int i;

	if (words[0] != INITIAL || words[1] != INITIAL || words[2] != INITIAL ||
	    words[3] != ARENA_TEST)
		return false;
	for (i = 8; i < 2 * WORDS; i++)
		if (halves[i] == MMAPS_MAX)
			return true;
	return false;
}

static bool in_data(const struct image *image, uint64_t *value)
{
	unsigned int found = 0;
	size_t i, k;

	for (i = 0; i < image->segment_count; i++) {
		const GElf_Phdr *segment = &image->segments[i];
		g_autofree uint64_t *words = NULL;
		uint64_t size = segment->p_filesz & ~7ULL;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W) || size < WORDS * 8 ||
		    size > DATA_MAX || segment->p_vaddr % 8)
			continue;
		words = g_malloc(size);
		if (pread(image->fd, words, size, segment->p_offset) != (ssize_t)size)
			continue;
		for (k = 0; k + WORDS <= size / 8; k++)
			if (is_initial(words + k)) {
				*value = segment->p_vaddr + k * 8;
				found++;
			}
	}
	return found == 1;
}

bool malloc_par_find(pid_t pid, const struct mapping *mapping, uint64_t *address)
{
	struct image image;
	uint64_t value, bias;
	bool found = false;

	if (!image_open(pid, mapping, &image) && image_bias(&image, mapping, &bias) &&
	    (in_own_symbols(&image, &value) || in_data(&image, &value) ||
	     in_debug_file(&image, mapping->path, &value))) {
		*address = value + bias;
		found = true;
	}
	image_close(&image);
	return found;
}

/*
 * no_dyn_threshold, two fields behind n_mmaps_max: where that lies differs from version to version,
 * and it is found by its value, unless that has been set.
 */
static void read_pinned(const uint64_t *words, bool *pinned)
{
	const uint32_t *halves = (const uint32_t *)words;
	unsigned int i, found = 0, at = 0;

	for (i = 8; i + 2 < 2 * WORDS; i++)
		if (halves[i] == MMAPS_MAX) {
			found++;
			at = i + 2;
		}
	if (found == 1 && halves[at] <= 1)
		*pinned = halves[at];
}

bool malloc_par_read(pid_t pid, uint64_t address, uint64_t values[THRESHOLD_NAMES], bool *pinned)
{
	uint64_t words[WORDS];
	unsigned int i;

	if (target_memory_read(pid, address, words, sizeof(words)))
		return false;
	for (i = 0; i < THRESHOLD_NAMES; i++)
		values[order[i]] = words[i];
	read_pinned(words, pinned);
	return true;
}
