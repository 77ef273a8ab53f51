// SPDX-License-Identifier: GPL-2.0
/*
 * Broken and hostile ELF files: no crash, no hang, no big memory, and what comes out is a table
 * that BPF can bisect. FUZZ_ROUNDS in the environment says how many files are tried.
 */
#define _GNU_SOURCE 1

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "measured.h"
#include "own_libc.h"
#include "programs.h"
#include "unwind/unwind_table.h"

#if defined(__SANITIZE_ADDRESS__)
#define SLOWDOWN 10
#define LIBRARY_ROUNDS 211 /* two minutes is the limit of a test */
#define KEPT (32L << 10)   /* KiB of freed memory that is not used again */
#else
#define SLOWDOWN 1
#define LIBRARY_ROUNDS 1009
#define KEPT 0L
#endif

#define PROGRAM_ROUNDS 2003

static uint32_t seed;

static uint32_t next_random(void)
{
	seed = seed * 1664525 + 1013904223;
	return seed >> 8;
}

struct outcomes {
	unsigned int tables;
	unsigned int errors;
	double slowest; /* seconds */
};

/* Where the error or table is one that the header allows. */
static void check_outcome(int err, struct unwind_table *table, size_t size,
			  struct outcomes *outcomes)
{
	if (err) {
		assert_true(err == -ENOENT || err == -ENOEXEC || err == -EINVAL || err == -E2BIG);
		assert_null(table->rows);
		assert_int_equal(table->count, 0);
		outcomes->errors++;
		return;
	}
	/* A row needs a byte of a program, and each function one more. */
	assert_true(table->count > 0 && table->count <= UNWIND_ROWS_MAX && table->count < size);
	assert_int_equal(table->rows[table->count - 1].rule, CFA_STOP);
	for (size_t i = 1; i < table->count; i++) {
		assert_true(table->rows[i - 1].pc < table->rows[i].pc);
		assert_true(table->rows[i - 1].rule != table->rows[i].rule);
	}
	assert_true(table->rows[table->count - 1].pc < UINT32_MAX);
	unwind_table_free(table);
	outcomes->tables++;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Both ways to compile; the file is a descriptor of the content, or -1. */
static void try_image(const void *bytes, size_t size, int fd, struct outcomes *outcomes)
{
	double begun = seconds(), took;
	struct unwind_table table;
	int err;

	alarm(30);
	err = unwind_table_compile_memory(bytes, size, &table);
	check_outcome(err, &table, size, outcomes);
	if (fd >= 0) {
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, bytes, size, 0), (ssize_t)size);
		err = unwind_table_compile(fd, &table);
		check_outcome(err, &table, size, outcomes);
	}
	took = seconds() - begun;
	if (took > outcomes->slowest)
		outcomes->slowest = took;
	assert_true(!times_count() || took < 2.0 * SLOWDOWN);
	alarm(0);
}

struct region {
	size_t offset;
	size_t size;
};

/* What is parsed: headers, .eh_frame_hdr and .eh_frame. */
static size_t find_regions(const char *bytes, struct region *regions)
{
	const Elf64_Ehdr *header = (const void *)bytes;
	const Elf64_Shdr *sections = (const void *)(bytes + header->e_shoff);
	const char *names = bytes + sections[header->e_shstrndx].sh_offset;
	size_t count = 0;

	regions[count++] = (struct region){ 0, sizeof(*header) };
	regions[count++] = (struct region){ header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr) };
	regions[count++] = (struct region){ header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr) };
	for (unsigned int i = 0; i < header->e_shnum; i++)
		if (strncmp(names + sections[i].sh_name, ".eh_frame", 9) == 0)
			regions[count++] =
				(struct region){ sections[i].sh_offset, sections[i].sh_size };
	assert_int_equal(count, 5);
	return count;
}

/*
 * Up to 23 bytes are changed, in every other file those of .eh_frame. Each every_file-th is tried
 * by a descriptor too: writing a large one costs time.
 */
static void mutate(const char *path, unsigned int rounds, unsigned int every_file)
{
	const char *wanted = getenv("FUZZ_ROUNDS");
	struct outcomes outcomes = { 0 };
	struct region regions[8];
	size_t size, count;
	char *original = read_file(path, &size), *copy = malloc(size);
	int fd = memfd_create("mutated", MFD_CLOEXEC);

	assert_non_null(copy);
	assert_true(fd >= 0);
	if (wanted)
		rounds = (unsigned int)atoi(wanted);
	count = find_regions(original, regions);
	memcpy(copy, original, size);
	for (unsigned int round = 0; round < rounds; round++) {
		const struct region *region = &regions[round % 2 ? count - 1 : round / 2 % count];
		unsigned int changes = 1 + round % 23;
		size_t places[23];

		seed = 7919 + round;
		for (unsigned int i = 0; i < changes; i++) {
			/* Often near the start, where the first entries of a table are. */
			size_t reach = next_random() % 3 ? region->size : 1 + region->size / 97;

			places[i] = region->offset + next_random() % reach;
			copy[places[i]] = (char)(round % 5 == 0 ? 0xff :
						 round % 5 == 1 ? 0 :
								  next_random());
		}
		try_image(copy, size, round % every_file == 0 ? fd : -1, &outcomes);
		for (unsigned int i = 0; i < changes; i++)
			copy[places[i]] = original[places[i]];
	}
	assert_memory_equal(copy, original, size);
	print_message("%s: %u files, %u tables, %u errors, slowest %.3f s\n", path, rounds,
		      outcomes.tables, outcomes.errors, outcomes.slowest);
	assert_true(wanted || (outcomes.tables > 0 && outcomes.errors > 0));
	close(fd);
	free(copy);
	free(original);
}

/* Cut at every multiple of a prime. A copy that ends where the file does: reading on is seen. */
static void cut(const char *path, size_t step)
{
	struct outcomes outcomes = { 0 };
	int fd = memfd_create("cut", MFD_CLOEXEC);
	size_t size;
	char *bytes = read_file(path, &size);

	assert_true(fd >= 0);
	for (size_t length = 0; length < size; length += step) {
		char *copy = malloc(length + 1);

		assert_non_null(copy);
		memcpy(copy + 1, bytes, length);
		/* Not aligned either. */
		try_image(copy + 1, length, length % 3 == 0 ? fd : -1, &outcomes);
		free(copy);
	}
	print_message("%s cut: %u tables, %u errors, slowest %.3f s\n", path, outcomes.tables,
		      outcomes.errors, outcomes.slowest);
	assert_true(outcomes.errors > 0);
	close(fd);
	free(bytes);
}

static const char source[] = "#include <stdio.h>\n"
			     "volatile int sink;\n"
			     "__attribute__((noinline)) int work(int n)\n"
			     "{\n"
			     "	volatile char space[97];\n"
			     "	space[n] = 1;\n"
			     "	return n > 2 ? work(n - 1) * work(n - 2) : sink + space[0];\n"
			     "}\n"
			     "int main(int argc, char **argv)\n"
			     "{\n"
			     "	printf(\"%d %s\\n\", work(argc), argv[0]);\n"
			     "	return 0;\n"
			     "}\n";

static char *build_text(const char *suffix, const char *content, const char *options)
{
	char *from = text("%s/built.%s", directory, suffix);
	char *path = text("%s/built", directory);

	write_file(from, content, strlen(content));
	run(text("gcc -w -o %s %s %s 2>&1", path, from, options));
	free(from);
	return path;
}

static void test_small_program(void **state)
{
	char *path = build_text("c", source, "-O2");

	(void)state;
	mutate(path, PROGRAM_ROUNDS, 3);
	cut(path, 7);
	free(path);
}

static void test_library(void **state)
{
	(void)state;
	mutate(own_libc(), LIBRARY_ROUNDS, 199);
	cut(own_libc(), 12289);
}

/* Files without section headers, whose .eh_frame ends where nobody says. */
static void test_without_sections(void **state)
{
	char *path = build_text("c", source, "-O2"), *bytes;
	struct outcomes outcomes = { 0 };
	struct region regions[8];
	Elf64_Ehdr header;
	size_t size;

	(void)state;
	bytes = read_file(path, &size);
	find_regions(bytes, regions);
	memcpy(&header, bytes, sizeof(header));
	header.e_shoff = 0;
	header.e_shnum = 0;
	memcpy(bytes, &header, sizeof(header));
	for (unsigned int round = 0; round < 499; round++) {
		const struct region *region = &regions[1 + round % 4];
		size_t at = region->offset + (round / 4 * 7) % region->size;
		char kept = bytes[at];

		if (round % 4 == 1)
			continue;
		seed = 104729 + round;
		bytes[at] = (char)next_random();
		try_image(bytes, size, -1, &outcomes);
		bytes[at] = kept;
	}
	assert_true(outcomes.tables > 0 && outcomes.errors > 0);
	free(bytes);
	free(path);
}

/* ---- files made to be slow or large ---- */

/* Most memory that this process has had since forget_peak(), in KiB. */
static long peak(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss;
}

/* 5 resets it: proc(5). */
static long forget_peak(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "5", 1), 1);
	close(fd);
	return peak();
}

/* A shared library of about 1 MiB whose .eh_frame is as the assembler text says. */
static void try_frames(const char *what, const char *frames)
{
	char *assembly = text(".globl f\n.hidden f\nf: .skip 524287, 0x90\n"
			      ".section .eh_frame, \"a\", @unwind\n%s",
			      frames);
	char *path = build_text("s", assembly, "-shared -nostdlib -Wl,--no-eh-frame-hdr"), *bytes;
	struct outcomes outcomes = { 0 };
	long before, grown;
	size_t size;

	bytes = read_file(path, &size);
	before = forget_peak();
	try_image(bytes, size, -1, &outcomes);
	grown = peak() - before;
	print_message("%s, %zu bytes: %s, %.3f s, %ld KiB\n", what, size,
		      outcomes.tables ? "a table" : "an error", outcomes.slowest, grown);
	/* Rows take 8 bytes for 3 of a program, and twice that while they grow. */
	assert_true(grown < (16 << 10) + KEPT);
	free(bytes);
	free(path);
	free(assembly);
}

#define CIE                                                                                  \
	"cie: .long 2f - 1f\n1: .long 0\n.byte 1\n.string \"zR\"\n.uleb128 1\n.sleb128 -8\n" \
	".byte 16\n.uleb128 1\n.byte 0x1b, 0x0c, 7, 8, 0x90, 1\n.balign 4\n2:\n"
#define FDE(start, length, program)                                                    \
	".long 2f - 1f\n1: .long . - cie\n.long f + " start " - .\n.long " length "\n" \
	".uleb128 0\n" program "\n.balign 4\n2:\n"

static void test_slow_files(void **state)
{
	(void)state;
	/* A row of every byte of a function: libdw runs its program from the start for each. */
	try_frames("long function",
		   CIE FDE("0", "524287",
			   ".rept 262139\n.byte 0x41, 0x0e, 16, 0x41, 0x0e, 8\n.endr") ".long 0\n");
	try_frames("many states",
		   CIE FDE("0", "524287", ".rept 1048573\n.byte 0x0a\n.endr") ".long 0\n");
	try_frames("no way forward",
		   CIE FDE("0", "524287", ".rept 349525\n.byte 0x40, 0x0e, 16\n.endr") ".long 0\n");
	/* Each function runs the program of its CIE: once for all of them. */
	try_frames("long CIE",
		   "cie: .long 2f - 1f\n1: .long 0\n.byte 1\n.string \"zR\"\n.uleb128 1\n"
		   ".sleb128 -8\n.byte 16\n.uleb128 1\n.byte 0x1b, 0x0c, 7, 8, 0x90, 1\n"
		   ".rept 262139\n.byte 0x0e, 8\n.endr\n.balign 4\n2:\n"
		   ".rept 24989\n" FDE("7", "1", "") ".endr\n.long 0\n");
	/* Functions all in one place, from the last to the first. */
	try_frames("overlapping", CIE ".set i, 49999\n.rept 49999\n" FDE(
					  "i", "524287 - i", "") ".set i, i - 1\n.endr\n.long 0\n");
	/* Zeros end it, or stand between entries. */
	try_frames("terminators", CIE ".skip 1048573 - 1\n" FDE("0", "16", "") ".long 0\n");
}

static void test_cyclic(void **state)
{
	(void)state;
	/* An FDE that is its own CIE, one whose CIE comes later, one whose CIE is an FDE. */
	try_frames("cyclic", CIE
		   ".long 2f - 1f\n3:1: .long . - 3b + 4\n.long f - .\n.long 16\n.uleb128 0\n"
		   ".balign 4\n2:\n"
		   ".long 2f - 1f\n1: .long -64\n.long f - .\n.long 16\n.uleb128 0\n.balign 4\n2:\n"
		   ".long 2f - 1f\n1: .long . - 3b + 4\n.long f - .\n.long 16\n.uleb128 0\n"
		   ".balign 4\n2:\n" FDE("16", "16", "") ".long 0\n");
}

/* A sparse file of 1 TiB whose .eh_frame claims a quarter of it, and then as much as is read. */
static void test_huge_section(void **state)
{
	static const uint64_t claims[] = { 1ull << 38, 61ull << 20 };
	char *path = build_text("c", source, "-O2"), *bytes;
	struct region regions[8];
	struct unwind_table table;
	Elf64_Ehdr header;
	long before, grown;
	size_t size;
	int fd, err;

	(void)state;
	bytes = read_file(path, &size);
	memcpy(&header, bytes, sizeof(header));
	find_regions(bytes, regions);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1ll << 40), 0);
	for (size_t claim = 0; claim < 2; claim++) {
		double begun = seconds();

		for (unsigned int i = 0; i < header.e_shnum; i++) {
			off_t at = (off_t)(header.e_shoff + i * sizeof(Elf64_Shdr));
			Elf64_Shdr section;

			memcpy(&section, bytes + at, sizeof(section));
			if (section.sh_offset == regions[4].offset)
				section.sh_size = claims[claim];
			assert_int_equal(pwrite(fd, &section, sizeof(section), at),
					 sizeof(section));
		}
		before = forget_peak();
		err = unwind_table_compile(fd, &table);
		grown = peak() - before;
		print_message("section of %" PRIu64 " bytes: %d, %.3f s, %ld KiB\n", claims[claim],
			      err, seconds() - begun, grown);
		assert_int_equal(err, claim == 0 ? -E2BIG : 0);
		assert_true(seconds() - begun < 2.0 * SLOWDOWN);
		assert_true(grown < (64 << 10) + KEPT);
		unwind_table_free(&table);
	}
	close(fd);
	free(bytes);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_huge_section), cmocka_unit_test(test_slow_files),
		cmocka_unit_test(test_cyclic),	     cmocka_unit_test(test_small_program),
		cmocka_unit_test(test_library),	     cmocka_unit_test(test_without_sections),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
