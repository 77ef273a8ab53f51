/* SPDX-License-Identifier: GPL-2.0 */
/* programs.h: what the tests of the symbolizer share: programs that are built on the spot. */
#ifndef MEMTOLL_TESTS_PROGRAMS_H
#define MEMTOLL_TESTS_PROGRAMS_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbols/symbolize.h"
#include "trees.h"

#define FRAMES 32

static char directory[] = "/tmp/symbolize-test-XXXXXX";

static const char c_source[] =
	"#include <stdio.h>\n"
	"volatile int sink;\n"
	"static inline __attribute__((always_inline)) int innermost(int x)\n"
	"{\n"
	"	sink = x;\n"
	"	return sink * 3;\n"
	"}\n"
	"static inline __attribute__((always_inline)) int between(int x)\n"
	"{\n"
	"	int y = innermost(x + 1);\n"
	"	return y + innermost(y);\n"
	"}\n"
	"__attribute__((noinline)) int visible(int x)\n"
	"{\n"
	"	for (int i = 0; i < x; i++)\n"
	"		sink += between(i);\n"
	"	return sink;\n"
	"}\n"
	"__attribute__((noinline)) static void *hidden(void)\n"
	"{\n"
	"	sink++;\n"
	"	return __builtin_return_address(0);\n"
	"}\n"
	"int main(void)\n"
	"{\n"
	"	void *call = hidden();\n"
	"	visible(3);\n"
	"	printf(\"%p %p %p %p\\n\", (void *)main, (void *)visible, (void *)hidden, call);\n"
	"	fflush(stdout);\n"
	"	return getchar() == EOF ? 0 : 1;\n"
	"}\n";

static const char cpp_source[] =
	"#include <cstdio>\n"
	"namespace toll {\n"
	"template <typename T> struct buffer {\n"
	"	__attribute__((noinline)) static T fill(T value, int) { return value + 1; }\n"
	"};\n"
	"}\n"
	"int main()\n"
	"{\n"
	"	double (*fill)(double, int) = toll::buffer<double>::fill;\n"
	"	std::printf(\"%p %p %p %p\\n\", (void *)main, (void *)fill, (void *)fill,\n"
	"		    (void *)fill);\n"
	"	std::fflush(stdout);\n"
	"	return std::getchar() == EOF ? 0 : 1;\n"
	"}\n";

static inline __attribute__((format(printf, 1, 2))) char *text(const char *format, ...)
{
	va_list arguments;
	char *result;

	va_start(arguments, format);
	assert_true(vasprintf(&result, format, arguments) >= 0);
	va_end(arguments);
	return result;
}

static inline void write_file(const char *path, const void *data, size_t len)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static inline char *read_file(const char *path, size_t *len)
{
	FILE *file = fopen(path, "re");
	char *data;

	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	*len = (size_t)ftell(file);
	rewind(file);
	data = malloc(*len + 1);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, *len, file), *len);
	data[*len] = '\0';
	fclose(file);
	return data;
}

/* Everything a command prints. It must succeed. Takes over the command. */
static inline char *output_of(char *command)
{
	size_t size = 0;
	size_t capacity = 1 << 22;
	char *all = malloc(capacity);
	FILE *pipe = popen(command, "re");

	assert_non_null(all);
	assert_non_null(pipe);
	size = fread(all, 1, capacity - 1, pipe);
	all[size] = '\0';
	if (pclose(pipe))
		fail_msg("failed: %s", command);
	free(command);
	return all;
}

static inline void run(char *command)
{
	free(output_of(command));
}

/* Build a program; its path. */
static inline char *build(const char *name, const char *compiler, const char *options)
{
	bool cpp = strstr(compiler, "++");
	char *source = text("%s/%s.%s", directory, name, cpp ? "cc" : "c");
	char *path = text("%s/%s", directory, name);

	write_file(source, cpp ? cpp_source : c_source, strlen(cpp ? cpp_source : c_source));
	run(text("%s %s -o %s %s", compiler, options, path, source));
	free(source);
	return path;
}

static inline uint64_t nm_value(const char *path, const char *symbol)
{
	char *line = output_of(text("nm %s | grep -w %s", path, symbol));
	uint64_t value = strtoull(line, NULL, 16);

	free(line);
	return value;
}

static inline size_t look_up(struct symbolizer *symbolizer, pid_t pid, uint64_t address,
			     struct frame *frames)
{
	return symbolizer_user(symbolizer, pid, address, false, frames, FRAMES);
}

/* Map a file as code, as the kernel maps programs; its size to *len. */
static inline void *map_code(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	void *at;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	*len = (size_t)status.st_size;
	at = mmap(NULL, *len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(at != MAP_FAILED);
	close(fd);
	return at;
}

static inline int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static inline int remove_directory(void **state)
{
	(void)state;
	return remove_tree(directory);
}

#endif /* MEMTOLL_TESTS_PROGRAMS_H */
