// SPDX-License-Identifier: GPL-2.0
/*
 * Rows of programs built here: how compilers and linkers put things, and each call frame
 * instruction by itself, as the assembler writes it.
 */
#define _GNU_SOURCE 1

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "own_libc.h"
#include "unwind_witness.h"

#define RULE(cfa, offset, rbp, rbp_offset)                          \
	((uint32_t)(cfa) | (uint32_t)(rbp) << 3 |                   \
	 ((uint32_t)((offset) / 8) & 0x1ffff) << UNWIND_CFA_SHIFT | \
	 (uint32_t)((rbp_offset) / 8) << UNWIND_RBP_SHIFT)
#define DEREF(cfa, offset, addend)                      \
	((uint32_t)(cfa) | (uint32_t)RBP_SAME << 3 |    \
	 ((uint32_t)(addend) / 8) << UNWIND_CFA_SHIFT | \
	 ((uint32_t)((offset) / 8) & 0xfff) << (UNWIND_CFA_SHIFT + UNWIND_ADDEND_BITS))
#define RSP_8 RULE(CFA_RSP, 8, RBP_SAME, 0)

/* realigned: its arguments are reached by a register of their own, since rbp is aligned. */
static const char source[] =
	"#include <stdalign.h>\n"
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"volatile int sink;\n"
	"__attribute__((noinline)) void use(volatile char *at) { sink += *at; }\n"
	"__attribute__((noinline)) int realigned(int n, int b, int c, int d, int e, int f, int g,\n"
	"					 int h)\n"
	"{\n"
	"	alignas(64) volatile char vector[256];\n"
	"	volatile char *more = __builtin_alloca(n);\n"
	"	vector[n] = b + c + d + e + f;\n"
	"	more[0] = g + h;\n"
	"	use(vector);\n"
	"	use(more);\n"
	"	return vector[1];\n"
	"}\n"
	"__attribute__((noinline)) int many(int n)\n"
	"{\n"
	"	volatile char space[4099];\n"
	"	space[n] = 1;\n"
	"	use(space);\n"
	"	return n > 2 ? many(n - 1) * many(n - 2) : sink + atoi(\"7\");\n"
	"}\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	alignas(64) volatile char vector[64] = { 1 };\n"
	"	use(vector);\n"
	"	printf(\"%d %s\\n\", many(argc) + realigned(argc, 2, 3, 4, 5, 6, 7, 8), argv[0]);\n"
	"	return 0;\n"
	"}\n";

static char *build_source(const char *name, const char *suffix, const char *content,
			  const char *options)
{
	char *from = text("%s/%s.%s", directory, name, suffix);
	char *path = text("%s/%s", directory, name);

	write_file(from, content, strlen(content));
	run(text("gcc -w -o %s %s %s", path, from, options));
	free(from);
	return path;
}

static uint32_t rule_at(const struct unwind_table *table, uint64_t address)
{
	const struct memtoll_unwind_row *row =
		unwind_table_find(table, (uint32_t)(address - table->base));

	return row ? row->rule : CFA_STOP;
}

static bool has_rule(const struct unwind_table *table, uint64_t start, uint64_t length,
		     enum memtoll_cfa cfa, enum memtoll_saved_rbp rbp)
{
	for (uint64_t address = start; address < start + length; address++) {
		uint32_t rule = rule_at(table, address);

		if (UNWIND_CFA(rule) == cfa && UNWIND_SAVED_RBP(rule) == rbp)
			return true;
	}
	return false;
}

static uint64_t section_field(const char *path, const char *section, int field)
{
	char *line = output_of(text("readelf -SW %s | grep -F ' %s ' | sed 's/.*\\] *//' | "
				    "awk '{ print $%d }'",
				    path, section, field));
	uint64_t value;

	assert_true(line[0] != '\0');
	value = strtoull(line, NULL, 16);
	free(line);
	return value;
}

static void test_compilers(void **state)
{
	static const char *const options[] = {
		"-O2 -fomit-frame-pointer",
		"-O0",
		"-O2 -no-pie",
		"-Os -static",
		"-O2 -fno-omit-frame-pointer -fcf-protection=full",
		"-O1 -fno-plt",
		"-O2 -fno-asynchronous-unwind-tables -fexceptions",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		char *name = text("program%zu", i);
		char *path = build_source(name, "c", source, options[i]);
		uint64_t start = nm_value(path, "_start"), main = nm_value(path, "main");
		uint64_t realigned = nm_value(path, "realigned");
		struct tally tally = compare_file_with_libdw(path);
		struct unwind_table table = compile_file(path);
		bool is_fixed = strstr(options[i], "-no-pie") || strstr(options[i], "-static");

		assert_true(tally.rules > 7);
		assert_int_equal(table.base, is_fixed ? 0x400000 : 0);
		/* After its first instruction, which says so, there is no caller. */
		assert_int_equal(rule_at(&table, start + 4), CFA_END);
		assert_int_equal(rule_at(&table, main), RSP_8);
		/* The CFA lies where rbp points near, and so does the caller's rbp. */
		assert_true(has_rule(&table, realigned, 64, CFA_RBP_DEREF, RBP_AT_RBP));
		assert_true(has_rule(&table, main, 64, CFA_RBP, RBP_AT_CFA) ||
			    has_rule(&table, main, 64, CFA_RBP_DEREF, RBP_AT_RBP));
		unwind_table_free(&table);
		free(path);
		free(name);
	}
}

/* An entry of .plt pushes 8 bytes: where push (68) is over, its own bytes tell. */
static void check_plt(const char *path)
{
	struct unwind_table table = compile_file(path);
	uint64_t address = section_field(path, ".plt", 3), offset = section_field(path, ".plt", 4);
	uint64_t length = section_field(path, ".plt", 5);
	size_t size;
	char *file = read_file(path, &size);

	assert_true(length >= 48 && offset + length <= size);
	assert_int_equal(rule_at(&table, address), RULE(CFA_RSP, 16, RBP_SAME, 0));
	for (uint64_t entry = 16; entry < length; entry += 16) {
		const uint8_t *code = (const uint8_t *)file + offset + entry;
		uint32_t rule = rule_at(&table, address + entry);
		uint64_t pushed = 0;

		assert_int_equal(UNWIND_CFA(rule), CFA_PLT);
		while (code[pushed] != 0x68)
			assert_true(++pushed < 11);
		pushed += 5;
		for (uint64_t byte = 0; byte < 16; byte++)
			assert_int_equal(rule_at(&table, address + entry + byte), rule);
		/* At the push the entry's caller is on top, and after it 8 bytes below. */
		assert_true(UNWIND_CFA_OFFSET(rule) / 8 > (int64_t)pushed - 5);
		assert_true(UNWIND_CFA_OFFSET(rule) / 8 <= (int64_t)pushed);
	}
	assert_int_not_equal(UNWIND_CFA(rule_at(&table, address + length)), CFA_PLT);
	free(file);
	unwind_table_free(&table);
}

static void test_plt(void **state)
{
	char *path = build_source("lazy", "c", source, "-O2 -Wl,-z,lazy");

	(void)state;
	check_plt(path);
	free(path);
	path = build_source("lazy_ibt", "c", source,
			    "-O2 -Wl,-z,lazy -Wl,-z,ibtplt -fcf-protection=full");
	compare_file_with_libdw(path);
	check_plt(path);
	free(path);
}

static struct unwind_table compile_bytes(const char *name, const char *bytes, size_t size)
{
	char *path = text("%s/%s", directory, name);
	struct unwind_table table;

	write_file(path, bytes, size);
	table = compile_file(path);
	free(path);
	return table;
}

static void assert_same_rows(const struct unwind_table *a, const struct unwind_table *b)
{
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->base, b->base);
	assert_memory_equal(a->rows, b->rows, a->count * sizeof(*a->rows));
}

/* Without section headers, without symbols, and cut behind the last segment. */
static void check_stripped(const char *path)
{
	struct unwind_table whole = compile_file(path), other;
	char *stripped = text("%s/stripped", directory);
	Elf64_Ehdr header;
	size_t size, end = 0;
	char *bytes;

	run(text("strip -o %s %s", stripped, path));
	other = compile_file(stripped);
	assert_same_rows(&whole, &other);
	unwind_table_free(&other);
	free(stripped);

	bytes = read_file(path, &size);
	memcpy(&header, bytes, sizeof(header));
	for (unsigned int i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr segment;

		memcpy(&segment, bytes + header.e_phoff + i * sizeof(segment), sizeof(segment));
		if (segment.p_type == PT_LOAD && segment.p_offset + segment.p_filesz > end)
			end = segment.p_offset + segment.p_filesz;
	}
	assert_true(end > 0 && end < size);
	header.e_shoff = 0;
	header.e_shnum = 0;
	header.e_shstrndx = 0;
	memcpy(bytes, &header, sizeof(header));
	other = compile_bytes("headless", bytes, end);
	assert_same_rows(&whole, &other);
	unwind_table_free(&other);
	assert_int_equal(unwind_table_compile_memory(bytes, end, &other), 0);
	assert_same_rows(&whole, &other);
	unwind_table_free(&other);

	/* Sections are named but cut off: the file says so, and the other way is taken. */
	free(bytes);
	bytes = read_file(path, &size);
	other = compile_bytes("cut", bytes, end);
	assert_same_rows(&whole, &other);
	unwind_table_free(&other);
	unwind_table_free(&whole);
	free(bytes);
}

static void test_without_sections(void **state)
{
	char *path = build_source("sections", "c", source, "-O2");

	(void)state;
	check_stripped(path);
	free(path);
	check_stripped(own_libc());
}

static void test_no_frames(void **state)
{
	static const char assembly[] = ".globl f\nf: ret\n";
	char *path = build_source("frameless", "s", assembly, "-shared -nostdlib");
	struct unwind_table table;
	FILE *file = fopen(path, "re");

	(void)state;
	assert_non_null(file);
	assert_int_equal(unwind_table_compile(fileno(file), &table), -ENOENT);
	assert_null(table.rows);
	fclose(file);
	file = fopen("/proc/self/maps", "re");
	assert_int_equal(unwind_table_compile(fileno(file), &table), -ENOEXEC);
	fclose(file);
	file = fopen("/tmp", "re");
	assert_int_equal(unwind_table_compile(fileno(file), &table), -ENOEXEC);
	fclose(file);
	assert_int_equal(unwind_table_compile(-1, &table), -EBADF);
	free(path);
}

/* ---- each instruction ---- */

struct step {
	const char *directives;
	uint32_t rule; /* from there on */
};

static const struct step steps[] = {
	{ "", RSP_8 },
	{ ".cfi_remember_state; .cfi_def_cfa_offset 32", RULE(CFA_RSP, 32, RBP_SAME, 0) },
	{ ".cfi_restore_state", RSP_8 },
	/* DW_CFA_def_cfa_sf rsp, -2; DW_CFA_def_cfa_offset_sf -3 */
	{ ".cfi_escape 0x12, 7, 0x7e", RULE(CFA_RSP, 16, RBP_SAME, 0) },
	{ ".cfi_escape 0x13, 0x7d", RULE(CFA_RSP, 24, RBP_SAME, 0) },
	/* DW_CFA_GNU_args_size 1024 */
	{ ".cfi_escape 0x2e, 0x80, 8", RULE(CFA_RSP, 24, RBP_SAME, 0) },
	{ ".cfi_def_cfa_offset 16", RULE(CFA_RSP, 16, RBP_SAME, 0) },
	/* DW_CFA_val_offset rbp, 2 */
	{ ".cfi_escape 0x14, 6, 2", RULE(CFA_RSP, 16, RBP_UNKNOWN, 0) },
	{ ".cfi_restore 6", RULE(CFA_RSP, 16, RBP_SAME, 0) },
	{ ".cfi_offset 6, -16", RULE(CFA_RSP, 16, RBP_AT_CFA, -16) },
	/* DW_CFA_restore_extended rbp; DW_CFA_offset_extended rbp, 3; its _sf with -4 */
	{ ".cfi_escape 6, 6", RULE(CFA_RSP, 16, RBP_SAME, 0) },
	{ ".cfi_escape 5, 6, 3", RULE(CFA_RSP, 16, RBP_AT_CFA, -24) },
	{ ".cfi_escape 0x11, 6, 0x7c", RULE(CFA_RSP, 16, RBP_AT_CFA, 32) },
	/* DW_CFA_expression rbp: rbp + 16 */
	{ ".cfi_escape 0x10, 6, 2, 0x76, 0x10", RULE(CFA_RSP, 16, RBP_AT_RBP, 16) },
	/* DW_CFA_GNU_negative_offset_extended rbp, 3 */
	{ ".cfi_escape 0x2f, 6, 3", RULE(CFA_RSP, 16, RBP_AT_CFA, 24) },
	{ ".cfi_undefined 6", RULE(CFA_RSP, 16, RBP_UNKNOWN, 0) },
	{ ".cfi_same_value 6", RULE(CFA_RSP, 16, RBP_SAME, 0) },
	{ ".cfi_register 6, 3", RULE(CFA_RSP, 16, RBP_UNKNOWN, 0) },
	{ ".cfi_restore 6; .cfi_def_cfa_offset 12", CFA_STOP },
	{ ".cfi_def_cfa_offset 524280", RULE(CFA_RSP, 524280, RBP_SAME, 0) },
	{ ".cfi_def_cfa_offset 524288", CFA_STOP },
	{ ".cfi_def_cfa 10, 8", CFA_STOP },
	{ ".cfi_def_cfa_register 6", RULE(CFA_RBP, 8, RBP_SAME, 0) },
	{ ".cfi_def_cfa 6, 16; .cfi_adjust_cfa_offset -32", RULE(CFA_RBP, -16, RBP_SAME, 0) },
	/* DW_CFA_def_cfa_expression: *(rbp - 16); *(rsp + 8) */
	{ ".cfi_escape 0x0f, 3, 0x76, 0x70, 6", DEREF(CFA_RBP_DEREF, -16, 0) },
	{ ".cfi_escape 0x0f, 3, 0x77, 8, 6", DEREF(CFA_RSP_DEREF, 8, 0) },
	/* *(rsp - 8) + 8; *(rbp + 16376) + 248: the most there is room for; one more; not 8's */
	{ ".cfi_escape 0x0f, 5, 0x77, 0x78, 6, 0x23, 8", DEREF(CFA_RSP_DEREF, -8, 8) },
	{ ".cfi_escape 0x0f, 8, 0x76, 0xf8, 0xff, 0, 6, 0x23, 0xf8, 1",
	  DEREF(CFA_RBP_DEREF, 16376, 248) },
	{ ".cfi_escape 0x0f, 8, 0x76, 0x80, 0x80, 1, 6, 0x23, 0xf8, 1", CFA_STOP },
	{ ".cfi_escape 0x0f, 6, 0x77, 0, 6, 0x23, 0x80, 2", CFA_STOP },
	{ ".cfi_escape 0x0f, 5, 0x77, 0, 6, 0x23, 4", CFA_STOP },
	{ ".cfi_escape 0x0f, 6, 0x77, 0, 6, 0x23, 8, 0x12", CFA_STOP },
	/* rsp + 24; rsp + 16 + 8; *rbx */
	{ ".cfi_escape 0x0f, 2, 0x77, 24", RULE(CFA_RSP, 24, RBP_SAME, 0) },
	{ ".cfi_escape 0x0f, 4, 0x77, 16, 0x23, 8", RULE(CFA_RSP, 24, RBP_SAME, 0) },
	{ ".cfi_escape 0x0f, 3, 0x73, 0, 6", CFA_STOP },
	/* Half a rule after an expression is none. */
	{ ".cfi_escape 0x0e, 16", CFA_STOP },
	{ ".cfi_def_cfa 7, 16; .cfi_offset 6, -4096", RULE(CFA_RSP, 16, RBP_AT_CFA, -4096) },
	{ ".cfi_offset 6, -4104", RULE(CFA_RSP, 16, RBP_UNKNOWN, 0) },
	{ ".cfi_offset 6, 4088", RULE(CFA_RSP, 16, RBP_AT_CFA, 4088) },
	{ ".cfi_restore 6; .cfi_offset 16, -16", CFA_STOP },
	{ ".cfi_restore 16", RULE(CFA_RSP, 16, RBP_SAME, 0) },
	{ ".cfi_undefined 16", CFA_END },
	{ ".cfi_register 16, 2", CFA_STOP },
	/* DW_CFA_val_expression rbp, 0 */
	{ ".cfi_restore 16; .cfi_escape 0x16, 6, 1, 0x30", RULE(CFA_RSP, 16, RBP_UNKNOWN, 0) },
	/* DW_CFA_val_offset_sf rsp, 0: as always. DW_CFA_val_expression rsp, 0: another stack */
	{ ".cfi_restore 6; .cfi_escape 0x15, 7, 0", RULE(CFA_RSP, 16, RBP_SAME, 0) },
	{ ".cfi_escape 0x16, 7, 1, 0x30", CFA_STOP },
	{ ".cfi_restore 7; .skip 307, 0x90", RULE(CFA_RSP, 16, RBP_SAME, 0) },
	{ ".cfi_def_cfa_offset 40; .skip 70001, 0x90", RULE(CFA_RSP, 40, RBP_SAME, 0) },
	{ ".cfi_def_cfa_offset 48", RULE(CFA_RSP, 48, RBP_SAME, 0) },
};

static void test_instructions(void **state)
{
	enum { COUNT = sizeof(steps) / sizeof(*steps) };
	char *assembly = text(".globl f\n.type f, @function\nf: .cfi_startproc\n"), *path;
	uint64_t labels[COUNT];
	struct unwind_table table;

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		char *longer = text("%s.globl step%zu\n%s\nstep%zu: nop\n", assembly, i,
				    steps[i].directives, i);

		free(assembly);
		assembly = longer;
	}
	path = text("%s.cfi_endproc\nend: nop\n", assembly);
	free(assembly);
	assembly = path;
	path = build_source("instructions", "s", assembly, "-shared -nostdlib");
	table = compile_file(path);
	for (size_t i = 0; i < COUNT; i++) {
		char *name = text("step%zu", i);

		labels[i] = nm_value(path, name);
		if (rule_at(&table, labels[i]) != steps[i].rule)
			fail_msg("%s: rule %#x, not %#x", steps[i].directives,
				 rule_at(&table, labels[i]), steps[i].rule);
		free(name);
	}
	assert_int_equal(rule_at(&table, labels[COUNT - 1] + 1), CFA_STOP);
	assert_int_equal(rule_at(&table, nm_value(path, "f") - 1), CFA_STOP);
	/* libdw knows no instruction that GNU as does not write: all but the skipped ones agree. */
	compare_file_with_libdw(path);
	unwind_table_free(&table);
	free(assembly);
	free(path);
}

/* Functions that overlap, out of order; one with a broken program; one outside the code. */
static const char overlapping[] =
	".globl f\n.hidden f\nf: .skip 512, 0x90\n.section .eh_frame, \"a\", @unwind\n"
	"cie: .long ecie - . - 4\n.long 0\n.byte 1\n.string \"zR\"\n.uleb128 1\n.sleb128 -8\n"
	".byte 16\n.uleb128 1\n.byte 0x1b, 0x0c, 7, 8, 0x90, 1\n.balign 4\necie:\n"
	".macro fde start length instructions:vararg\n"
	".long 2f - 1f\n1: .long . - cie\n.long f + \\start - .\n.long \\length\n.uleb128 0\n"
	".byte \\instructions\n.balign 4\n2:\n.endm\n"
	"fde 64 32 0x0e, 32\n"
	"fde 0 128 0x0e, 16\n"
	"fde 80 80 0x0e, 48\n"
	"fde 200 10 0x0e, 24, 0x44, 0x3f\n"
	"fde 220 10 0x0a, 0x0e, 24, 0x44, 0x0b, 0x44, 0x0b\n"
	"fde 0x100000 16 0\n"
	"fde 508 16 0\n"
	"fde 240 0 0\n"
	"fde 240 16 0x0e, 24\n"
	"fde 256 16 0x0e, 24\n"
	"fde 272 16 0x0e, 64\n"
	"fde 272 8 0x0e, 72\n"
	"fde 300 4 0x0e, 80, 0x48, 0x0e, 88\n"
	".long 0\n";

static void test_functions(void **state)
{
	static const struct {
		uint64_t start, end;
		uint32_t rule;
	} expected[] = {
		{ 0, 64, RULE(CFA_RSP, 16, RBP_SAME, 0) },
		{ 64, 80, RULE(CFA_RSP, 32, RBP_SAME, 0) },
		{ 80, 160, RULE(CFA_RSP, 48, RBP_SAME, 0) },
		{ 160, 240, CFA_STOP },
		{ 240, 272, RULE(CFA_RSP, 24, RBP_SAME, 0) },
		{ 272, 280, RULE(CFA_RSP, 72, RBP_SAME, 0) },
		{ 280, 300, CFA_STOP },
		/* Its second row begins behind its end. */
		{ 300, 304, RULE(CFA_RSP, 80, RBP_SAME, 0) },
		{ 304, 512, CFA_STOP },
	};
	char *path = build_source("overlapping", "s", overlapping,
				  "-shared -nostdlib -Wl,--no-eh-frame-hdr");
	uint64_t function = nm_value(path, "f");
	struct unwind_table table = compile_file(path);

	(void)state;
	check_rows(&table);
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
		for (uint64_t at = expected[i].start; at < expected[i].end; at++)
			if (rule_at(&table, function + at) != expected[i].rule)
				fail_msg("f + %" PRIu64 ": rule %#x, not %#x", at,
					 rule_at(&table, function + at), expected[i].rule);
	/* Two broken programs, two outside, one of no length. */
	assert_int_equal(table.skipped, 5);
	assert_int_equal(table.count, sizeof(expected) / sizeof(*expected));
	unwind_table_free(&table);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compilers),	 cmocka_unit_test(test_plt),
		cmocka_unit_test(test_without_sections), cmocka_unit_test(test_no_frames),
		cmocka_unit_test(test_instructions),	 cmocka_unit_test(test_functions),
	};

	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
