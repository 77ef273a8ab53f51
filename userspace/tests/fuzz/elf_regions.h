/* SPDX-License-Identifier: GPL-2.0 */
/*
 * elf_regions.h: what is parsed of a good ELF file: its headers, and sections by how their names
 * begin.
 */
#ifndef MEMTOLL_ELF_REGIONS_H
#define MEMTOLL_ELF_REGIONS_H

#include <elf.h>
#include <string.h>

#include "fuzz.h"

/* prefixes: separated by blanks. As fuzz_regions(). */
static inline size_t elf_regions(const uint8_t *data, size_t size, const char *prefixes,
				 struct fuzz_region *regions)
{
	const Elf64_Ehdr *header = (const void *)data;
	const Elf64_Shdr *sections = (const void *)(data + header->e_shoff);
	const char *names = (const char *)data + sections[header->e_shstrndx].sh_offset;
	size_t count = 0;
	unsigned int i;

	regions[count++] = (struct fuzz_region){ 0, sizeof(*header) };
	regions[count++] =
		(struct fuzz_region){ header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr) };
	regions[count++] =
		(struct fuzz_region){ header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr) };
	for (i = 0; i < header->e_shnum && count < FUZZ_REGIONS; i++) {
		const Elf64_Shdr *section = &sections[i];
		const char *prefix = prefixes;

		for (; section->sh_type != SHT_NOBITS && prefix; prefix = strchr(prefix + 1, ' ')) {
			size_t length;

			prefix += *prefix == ' ';
			length = strcspn(prefix, " ");
			if (section->sh_offset + section->sh_size <= size &&
			    !strncmp(names + section->sh_name, prefix, length)) {
				regions[count++] = (struct fuzz_region){ section->sh_offset,
									 section->sh_size };
				break;
			}
		}
	}
	return count;
}

#endif /* MEMTOLL_ELF_REGIONS_H */
