// SPDX-License-Identifier: GPL-2.0
/*
 * libraries: a process with many libraries, mapped as the loader maps them, but not run.
 *
 * usage: libraries FILE...
 * Then waits for a line or the end of standard input.
 */
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "workload.h"

#define PAGE 4096UL
#define DOWN(x) ((x) & ~(PAGE - 1))
#define UP(x) DOWN((x) + PAGE - 1)

static int protection(const Elf64_Phdr *segment)
{
	return (segment->p_flags & PF_R ? PROT_READ : 0) |
	       (segment->p_flags & PF_W ? PROT_WRITE : 0) |
	       (segment->p_flags & PF_X ? PROT_EXEC : 0);
}

static int map_segments(const char *file, int fd)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)file;
	const Elf64_Phdr *segments = (const Elf64_Phdr *)(file + header->e_phoff);
	unsigned long span = 0;
	char *base;

	for (int i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD)
			span = UP(segments[i].p_vaddr + segments[i].p_memsz);
	base = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return 1;
	for (int i = 0; i < header->e_phnum; i++) {
		const Elf64_Phdr *segment = &segments[i];
		unsigned long in_page = segment->p_vaddr - DOWN(segment->p_vaddr);

		if (segment->p_type != PT_LOAD || !segment->p_filesz)
			continue;
		if (mmap(base + DOWN(segment->p_vaddr), segment->p_filesz + in_page,
			 protection(segment), MAP_PRIVATE | MAP_FIXED, fd,
			 (off_t)DOWN(segment->p_offset)) == MAP_FAILED)
			return 1;
	}
	return 0;
}

static int map_library(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), failed = 1;
	struct stat st;
	char *file;

	if (fd < 0)
		return 1;
	if (!fstat(fd, &st) && st.st_size > (off_t)sizeof(Elf64_Ehdr)) {
		file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (file != MAP_FAILED) {
			failed = memcmp(file, ELFMAG, SELFMAG) || map_segments(file, fd);
			munmap(file, (size_t)st.st_size);
		}
	}
	close(fd);
	return failed;
}

int main(int argc, char **argv)
{
	alarm(WORKLOAD_LIFE_S);
	for (int i = 1; i < argc; i++)
		if (map_library(argv[i]))
			return 1;
	workload_wait();
	return 0;
}
