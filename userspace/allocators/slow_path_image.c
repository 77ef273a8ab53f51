// SPDX-License-Identifier: GPL-2.0
/* slow_path_image.c: what slow_paths_find() needs, out of an ELF file. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "allocators/slow_path.h"
#include "symbols/image.h"

#define CODE_MAX (64U << 20) /* libc.so.6 has 1.5 MiB, a static program may have more */

/* valloc and pvalloc are counted as malloc, but are no way to it. */
static const char *const names[FN_COUNT] = {
	[FN_MALLOC] = "malloc",
	[FN_CALLOC] = "calloc",
	[FN_REALLOC] = "realloc",
	[FN_FREE] = "free",
	[FN_POSIX_MEMALIGN] = "posix_memalign",
	[FN_ALIGNED_ALLOC] = "aligned_alloc",
	[FN_MEMALIGN] = "memalign",
};

bool slow_path_is_of(enum memtoll_fn fn, const char *symbol)
{
	return names[fn] && !strcmp(names[fn], symbol);
}

static bool find_extent(uint64_t address, uint64_t *start, uint64_t *end, void *argument)
{
	return image_function(argument, address, start, end);
}

static bool find_functions(const struct image *image, struct slow_library *library)
{
	struct chosen_symbol found[FN_COUNT] = {}, unmapping = {};
	struct symbol_table table;
	struct symbol symbol;

	if (!image_symbols(image, image_symbol_section(image), &table))
		return false;
	for (size_t i = 0; i < table.count; i++) {
		if (!symbol_table_get(&table, i, &symbol) || !symbol.defined ||
		    symbol.type != STT_FUNC)
			continue;
		for (size_t fn = 0; fn < FN_COUNT; fn++)
			if (names[fn] && !strcmp(symbol.name, names[fn]))
				symbol_choose(&found[fn], &symbol);
		if (!strcmp(symbol.name, "munmap"))
			symbol_choose(&unmapping, &symbol);
	}
	for (size_t fn = 0; fn < FN_COUNT; fn++)
		library->functions[fn] = found[fn].value;
	library->munmap = unmapping.value;
	return true;
}

/* The segment with malloc's code, to be freed, and where the writable one is. */
static void read_code(const struct image *image, struct slow_library *library, uint64_t *shift)
{
	uint64_t address = library->functions[FN_MALLOC];
	const GElf_Phdr *code = NULL;
	uint8_t *bytes;
	ssize_t got;

	for (size_t i = 0; i < image->segment_count; i++) {
		const GElf_Phdr *segment = &image->segments[i];

		if (segment->p_type != PT_LOAD || segment->p_memsz > UINT64_MAX - segment->p_vaddr)
			continue;
		if ((segment->p_flags & PF_X) && address >= segment->p_vaddr &&
		    address - segment->p_vaddr < segment->p_filesz)
			code = segment;
		if (segment->p_flags & PF_W) {
			library->data_start = segment->p_vaddr;
			library->data_end = segment->p_vaddr + segment->p_memsz;
		}
	}
	if (!code || code->p_filesz > CODE_MAX || code->p_offset > INT64_MAX - CODE_MAX)
		return;
	bytes = g_malloc(code->p_filesz);
	got = pread(image->fd, bytes, code->p_filesz, (off_t)code->p_offset);
	library->bytes = bytes;
	library->len = got < 0 ? 0 : (size_t)got;
	library->address = code->p_vaddr;
	*shift = code->p_offset - code->p_vaddr;
}

void slow_paths_read(const struct image *image, struct slow_paths *paths)
{
	struct slow_library library = { .extent = find_extent, .argument = (void *)image };
	uint64_t shift = 0;

	if (find_functions(image, &library))
		read_code(image, &library, &shift);
	slow_paths_find(&library, paths);
	paths->shift = shift;
	g_free((void *)library.bytes);
}

bool slow_paths_open(pid_t pid, int fd, struct slow_paths *paths)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct image image;
	bool opened = !image_open_file(pid, copy < 0 ? -errno : copy, &image);

	if (opened)
		slow_paths_read(&image, paths);
	image_close(&image);
	return opened;
}
