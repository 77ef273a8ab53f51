// SPDX-License-Identifier: GPL-2.0
/*
 * Programs are built and started here; what the symbolizer says of their addresses is compared
 * with what addr2line, nm, readelf and c++filt (binutils, another DWARF reader) say.
 */
#define _GNU_SOURCE 1

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "measured.h"
#include "programs.h"
#include "symbolizing.h"

#if defined(__SANITIZE_ADDRESS__)
#define SLOWDOWN 10
#else
#define SLOWDOWN 1
#endif

#define LISTENER_FD "MEMTOLL_TEST_LISTENER"

struct target {
	pid_t pid;
	int input; /* closed: the target ends */
	uint64_t main;
	uint64_t visible;
	uint64_t hidden;
	uint64_t call; /* a return address inside main */
};

/* A program that prints four addresses and waits for the end of its input. */
static struct target start_command(char *const arguments[])
{
	struct target target = { 0 };
	int in[2];
	int out[2];
	FILE *file;

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	target.pid = fork();
	assert_true(target.pid >= 0);
	if (target.pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execv(arguments[0], arguments);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	target.input = in[1];
	file = fdopen(out[0], "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64, &target.main,
				&target.visible, &target.hidden, &target.call),
			 4);
	fclose(file);
	return target;
}

static struct target start(char *path)
{
	return start_command((char *const[]){ path, NULL });
}

static void stop(struct target *target)
{
	int status;

	close(target->input);
	assert_int_equal(waitpid(target->pid, &status, 0), target->pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* "function file:line" of each frame, one a line, as addr2line prints it. */
static void print_frames(const struct frame *frames, size_t count, char *line, size_t size)
{
	size_t used = 0;
	size_t i;

	line[0] = '\0';
	for (i = 0; i < count; i++) {
		used += (size_t)snprintf(line + used, size - used,
					 "%s\n%s:", *frames[i].function ? frames[i].function : "??",
					 *frames[i].file ? frames[i].file : "??");
		if (frames[i].line)
			used += (size_t)snprintf(line + used, size - used, "%u\n", frames[i].line);
		else
			used += (size_t)snprintf(line + used, size - used, "?\n");
	}
}

static void drop_discriminators(char *witness)
{
	char *at;

	while ((at = strstr(witness, " (discriminator "))) {
		char *end = strchr(at, ')');

		memmove(at, end + 1, strlen(end + 1) + 1);
	}
}

/* Every third byte of a function against addr2line. Returns the deepest nest of inlined calls. */
static size_t compare_function(char *path, const char *function, uint64_t bias)
{
	char *line = output_of(text("nm -S -C %s | grep -w '%s'", path, function));
	struct symbolizer *symbolizer = symbolizer__new();
	struct frame frames[FRAMES];
	struct target target;
	uint64_t start_at;
	uint64_t size;
	uint64_t at;
	size_t deepest = 0;

	assert_int_equal(sscanf(line, "%" SCNx64 " %" SCNx64, &start_at, &size), 2);
	free(line);
	assert_true(size > 3);
	target = start(path);
	if (bias)
		bias = target.main - nm_value(path, "main");
	assert_int_equal(symbolizer_show(symbolizer, target.pid, false), 0);
	for (at = start_at; at < start_at + size; at += 3) {
		char *witness = output_of(text("addr2line -f -i -C -e %s 0x%" PRIx64, path, at));
		char ours[16384];
		size_t count = look_up(symbolizer, target.pid, at + bias, frames);

		drop_discriminators(witness);
		print_frames(frames, count, ours, sizeof(ours));
		assert_string_equal(ours, witness);
		assert_string_equal(frames[0].module, path);
		assert_int_equal(frames[0].module_offset, at);
		assert_int_equal(frames[count - 1].symbol_offset, at - start_at);
		assert_int_equal(frames[0].kind, FRAME_NATIVE);
		deepest = count > deepest ? count : deepest;
		free(witness);
	}
	stop(&target);
	symbolizer__free(symbolizer);
	return deepest;
}

static void test_lines(void **state)
{
	char *path = build("plain", "gcc", "-g -O0");

	(void)state;
	compare_function(path, "visible", true);
	compare_function(path, "hidden", true);
	compare_function(path, "main", true);
	free(path);
	path = build("fixed", "gcc", "-gdwarf-4 -O0 -no-pie");
	compare_function(path, "visible", false);
	free(path);
}

static void test_inlined(void **state)
{
	char *path = build("inlined", "gcc", "-g -O2");

	(void)state;
	assert_int_equal(compare_function(path, "visible", true), 3);
	free(path);
	/* No .debug_aranges. DWARF 4, as binutils 2.40 does not find clang's inlined calls in 5. */
	path = build("inlined-clang", "clang", "-gdwarf-4 -O2");
	assert_int_equal(compare_function(path, "visible", true), 3);
	free(path);
}

/* Of a C library the names of symbols are read, and its lines are not. */
static void test_c_library(void **state)
{
	char *path = build("libc.so.6", "gcc", "-g -O2");
	struct symbolizer *symbolizer = symbolizer__new();
	struct frame frames[FRAMES];
	struct target target = start(path);

	(void)state;
	assert_int_equal(symbolizer_show(symbolizer, target.pid, false), 0);
	assert_int_equal(look_up(symbolizer, target.pid, target.visible + 1, frames), 1);
	assert_string_equal(frames[0].function, "visible");
	assert_string_equal(frames[0].file, "");
	assert_int_equal(frames[0].line, 0);
	assert_int_equal(frames[0].symbol_offset, 1);
	assert_int_equal(look_up(symbolizer, target.pid, target.hidden, frames), 1);
	assert_string_equal(frames[0].function, "hidden");
	stop(&target);
	symbolizer__free(symbolizer);
	free(path);
}

static void test_cpp(void **state)
{
	char *path = build("cpp", "g++", "-g -O1");
	struct symbolizer *symbolizer = symbolizer__new();
	struct target target = start(path);
	struct frame frames[FRAMES];

	(void)state;
	assert_int_equal(symbolizer_show(symbolizer, target.pid, false), 0);
	assert_int_equal(look_up(symbolizer, target.pid, target.visible, frames), 1);
	assert_string_equal(frames[0].function, "toll::buffer<double>::fill(double, int)");
	assert_int_equal(frames[0].line, 4);
	stop(&target);
	symbolizer__free(symbolizer);
	compare_function(path, "toll::buffer<double>::fill", true);
	free(path);
}

static void test_return_address(void **state)
{
	char *path = build("return", "gcc", "-g -O0");
	struct symbolizer *symbolizer = symbolizer__new();
	struct target target = start(path);
	struct frame frames[FRAMES];
	char ours[16384];
	char *witness;
	uint64_t bias = target.main - nm_value(path, "main");

	(void)state;
	assert_int_equal(symbolizer_show(symbolizer, target.pid, false), 0);
	assert_int_equal(symbolizer_user(symbolizer, target.pid, target.call, true, frames, FRAMES),
			 1);
	witness = output_of(text("addr2line -f -i -C -e %s 0x%" PRIx64, path,
				 target.call - 1 - bias));
	print_frames(frames, 1, ours, sizeof(ours));
	assert_string_equal(ours, witness);
	assert_int_equal(frames[0].module_offset, target.call - bias);
	assert_int_equal(frames[0].symbol_offset, target.call - target.main);
	free(witness);
	/* The first byte of a function as a return address: the call ended what lies before. */
	assert_int_equal(symbolizer_user(symbolizer, target.pid, target.main, true, frames, FRAMES),
			 1);
	assert_string_not_equal(frames[0].function, "main");
	stop(&target);
	symbolizer__free(symbolizer);
	free(path);
}

static void test_build_id(void **state)
{
	char *path = build("identified", "gcc", "-g -Wl,--build-id=0x00ff17a5");
	struct symbolizer *symbolizer = symbolizer__new();
	struct target target = start(path);
	struct frame frames[FRAMES];

	(void)state;
	assert_int_equal(symbolizer_show(symbolizer, target.pid, false), 0);
	look_up(symbolizer, target.pid, target.main, frames);
	assert_string_equal(frames[0].build_id, "00ff17a5");
	run(text("readelf -n %s | grep -q 'Build ID: %s'", path, frames[0].build_id));
	stop(&target);
	symbolizer__free(symbolizer);
	free(path);
}

static void test_stripped(void **state)
{
	char *path = build("stripped", "gcc", "-O1 -rdynamic");
	uint64_t hidden = nm_value(path, "hidden");
	struct symbolizer *symbolizer = symbolizer__new();
	struct frame frames[FRAMES];
	struct target target;

	(void)state;
	run(text("strip %s", path));
	target = start(path);
	assert_int_equal(symbolizer_show(symbolizer, target.pid, false), 0);
	assert_int_equal(look_up(symbolizer, target.pid, target.visible + 1, frames), 1);
	assert_string_equal(frames[0].function, "visible");
	assert_int_equal(frames[0].symbol_offset, 1);
	assert_int_equal(look_up(symbolizer, target.pid, target.hidden, frames), 1);
	assert_string_equal(frames[0].function, "");
	assert_string_equal(frames[0].module, path);
	assert_int_equal(frames[0].module_offset, hidden);
	stop(&target);
	symbolizer__free(symbolizer);
	free(path);
}

/* The function and line of hidden(), in a fresh symbolizer. */
static void expect_hidden(char *path, const char *function, uint32_t line)
{
	struct symbolizer *symbolizer = symbolizer__new();
	struct target target = start(path);
	struct frame frames[FRAMES];

	assert_int_equal(symbolizer_show(symbolizer, target.pid, false), 0);
	assert_int_equal(look_up(symbolizer, target.pid, target.hidden, frames), 1);
	assert_string_equal(frames[0].function, function);
	assert_int_equal(frames[0].line, line);
	stop(&target);
	symbolizer__free(symbolizer);
}

static void test_debuglink(void **state)
{
	static const char *const build_ids[] = { "none", "sha1" };
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		char *options = text("-g -O0 -Wl,--build-id=%s", build_ids[i]);
		char *path = build(build_ids[i], "gcc", options);
		char *debug = text("%s/.debug/%s.debug", directory, build_ids[i]);

		run(text("mkdir -p %s/.debug && objcopy --only-keep-debug %s %s && strip %s && "
			 "objcopy --add-gnu-debuglink=%s %s",
			 directory, path, debug, path, debug, path));
		expect_hidden(path, "hidden", 20);
		/* A debug file of another build must not be believed. */
		free(build("other", "gcc", "-g -O1 -Wl,--build-id=md5"));
		run(text("mv %s/other %s", directory, debug));
		expect_hidden(path, "", 0);
		free(options);
		free(path);
		free(debug);
	}
}

/* A process whose root directory is another one, with debug files of its own. */
static void test_container(void **state)
{
	char *path = build("contained", "gcc", "-g -O0 -static -Wl,--build-id=0x00ff17a5");
	char *root = text("%s/root", directory);
	char *const command[] = { "/usr/sbin/chroot", root, "/contained", NULL };
	struct symbolizer *symbolizer = symbolizer__new();
	struct frame frames[FRAMES];
	struct target target;

	(void)state;
	if (geteuid() || access(command[0], X_OK))
		skip();
	/* By way of an absolute link, which must be followed inside that root. */
	run(text("mkdir -p %s/usr/lib %s/symbols/.build-id/00 && "
		 "ln -s /symbols %s/usr/lib/debug && "
		 "objcopy --only-keep-debug %s %s/symbols/.build-id/00/ff17a5.debug && "
		 "strip -o %s/contained %s",
		 root, root, root, path, root, root, path));
	target = start_command(command);
	assert_int_equal(symbolizer_show(symbolizer, target.pid, false), 0);
	stop(&target);
	assert_int_equal(look_up(symbolizer, target.pid, target.hidden, frames), 1);
	assert_string_equal(frames[0].function, "hidden");
	assert_int_equal(frames[0].line, 20);
	/* In our mount namespace still, so the kernel tells its paths from our root. */
	assert_non_null(strstr(frames[0].module, "/contained"));
	symbolizer__free(symbolizer);
	free(root);
	free(path);
}

static void test_deleted(void **state)
{
	char *path = build("deleted", "gcc", "-g -O0");
	struct symbolizer *symbolizer = symbolizer__new();
	struct target target = start(path);
	struct frame frames[FRAMES];

	(void)state;
	/* Replaced by another program, as an upgrade does. */
	assert_int_equal(unlink(path), 0);
	run(text("cp /bin/true %s", path));
	assert_int_equal(symbolizer_show(symbolizer, target.pid, false), 0);
	assert_int_equal(look_up(symbolizer, target.pid, target.visible, frames), 1);
	/* Without privileges the old file cannot be reached; never the new file's names. */
	if (geteuid() == 0) {
		assert_string_equal(frames[0].function, "visible");
		assert_int_equal(frames[0].line, 14);
	} else {
		assert_string_not_equal(frames[0].function, "main");
	}
	assert_string_equal(frames[0].module, path);
	stop(&target);
	symbolizer__free(symbolizer);
	free(path);
}

static void test_exited(void **state)
{
	char *path = build("exited", "gcc", "-g -O0");
	struct symbolizer *symbolizer = symbolizer__new();
	struct target target = start(path);
	struct frame frames[FRAMES];

	(void)state;
	assert_int_equal(symbolizer_show(symbolizer, target.pid, false), 0);
	assert_int_equal(unlink(path), 0);
	stop(&target);
	assert_int_equal(look_up(symbolizer, target.pid, target.visible, frames), 1);
	assert_string_equal(frames[0].function, "visible");
	/* Gone: nothing new to see, and what was seen stays. */
	assert_true(symbolizer_show(symbolizer, target.pid, false) < 0);
	look_up(symbolizer, target.pid, target.hidden, frames);
	assert_string_equal(frames[0].function, "hidden");
	assert_true(symbolizer_has_code(symbolizer, target.pid, target.hidden));
	assert_false(symbolizer_has_code(symbolizer, target.pid, 1));
	/* Gone right after exec: the old program's names would be wrong. */
	assert_true(symbolizer_show(symbolizer, target.pid, true) < 0);
	look_up(symbolizer, target.pid, target.hidden, frames);
	assert_string_equal(frames[0].function, "");
	symbolizer__free(symbolizer);
	free(path);
}

static void test_forked(void **state)
{
	const pid_t child = 4194301; /* need not exist */
	char *path = build("forked", "gcc", "-g -O0");
	struct symbolizer *symbolizer = symbolizer__new();
	struct target target = start(path);
	struct frame frames[FRAMES];

	(void)state;
	assert_int_equal(symbolizer_fork(symbolizer, target.pid, child), -ESRCH);
	assert_int_equal(symbolizer_show(symbolizer, target.pid, false), 0);
	assert_int_equal(symbolizer_fork(symbolizer, target.pid, child), 0);
	/* The parent goes on to another program: not the child's business. */
	symbolizer_show(symbolizer, target.pid, true);
	look_up(symbolizer, child, target.visible, frames);
	assert_string_equal(frames[0].function, "visible");
	/* And it goes by itself. */
	symbolizer_forget(symbolizer, child);
	symbolizer_forget(symbolizer, child);
	look_up(symbolizer, child, target.visible, frames);
	assert_string_equal(frames[0].function, "");
	assert_false(symbolizer_has_code(symbolizer, child, target.visible));
	stop(&target);
	symbolizer__free(symbolizer);
	free(path);
}

static void test_unmapped(void **state)
{
	char *path = build("unmapped", "gcc", "-g -O0");
	uint64_t offset = nm_value(path, "visible"); /* file offset too: .text of a PIE */
	struct symbolizer *symbolizer = symbolizer__new();
	struct frame frames[FRAMES];
	uint64_t address;
	size_t len;
	char *at = map_code(path, &len);

	(void)state;
	address = (uint64_t)(uintptr_t)at + offset;
	assert_int_equal(symbolizer_show(symbolizer, getpid(), false), 0);
	munmap(at, len);
	assert_int_equal(symbolizer_show(symbolizer, getpid(), false), 0);
	look_up(symbolizer, getpid(), address, frames);
	assert_string_equal(frames[0].function, "visible");
	assert_int_equal(symbolizer_show(symbolizer, getpid(), true), 0);
	look_up(symbolizer, getpid(), address, frames);
	assert_string_equal(frames[0].function, "");
	assert_string_equal(frames[0].module, "");
	symbolizer__free(symbolizer);
	free(path);
}

static void test_unknown(void **state)
{
	struct symbolizer *symbolizer = symbolizer__new();
	struct frame frames[2];

	(void)state;
	assert_int_equal(symbolizer_user(symbolizer, getpid(), 0, true, frames, 2), 1);
	assert_string_equal(frames[0].function, "");
	assert_int_equal(symbolizer_show(symbolizer, getpid(), false), 0);
	assert_int_equal(symbolizer_user(symbolizer, getpid(), 0, true, frames, 2), 1);
	assert_int_equal(symbolizer_user(symbolizer, getpid(), UINT64_MAX, true, frames, 2), 1);
	assert_string_equal(frames[0].module, "");
	assert_string_equal(frames[0].build_id, "");
	assert_int_equal(symbolizer_user(symbolizer, getpid(), 4099, false, frames, 0), 0);
	symbolizer__free(symbolizer);
	symbolizer__free(NULL);
}

static void test_vdso(void **state)
{
	void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
	struct symbolizer *symbolizer = symbolizer__new();
	struct frame frames[FRAMES];
	uint64_t address;

	(void)state;
	if (!vdso) {
		skip();
		return;
	}
	address = (uint64_t)(uintptr_t)dlsym(vdso, "__vdso_clock_gettime");
	assert_int_not_equal(address, 0);
	assert_int_equal(symbolizer_show(symbolizer, getpid(), false), 0);
	assert_int_equal(look_up(symbolizer, getpid(), address, frames), 1);
	/* Two names of one address. */
	assert_true(dlsym(vdso, frames[0].function) == (void *)(uintptr_t)address);
	assert_string_equal(frames[0].module, "[vdso]");
	assert_int_equal(frames[0].module_offset, address - getauxval(AT_SYSINFO_EHDR));
	dlclose(vdso);
	symbolizer__free(symbolizer);
}

static void test_libc(void **state)
{
	static const char *const names[] = { "malloc", "calloc", "free", "qsort", "fopen" };
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	struct symbolizer *symbolizer = symbolizer__new();
	struct frame frames[FRAMES];
	size_t i;

	(void)state;
	assert_non_null(libc);
	assert_int_equal(symbolizer_show(symbolizer, getpid(), false), 0);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *at = dlsym(libc, names[i]);
		size_t count = look_up(symbolizer, getpid(), (uint64_t)(uintptr_t)at, frames);
		Dl_info info;

		assert_int_not_equal(dladdr(at, &info), 0);
		assert_string_equal(frames[count - 1].function, names[i]);
		assert_int_equal(frames[0].module_offset,
				 (uint64_t)((char *)at - (char *)info.dli_fbase));
		assert_non_null(strstr(frames[0].module, "libc"));
	}
	dlclose(libc);
	symbolizer__free(symbolizer);
}

/* One more file than the soft limit leaves room for. */
static void test_descriptors(void **state)
{
	struct symbolizer *symbolizer = symbolizer__new();
	struct rlimit before;
	struct rlimit tight;
	struct rlimit after;
	struct frame frames[FRAMES];
	pid_t child;
	int status;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	tight = before;
	tight.rlim_cur = 16;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	assert_int_equal(symbolizer_show(symbolizer, getpid(), false), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &after), 0);
	assert_true(after.rlim_cur > tight.rlim_cur);
	assert_true(after.rlim_cur <= before.rlim_max);
	look_up(symbolizer, getpid(), (uint64_t)(uintptr_t)test_descriptors, frames);
	assert_string_equal(frames[0].function, "test_descriptors");
	symbolizer__free(symbolizer);
	/* A soft limit that cannot be raised: no names, but where the code lies. */
	tight.rlim_max = 64;
	tight.rlim_cur = 64;
	child = fork();
	if (child == 0) {
		symbolizer = symbolizer__new();
		setrlimit(RLIMIT_NOFILE, &tight);
		if (symbolizer_show(symbolizer, getpid(), false))
			_exit(2);
		look_up(symbolizer, getpid(), (uint64_t)(uintptr_t)test_descriptors, frames);
		_exit(*frames[0].function == '\0' && frames[0].module_offset ? 0 : 3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* DEBUGINFOD_URLS points at a listener of this test (see main()): nobody may call it. */
static void test_no_network(void **state)
{
	char *path = build("offline", "gcc", "-O1");
	const char *number = getenv(LISTENER_FD);
	int listener = number ? atoi(number) : -1;

	(void)state;
	assert_non_null(getenv("DEBUGINFOD_URLS"));
	run(text("strip %s", path));
	expect_hidden(path, "", 0);
	assert_int_equal(accept4(listener, NULL, NULL, SOCK_CLOEXEC), -1);
	assert_int_equal(errno, EAGAIN);
	/* Commands that are started later still have it. */
	assert_non_null(getenv("DEBUGINFOD_URLS"));
	free(path);
}

/* A program and the C library, ten thousand addresses. */
static void test_speed(void **state)
{
	char *const python[] = {
		"/usr/bin/python3",
		"-c",
		"import sys; print('1 2 3 4', flush=True); sys.stdin.read()",
		NULL,
	};
	struct symbolizer *symbolizer = symbolizer__new();
	struct frame frames[FRAMES];
	struct target target;
	struct timespec begin;
	struct timespec end;
	unsigned int wanted = 10007;
	unsigned int named = 0;
	unsigned int done = 0;
	unsigned int round;
	char line[64];
	char entry[4352];
	double seconds;
	FILE *maps;

	(void)state;
	if (access(python[0], X_OK))
		skip();
	target = start_command(python);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	assert_int_equal(symbolizer_show(symbolizer, target.pid, false), 0);
	snprintf(line, sizeof(line), "/proc/%d/maps", target.pid);
	for (round = 0; done < wanted; round++) {
		maps = fopen(line, "re");
		assert_non_null(maps);
		while (fgets(entry, sizeof(entry), maps)) {
			uint64_t from;
			uint64_t to;
			uint64_t at;

			if (!strstr(entry, "r-xp") ||
			    (!strstr(entry, "libc") && !strstr(entry, "python")) ||
			    sscanf(entry, "%" SCNx64 "-%" SCNx64, &from, &to) != 2)
				continue;
			for (at = from + round; at < to && done < wanted; at += 1009, done++) {
				look_up(symbolizer, target.pid, at, frames);
				named += *frames[0].function != '\0';
			}
		}
		fclose(maps);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
	print_message("%u addresses, %u named, %.3f s\n", done, named, seconds);
	/* Most of Python's functions have no symbol, and libc6-dbg may not be installed. */
	assert_true(named > wanted / 13);
	assert_true(!times_count() || seconds < 2.0 * SLOWDOWN);
	stop(&target);
	symbolizer__free(symbolizer);
}

/* libdw looks at DEBUGINFOD_URLS when it is loaded, so the program begins anew with it set. */
static int begin_with_listener(char **arguments)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	char value[64];

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, len) ||
	    listen(listener, 1) || getsockname(listener, (struct sockaddr *)&address, &len))
		return 1;
	snprintf(value, sizeof(value), "http://127.0.0.1:%u", ntohs(address.sin_port));
	setenv("DEBUGINFOD_URLS", value, 1);
	snprintf(value, sizeof(value), "%d", listener);
	setenv(LISTENER_FD, value, 1);
	execv("/proc/self/exe", arguments);
	return 1;
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),	   cmocka_unit_test(test_inlined),
		cmocka_unit_test(test_cpp),	   cmocka_unit_test(test_return_address),
		cmocka_unit_test(test_build_id),   cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_debuglink),  cmocka_unit_test(test_container),
		cmocka_unit_test(test_deleted),	   cmocka_unit_test(test_exited),
		cmocka_unit_test(test_forked),	   cmocka_unit_test(test_unmapped),
		cmocka_unit_test(test_unknown),	   cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_libc),	   cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_no_network), cmocka_unit_test(test_speed),
		cmocka_unit_test(test_c_library),
	};

	(void)count;
	if (!getenv(LISTENER_FD))
		return begin_with_listener(arguments);
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
