// SPDX-License-Identifier: GPL-2.0
/*
 * Rows of system libraries and of the vdso against two independent readers of the same files:
 * libdw's interpreter and readelf's.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "measured.h"
#include "own_libc.h"
#include "unwind_witness.h"

#if defined(__SANITIZE_ADDRESS__)
#define SLOWDOWN 10
#else
#define SLOWDOWN 1
#endif

/* ---- readelf ---- */

struct interpreted {
	uint64_t pc;
	char cfa[24];
	char rbp[24];
	char ip[24];
};

static void compare_text(const char *path, const struct interpreted *line, uint32_t rule)
{
	enum memtoll_saved_rbp saved = UNWIND_SAVED_RBP(rule);
	enum memtoll_cfa cfa = UNWIND_CFA(rule);
	bool is_right = false;
	char base[4];
	int offset;

	if (strcmp(line->ip, "u") == 0) {
		is_right = rule == CFA_END;
	} else if (strcmp(line->ip, "c-8") != 0) {
		is_right = rule == CFA_STOP ||
			   (rule == CFA_SIGNAL && strcmp(line->ip, "exp") == 0 &&
			    strcmp(line->cfa, "exp") == 0 && strcmp(line->rbp, "exp") == 0);
	} else if (strcmp(line->cfa, "exp") == 0) {
		is_right = cfa == CFA_STOP || cfa == CFA_PLT || cfa == CFA_RBP_DEREF ||
			   cfa == CFA_RSP_DEREF;
	} else if (sscanf(line->cfa, "%3[a-z0-9]%d", base, &offset) == 2 &&
		   (strcmp(base, "rsp") == 0 || strcmp(base, "rbp") == 0) && offset % 8 == 0 &&
		   offset >= -65536 * 8 && offset < 65536 * 8) {
		is_right = cfa == (base[1] == 's' ? CFA_RSP : CFA_RBP) &&
			   UNWIND_CFA_OFFSET(rule) == offset;
	} else {
		is_right = cfa == CFA_STOP;
	}
	/* readelf has the same letter for an undefined register as for one never mentioned. */
	if (is_right && cfa >= CFA_RSP && cfa != CFA_SIGNAL) {
		if (strcmp(line->rbp, "u") == 0)
			is_right = saved == RBP_SAME || saved == RBP_UNKNOWN;
		else if (strcmp(line->rbp, "s") == 0)
			is_right = saved == RBP_SAME;
		else if (sscanf(line->rbp, "c%d", &offset) == 1 && offset >= -4096 && offset < 4096)
			is_right = saved == RBP_AT_CFA && UNWIND_RBP_OFFSET(rule) == offset;
		else if (strcmp(line->rbp, "exp") == 0)
			is_right = saved == RBP_AT_RBP || saved == RBP_UNKNOWN;
		else
			is_right = saved == RBP_UNKNOWN;
	}
	if (!is_right)
		fail_msg("%s %#" PRIx64 ": rule %#x, but readelf has CFA %s, rbp %s, ra %s", path,
			 line->pc, rule, line->cfa, line->rbp, line->ip);
}

/* The row of readelf's that begins with line and holds up to end. Bytes of code. */
static uint64_t compare_line(const char *path, const struct unwind_table *table,
			     const struct interpreted *line, uint64_t end)
{
	const struct memtoll_unwind_row *row;

	if (end <= line->pc)
		return 0;
	row = unwind_table_find(table, (uint32_t)(line->pc - table->base));
	assert_non_null(row);
	assert_ptr_equal(row, unwind_table_find(table, (uint32_t)(end - 1 - table->base)));
	compare_text(path, line, row->rule);
	return end - line->pc;
}

/* Split a line of a table; columns: the header's, and whether there is an rbp among them. */
static void read_line(char *text, char names[][8], size_t columns, struct interpreted *line)
{
	char *rest = NULL, *word = strtok_r(text, " \n", &rest);

	strcpy(line->rbp, "u");
	line->pc = strtoull(word, NULL, 16);
	for (size_t i = 0; i < columns && (word = strtok_r(NULL, " \n", &rest));) {
		char *field = strcmp(names[i], "CFA") == 0 ? line->cfa :
			      strcmp(names[i], "rbp") == 0 ? line->rbp :
			      strcmp(names[i], "ra") == 0  ? line->ip :
							     NULL;

		/* Registers are named twice: r10 (r10). */
		if (word[0] == '(')
			continue;
		if (field)
			snprintf(field, sizeof(line->cfa), "%s", word);
		i++;
	}
}

/* All of the code that libdw knows, code_bytes, must be in readelf's output too. */
static void compare_with_readelf(const char *path, uint64_t code_bytes)
{
	struct unwind_table table = compile_file(path);
	char *command = text("LC_ALL=C readelf --debug-dump=frames-interp %s", path);
	FILE *pipe = popen(command, "re");
	char *found, *buffer = NULL, names[32][8];
	struct interpreted line, *common = NULL, *known = NULL;
	uint64_t start = 0, end = 0, compared = 0, offset = 0;
	size_t capacity = 0, columns = 0, known_count = 0;
	bool is_open = false, is_common = false;

	assert_non_null(pipe);
	while (getline(&buffer, &capacity, pipe) >= 0) {
		bool is_header = strncmp(buffer, "   LOC", 6) == 0;
		bool is_entry = strstr(buffer, " CIE ") || strstr(buffer, " FDE ");

		if ((is_entry || buffer[0] == '\n') && is_open) {
			compared += compare_line(path, &table, &line, end);
			is_open = false;
			end = start; /* done */
		}
		if (is_entry) {
			is_common = strstr(buffer, " CIE ") != NULL;
			found = strstr(buffer, " cie=");
			offset = strtoull(found ? found + 5 : buffer, NULL, 16);
			found = strstr(buffer, " pc=");
			start = found ? strtoull(found + 4, NULL, 16) : 0;
			end = found ? strtoull(strstr(found, "..") + 2, NULL, 16) : 0;
		} else if (is_header) {
			char *rest = NULL, *word = strtok_r(buffer + 6, " \n", &rest);

			for (columns = 0; word && columns < 32; columns++) {
				snprintf(names[columns], sizeof(names[0]), "%s", word);
				word = strtok_r(NULL, " \n", &rest);
			}
		} else if (buffer[0] == '0' && strchr(buffer, ' ') == buffer + 16) {
			struct interpreted next = { 0 };

			read_line(buffer, names, columns, &next);
			if (is_open)
				compared += compare_line(path, &table, &line, next.pc);
			line = next;
			is_open = !is_common;
			if (!is_common)
				continue;
			/* Of a CIE: its place in .eh_frame instead of the pc. */
			next.pc = offset;
			known = reallocarray(known, ++known_count, sizeof(*known));
			assert_non_null(known);
			known[known_count - 1] = next;
		} else if (buffer[0] == '\n' && !is_common && start < end && known) {
			/* A function without instructions of its own. */
			for (common = known; common->pc != offset;)
				assert_true(++common < known + known_count);
			line = *common;
			line.pc = start;
			compared += compare_line(path, &table, &line, end);
			end = start;
		}
	}
	/* It ends with status 1 and no word for some files of Debian 12; bytes tell that it did. */
	pclose(pipe);
	assert_int_equal(compared, code_bytes);
	unwind_table_free(&table);
	free(known);
	free(buffer);
	free(command);
}

/* ---- system libraries ---- */

/* Where it is not installed, the others must do. */
static const char *const optional[] = {
	"/lib/x86_64-linux-gnu/libpython3.11.so.1.0",
	"/lib/x86_64-linux-gnu/libcrypto.so.3",
	"/lib/x86_64-linux-gnu/libstdc++.so.6",
	"/lib/x86_64-linux-gnu/libm.so.6",
	"/lib/ld-musl-x86_64.so.1",
};

static void test_system_files(void **state)
{
	static const char *const always[] = { "/lib64/ld-linux-x86-64.so.2", "/bin/bash" };
	const char *libc = own_libc();
	struct tally tally;

	(void)state;
	tally = compare_file_with_libdw(libc);
	assert_true(tally.rules > 10007);
	assert_true(tally.stop_bytes * 200 < tally.code_bytes);
	compare_with_readelf(libc, tally.code_bytes);
	for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++) {
		tally = compare_file_with_libdw(always[i]);
		assert_true(tally.rules > 1009);
		compare_with_readelf(always[i], tally.code_bytes);
	}
	for (size_t i = 0; i < sizeof(optional) / sizeof(*optional); i++) {
		if (access(optional[i], R_OK) != 0)
			continue;
		tally = compare_file_with_libdw(optional[i]);
		compare_with_readelf(optional[i], tally.code_bytes);
	}
}

/* Frames of signal handlers return to __restore_rt: mov $15, %rax; syscall. */
static int check_restore(struct dl_phdr_info *info, size_t size, void *found)
{
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
	struct unwind_table table;

	(void)size;
	if (!strstr(info->dlpi_name, "/libc.so"))
		return 0;
	table = compile_file(info->dlpi_name);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const uint8_t *start = (const uint8_t *)info->dlpi_addr + segment->p_vaddr, *at;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		at = memmem(start, segment->p_filesz, code, sizeof(code));
		if (!at)
			continue;
		/* One byte before: where a walk that takes one off return addresses looks. */
		for (int byte = -1; byte < (int)sizeof(code); byte++) {
			uint32_t pc = (uint32_t)(at + byte - (const uint8_t *)info->dlpi_addr);

			assert_int_equal(unwind_table_find(&table, pc - (uint32_t)table.base)->rule,
					 CFA_SIGNAL);
		}
		++*(int *)found;
	}
	unwind_table_free(&table);
	return 0;
}

static void test_signal_frame(void **state)
{
	int found = 0;

	(void)state;
	dl_iterate_phdr(check_restore, &found);
	assert_int_equal(found, 1);
}

static void test_vdso(void **state)
{
	const Elf64_Ehdr *header = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct unwind_table table;
	char *maps, *line;
	uint64_t start, end;
	size_t size;
	Elf *elf;

	(void)state;
	assert_non_null(header);
	maps = output_of(text("grep -F '[vdso]' /proc/%d/maps", getpid()));
	line = maps;
	start = strtoull(line, &line, 16);
	end = strtoull(line + 1, NULL, 16);
	free(maps);
	assert_int_equal(start, (uint64_t)(uintptr_t)header);
	size = end - start;
	assert_int_equal(unwind_table_compile_memory(header, size, &table), 0);
	elf = elf_memory((char *)(uintptr_t)header, size);
	assert_true(compare_with_libdw("vdso", elf, &table).rules > 7);
	elf_end(elf);
	unwind_table_free(&table);
	assert_int_equal(unwind_table_compile_memory(header, 63, &table), -ENOEXEC);
}

/* 25 MB of text in less than 1.5 s, and the C library in less than 50 ms. */
static void test_speed(void **state)
{
	static const char *const large[] = {
		"/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
		"/usr/sbin/mariadbd",
		"/usr/bin/node",
	};
	struct timespec begun, done;
	struct unwind_table table;
	const char *libc = own_libc();
	double seconds;

	(void)state;
	for (size_t i = 0; i <= sizeof(large) / sizeof(*large); i++) {
		const char *path = i == 0 ? libc : large[i - 1];

		if (access(path, R_OK) != 0)
			continue;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begun);
		table = compile_file(path);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &done);
		seconds = (double)(done.tv_sec - begun.tv_sec) +
			  (double)(done.tv_nsec - begun.tv_nsec) * 1e-9;
		print_message("%s: %zu rows, %.3f s\n", path, table.count, seconds);
		assert_true(!times_count() || seconds < (i == 0 ? 0.05 : 1.5) * SLOWDOWN);
		unwind_table_free(&table);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_system_files),
		cmocka_unit_test(test_signal_frame),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_speed),
	};

	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
