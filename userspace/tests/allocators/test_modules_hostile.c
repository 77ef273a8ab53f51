// SPDX-License-Identifier: GPL-2.0
/*
 * test_modules_hostile.c: allocators and memset of processes that map broken ELF files. Nothing may
 * crash, hang or eat memory, and the healthy C library beside must still be found.
 * FUZZ_ROUNDS in the environment says how many files are tried.
 */
#define _GNU_SOURCE 1

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "allocators/modules.h"

#define RANGES 16

static char directory[] = "/tmp/test_hostile.XXXXXX";

static int find_own_libc(struct dl_phdr_info *info, size_t size, void *path)
{
	(void)size;
	if (strstr(info->dlpi_name, "libc.so"))
		snprintf(path, 256, "%s", info->dlpi_name);
	return 0;
}

/* A child that maps the file as the loader would map a library, and waits. */
static pid_t start_mapper(const char *path)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int fd = open(path, O_RDONLY);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fd < 0 ||
		    mmap(NULL, 1 << 20, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED ||
		    write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static uint32_t seed = 7919;

static uint32_t next_random(void)
{
	seed = seed * 1664525 + 1013904223;
	return seed >> 8;
}

/* Damage the file: mostly where headers, tables and frames are, since code is not parsed. */
static void damage(uint8_t *bytes, size_t size, const Elf64_Shdr *sections, size_t count,
		   unsigned int round)
{
	for (unsigned int i = 0; i < 1 + round % 23; i++) {
		const Elf64_Shdr *section = &sections[next_random() % count];
		size_t at;

		switch (round % 4) {
		case 0: /* file and program headers */
			at = next_random() % (sizeof(Elf64_Ehdr) + 14 * sizeof(Elf64_Phdr));
			break;
		case 1: /* section headers */
			at = size - 1 - next_random() % (count * sizeof(Elf64_Shdr));
			break;
		default: /* the content of any section */
			at = section->sh_type == SHT_NOBITS || !section->sh_size ?
				     0 :
				     section->sh_offset + next_random() % section->sh_size;
			break;
		}
		if (at < size)
			bytes[at] = (uint8_t)(round % 3 ? next_random() : 0xff);
	}
}

static void analyse(const char *path)
{
	pid_t pid = start_mapper(path);
	struct allocator_module *modules;
	struct code_range ranges[RANGES];
	struct maps maps;
	ssize_t found;
	size_t count;

	assert_int_equal(maps_read(pid, &maps), 0);
	assert_int_equal(allocator_modules_find(pid, &maps, &modules, &count), 0);
	assert_true(count >= 1 && count <= 4);
	for (size_t i = 0; i < count; i++) {
		assert_true(modules[i].point_count < FAMILY_MAX);
		assert_true(memchr(modules[i].version, '\0', sizeof(modules[i].version)) != NULL);
	}
	allocator_modules_free(modules, count);
	found = memory_code(pid, &maps, ranges, RANGES);
	assert_true(found >= 1 && found <= RANGES);
	for (ssize_t i = 0; i < found; i++)
		assert_true(ranges[i].start < ranges[i].end);
	maps_free(&maps);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Broken files: no crash, no hang (the alarm), and the healthy libc beside is still found. */
static void test_broken_files(void **state)
{
	char path[256], libc_path[256] = "";
	const char *wanted = getenv("FUZZ_ROUNDS");
	unsigned int rounds = wanted ? (unsigned int)atoi(wanted) : 61;
	uint8_t *original, *copy;
	const Elf64_Ehdr *header;
	double slowest = 0;
	struct stat st;
	int fd;

	(void)state;
	dl_iterate_phdr(find_own_libc, libc_path);
	fd = open(libc_path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	original = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(original, MAP_FAILED);
	close(fd);
	header = (const Elf64_Ehdr *)(const void *)original;
	copy = malloc((size_t)st.st_size);
	assert_non_null(copy);
	snprintf(path, sizeof(path), "%s/broken", directory);
	for (unsigned int round = 0; round < rounds; round++) {
		size_t size = (size_t)st.st_size;
		double begun = seconds();
		FILE *file;

		alarm(30);
		memcpy(copy, original, size);
		if (round % 7 == 6)
			size = next_random() % size;
		else
			damage(copy, size,
			       (const Elf64_Shdr *)(const void *)(original + header->e_shoff),
			       header->e_shnum, round);
		file = fopen(path, "w");
		assert_non_null(file);
		assert_int_equal(fwrite(copy, 1, size, file), size);
		assert_int_equal(fclose(file), 0);
		analyse(path);
		unlink(path);
		if (seconds() - begun > slowest)
			slowest = seconds() - begun;
	}
	alarm(0);
	print_message("%u broken files, slowest %.3f s\n", rounds, slowest);
	free(copy);
	munmap(original, (size_t)st.st_size);
}

/* A sparse file of 1 TiB whose sections all claim a quarter of it: memory stays bounded. */
static void test_huge_sections(void **state)
{
	char path[256], libc_path[256] = "", command[600];
	struct rusage before, after;
	Elf64_Shdr *sections;
	Elf64_Ehdr header;
	size_t size;
	int fd;

	(void)state;
	dl_iterate_phdr(find_own_libc, libc_path);
	snprintf(path, sizeof(path), "%s/huge", directory);
	snprintf(command, sizeof(command), "cp '%s' '%s'", libc_path, path);
	assert_int_equal(system(command), 0);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	size = header.e_shnum * sizeof(*sections);
	sections = malloc(size);
	assert_non_null(sections);
	assert_int_equal(pread(fd, sections, size, (off_t)header.e_shoff), size);
	for (unsigned int i = 1; i < header.e_shnum; i++)
		sections[i].sh_size = 1ull << 38;
	assert_int_equal(pwrite(fd, sections, size, (off_t)header.e_shoff), size);
	assert_int_equal(ftruncate(fd, 1ll << 40), 0);
	close(fd);
	free(sections);
	alarm(30);
	getrusage(RUSAGE_SELF, &before);
	analyse(path);
	getrusage(RUSAGE_SELF, &after);
	alarm(0);
	assert_true(after.ru_maxrss - before.ru_maxrss < 512 * 1024);
	unlink(path);
}

static int prepare(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int clean(void **state)
{
	(void)state;
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_huge_sections),
		cmocka_unit_test(test_broken_files),
	};

	return cmocka_run_group_tests(tests, prepare, clean);
}
