// SPDX-License-Identifier: GPL-2.0
/* libelf reads the file, libdw splits its .eh_frame. */
#define _GNU_SOURCE 1 /* memmem */

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/image.h"

/* Larger sections are not read; those of C libraries are a thousandth of this. */
#define SECTION_MAX (256ull << 20)
#define SEGMENTS_MAX 1024

/* Limit of a function without a size: memset of musl has some 200 bytes. */
#define UNSIZED_FUNCTION_MAX 512

static Elf_Data *section_data(Elf_Scn *section, GElf_Shdr *header)
{
	if (!section || !gelf_getshdr(section, header) || header->sh_type == SHT_NOBITS ||
	    header->sh_size == 0 || header->sh_size > SECTION_MAX)
		return NULL;
	return elf_getdata(section, NULL);
}

/* A string of a string section. Not elf_strptr(): it would read a section of any size. */
static const char *string_at(const struct image *image, size_t section, uint64_t offset)
{
	GElf_Shdr header;
	Elf_Data *data = section_data(elf_getscn(image->elf, section), &header);

	if (!data || !data->d_buf || offset >= data->d_size ||
	    !memchr((const char *)data->d_buf + offset, '\0', data->d_size - offset))
		return NULL;
	return (const char *)data->d_buf + offset;
}

static Elf_Scn *section_named(const struct image *image, const char *wanted, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(image->elf, &names) != 0)
		return NULL;
	while ((section = elf_nextscn(image->elf, section))) {
		const char *name;

		if (!gelf_getshdr(section, header))
			continue;
		name = string_at(image, names, header->sh_name);
		if (name && strcmp(name, wanted) == 0)
			return section;
	}
	return NULL;
}

/*
 * Whether libelf may read this file. The number of sections is checked first: libelf allocates
 * memory for each, and in the extended form the number has 64 bits.
 */
static bool is_acceptable(int fd)
{
	Elf64_Ehdr header;

	if (pread(fd, &header, sizeof(header), 0) != sizeof(header))
		return false;
	return memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
	       header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
	       header.e_machine == EM_X86_64 &&
	       (header.e_type == ET_DYN || header.e_type == ET_EXEC) &&
	       (header.e_shnum != 0 || header.e_shoff == 0) && header.e_shnum < SHN_LORESERVE &&
	       header.e_phnum > 0 && header.e_phnum <= SEGMENTS_MAX &&
	       header.e_phentsize == sizeof(Elf64_Phdr);
}

static int read_segments(struct image *image)
{
	size_t count;

	if (!gelf_getehdr(image->elf, &image->header) || elf_getphdrnum(image->elf, &count) != 0 ||
	    count > SEGMENTS_MAX)
		return -ENOEXEC;
	image->segments = g_new0(GElf_Phdr, count);
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(image->elf, (int)i, &image->segments[i]))
			return -ENOEXEC;
		if (image->segments[i].p_type == PT_INTERP)
			image->has_interp = true;
	}
	image->segment_count = count;
	return 0;
}

static void read_soname(struct image *image)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	image->soname = g_strdup("");
	while ((section = elf_nextscn(image->elf, section))) {
		Elf_Data *data;
		GElf_Dyn entry;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNAMIC)
			continue;
		data = section_data(section, &header);
		for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL;
		     i++) {
			const char *name;

			if (entry.d_tag != DT_SONAME)
				continue;
			name = string_at(image, header.sh_link, entry.d_un.d_val);
			if (name) {
				g_free(image->soname);
				image->soname = g_strdup(name);
			}
			return;
		}
	}
}

static bool is_executable_of(pid_t pid, int fd)
{
	struct stat executable, opened;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return stat(path, &executable) == 0 && fstat(fd, &opened) == 0 &&
	       executable.st_dev == opened.st_dev && executable.st_ino == opened.st_ino;
}

int image_open_file(pid_t pid, int fd, struct image *image)
{
	int err;

	memset(image, 0, sizeof(*image));
	elf_version(EV_CURRENT);
	image->fd = fd;
	if (image->fd < 0)
		return image->fd;
	if (!is_acceptable(image->fd))
		return -ENOEXEC;
	image->elf = elf_begin(image->fd, ELF_C_READ, NULL);
	if (!image->elf || elf_kind(image->elf) != ELF_K_ELF)
		return -ENOEXEC;
	err = read_segments(image);
	if (err)
		return err;
	read_soname(image);
	image->is_main = is_executable_of(pid, image->fd);
	return 0;
}

int image_open(pid_t pid, const struct mapping *mapping, struct image *image)
{
	return image_open_file(pid, mapping_open(pid, mapping), image);
}

void image_drop_file(struct image *image)
{
	if (image->elf)
		elf_end(image->elf);
	if (image->fd >= 0)
		close(image->fd);
	image->elf = NULL;
	image->fd = -1;
}

void image_close(struct image *image)
{
	image_drop_file(image);
	g_free(image->segments);
	g_free(image->soname);
	memset(image, 0, sizeof(*image));
	image->fd = -1;
}

size_t executable_files(const struct maps *maps, size_t **indexes)
{
	GHashTable *seen = g_hash_table_new(mapping_file_hash, mapping_file_equal);
	GArray *found = g_array_new(FALSE, FALSE, sizeof(size_t));
	size_t count;

	for (size_t i = 0; i < maps->count; i++) {
		struct mapping *mapping = &maps->entries[i];

		if (mapping->exec && mapping->inode && g_hash_table_add(seen, mapping))
			g_array_append_val(found, i);
	}
	g_hash_table_destroy(seen);
	count = found->len;
	*indexes = (size_t *)(void *)g_array_free(found, FALSE);
	return count;
}

static Elf_Data *symbol_versions(const struct image *image, size_t symbols)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(image->elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_GNU_versym &&
		    header.sh_link == symbols)
			return section_data(section, &header);
	return NULL;
}

bool image_symbols(const struct image *image, uint32_t section_type, struct symbol_table *table)
{
	GElf_Shdr header, names_header;
	Elf_Scn *section = NULL;
	Elf_Data *names;

	memset(table, 0, sizeof(*table));
	while ((section = elf_nextscn(image->elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == section_type)
			break;
	table->symbols = section_data(section, &header);
	if (!table->symbols || table->symbols->d_type != ELF_T_SYM)
		return false;
	names = section_data(elf_getscn(image->elf, header.sh_link), &names_header);
	if (!names || !names->d_buf || names_header.sh_type != SHT_STRTAB)
		return false;
	table->names = names->d_buf;
	table->names_size = names->d_size;
	while (table->names_size > 0 && table->names[table->names_size - 1] != '\0')
		table->names_size--;
	table->count = table->symbols->d_size / sizeof(Elf64_Sym);
	table->section = elf_ndxscn(section);
	if (section_type == SHT_DYNSYM)
		table->versions = symbol_versions(image, table->section);
	return table->names_size > 0;
}

uint32_t image_symbol_section(const struct image *image)
{
	struct symbol_table table;

	if (image->is_main && !image->has_interp && image_symbols(image, SHT_SYMTAB, &table))
		return SHT_SYMTAB;
	return SHT_DYNSYM;
}

bool symbol_table_get(const struct symbol_table *table, size_t index, struct symbol *symbol)
{
	unsigned char binding;
	GElf_Versym version;

	if (index >= table->count || !gelf_getsym(table->symbols, (int)index, &symbol->raw) ||
	    symbol->raw.st_name >= table->names_size)
		return false;
	binding = GELF_ST_BIND(symbol->raw.st_info);
	symbol->name = table->names + symbol->raw.st_name;
	symbol->type = GELF_ST_TYPE(symbol->raw.st_info);
	symbol->defined = symbol->raw.st_shndx != SHN_UNDEF && symbol->raw.st_value != 0;
	symbol->local = binding == STB_LOCAL;
	/* Bit 15, "hidden" to the dynamic loader: name@VERSION, not name@@VERSION. */
	symbol->old_version = table->versions &&
			      gelf_getversym(table->versions, (int)index, &version) &&
			      (version & 0x8000);
	return true;
}

void symbol_choose(struct chosen_symbol *chosen, const struct symbol *symbol)
{
	int rank = symbol->local ? 1 : symbol->old_version ? 2 : 3;

	if (rank > chosen->rank) {
		chosen->rank = rank;
		chosen->value = symbol->raw.st_value;
		chosen->size = symbol->raw.st_size;
		chosen->type = symbol->type;
	} else if (rank == 1 && chosen->rank == 1 && symbol->raw.st_value != chosen->value) {
		chosen->value = 0;
	}
}

/* The executable segment, as far as it comes from the file, that holds address. */
static const GElf_Phdr *code_segment(const struct image *image, uint64_t address)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const GElf_Phdr *segment = &image->segments[i];

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) &&
		    address >= segment->p_vaddr && address - segment->p_vaddr < segment->p_filesz)
			return segment;
	}
	return NULL;
}

bool image_code_offset(const struct image *image, uint64_t address, uint64_t *offset,
		       uint64_t *available)
{
	const GElf_Phdr *segment = code_segment(image, address);

	if (!segment || segment->p_offset > INT64_MAX - segment->p_filesz)
		return false;
	*offset = address - segment->p_vaddr + segment->p_offset;
	*available = segment->p_filesz - (address - segment->p_vaddr);
	return true;
}

bool image_is_code(const struct image *image, uint64_t start, uint64_t end)
{
	const GElf_Phdr *segment = code_segment(image, start);

	return segment && start < end && end - segment->p_vaddr <= segment->p_filesz;
}

bool image_bias(const struct image *image, const struct mapping *mapping, uint64_t *bias)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const GElf_Phdr *segment = &image->segments[i];
		/* The kernel maps whole pages around the segment. */
		uint64_t first = segment->p_offset & ~4095ull;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) ||
		    mapping->offset < first ||
		    mapping->offset - first >= segment->p_filesz + (segment->p_offset - first))
			continue;
		*bias = mapping->start - mapping->offset + segment->p_offset - segment->p_vaddr;
		return true;
	}
	return false;
}

/* Size in bytes of a pointer of .eh_frame, 0 for encodings not used on x86-64. */
static size_t encoded_size(uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return 8;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		return 4;
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2:
		return 2;
	default:
		return 0;
	}
}

/* Encoding of the addresses in the FDEs of a CIE (Linux Standard Base 5, 10.6.1.1.1). */
static uint8_t fde_encoding(const Dwarf_CIE *cie)
{
	const uint8_t *data = cie->augmentation_data;
	size_t left = cie->augmentation_data_size;
	const char *letter = cie->augmentation;

	if (!letter || *letter != 'z')
		return letter && *letter == '\0' ? DW_EH_PE_absptr : DW_EH_PE_omit;
	for (letter++; *letter; letter++) {
		size_t used = *letter == 'S' || *letter == 'B' ? 0 : 1;

		if (left < used || !data)
			return DW_EH_PE_omit;
		if (*letter == 'R')
			return data[0];
		if (*letter == 'P' && (data[0] & 0x70) != DW_EH_PE_aligned && encoded_size(data[0]))
			used += encoded_size(data[0]);
		else if (*letter == 'P' || !strchr("LSB", *letter))
			return DW_EH_PE_omit;
		if (left < used)
			return DW_EH_PE_omit;
		data += used;
		left -= used;
	}
	return DW_EH_PE_absptr;
}

static uint64_t take_encoded(const uint8_t *from, uint8_t encoding)
{
	size_t size = encoded_size(encoding);
	uint64_t value = 0;

	memcpy(&value, from, size);
	if ((encoding & 0x08) && size < 8 && (value >> (size * 8 - 1)))
		value |= ~0ull << (size * 8);
	return value;
}

/* First address and length of an FDE's function. */
static bool fde_range(const Dwarf_FDE *fde, uint8_t encoding, const Elf_Data *data,
		      uint64_t section_address, uint64_t *start, uint64_t *length)
{
	size_t size = encoded_size(encoding);

	if (encoding == DW_EH_PE_omit || size == 0 || (size_t)(fde->end - fde->start) < 2 * size)
		return false;
	*start = take_encoded(fde->start, encoding);
	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		*start += section_address + (uint64_t)(fde->start - (const uint8_t *)data->d_buf);
	else if ((encoding & 0x70) != DW_EH_PE_absptr)
		return false;
	/* The length has the same size but is neither relative nor signed. */
	*length = take_encoded(fde->start + size, encoding & 0x07);
	return !(encoding & DW_EH_PE_indirect);
}

/* Walks all FDEs: searching .eh_frame_hdr would be faster, but it is optional and may be wrong. */
static bool function_from_frames(const struct image *image, uint64_t address, uint64_t *start,
				 uint64_t *end)
{
	const unsigned char *ident = image->header.e_ident;
	Dwarf_Off offset = 0, next, cie_offset = UINT64_MAX;
	uint8_t encoding = DW_EH_PE_omit;
	Dwarf_CFI_Entry entry, cie;
	GElf_Shdr header;
	Elf_Data *data;
	uint64_t length;
	int result;

	data = section_data(section_named(image, ".eh_frame", &header), &header);
	if (!data || !data->d_buf)
		return false;
	for (;; offset = next) {
		next = offset;
		result = dwarf_next_cfi(ident, data, true, offset, &next, &entry);
		if (result > 0 || next <= offset)
			return false;
		if (result < 0 || dwarf_cfi_cie_p(&entry))
			continue;
		if (entry.fde.CIE_pointer != cie_offset) {
			Dwarf_Off unused;

			cie_offset = entry.fde.CIE_pointer;
			encoding = DW_EH_PE_omit;
			if (dwarf_next_cfi(ident, data, true, cie_offset, &unused, &cie) == 0 &&
			    dwarf_cfi_cie_p(&cie))
				encoding = fde_encoding(&cie.cie);
		}
		if (!fde_range(&entry.fde, encoding, data, header.sh_addr, start, &length) ||
		    address < *start || address - *start >= length)
			continue;
		*end = *start + length;
		if (image_is_code(image, *start, *end))
			return true;
	}
}

static bool function_from_symbols(const struct image *image, uint64_t address, uint64_t *start,
				  uint64_t *end)
{
	struct symbol_table table;
	uint64_t offset, available;
	struct symbol symbol;

	if (!image_code_offset(image, address, &offset, &available))
		return false;
	*start = address;
	*end = address + MIN(available, UNSIZED_FUNCTION_MAX);
	if (!image_symbols(image, SHT_SYMTAB, &table) && !image_symbols(image, SHT_DYNSYM, &table))
		return true;
	for (size_t i = 0; i < table.count; i++)
		if (symbol_table_get(&table, i, &symbol) && symbol.raw.st_shndx != SHN_UNDEF &&
		    (symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC ||
		     symbol.type == STT_NOTYPE) &&
		    symbol.raw.st_value > address && symbol.raw.st_value < *end)
			*end = symbol.raw.st_value;
	return true;
}

bool image_function(const struct image *image, uint64_t address, uint64_t *start, uint64_t *end)
{
	return function_from_frames(image, address, start, end) ||
	       function_from_symbols(image, address, start, end);
}

bool image_has_text(const struct image *image, const char *text, char *tail, size_t tail_size)
{
	size_t length = strlen(text), keep = length + tail_size, held = 0;
	char buffer[65536];
	uint64_t offset, left;
	GElf_Shdr header;
	bool found = false;

	if (!section_named(image, ".rodata", &header) || header.sh_type == SHT_NOBITS)
		return false;
	offset = header.sh_offset;
	left = MIN(header.sh_size, SECTION_MAX);
	while (!found && left > 0 && offset <= INT64_MAX) {
		ssize_t got = pread(image->fd, buffer + held, MIN(left, sizeof(buffer) - held),
				    (off_t)offset);
		const char *match;

		if (got <= 0)
			return false;
		offset += (uint64_t)got;
		left -= (uint64_t)got;
		held += (size_t)got;
		match = memmem(buffer, held, text, length);
		/* A match near the end waits for what follows it, which the next read brings. */
		found = match && (left == 0 || (size_t)(buffer + held - match) >= keep);
		if (found && tail) {
			size_t behind = (size_t)(buffer + held - match) - length;
			size_t size = MIN(behind, tail_size - 1);

			memcpy(tail, match + length, size);
			tail[size] = '\0';
		}
		if (held > keep) {
			memmove(buffer, buffer + held - keep, keep);
			held = keep;
		}
	}
	return found;
}

/* Length of the string at text if it ends within size and is one, else 0. */
static size_t string_length(const char *text, size_t size)
{
	size_t length = 0;

	while (length < size && text[length] &&
	       (g_ascii_isprint(text[length]) || g_ascii_isspace(text[length]) ||
		text[length] == '\033'))
		length++;
	return length < size && !text[length] ? length : 0;
}

bool image_each_string(const struct image *image, image_string_fn callback, void *argument)
{
	GElf_Shdr header;
	Elf_Data *data = section_data(section_named(image, ".rodata", &header), &header);
	const char *text = data ? data->d_buf : NULL;
	size_t size = text ? data->d_size : 0, at = 0;

	while (at < size) {
		size_t length = string_length(text + at, size - at);

		if (length && callback(text + at, argument))
			return true;
		if (length)
			at += length + 1;
		else
			at += strnlen(text + at, size - at) + 1;
	}
	return false;
}

size_t image_section_read(const struct image *image, const char *name, void *bytes, size_t size)
{
	GElf_Shdr header;
	Elf_Data *data = section_data(section_named(image, name, &header), &header);

	if (!data || !data->d_buf)
		return 0;
	size = MIN(size, data->d_size);
	memcpy(bytes, data->d_buf, size);
	return size;
}

bool image_in_section(const struct image *image, const char *prefix, uint64_t address)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(image->elf, &names) != 0)
		return false;
	while ((section = elf_nextscn(image->elf, section))) {
		const char *name;

		if (!gelf_getshdr(section, &header) || address < header.sh_addr ||
		    address - header.sh_addr >= header.sh_size)
			continue;
		name = string_at(image, names, header.sh_name);
		if (name && g_str_has_prefix(name, prefix))
			return true;
	}
	return false;
}

void image_each_rela(const struct image *image, image_rela_fn callback, void *argument)
{
	uint64_t budget = SECTION_MAX; /* sections of a broken file may overlap */
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(image->elf, section))) {
		Elf_Data *data;
		GElf_Rela rela;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA)
			continue;
		if (header.sh_size > budget)
			return;
		budget -= header.sh_size;
		data = section_data(section, &header);
		for (int i = 0; data && gelf_getrela(data, i, &rela); i++)
			if (!callback(&rela, header.sh_link, argument))
				return;
	}
}
