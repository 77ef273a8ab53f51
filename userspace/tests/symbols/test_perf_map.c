// SPDX-License-Identifier: GPL-2.0
/* This process plays the run-time that compiles code and writes a perf map of it. */
#define _GNU_SOURCE 1

#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolizing.h"
#include "symbols/perf_map.h"

#define FRAMES 7

static void look_up(struct symbolizer *symbolizer, uint64_t address, struct frame *frames)
{
	assert_int_equal(symbolizer_user(symbolizer, getpid(), address, false, frames, FRAMES), 1);
}

struct places {
	size_t count;
	uint64_t start[2];
};

static void add_place(void *context, uint64_t start, uint64_t end)
{
	struct places *places = context;

	assert_int_equal(end - start, 0x40);
	assert_true(places->count < 2);
	places->start[places->count++] = start;
}

/* Written over, and longer than before. */
static void check_written_anew(struct symbolizer *symbolizer, const char *path, uint64_t address)
{
	struct frame frames[FRAMES];
	struct places places = { 0 };
	FILE *file;
	int i;

	file = fopen(path, "we");
	fprintf(file, "%" PRIx64 " 40 second\n%" PRIx64 " 40 first\n", address + 0x40, address);
	for (i = 0; i < 100; i++)
		fputs("nonsense\n", file);
	fclose(file);
	assert_true(symbolizer_take_perf_map(symbolizer, getpid()));
	look_up(symbolizer, address + 0x40, frames);
	assert_string_equal(frames[0].function, "second");
	look_up(symbolizer, address + 0x80, frames);
	assert_string_equal(frames[0].function, "");
	symbolizer_each_generated(symbolizer, getpid(), add_place, &places);
	assert_int_equal(places.count, 2);
	assert_int_equal(places.start[0], address);
	assert_int_equal(places.start[1], address + 0x40);
	unlink(path);
	assert_false(symbolizer_take_perf_map(symbolizer, getpid()));
	look_up(symbolizer, address, frames);
	assert_string_equal(frames[0].function, "first");
}

static void test_perf_map(void **state)
{
	static const char lines[] = "nonsense\n\n-10 20 minus\nzz 10 no\n10 0 empty\n"
				    "ffffffffffffffff 10 beyond\n10\n10 20\n";
	struct symbolizer *symbolizer = symbolizer__new();
	char *code = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	char elsewhere[64];
	uint64_t address = (uint64_t)(uintptr_t)code;
	struct frame frames[FRAMES];
	FILE *file;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	snprintf(elsewhere, sizeof(elsewhere), "/tmp/perf-%d.elsewhere", getpid());
	assert_true(code != MAP_FAILED);
	/* Not a regular file of ours: neither followed nor waited for. */
	file = fopen(elsewhere, "we");
	fprintf(file, "%" PRIx64 " 1000 wrong\n", address);
	fclose(file);
	assert_int_equal(symlink(elsewhere, path), 0);
	assert_int_equal(symbolizer_show(symbolizer, getpid(), false), 0);
	look_up(symbolizer, address + 4, frames);
	assert_string_equal(frames[0].function, "");
	assert_int_equal(frames[0].kind, FRAME_JIT);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(symbolizer_show(symbolizer, getpid(), false), 0);
	assert_int_equal(unlink(path), 0);

	file = fopen(path, "we");
	assert_non_null(file);
	fprintf(file, "%s%" PRIx64 " 40 Main.loop(int) two words\n", lines, address);
	fflush(file);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12347, 12347), 0);
		assert_int_equal(symbolizer_show(symbolizer, getpid(), false), 0);
		look_up(symbolizer, address + 4, frames);
		assert_string_equal(frames[0].function, "");
		assert_int_equal(chown(path, 0, 0), 0);
	}
	assert_int_equal(symbolizer_show(symbolizer, getpid(), false), 0);
	look_up(symbolizer, address + 4, frames);
	assert_string_equal(frames[0].function, "Main.loop(int) two words");
	assert_int_equal(frames[0].kind, FRAME_JIT);
	assert_int_equal(frames[0].symbol_offset, 4);
	look_up(symbolizer, address + 0x40, frames);
	assert_string_equal(frames[0].function, "");
	/* The run-time compiles on; the end of the last line is not there yet. */
	fprintf(file, "%" PRIx64 " 40 later\n%" PRIx64 " 40 ha", address + 0x40, address + 0x80);
	fflush(file);
	look_up(symbolizer, address + 0x7f, frames);
	assert_string_equal(frames[0].function, "later");
	look_up(symbolizer, address + 0x80, frames);
	assert_string_equal(frames[0].function, "");
	fprintf(file, "lf\n");
	fclose(file);
	look_up(symbolizer, address + 0x80, frames);
	assert_string_equal(frames[0].function, "half");
	check_written_anew(symbolizer, path, address);
	unlink(elsewhere);
	munmap(code, 8192);
	symbolizer__free(symbolizer);
}

/* What a program may not read is not read for it; what one of its groups may, is. */
static void test_rights(void **state)
{
	const gid_t group = 12349;
	struct perf_map *map;
	char path[64], byte;
	int ready[2], fd;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		if (setgroups(1, &group) || setgid(65534) || setuid(65534) ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_null(perf_map_open(pid));
	assert_int_equal(fchown(fd, 0, group + 1), 0);
	assert_int_equal(fchmod(fd, 0640), 0);
	assert_null(perf_map_open(pid));
	assert_int_equal(fchown(fd, 0, group), 0);
	map = perf_map_open(pid);
	assert_non_null(map);
	perf_map_unref(map);
	assert_int_equal(fchown(fd, 0, 0), 0);
	assert_int_equal(fchmod(fd, 0644), 0);
	map = perf_map_open(pid);
	assert_non_null(map);
	perf_map_unref(map);
	assert_int_equal(unlink(path), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(fd);
	close(ready[0]);
	close(ready[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_perf_map),
		cmocka_unit_test(test_rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
