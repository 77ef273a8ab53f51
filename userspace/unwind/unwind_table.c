// SPDX-License-Identifier: GPL-2.0
/*
 * Finds .eh_frame in an ELF file (libelf), splits it into entries (libdw's dwarf_next_cfi) and runs
 * their programs (unwind_rules.c).
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpf/wire/pages.h"
#include "unwind/unwind_rules.h"
#include "unwind/unwind_table.h"

/* UNWIND_ROWS_MAX rows come from some 44 MiB: 5.3 bytes for each in libLLVM-14. */
#define FRAMES_MAX (64ull << 20)
#define SEGMENTS_MAX 1024

/* Common Information Entry, shared by FDEs. */
struct cie {
	uint64_t offset; /* in .eh_frame */
	bool is_usable;
	bool has_data; /* 'z': FDEs have augmentation data, after its length */
	struct unwind_start start;
};

/* Frame Description Entry: a function. */
struct fde {
	uint32_t start; /* relative to the table's base */
	uint32_t length;
	uint32_t program; /* offsets in .eh_frame */
	uint32_t program_end;
	uint32_t cie;
};

struct compiler {
	Elf *elf;
	GElf_Phdr *segments; /* PT_LOAD */
	size_t segment_count;
	GElf_Phdr frame_header; /* PT_GNU_EH_FRAME */
	Elf_Data *frames;
	uint64_t address; /* of .eh_frame */
	bool is_section;  /* frames ends with the section, not with the segment */
	struct cie *cies; /* ascending by offset */
	size_t cie_count;
	size_t cie_room;
	struct fde *fdes;
	size_t fde_count;
	size_t fde_room;
	struct unwind_table *table;
	size_t row_room;
	const struct fde *fde; /* its program is running */
	uint32_t fde_end;
	int err; /* of add_row() inside callbacks */
};

/* Room for one more element. Not a GArray: that aborts when memory is short. */
static int make_room(void *array, size_t count, size_t *room, size_t size)
{
	size_t wanted = *room ? *room * 2 : 256;
	void *old, *grown;

	if (count < *room)
		return 0;
	memcpy(&old, array, sizeof(old));
	grown = reallocarray(old, wanted, size);
	if (!grown)
		return -ENOMEM;
	memcpy(array, &grown, sizeof(grown));
	*room = wanted;
	return 0;
}

/* ---- the file ---- */

static const uint8_t *bytes_at(const struct compiler *compiler, uint64_t offset, size_t size)
{
	Elf_Data *data;

	if (offset > INT64_MAX)
		return NULL;
	data = elf_getdata_rawchunk(compiler->elf, (int64_t)offset, size, ELF_T_BYTE);
	return data && data->d_size == size ? data->d_buf : NULL;
}

/* libelf allocates memory for every section, whose number has 64 bits in the extended form. */
static bool is_acceptable(const void *start, size_t size)
{
	Elf64_Ehdr header;

	if (size < sizeof(header))
		return false;
	memcpy(&header, start, sizeof(header));
	return memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
	       header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
	       header.e_machine == EM_X86_64 &&
	       (header.e_type == ET_DYN || header.e_type == ET_EXEC) &&
	       (header.e_shnum != 0 || header.e_shoff == 0) && header.e_shnum < SHN_LORESERVE &&
	       header.e_phnum > 0 && header.e_phnum <= SEGMENTS_MAX &&
	       header.e_phentsize == sizeof(Elf64_Phdr);
}

static int read_segments(struct compiler *compiler)
{
	GElf_Phdr segment;
	size_t count;

	if (elf_getphdrnum(compiler->elf, &count) != 0 || count == 0 || count > SEGMENTS_MAX)
		return -EINVAL;
	compiler->segments = calloc(count, sizeof(*compiler->segments));
	if (!compiler->segments)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(compiler->elf, (int)i, &segment))
			return -EINVAL;
		if (segment.p_type == PT_LOAD)
			compiler->segments[compiler->segment_count++] = segment;
		else if (segment.p_type == PT_GNU_EH_FRAME)
			compiler->frame_header = segment;
	}
	if (compiler->segment_count == 0)
		return -EINVAL;
	compiler->table->base = compiler->segments[0].p_vaddr & ~(MEMTOLL_PAGE_SIZE - 1);
	return 0;
}

static const GElf_Phdr *segment_of(const struct compiler *compiler, uint64_t address,
				   uint32_t flags)
{
	for (size_t i = 0; i < compiler->segment_count; i++) {
		const GElf_Phdr *segment = &compiler->segments[i];

		if ((segment->p_flags & flags) == flags && address >= segment->p_vaddr &&
		    address - segment->p_vaddr < segment->p_filesz)
			return segment;
	}
	return NULL;
}

static bool is_frames_section(const struct compiler *compiler, const GElf_Shdr *names,
			      const GElf_Shdr *header)
{
	static const char wanted[] = ".eh_frame";
	const uint8_t *name;

	/* Debug files have the section without its contents. */
	if ((header->sh_type != SHT_PROGBITS && header->sh_type != SHT_X86_64_UNWIND) ||
	    !(header->sh_flags & SHF_ALLOC) || (header->sh_flags & SHF_COMPRESSED))
		return false;
	name = bytes_at(compiler, names->sh_offset + header->sh_name, sizeof(wanted));
	return name && memcmp(name, wanted, sizeof(wanted)) == 0;
}

static bool find_section(struct compiler *compiler, uint64_t *offset, uint64_t *size)
{
	GElf_Shdr names, header;
	Elf_Scn *section = NULL;
	size_t index;

	if (elf_getshdrstrndx(compiler->elf, &index) != 0 ||
	    !gelf_getshdr(elf_getscn(compiler->elf, index), &names) || names.sh_offset > INT64_MAX)
		return false;
	while ((section = elf_nextscn(compiler->elf, section))) {
		if (!gelf_getshdr(section, &header) ||
		    !is_frames_section(compiler, &names, &header))
			continue;
		*offset = header.sh_offset;
		*size = header.sh_size;
		compiler->address = header.sh_addr;
		compiler->is_section = true;
		return true;
	}
	return false;
}

/*
 * Files without section headers: .eh_frame_hdr points to it (Linux Standard Base 5, 10.6.2),
 * without its size; it ends at the terminator, or with the segment.
 */
static bool find_by_header(struct compiler *compiler, uint64_t *offset, uint64_t *size)
{
	struct unwind_program pointer = { 0 };
	const GElf_Phdr *segment;
	const uint8_t *header;
	size_t length = 12;

	if (compiler->frame_header.p_filesz < length)
		return false;
	header = bytes_at(compiler, compiler->frame_header.p_offset, length);
	if (!header || header[0] != 1)
		return false;
	pointer.at = header + 4;
	pointer.end = header + length;
	pointer.address = compiler->frame_header.p_vaddr + 4;
	if (!unwind_pointer_read(&pointer, header[1], &compiler->address))
		return false;
	segment = segment_of(compiler, compiler->address, 0);
	if (!segment || segment->p_offset > INT64_MAX - segment->p_filesz)
		return false;
	*offset = compiler->address - segment->p_vaddr + segment->p_offset;
	*size = segment->p_filesz - (compiler->address - segment->p_vaddr);
	if (*size > FRAMES_MAX)
		*size = FRAMES_MAX;
	return true;
}

static int read_frames(struct compiler *compiler)
{
	uint64_t offset, size;

	if (!find_section(compiler, &offset, &size) && !find_by_header(compiler, &offset, &size))
		return -ENOENT;
	if (size == 0)
		return -ENOENT;
	if (size > FRAMES_MAX)
		return -E2BIG;
	if (offset > INT64_MAX)
		return -EINVAL;
	compiler->frames = elf_getdata_rawchunk(compiler->elf, (int64_t)offset, size, ELF_T_BYTE);
	return compiler->frames && compiler->frames->d_size == size ? 0 : -EINVAL;
}

/* ---- entries ---- */

static const uint8_t *frames_start(const struct compiler *compiler)
{
	return compiler->frames->d_buf;
}

static struct unwind_program program_at(const struct compiler *compiler, const uint8_t *at,
					const uint8_t *end)
{
	struct unwind_program program = { .at = at, .end = end };

	program.address = compiler->address + (uint64_t)(at - frames_start(compiler));
	return program;
}

/* The augmentation of a CIE (Linux Standard Base 5, 10.6.1.1.1). False: an unknown one. */
static bool read_augmentation(const struct compiler *compiler, const Dwarf_CIE *raw,
			      struct cie *cie)
{
	const char *letter = raw->augmentation;
	struct unwind_program data;
	uint64_t personality;
	uint8_t encoding;

	cie->start.encoding = DW_EH_PE_absptr;
	if (*letter == '\0')
		return true;
	if (*letter != 'z' || !raw->augmentation_data)
		return false;
	cie->has_data = true;
	data = program_at(compiler, raw->augmentation_data,
			  raw->augmentation_data + raw->augmentation_data_size);
	for (letter++; *letter; letter++) {
		if (*letter == 'S') {
			cie->start.is_signal = true;
			continue;
		}
		if (*letter == 'B') /* pointer authentication (arm64), without data */
			continue;
		if ((*letter != 'R' && *letter != 'P' && *letter != 'L') || data.at >= data.end)
			return false;
		encoding = *data.at++;
		data.address++;
		if (*letter == 'R')
			cie->start.encoding = encoding;
		else if (*letter == 'P' &&
			 !unwind_pointer_read(&data, encoding & ~DW_EH_PE_indirect, &personality))
			return false;
	}
	return true;
}

static int add_cie(struct compiler *compiler, uint64_t offset, const Dwarf_CIE *raw)
{
	struct cie cie = { .offset = offset };
	int err;

	cie.start.code_factor = raw->code_alignment_factor;
	cie.start.data_factor = raw->data_alignment_factor;
	/* The return address always has column 16 on x86-64. */
	cie.is_usable = raw->return_address_register == 16 &&
			read_augmentation(compiler, raw, &cie) &&
			unwind_start_run(program_at(compiler, raw->initial_instructions,
						    raw->initial_instructions_end),
					 &cie.start);
	err = make_room(&compiler->cies, compiler->cie_count, &compiler->cie_room, sizeof(cie));
	if (err)
		return err;
	compiler->cies[compiler->cie_count++] = cie;
	return 0;
}

/*
 * The CIE at an offset, among those already read: a CIE comes before its FDEs. Not read from the
 * offset itself: by pointing into the middle of entries a hostile file could give each FDE a CIE as
 * long as the section.
 */
static const struct cie *find_cie(const struct compiler *compiler, uint64_t offset)
{
	size_t low = 0, high = compiler->cie_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compiler->cies[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || compiler->cies[low - 1].offset != offset ||
	    !compiler->cies[low - 1].is_usable)
		return NULL;
	return &compiler->cies[low - 1];
}

/* Extent and program of the function. False: broken, or not in this file's code. */
static bool read_fde(const struct compiler *compiler, const Dwarf_FDE *raw, const struct cie *cie,
		     struct fde *fde)
{
	struct unwind_program program = program_at(compiler, raw->start, raw->end);
	uint64_t base = compiler->table->base, start, length, data_size;
	const GElf_Phdr *segment;

	/* The length is encoded as the address is, but neither relative nor signed. */
	if (!unwind_pointer_read(&program, cie->start.encoding, &start) ||
	    !unwind_pointer_read(&program, cie->start.encoding & 0x07, &length))
		return false;
	if (cie->has_data) {
		if (!unwind_uleb_read(&program, &data_size) ||
		    data_size > (uint64_t)(program.end - program.at))
			return false;
		program.at += data_size;
	}
	segment = segment_of(compiler, start, PF_X);
	if (!segment || length == 0 || length > segment->p_filesz - (start - segment->p_vaddr))
		return false;
	/* pc ~0 is padding in the BPF maps. */
	if (start < base || start - base >= UINT32_MAX || length >= UINT32_MAX - (start - base))
		return false;
	fde->start = (uint32_t)(start - base);
	fde->length = (uint32_t)length;
	fde->program = (uint32_t)(program.at - frames_start(compiler));
	fde->program_end = (uint32_t)(program.end - frames_start(compiler));
	fde->cie = (uint32_t)(cie - compiler->cies);
	return true;
}

static int add_fde(struct compiler *compiler, const Dwarf_FDE *raw)
{
	const struct cie *cie = find_cie(compiler, raw->CIE_pointer);
	struct fde fde;
	int err;

	if (!cie || !read_fde(compiler, raw, cie, &fde)) {
		compiler->table->skipped++;
		return 0;
	}
	err = make_room(&compiler->fdes, compiler->fde_count, &compiler->fde_room, sizeof(fde));
	if (err)
		return err;
	compiler->fdes[compiler->fde_count++] = fde;
	return 0;
}

static int read_entries(struct compiler *compiler)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(compiler->elf, NULL);
	size_t size = compiler->frames->d_size;
	Dwarf_Off offset = 0, next;
	Dwarf_CFI_Entry entry;
	int err = 0;

	for (; !err && offset + sizeof(uint32_t) <= size; offset = next) {
		uint32_t length;
		int result;

		memcpy(&length, frames_start(compiler) + offset, sizeof(length));
		if (length == 0 && !compiler->is_section)
			break;
		/* A terminator that the linker left in the middle. */
		next = offset + sizeof(length);
		if (length == 0)
			continue;
		next = offset;
		result = dwarf_next_cfi(ident, compiler->frames, true, offset, &next, &entry);
		if (result != 0)
			compiler->table->skipped++;
		else if (dwarf_cfi_cie_p(&entry))
			err = add_cie(compiler, offset, &entry.cie);
		else
			err = add_fde(compiler, &entry.fde);
		if (result > 0 || next <= offset)
			break;
	}
	return err;
}

/* ---- rows ---- */

/* pc must not descend. */
static int add_row(struct compiler *compiler, uint32_t pc, uint32_t rule)
{
	struct unwind_table *table = compiler->table;
	int err;

	if (table->count > 0 && table->rows[table->count - 1].pc == pc)
		table->count--;
	if (table->count > 0 && table->rows[table->count - 1].rule == rule)
		return 0;
	if (table->count == UNWIND_ROWS_MAX)
		return -E2BIG;
	err = make_room(&table->rows, table->count, &compiler->row_room, sizeof(*table->rows));
	if (err)
		return err;
	table->rows[table->count].pc = pc;
	table->rows[table->count].rule = rule;
	table->count++;
	return 0;
}

static bool add_rule(void *argument, uint64_t offset, uint32_t rule)
{
	struct compiler *compiler = argument;

	/* Beyond fde_end another function begins. The cast is safe: functions are below 4 GiB. */
	if (offset < compiler->fde_end - compiler->fde->start)
		compiler->err = add_row(compiler, compiler->fde->start + (uint32_t)offset, rule);
	return compiler->err == 0;
}

static int run_fde(struct compiler *compiler)
{
	struct unwind_table *table = compiler->table;
	const struct fde *fde = compiler->fde;
	const uint8_t *frames = frames_start(compiler);
	struct unwind_program program =
		program_at(compiler, frames + fde->program, frames + fde->program_end);
	size_t count = table->count;
	struct memtoll_unwind_row last = { 0 };

	if (count > 0)
		last = table->rows[count - 1];
	if (unwind_program_run(program, &compiler->cies[fde->cie].start, table->base + fde->start,
			       compiler->fde_end - fde->start, add_rule, compiler))
		return 0;
	if (compiler->err)
		return compiler->err;
	/* Trust no row of a broken program; its first one may have replaced the last of before. */
	table->skipped++;
	table->count = count;
	if (count > 0)
		table->rows[count - 1] = last;
	return add_row(compiler, fde->start, CFA_STOP);
}

/* By start; of equal starts the later entry in the file comes last, and wins. */
static int compare_fdes(const void *first, const void *second)
{
	const struct fde *a = first, *b = second;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->program < b->program ? -1 : a->program > b->program;
}

static int run_fdes(struct compiler *compiler)
{
	size_t count = compiler->fde_count;
	int err = 0;

	if (count > 1)
		qsort(compiler->fdes, count, sizeof(*compiler->fdes), compare_fdes);
	for (size_t i = 0; !err && i < count; i++) {
		const struct fde *fde = &compiler->fdes[i];
		bool is_cut = i + 1 < count && fde[1].start - fde->start < fde->length;

		compiler->fde = fde;
		compiler->fde_end = is_cut ? fde[1].start : fde->start + fde->length;
		if (compiler->fde_end == fde->start)
			continue;
		err = run_fde(compiler);
		/* Code without CFI must not inherit the rule of the function before it. */
		if (!err && (i + 1 == count || fde[1].start > compiler->fde_end))
			err = add_row(compiler, compiler->fde_end, CFA_STOP);
	}
	return err;
}

/* ---- interface ---- */

static int compile(Elf *elf, struct unwind_table *table)
{
	struct compiler compiler = { .elf = elf, .table = table };
	struct memtoll_unwind_row *fitting;
	int err;

	if (!elf || elf_kind(elf) != ELF_K_ELF)
		return -ENOEXEC;
	err = read_segments(&compiler);
	if (err)
		goto out;
	err = read_frames(&compiler);
	if (err)
		goto out;
	err = read_entries(&compiler);
	if (err)
		goto out;
	err = run_fdes(&compiler);
	if (err)
		goto out;
	err = table->skipped ? -EINVAL : -ENOENT;
	if (table->count == 0)
		goto out;
	fitting = reallocarray(table->rows, table->count, sizeof(*table->rows));
	if (fitting)
		table->rows = fitting;
	err = 0;
out:
	free(compiler.segments);
	free(compiler.cies);
	free(compiler.fdes);
	if (err)
		unwind_table_free(table);
	return err;
}

int unwind_table_compile(int fd, struct unwind_table *table)
{
	Elf64_Ehdr header;
	struct stat st;
	ssize_t got;
	Elf *elf;
	int err;

	memset(table, 0, sizeof(*table));
	if (fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	got = pread(fd, &header, sizeof(header), 0);
	if (got < 0)
		return -errno;
	if (!is_acceptable(&header, (size_t)got))
		return -ENOEXEC;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	err = compile(elf, table);
	elf_end(elf);
	return err;
}

int unwind_table_compile_memory(const void *image, size_t size, struct unwind_table *table)
{
	Elf *elf;
	int err;

	memset(table, 0, sizeof(*table));
	if (!is_acceptable(image, size))
		return -ENOEXEC;
	elf_version(EV_CURRENT);
	/* libelf does not write to the image unless asked to. */
	elf = elf_memory((char *)(uintptr_t)image, size);
	err = compile(elf, table);
	elf_end(elf);
	return err;
}

void unwind_table_free(struct unwind_table *table)
{
	free(table->rows);
	memset(table, 0, sizeof(*table));
}

const struct memtoll_unwind_row *unwind_table_find(const struct unwind_table *table, uint32_t pc)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->rows[middle].pc <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? &table->rows[low - 1] : NULL;
}
