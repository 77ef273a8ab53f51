// SPDX-License-Identifier: GPL-2.0
#include "symbols/go_module.h"

#include <gelf.h>
#include <string.h>

/* Kubernetes' binaries have 30 MiB; what is larger than this is not looked at. */
#define TABLE_MAX (512ULL << 20)
/* The description lies in the runtime's data, of which programs have some hundred KiB. */
#define DATA_MAX (64ULL << 20)
#define RELOCATIONS_MAX (4ULL << 20)
/* So many may point to the table; of honest programs one does. */
#define MODULES_MAX 4
/*
 * runtime.moduledata: the address of the table, that of its names, ...; then where the code begins
 * and, behind two words that 1.20 added and three that 1.27 did, what function data is relative to.
 */
#define MODULE_TABLE 0
#define MODULE_NAMES 8
#define MODULE_TEXT 176
#define MODULE_DATA_1_18 304
#define MODULE_DATA_1_20 320
#define MODULE_DATA_1_27 344

struct section {
	GElf_Shdr header;
	struct go_bytes bytes;
};

struct image {
	Elf *elf;
	struct section table;
	uint64_t text;	/* address of .text; 0: none */
	bool has_types; /* in a section of their own: from 1.27 on */
	GElf_Half machine;
};

static struct go_bytes bytes_of(Elf_Scn *section, const GElf_Shdr *header, uint64_t most)
{
	Elf_Data *data = NULL;

	if (header->sh_type != SHT_NOBITS && !(header->sh_flags & SHF_COMPRESSED) &&
	    header->sh_size <= most)
		data = elf_rawdata(section, NULL);
	if (!data || !data->d_buf)
		return (struct go_bytes){ NULL, 0 };
	return (struct go_bytes){ data->d_buf, data->d_size };
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && !strcmp(text + length - tail, end);
}

/* ".gopclntab", ".data.rel.ro.gopclntab" where the program is position-independent; so the others. */
static bool find_sections(struct image *image)
{
	Elf_Scn *section = NULL;
	size_t names = 0;
	GElf_Ehdr header;
	GElf_Shdr found;

	if (!gelf_getehdr(image->elf, &header) || elf_getshdrstrndx(image->elf, &names))
		return false;
	image->machine = header.e_machine;
	while ((section = elf_nextscn(image->elf, section))) {
		const char *name;

		if (!gelf_getshdr(section, &found))
			continue;
		name = elf_strptr(image->elf, names, found.sh_name);
		if (name && !strcmp(name, ".text"))
			image->text = found.sh_addr;
		if (name && ends_with(name, ".go.type"))
			image->has_types = true;
		if (name && ends_with(name, ".gopclntab")) {
			image->table.header = found;
			image->table.bytes = bytes_of(section, &found, TABLE_MAX);
		}
	}
	return image->table.bytes.size > 0;
}

static bool word_in(struct go_bytes bytes, uint64_t offset, uint64_t *value)
{
	if (bytes.size < 8 || offset > bytes.size - 8)
		return false;
	memcpy(value, bytes.data + offset, 8);
	return true;
}

/* ---- what is relocated ---- */

static bool is_relative(const struct image *image, const GElf_Rela *relocation)
{
	const uint64_t type = GELF_R_TYPE(relocation->r_info);

	return image->machine == EM_X86_64  ? type == R_X86_64_RELATIVE :
	       image->machine == EM_AARCH64 ? type == R_AARCH64_RELATIVE :
					      false;
}

/*
 * The first relative relocation after *index (from 0) that has this address, or this value; the
 * other one is ANY. False: there is no other.
 */
#define ANY UINT64_MAX

static bool next_relocation(const struct image *image, uint64_t address, uint64_t value,
			    size_t *index, GElf_Rela *relocation)
{
	Elf_Scn *section = NULL;
	size_t seen = 0;

	while ((section = elf_nextscn(image->elf, section))) {
		GElf_Shdr header;
		Elf_Data *data;
		size_t count, i;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA ||
		    header.sh_size > RELOCATIONS_MAX * sizeof(Elf64_Rela))
			continue;
		data = elf_getdata(section, NULL);
		count = data ? data->d_size / sizeof(Elf64_Rela) : 0;
		for (i = *index > seen ? *index - seen : 0; i < count; i++) {
			if (!gelf_getrela(data, (int)i, relocation) ||
			    !is_relative(image, relocation) ||
			    (address != ANY && relocation->r_offset != address) ||
			    (value != ANY && (uint64_t)relocation->r_addend != value))
				continue;
			*index = seen + i + 1;
			return true;
		}
		seen += count;
	}
	return false;
}

/* ---- the module ---- */

struct module {
	uint64_t text, data;
};

static uint64_t data_offset(const struct image *image, const struct go_table *table)
{
	if (image->has_types)
		return MODULE_DATA_1_27;
	return table->starts_lines ? MODULE_DATA_1_20 : MODULE_DATA_1_18;
}

/* Its words are in the file. */
static bool find_in_data(const struct image *image, const struct go_table *table, uint64_t names,
			 struct module *module)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(image->elf, section))) {
		struct go_bytes bytes;
		GElf_Shdr header;
		uint64_t at, first, second;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS ||
		    !(header.sh_flags & SHF_WRITE))
			continue;
		bytes = bytes_of(section, &header, DATA_MAX);
		for (at = 0; word_in(bytes, at + MODULE_NAMES, &second); at += 8)
			if (word_in(bytes, at + MODULE_TABLE, &first) &&
			    first == image->table.header.sh_addr && second == names &&
			    word_in(bytes, at + MODULE_TEXT, &module->text) &&
			    word_in(bytes, at + data_offset(image, table), &module->data))
				return true;
	}
	return false;
}

static bool relocated(const struct image *image, uint64_t address, uint64_t *value)
{
	GElf_Rela relocation;
	size_t index = 0;

	if (!next_relocation(image, address, ANY, &index, &relocation))
		return false;
	*value = (uint64_t)relocation.r_addend;
	return true;
}

/* The loader writes them. */
static bool find_relocated(const struct image *image, const struct go_table *table, uint64_t names,
			   struct module *module)
{
	GElf_Rela relocation;
	size_t index = 0, tried;
	uint64_t second;

	for (tried = 0; tried < MODULES_MAX; tried++) {
		uint64_t at;

		if (!next_relocation(image, ANY, image->table.header.sh_addr, &index, &relocation))
			break;
		at = relocation.r_offset;

		if (relocated(image, at + MODULE_NAMES, &second) && second == names &&
		    relocated(image, at + MODULE_TEXT, &module->text) &&
		    relocated(image, at + data_offset(image, table), &module->data))
			return true;
	}
	return false;
}

static struct go_bytes bytes_from(const struct image *image, uint64_t address)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(image->elf, section))) {
		struct go_bytes bytes;
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS ||
		    !(header.sh_flags & SHF_ALLOC) || address < header.sh_addr ||
		    address - header.sh_addr >= header.sh_size)
			continue;
		bytes = bytes_of(section, &header, TABLE_MAX);
		if (address - header.sh_addr >= bytes.size)
			break;
		bytes.data += address - header.sh_addr;
		bytes.size -= address - header.sh_addr;
		return bytes;
	}
	return (struct go_bytes){ NULL, 0 };
}

bool go_module_read(Elf *elf, struct go_table *table)
{
	struct image image = { .elf = elf };
	struct module module = { 0 };
	uint64_t names;

	if (!find_sections(&image) || !go_table_read(table, image.table.bytes, &table->text))
		return false;
	names = image.table.header.sh_addr + go_table_names_offset(image.table.bytes);
	if (find_in_data(&image, table, names, &module) ||
	    find_relocated(&image, table, names, &module)) {
		table->text = module.text;
		table->inlined = bytes_from(&image, module.data);
	} else if (!table->text) {
		table->text = image.text;
	}
	return table->text != 0;
}
