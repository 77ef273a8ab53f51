// SPDX-License-Identifier: GPL-2.0
/* Files that are broken, or made to harm who reads them. This process maps them as code. */
#define _GNU_SOURCE 1

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "programs.h"
#include "symbolizing.h"

/* The mapped file is cut while libdw has it mapped: reading it raises SIGBUS. */
static void test_truncated_later(void **state)
{
	char *path = build("cut", "gcc", "-g -O0");
	uint64_t offset = nm_value(path, "visible");
	struct symbolizer *symbolizer = symbolizer__new();
	struct frame frames[FRAMES];
	uint64_t address;
	size_t len;
	uint64_t at;
	char *code = map_code(path, &len);

	(void)state;
	address = (uint64_t)(uintptr_t)code + offset;
	assert_int_equal(symbolizer_show(symbolizer, getpid(), false), 0);
	look_up(symbolizer, getpid(), address, frames);
	assert_string_equal(frames[0].function, "visible");
	assert_int_equal(truncate(path, 0), 0);
	for (at = 1; at < 101; at++)
		assert_true(look_up(symbolizer, getpid(), address + at, frames) >= 1);
	/* What was named before stays named. */
	look_up(symbolizer, getpid(), address, frames);
	assert_string_equal(frames[0].function, "visible");
	munmap(code, len);
	symbolizer__free(symbolizer);
	free(path);
}

/* Truncations and flipped bytes of a real program: any answer, but an answer. */
static void test_hostile(void **state)
{
	char *path = build("hostile", "gcc", "-g -O2");
	char *broken = text("%s/broken", directory);
	size_t len;
	char *good = read_file(path, &len);
	char *bad = malloc(len);
	unsigned int seed;

	(void)state;
	assert_non_null(bad);
	for (seed = 0; seed < 101; seed++) {
		struct symbolizer *symbolizer = symbolizer__new();
		struct frame frames[FRAMES];
		unsigned int random = seed;
		size_t flips = 1 + (size_t)rand_r(&random) % 997;
		size_t kept = len;
		size_t mapped;
		size_t at;
		char *code;

		memcpy(bad, good, len);
		if (seed % 2)
			kept = 1 + (size_t)rand_r(&random) % len;
		while (seed % 3 && flips--)
			bad[(size_t)rand_r(&random) % len] = (char)rand_r(&random);
		/* Most of what is flipped should be met behind a good beginning. */
		if (seed % 4)
			memcpy(bad, good, 64);
		write_file(broken, bad, kept);
		code = map_code(broken, &mapped);
		assert_int_equal(symbolizer_show(symbolizer, getpid(), false), 0);
		for (at = 0; at < mapped; at += 61)
			assert_true(look_up(symbolizer, getpid(), (uint64_t)(uintptr_t)code + at,
					    frames) >= 1);
		munmap(code, mapped);
		symbolizer__free(symbolizer);
		assert_int_equal(unlink(broken), 0);
	}
	free(good);
	free(bad);
	free(broken);
	free(path);
}

/* The line of visible() in a mapped program, 0 where it is not known. */
static uint32_t line_of_visible(const char *path, uint64_t offset)
{
	struct symbolizer *symbolizer = symbolizer__new();
	struct frame frames[FRAMES];
	size_t len;
	char *code = map_code(path, &len);
	uint32_t line;

	assert_int_equal(symbolizer_show(symbolizer, getpid(), false), 0);
	look_up(symbolizer, getpid(), (uint64_t)(uintptr_t)code + offset, frames);
	line = frames[0].line;
	munmap(code, len);
	symbolizer__free(symbolizer);
	return line;
}

/* Links to further debug files that are FIFOs: who opens one for reading waits for a writer. */
static void test_fifos(void **state)
{
	char *path = build("fifos", "gcc", "-g -O0");
	char *fifo = text("%s/fifo", directory);
	char *section = text("%s/section", directory);
	uint64_t offset = nm_value(path, "visible");
	char content[4096] = "";
	size_t len;

	(void)state;
	assert_true(line_of_visible(path, offset) > 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	/* A path and a build-id of 20 bytes (DWARF 5 calls such files supplementary). */
	len = strlen(fifo) + 1;
	memcpy(content, fifo, len);
	memset(content + len, 0x17, 20);
	write_file(section, content, len + 20);
	run(text("objcopy --add-section .gnu_debugaltlink=%s %s", section, path));
	line_of_visible(path, offset);
	/* A file name, padded to four bytes, and a CRC. */
	memset(content, 0, sizeof(content));
	memcpy(content, "fifo", 4);
	write_file(section, content, 12);
	run(text("strip %s && objcopy --remove-section .gnu_debugaltlink "
		 "--add-section .gnu_debuglink=%s %s",
		 path, section, path));
	assert_int_equal(line_of_visible(path, offset), 0);
	free(section);
	free(fifo);
	free(path);
}

/* What has the symbols' names (.strtab, the last but one) as another table of symbols. */
static void add_symbols(char *bytes)
{
	Elf64_Ehdr *header = (void *)bytes;
	Elf64_Shdr *section = (void *)(bytes + header->e_shoff);

	section += header->e_shnum - 2;
	assert_int_equal(section->sh_type, SHT_STRTAB);
	section->sh_type = SHT_SYMTAB;
	section->sh_link = UINT32_MAX;
	section->sh_entsize = sizeof(Elf64_Sym);
}

static Elf64_Phdr *segment_of(char *bytes, Elf64_Word type)
{
	Elf64_Phdr *segment = (void *)(bytes + ((Elf64_Ehdr *)bytes)->e_phoff);

	while (segment->p_type != type)
		segment++;
	return segment;
}

/* The address of the hash table as an entry has it; or none has, which is address 0. */
static void place_hash(char *bytes, uint64_t address, bool told)
{
	Elf64_Dyn *entry = (void *)(bytes + segment_of(bytes, PT_DYNAMIC)->p_offset);

	while (entry->d_tag != DT_GNU_HASH)
		entry++;
	entry->d_un.d_ptr = address;
	if (told)
		return;
	entry->d_tag = DT_DEBUG;
	/* Read-only data has its address as its place in the file. */
	segment_of(bytes, PT_LOAD)->p_offset = address;
}

/*
 * A library whose .gnu.hash has a chain of a million words, and sections of which the last table of
 * symbols has no strings, or none whose names can be found, or none; and one where it is at address
 * 0: libdwfl would follow it.
 */
static void test_endless_hash(void **state)
{
	static const char source[] =
		"const unsigned int hash[1 << 20] = { 1, 0, 1 };"
		"__attribute__((aligned(64))) int visible(void) { return 17; }\n";
	char *path = text("%s/endless", directory), *code_path = text("%s/endless.c", directory);
	struct frame frames[FRAMES];
	uint64_t hash, visible;
	size_t len, mapped, way;
	Elf64_Ehdr *header;
	char *bytes, *code;

	(void)state;
	write_file(code_path, source, sizeof(source) - 1);
	run(text("gcc -shared -fPIC -O1 -Wl,--hash-style=gnu -o %s %s", path, code_path));
	hash = nm_value(path, "hash");
	visible = nm_value(path, "visible");
	bytes = read_file(path, &len);
	header = (void *)bytes;
	place_hash(bytes, hash, true);
	for (way = 0; way < 4; way++) {
		struct symbolizer *symbolizer = symbolizer__new();

		if (way == 0)
			add_symbols(bytes);
		else if (way == 1)
			header->e_shstrndx = (Elf64_Half)(header->e_shnum + 7919);
		else
			header->e_shoff = header->e_shnum = header->e_shstrndx = 0;
		if (way == 3)
			place_hash(bytes, hash, false);
		assert_int_equal(unlink(path), 0);
		write_file(path, bytes, len);
		code = map_code(path, &mapped);
		alarm(60);
		assert_int_equal(symbolizer_show(symbolizer, getpid(), false), 0);
		assert_true(look_up(symbolizer, getpid(), (uint64_t)(uintptr_t)code + visible,
				    frames) >= 1);
		alarm(0);
		munmap(code, mapped);
		symbolizer__free(symbolizer);
	}
	free(bytes);
	free(code_path);
	free(path);
}

/* MiniDebugInfo of 40 KiB that unpacks to 256 MiB. */
static void test_bomb(void **state)
{
	char *path = build("bomb", "gcc", "-O0");
	uint64_t offset = nm_value(path, "visible");
	struct rusage before;
	struct rusage after;

	(void)state;
	if (system("command -v xz >/dev/null"))
		skip();
	run(text("head -c 268435456 /dev/zero | xz -0 > %s/bomb.xz && strip %s && "
		 "objcopy --add-section .gnu_debugdata=%s/bomb.xz %s",
		 directory, path, directory, path));
	assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
	line_of_visible(path, offset);
	assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
	assert_true(after.ru_maxrss - before.ru_maxrss < 64 * 1024);
	free(path);
}

/* Bytes that this process has asked for by read(2) and its like (proc(5)). */
static unsigned long long bytes_read(void)
{
	unsigned long long bytes = 0;
	FILE *io = fopen("/proc/self/io", "re");

	assert_non_null(io);
	assert_int_equal(fscanf(io, "rchar: %llu", &bytes), 1);
	fclose(io);
	return bytes;
}

/* The line of visible() as a process of another user has it, which ends before it is asked for. */
static uint32_t line_for_other(const char *path, uint64_t offset)
{
	struct symbolizer *symbolizer = symbolizer__new();
	struct frame frames[FRAMES];
	size_t len;
	char *code = map_code(path, &len), byte;
	int ready[2];
	uint32_t line;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		if (setgid(65534) || setuid(65534) || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]); /* or a child that ends early would not end the read */
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(symbolizer_show(symbolizer, pid, false), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	look_up(symbolizer, pid, (uint64_t)(uintptr_t)code + offset, frames);
	line = frames[0].line;
	munmap(code, len);
	symbolizer__free(symbolizer);
	close(ready[0]);
	return line;
}

/* The debug file that a program names is read by who runs it, not by who traces it. */
static void test_debug_file_of_others(void **state)
{
	char *path = build("theirs", "gcc", "-g -O0 -Wl,--build-id=none");
	char *debug = text("%s/theirs.debug", directory);
	uint64_t offset = nm_value(path, "visible");

	(void)state;
	if (geteuid())
		skip();
	run(text("objcopy --only-keep-debug %s %s && strip %s && objcopy --add-gnu-debuglink=%s %s",
		 path, debug, path, debug, path));
	assert_int_equal(chmod(directory, 0711), 0);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(chmod(debug, 0600), 0);
	assert_true(line_of_visible(path, offset) > 0);
	assert_int_equal(line_for_other(path, offset), 0);
	assert_int_equal(chmod(debug, 0644), 0);
	assert_true(line_for_other(path, offset) > 0);
	free(debug);
	free(path);
}

/*
 * Libraries without a build-id that name debug files of gigabytes, which would be read whole, each
 * of them, for a checksum.
 */
static void test_large_debug_files(void **state)
{
	static const unsigned long long mib[] = { 3 << 10, 200, 200, 200, 200, 200, 200, 200 };
	char *path = build("linked", "gcc", "-O0 -Wl,--build-id=none");
	char *debug = text("%s/large.debug", directory);
	uint64_t offset = nm_value(path, "visible");
	unsigned long long before, all = 0;
	size_t i;

	(void)state;
	write_file(debug, ELFMAG, SELFMAG);
	run(text("strip %s && objcopy --add-gnu-debuglink=%s %s", path, debug, path));
	for (i = 0; i < sizeof(mib) / sizeof(*mib); i++) {
		assert_int_equal(truncate(debug, (off_t)mib[i] << 20), 0);
		before = bytes_read();
		line_of_visible(path, offset);
		all += bytes_read() - before;
	}
	assert_true(all < 1200ULL << 20);
	free(debug);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truncated_later),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_fifos),
		cmocka_unit_test(test_endless_hash),
		cmocka_unit_test(test_bomb),
		cmocka_unit_test(test_debug_file_of_others),
		cmocka_unit_test(test_large_debug_files),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
