// SPDX-License-Identifier: GPL-2.0
#include "hold/pin_hints.h"

#include <string.h>
#include <unistd.h>

#include "symbols/demangle.h"
#include "symbols/image.h"

#define PINS 20	   /* sizes that are looked at */
#define BLOCKS 16U /* of each */
#define NAMES 12   /* that are looked up: each reads a file's symbols */

struct hints {
	pid_t pid;
	const struct memory_view *view;
	const struct maps *maps;
	GHashTable *names; /* first word -> name, "" where it has none */
};

struct sample {
	uint64_t words[BLOCKS];
	unsigned int count;
};

/* False: it is not in memory, and stays so. */
static bool first_word(const struct hints *hints, uint64_t address, uint64_t *word)
{
	const struct memory_view *view = hints->view;
	uint8_t state;

	return view->pages(view->context, address & ~(VIEW_PAGE - 1), 1, &state) &&
	       state == PAGE_RESIDENT && view->read(view->context, address, word, sizeof(*word));
}

/* Of the file that has an address in its data, the code; its .bss is anonymous memory behind it. */
static const struct mapping *code_of(const struct maps *maps, uint64_t address)
{
	const struct mapping *data = maps_find(maps, address);
	size_t i;

	if (data && !data->inode && data > maps->entries && data[-1].end == data->start)
		data--;
	if (!data || !data->inode)
		return NULL;
	for (i = 0; i < maps->count; i++)
		if (maps->entries[i].exec && is_same_file(&maps->entries[i], data))
			return &maps->entries[i];
	return NULL;
}

/* The object that covers an address of the file. */
static bool find_object(const struct image *image, uint32_t section, uint64_t address,
			char name[HINT_MAX])
{
	struct symbol_table table;
	struct symbol symbol;
	size_t i;

	if (!image_symbols(image, section, &table))
		return false;
	for (i = 0; i < table.count; i++) {
		if (!symbol_table_get(&table, i, &symbol) || !symbol.defined ||
		    symbol.type != STT_OBJECT || address < symbol.raw.st_value ||
		    address - symbol.raw.st_value >= symbol.raw.st_size)
			continue;
		demangle(symbol.name, name, HINT_MAX);
		return true;
	}
	return false;
}

/* A string in the file, by its address there. */
static bool read_string(const struct image *image, uint64_t address, char text[HINT_MAX])
{
	size_t i;

	for (i = 0; i < image->segment_count; i++) {
		const GElf_Phdr *segment = &image->segments[i];
		uint64_t at = address - segment->p_vaddr, size;

		if (segment->p_type != PT_LOAD || address < segment->p_vaddr ||
		    at >= segment->p_filesz)
			continue;
		size = MIN(segment->p_filesz - at, HINT_MAX - 1U);
		memset(text, 0, HINT_MAX);
		return pread(image->fd, text, size, (off_t)(segment->p_offset + at)) ==
			       (ssize_t)size &&
		       memchr(text, '\0', size);
	}
	return false;
}

/*
 * Where the names are stripped: before a vtable's functions is a pointer to the class's type_info,
 * whose second word is the class's name as the linker has it (Itanium C++ ABI, 2.5.2 and 2.9).
 */
static bool find_class(const struct hints *hints, const struct image *image, uint64_t bias,
		       uint64_t word, char name[HINT_MAX])
{
	char text[HINT_MAX], linker_name[HINT_MAX + 4], readable[DEMANGLE_MAX + 1];
	uint64_t type, function, place;
	size_t i;

	if (!first_word(hints, word - 8, &type) || !first_word(hints, type, &function) ||
	    !maps_find(hints->maps, function) || !first_word(hints, type + 8, &place) ||
	    !read_string(image, place - bias, text))
		return false;
	for (i = 0; text[i]; i++)
		if (!g_ascii_isalnum(text[i]) && text[i] != '_' && text[i] != '*')
			return false;
	g_snprintf(linker_name, sizeof(linker_name), "_ZTV%s", text + (*text == '*'));
	demangle(linker_name, readable, sizeof(readable));
	if (!i || g_str_has_prefix(readable, "_ZTV"))
		return false;
	g_strlcpy(name, readable, HINT_MAX);
	return true;
}

static void look_up(const struct hints *hints, uint64_t word, char name[HINT_MAX])
{
	const struct mapping *code = code_of(hints->maps, word);
	struct image image;
	uint64_t bias;

	*name = '\0';
	if (!code)
		return;
	if (!image_open(hints->pid, code, &image) && image_bias(&image, code, &bias) &&
	    !find_object(&image, SHT_DYNSYM, word - bias, name) &&
	    !find_object(&image, SHT_SYMTAB, word - bias, name))
		find_class(hints, &image, bias, word, name);
	image_close(&image);
}

static void name_of(struct hints *hints, uint64_t word, char name[HINT_MAX])
{
	const char *known = g_hash_table_lookup(hints->names, &word);

	if (!known && g_hash_table_size(hints->names) < NAMES) {
		look_up(hints, word, name);
		g_hash_table_insert(hints->names, g_memdup2(&word, sizeof(word)), g_strdup(name));
		return;
	}
	g_strlcpy(name, known ? known : "", HINT_MAX);
}

/* The word that half of them or more are; false: none. */
static bool most_of(const struct sample *sample, uint64_t *word)
{
	unsigned int i, k;

	for (i = 0; i < sample->count; i++) {
		unsigned int same = 0;

		for (k = 0; k < sample->count; k++)
			same += sample->words[k] == sample->words[i];
		*word = sample->words[i];
		if (2 * same >= sample->count)
			return true;
	}
	return false;
}

/* Evenly over the heap: every so many of those of a size. */
static void take_samples(const struct hints *hints, const struct heap_sum *sum,
			 struct sample samples[PINS], guint pins)
{
	const GArray *blocks = sum->pinning.blocks;
	const guint step = MAX(blocks->len / (BLOCKS * PINS * 4), 1);
	guint i, k;

	for (i = 0; i < blocks->len; i += step) {
		const struct pinning_block *block = &g_array_index(blocks, struct pinning_block, i);

		for (k = 0; k < pins; k++)
			if (g_array_index(sum->pins, struct pin, k).size == block->size)
				break;
		if (k < pins && samples[k].count < BLOCKS &&
		    first_word(hints, block->address, &samples[k].words[samples[k].count]))
			samples[k].count++;
	}
}

void pin_hints_find(pid_t pid, const struct memory_view *view, const struct maps *maps,
		    struct heap_sum *sum)
{
	struct hints hints = { .pid = pid, .view = view, .maps = maps };
	struct sample samples[PINS] = { 0 };
	const guint pins = MIN(sum->pins->len, PINS);
	uint64_t word;
	guint i;

	hints.names = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	take_samples(&hints, sum, samples, pins);
	for (i = 0; i < pins; i++)
		if (most_of(&samples[i], &word))
			name_of(&hints, word, g_array_index(sum->pins, struct pin, i).hint);
	for (i = 0; i < MIN(sum->pinning.ends->len, PINS); i++) {
		struct pinning_end *end = &g_array_index(sum->pinning.ends, struct pinning_end, i);

		if (first_word(&hints, end->address, &word))
			name_of(&hints, word, end->hint);
	}
	g_hash_table_destroy(hints.names);
}
