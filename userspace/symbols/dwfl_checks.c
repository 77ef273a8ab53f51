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
/* A file without sections that is not larger may be walked through, a word at a time. */
#define HASH_WALK_MAX (64 * 1024)

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

bool symbols_are_bounded(Elf *elf, int fd)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Phdr segment;
	struct stat status;
	size_t count, i, names;

	/* Without the sections' names libdwfl does not take the sections for any. */
	while (!elf_getshdrstrndx(elf, &names) && elf_getscn(elf, names) &&
	       (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_entsize > 0 &&
		    (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) &&
		    elf_getdata(section, NULL) && elf_strptr(elf, header.sh_link, 0))
			return true;
	if (!fstat(fd, &status) && status.st_size <= HASH_WALK_MAX)
		return true;
	if (elf_getphdrnum(elf, &count))
		return false;
	for (i = 0; i < count; i++)
		if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_DYNAMIC)
			return false;
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
