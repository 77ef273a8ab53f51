// SPDX-License-Identifier: GPL-2.0
#include "symbols/dwfl_checks.h"

#include <string.h>
#include <sys/stat.h>

#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <glib.h>
#include <lzma.h>

/* MiniDebugInfo of the largest distribution libraries unpacks to a few MiB. */
#define DEBUGDATA_MAX (128ULL * 1024 * 1024)
#define CHUNK_BYTES 65536U
/* Words of a chain of .gnu.hash; those of real files have a few. */
#define CHAIN_MAX 4096

static bool unpacks_small(const void *data, size_t size)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	uint8_t *scratch;
	lzma_ret result;
	bool small;

	if (lzma_stream_decoder(&stream, DEBUGDATA_MAX, 0) != LZMA_OK)
		return false;
	scratch = g_malloc(CHUNK_BYTES);
	stream.next_in = data;
	stream.avail_in = size;
	do {
		stream.next_out = scratch;
		stream.avail_out = CHUNK_BYTES;
		result = lzma_code(&stream, LZMA_FINISH);
	} while (result == LZMA_OK && stream.total_out <= DEBUGDATA_MAX);
	/* What does not unpack to its end does libdwfl no harm. */
	small = result != LZMA_OK && result != LZMA_MEMLIMIT_ERROR;
	lzma_end(&stream);
	g_free(scratch);
	return small;
}

bool debugdata_is_small(Elf *elf)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return true;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || strcmp(name, ".gnu_debugdata"))
			continue;
		data = elf_rawdata(section, NULL);
		if (data && data->d_buf && !unpacks_small(data->d_buf, data->d_size))
			return false;
	}
	return true;
}

/* What find_dynsym() takes for the address of .gnu.hash: 0, which is one, where no entry has it. */
static uint64_t hash_address(Elf *elf, const GElf_Phdr *dynamic)
{
	Elf_Data *data =
		elf_getdata_rawchunk(elf, (int64_t)dynamic->p_offset, dynamic->p_filesz, ELF_T_DYN);
	uint64_t address = 0;
	GElf_Dyn entry;
	int i;

	for (i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++)
		if (entry.d_tag == DT_GNU_HASH)
			address = entry.d_un.d_ptr;
	return address;
}

/* Words that it would step through, from the last chain's first on, until one is the end of a chain. */
static bool chain_ends(Elf *elf, uint64_t offset)
{
	struct {
		uint32_t buckets;
		uint32_t first_symbol;
		uint32_t mask_words;
		uint32_t shift;
	} header;
	Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)offset, sizeof(header), ELF_T_WORD);
	uint64_t chain, left, size, i;
	uint32_t last;

	if (!data || !elf_rawfile(elf, &size))
		return true;
	memcpy(&header, data->d_buf, sizeof(header));
	if (header.first_symbol >= header.buckets)
		return true;
	/* It multiplies these as 64 and 32 bits; what then lies outside of the file it gives up. */
	offset += sizeof(header) +
		  (uint64_t)gelf_getclass(elf) * sizeof(uint32_t) * header.mask_words;
	chain = header.buckets * sizeof(uint32_t);
	data = elf_getdata_rawchunk(elf, (int64_t)offset, chain, ELF_T_WORD);
	if (!data)
		return true;
	last = header.first_symbol;
	for (i = 0; i < header.buckets; i++)
		last = MAX(last, ((const uint32_t *)data->d_buf)[i]);
	offset += chain + (uint64_t)(last - header.first_symbol) * sizeof(uint32_t);
	if (offset >= size)
		return true;
	left = MIN((size - offset) / sizeof(uint32_t), CHAIN_MAX);
	data = elf_getdata_rawchunk(elf, (int64_t)offset, left * sizeof(uint32_t), ELF_T_WORD);
	for (i = 0; data && i < left; i++)
		if (((const uint32_t *)data->d_buf)[i] & 1)
			return true;
	return left < CHAIN_MAX;
}

bool symbols_are_bounded(Elf *elf, uint64_t bias)
{
	GElf_Phdr segment, dynamic = {};
	uint64_t address;
	size_t count, i;

	if (elf_getphdrnum(elf, &count))
		return false;
	for (i = 0; i < count; i++) {
		if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_DYNAMIC)
			continue;
		/* There is one at most (System V ABI, "Program Header"). */
		if (dynamic.p_type)
			return false;
		dynamic = segment;
	}
	if (!dynamic.p_type)
		return true;
	address = hash_address(elf, &dynamic);
	/* It takes addresses as they are, and as moved; where segments overlap the first one. */
	for (i = 0; i < count; i++) {
		if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_LOAD)
			continue;
		if (address - segment.p_vaddr < segment.p_filesz &&
		    !chain_ends(elf, address - segment.p_vaddr + segment.p_offset))
			return false;
		if (bias && address - segment.p_vaddr - bias < segment.p_filesz &&
		    !chain_ends(elf, address - segment.p_vaddr - bias + segment.p_offset))
			return false;
	}
	return true;
}

bool alternative_is_regular(Dwarf *dwarf)
{
	const char *path;
	const void *bits;
	struct stat status;

	if (dwelf_dwarf_gnu_debugaltlink(dwarf, &path, &bits) <= 0)
		return true;
	return path[0] == '/' && (stat(path, &status) || S_ISREG(status.st_mode));
}
