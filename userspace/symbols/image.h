/* SPDX-License-Identifier: GPL-2.0 */
/*
 * image.h: one mapped ELF file, read with libelf. The file belongs to the traced process, so it is
 * hostile: sizes are bounded before memory is allocated, and nothing is mapped, because a mapped
 * file that its owner truncates raises SIGBUS.
 */
#ifndef MEMTOLL_IMAGE_H
#define MEMTOLL_IMAGE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/proc.h"

struct image {
	int fd;
	Elf *elf;
	GElf_Ehdr header;
	GElf_Phdr *segments;
	size_t segment_count;
	bool has_interp;
	bool is_main; /* the process's executable */
	char *soname; /* "" where there is none */
};

/*
 * Open the x86-64 ELF file behind a mapping. 0, -ENOEXEC for any other file, or -errno of
 * mapping_open(). image_close() is allowed after an error too; to keep the descriptor, take it
 * and set fd to -1.
 */
int image_open(pid_t pid, const struct mapping *mapping, struct image *image);
/* The same for a file that is open, or for -errno; its descriptor becomes the image's. */
int image_open_file(pid_t pid, int fd, struct image *image);
void image_close(struct image *image);
/* Close the file; its segments are kept, for image_bias(). */
void image_drop_file(struct image *image);

/*
 * The distinct files (by device and inode) that maps hold executable: indexes into maps->entries,
 * of each file the first such mapping. Number, and the array in *indexes (freed by the caller).
 */
size_t executable_files(const struct maps *maps, size_t **indexes);

struct symbol_table {
	Elf_Data *symbols;
	Elf_Data *versions; /* NULL: not versioned */
	const char *names;
	size_t names_size; /* the last byte is 0 */
	size_t count;
	size_t section; /* index of the table's section */
};

/* The table of a section type, SHT_DYNSYM or SHT_SYMTAB. False where there is no usable one. */
bool image_symbols(const struct image *image, uint32_t section_type, struct symbol_table *table);

/*
 * The type of the table that names what the process calls: SHT_DYNSYM; in a statically linked
 * program SHT_SYMTAB if it was kept (a static PIE has a .dynsym too, without its hidden functions).
 */
uint32_t image_symbol_section(const struct image *image);

struct symbol {
	GElf_Sym raw;
	const char *name;
	unsigned char type; /* STT_* */
	bool defined;
	bool local;
	bool old_version; /* kept for old programs; new ones get the default version */
};

bool symbol_table_get(const struct symbol_table *table, size_t index, struct symbol *symbol);

/* The best symbol of a name. Zeros to begin with; value stays 0 where there is none. */
struct chosen_symbol {
	uint64_t value;
	uint64_t size;
	unsigned char type;
	int rank;
};

/*
 * Consider one more defined symbol of the name: the default version wins over old ones, both over
 * local symbols, and these count only where the name is unique: the linker makes the hidden
 * functions of a static PIE local, but a program may have a `static void free()` of its own.
 */
void symbol_choose(struct chosen_symbol *chosen, const struct symbol *symbol);

/* File offset of an address in code, and the bytes of that segment from there. */
bool image_code_offset(const struct image *image, uint64_t address, uint64_t *offset,
		       uint64_t *available);

/* Is [start, end) inside one executable segment? Addresses as in the file. */
bool image_is_code(const struct image *image, uint64_t start, uint64_t end);

/* What to add to the file's addresses to get the process's, for an executable mapping of it. */
bool image_bias(const struct image *image, const struct mapping *mapping, uint64_t *bias);

/*
 * Extent of the function around an address of the file: the FDE of .eh_frame that covers it;
 * where none does (hand-written assembly), from the address to the next symbol, 512 bytes at most.
 */
bool image_function(const struct image *image, uint64_t address, uint64_t *start, uint64_t *end);

/*
 * Look for text in .rodata; what follows it is copied to tail as a string, if tail is not NULL.
 */
bool image_has_text(const struct image *image, const char *text, char *tail, size_t tail_size);

/*
 * Call back for each NUL-terminated string of .rodata until true is returned; was it? Strings of
 * other bytes than printable ASCII, white space and ESC are left out.
 */
typedef bool (*image_string_fn)(const char *string, void *argument);
bool image_each_string(const struct image *image, image_string_fn callback, void *argument);

/* Bytes of a named section, at most size of them; 0 where there is none with contents. */
size_t image_section_read(const struct image *image, const char *name, void *bytes, size_t size);

/* Is the address (of the file) in a section whose name begins so? */
bool image_in_section(const struct image *image, const char *prefix, uint64_t address);

/* Call back for each RELA relocation of the image until false is returned. */
typedef bool (*image_rela_fn)(const GElf_Rela *rela, size_t symbol_section, void *argument);
void image_each_rela(const struct image *image, image_rela_fn callback, void *argument);

#endif /* MEMTOLL_IMAGE_H */
