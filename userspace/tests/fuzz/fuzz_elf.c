// SPDX-License-Identifier: GPL-2.0
/* fuzz_elf.c: broken ELF files, with their symbols and DWARF, as a traced process may map them. */
#define _GNU_SOURCE 1

#include "fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "allocators/modules.h"
#include "allocators/slow_path.h"
#include "elf_regions.h"
#include "symbols/image.h"
#include "symbols/object.h"
#include "unwind/unwind_table.h"

/*
 * Names are looked up at so many places of the whole file, and as many of where small programs have
 * their code.
 */
#define PLACES 61
#define CODE 0x1000
#define CODE_STEP 67

static void name_places(const char *path, size_t size)
{
	struct object *object = object_new(open(path, O_RDONLY | O_CLOEXEC), path, -1, NULL);
	struct object_frame frames[OBJECT_FRAMES_MAX];
	uint64_t address;
	size_t i;

	if (strlen(object_build_id(object)) > 128)
		abort();
	for (i = 0; i < 2 * PLACES; i++) {
		uint64_t offset = i < PLACES ? i * size / PLACES : CODE + (i - PLACES) * CODE_STEP;

		if (object_address(object, offset, &address))
			object_frames_free(frames, object_find(object, address, frames));
	}
	object_free(object);
}

/* As the one file that a process maps, this one. */
static void find_allocator(const char *path, int fd, size_t size)
{
	struct allocator_module *modules = NULL;
	struct code_range ranges[16];
	struct slow_paths paths;
	struct image image;
	struct stat status;
	struct mapping mapping = { .read = true, .exec = true };
	struct maps maps = { .entries = &mapping, .count = 1 };
	size_t count = 0;
	void *code = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	if (code == MAP_FAILED || fstat(fd, &status))
		return;
	mapping.start = (uint64_t)(uintptr_t)code;
	mapping.end = mapping.start + (size + 4095) / 4096 * 4096;
	mapping.inode = status.st_ino;
	mapping.dev_major = major(status.st_dev);
	mapping.dev_minor = minor(status.st_dev);
	mapping.path = (char *)path;
	if (!allocator_modules_find(getpid(), &maps, &modules, &count))
		allocator_modules_free(modules, count);
	memory_code(getpid(), &maps, ranges, 16);
	if (!image_open(getpid(), &mapping, &image))
		slow_paths_read(&image, &paths);
	image_close(&image);
	munmap(code, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool guarded;
	const char *path = fuzz_file(data, size);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct unwind_table table;

	if (!guarded)
		object_guard_install();
	guarded = true;
	name_places(path, size);
	find_allocator(path, fd, size);
	if (!unwind_table_compile(fd, &table))
		unwind_table_free(&table);
	close(fd);
	return 0;
}

size_t fuzz_regions(const uint8_t *data, size_t size, struct fuzz_region *regions)
{
	return elf_regions(data, size, ".debug .symtab .strtab .dyn .rela .note .gnu .eh_frame",
			   regions);
}
