// SPDX-License-Identifier: GPL-2.0
/*
 * test_modules.c: allocators and memset of real processes: this machine's C library, the
 * preloadable allocators, musl, static programs and files made up here. Broken files:
 * test_modules_hostile.c. Witnesses: nm, readelf and objdump (binutils), and a memset that is
 * single-stepped.
 */
#define _GNU_SOURCE 1

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocators/modules.h"

#define RANGES 16

static char directory[] = "/tmp/test_libc.XXXXXX";

static const char *const fn_names[FN_COUNT] = {
	[FN_MALLOC] = "malloc",
	[FN_CALLOC] = "calloc",
	[FN_REALLOC] = "realloc",
	[FN_REALLOCARRAY] = "reallocarray",
	[FN_FREE] = "free",
	[FN_POSIX_MEMALIGN] = "posix_memalign",
	[FN_ALIGNED_ALLOC] = "aligned_alloc",
	[FN_MEMALIGN] = "memalign",
};

/* Answers each line with the address of its memset, after having used it. */
static const char program[] =
	"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
	"int main(void)\n{\n"
	"	void *(*volatile set)(void *, int, size_t) = memset;\n"
	"	char *(*volatile get)(size_t) = (char *(*)(size_t))malloc;\n"
	"	for (int c = getchar(); c != EOF; c = getchar()) {\n"
	"		char *block = get(1009);\n"
	"		set(block, c, 1009);\n"
	"		if (block[1008] != (char)c)\n			return 1;\n"
	"		free(block);\n"
	"		printf(\"%p\\n\", (void *)set);\n		fflush(stdout);\n"
	"	}\n	return 0;\n}\n";

static const char calloc_only[] =
	"#include <stddef.h>\n"
	"static char pool[1 << 16];\nstatic size_t used;\n"
	"void *calloc(size_t n, size_t size)\n{\n"
	"	size_t start = __atomic_fetch_add(&used, (n * size + 15) & ~15ul, 0);\n"
	"	return start + n * size <= sizeof(pool) ? pool + start : NULL;\n}\n";

/* A memset that is an IFUNC and that its own file never calls, so has no IRELATIVE slot. */
static const char indirect_memset[] =
	"#include <stddef.h>\n"
	"static void *fill(void *to, int c, size_t n)\n{\n"
	"	for (volatile char *p = to; n--; p++)\n		*p = (char)c;\n"
	"	return to;\n}\n"
	"static void *(*resolve(void))(void *, int, size_t) { return fill; }\n"
	"void *memset(void *, int, size_t) __attribute__((ifunc(\"resolve\")));\n";

/* A loader that is only that: no malloc of it may count, so give it one. */
static const char loader_like[] =
	"#include <stddef.h>\n"
	"static char pool[4096];\n"
	"void *malloc(size_t n) { return n < sizeof(pool) ? pool : NULL; }\n";

static void run(const char *format, ...)
{
	char command[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	if (system(command) != 0)
		fail_msg("failed: %s", command);
}

static void compile(const char *compiler, const char *options, const char *source, const char *name)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/source.c", directory);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(source, file) >= 0);
	assert_int_equal(fclose(file), 0);
	run("%s -O2 -fno-builtin -o %s/%s %s %s/source.c", compiler, directory, name, options,
	    directory);
}

struct child {
	pid_t pid;
	FILE *to;
	FILE *from;
	struct maps maps;
	uint64_t memset; /* what the child says */
	struct allocator_module *modules;
	size_t count;
	struct code_range ranges[RANGES];
	size_t range_count;
};

static bool in_ranges(const struct child *child, uint64_t address)
{
	for (size_t i = 0; i < child->range_count; i++)
		if (address >= child->ranges[i].start && address < child->ranges[i].end)
			return true;
	return false;
}

/* Run the test's program; it has answered, so its libraries are all there, and is looked at. */
static void start(struct child *child, const char *name, const char *preload)
{
	int to[2], from[2];
	char path[256];
	ssize_t count;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	child->pid = fork();
	assert_true(child->pid >= 0);
	if (child->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(to[0], 0);
		dup2(from[1], 1);
		if (preload)
			setenv("LD_PRELOAD", preload, 1);
		execl(path, path, NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	child->to = fdopen(to[1], "w");
	child->from = fdopen(from[0], "r");
	assert_true(fputs("\n", child->to) >= 0);
	fflush(child->to);
	assert_int_equal(fscanf(child->from, "%lx", &child->memset), 1);
	assert_int_equal(maps_read(child->pid, &child->maps), 0);
	assert_int_equal(allocator_modules_find(child->pid, &child->maps, &child->modules,
						&child->count),
			 0);
	count = memory_code(child->pid, &child->maps, child->ranges, RANGES);
	assert_true(count >= 0);
	child->range_count = (size_t)count;
	for (size_t i = 0; i < child->range_count; i++)
		assert_true(child->ranges[i].start < child->ranges[i].end);
}

static void stop(struct child *child)
{
	int status;

	allocator_modules_free(child->modules, child->count);
	maps_free(&child->maps);
	fclose(child->to);
	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	assert_int_equal(status, 0);
	fclose(child->from);
}

/* Address of a symbol as nm has it; dynamic: the default version of .dynsym. 0: not there. */
static uint64_t address_by_nm(const char *path, const char *name, bool dynamic)
{
	char command[1024], line[256];
	uint64_t address = 0;
	FILE *pipe;

	snprintf(command, sizeof(command),
		 "nm %s --defined-only '%s' | awk '$2 ~ /[TtWi]/ && $3 ~ /^%s(@@.*)?$/ {print $1}'",
		 dynamic ? "-D" : "", path, name);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	if (fgets(line, sizeof(line), pipe))
		address = strtoull(line, NULL, 16);
	pclose(pipe);
	return address;
}

/* File offset of an address, by the program headers that readelf prints. */
static uint64_t offset_by_readelf(const char *path, uint64_t address)
{
	uint64_t offset, virtual, physical, size, result = 0;
	char command[1024], line[256];
	FILE *pipe;

	snprintf(command, sizeof(command), "readelf -lW '%s'", path);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe))
		if (sscanf(line, " LOAD %lx %lx %lx %lx", &offset, &virtual, &physical, &size) ==
			    4 &&
		    address >= virtual && address < virtual + size)
			result = address - virtual + offset;
	pclose(pipe);
	return result;
}

/* Does objdump, decoding from the symbol, see a whitelisted instruction begin at the place? */
static bool confirmed_by_objdump(const char *path, uint64_t address, uint32_t offset)
{
	static const char *const patterns[] = {
		"5? ",	  "41 5? ",	     "7? ?? ", "0f 8? ?? ?? ?? ?? ",
		"eb ?? ", "e9 ?? ?? ?? ?? ", "90 ",    "66 90 ",
	};
	char command[1024], line[256], bytes[64];
	bool confirmed = false;
	uint64_t at;
	FILE *pipe;

	snprintf(command, sizeof(command),
		 "objdump -d -w --start-address=0x%lx --stop-address=0x%lx '%s'", address,
		 address + 64, path);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		if (sscanf(line, " %lx:%*1[\t]%63[0-9a-f ]", &at, bytes) != 2 ||
		    at != address + offset)
			continue;
		for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
			const char *pattern = patterns[i];
			size_t n = strlen(pattern), j = 0;

			while (j < n && (pattern[j] == '?' || pattern[j] == bytes[j]))
				j++;
			/* The bytes are padded with spaces, and nothing else may follow. */
			confirmed |= j == n && strspn(bytes + n, " ") == strlen(bytes + n);
		}
	}
	pclose(pipe);
	return confirmed;
}

static const struct probe_point *point_of(const struct allocator_module *module, enum memtoll_fn fn)
{
	for (size_t i = 0; i < module->point_count; i++)
		if (module->points[i].fn == fn)
			return &module->points[i];
	return NULL;
}

/* Every point against nm, readelf and objdump; every function that nm knows has a point. */
static void check_module(const struct allocator_module *module, bool dynamic)
{
	print_message("%s: %s %s\n", module->path, allocator_kind_name(module->kind),
		      module->version);
	assert_true(module->fd >= 0);
	for (enum memtoll_fn fn = FN_MALLOC; fn < FN_COUNT; fn++) {
		uint64_t address = address_by_nm(module->path, fn_names[fn], dynamic);
		uint64_t offset = address ? offset_by_readelf(module->path, address) : 0;
		const struct probe_point *point = point_of(module, fn);
		bool shared = false;

		for (size_t i = 0; i < module->point_count; i++)
			shared |= module->points[i].symbol_offset == offset;
		assert_int_equal(shared, address != 0);
		if (!point)
			continue;
		assert_int_equal(point->symbol_offset, offset);
		print_message("  %-14s +%u %s%s, %u pushed\n", fn_names[fn], point->place.offset,
			      point->place.instruction, point->place.refusal, point->place.pushed);
		assert_int_equal(point->place.found, point->place.refusal[0] == '\0');
		if (point->place.found)
			assert_true(confirmed_by_objdump(module->path, address,
							 point->place.offset));
		if (fn != FN_FREE)
			assert_int_equal(point->place.pushed, 0);
	}
}

static const struct allocator_module *module_named(const struct child *child, const char *part)
{
	for (size_t i = 0; i < child->count; i++)
		if (strstr(child->modules[i].path, part))
			return &child->modules[i];
	return NULL;
}

static bool is_mapped(const struct child *child, const char *part)
{
	for (size_t i = 0; i < child->maps.count; i++)
		if (strstr(child->maps.entries[i].path, part))
			return true;
	return false;
}

static void test_glibc(void **state)
{
	static const struct {
		enum memtoll_fn fn;
		uint32_t offset;
	} debian_12[] = {
		{ FN_MALLOC, 0 }, { FN_CALLOC, 0 },	    { FN_REALLOC, 0 },
		{ FN_FREE, 3 },	  { FN_POSIX_MEMALIGN, 7 }, { FN_ALIGNED_ALLOC, 7 },
	};
	struct child child;
	struct stat st;

	(void)state;
	start(&child, "dynamic", NULL);
	assert_int_equal(child.count, 1);
	assert_int_equal(child.modules[0].kind, ALLOCATOR_GLIBC);
	assert_string_equal(child.modules[0].version, gnu_get_libc_version());
	assert_int_equal(fstat(child.modules[0].fd, &st), 0);
	assert_int_equal(st.st_ino, child.modules[0].inode);
	check_module(&child.modules[0], true);
	/* memalign is aligned_alloc's alias there */
	assert_non_null(point_of(&child.modules[0], FN_ALIGNED_ALLOC));
	assert_null(point_of(&child.modules[0], FN_MEMALIGN));
	if (strcmp(child.modules[0].version, "2.36") == 0) {
		for (size_t i = 0; i < sizeof(debian_12) / sizeof(debian_12[0]); i++) {
			const struct placement *place =
				&point_of(&child.modules[0], debian_12[i].fn)->place;

			assert_true(place->found);
			assert_int_equal(place->offset, debian_12[i].offset);
		}
	}
	assert_true(child.range_count >= 1 && child.range_count <= 8);
	assert_true(in_ranges(&child, child.memset));
	stop(&child);
}

static void check_preload(const char *library, enum allocator_kind kind)
{
	const struct allocator_module *module;
	char part[64];
	struct child child;

	snprintf(part, sizeof(part), "/%s", library);
	start(&child, "dynamic", library);
	if (!is_mapped(&child, part)) {
		print_message("%s is not installed\n", library);
		stop(&child);
		skip();
	}
	assert_int_equal(child.count, 2);
	module = module_named(&child, part);
	assert_non_null(module);
	assert_int_equal(module->kind, kind);
	assert_true(module->version[0] >= '0' && module->version[0] <= '9');
	assert_int_equal(module->linkage, LINKAGE_DYNAMIC);
	assert_int_equal(allocator_linkage(child.pid, module), LINKAGE_PRELOADED);
	check_module(module, true);
	module = module_named(&child, "/libc.so.6");
	assert_non_null(module);
	assert_int_equal(allocator_linkage(child.pid, module), LINKAGE_DYNAMIC);
	assert_int_equal(module->kind, ALLOCATOR_GLIBC);
	assert_true(in_ranges(&child, child.memset));
	stop(&child);
}

static void test_jemalloc(void **state)
{
	(void)state;
	check_preload("libjemalloc.so.2", ALLOCATOR_JEMALLOC);
}

static void test_tcmalloc(void **state)
{
	(void)state;
	check_preload("libtcmalloc.so.4", ALLOCATOR_TCMALLOC);
}

static void test_tcmalloc_minimal(void **state)
{
	(void)state;
	check_preload("libtcmalloc_minimal.so.4", ALLOCATOR_TCMALLOC);
}

static void test_mimalloc(void **state)
{
	(void)state;
	check_preload("libmimalloc.so.2", ALLOCATOR_MIMALLOC);
}

static void test_unknown_calloc(void **state)
{
	const struct allocator_module *module;
	struct child child;
	char path[256];

	(void)state;
	compile("gcc", "-shared -fPIC", calloc_only, "calloc_only.so");
	snprintf(path, sizeof(path), "%s/calloc_only.so", directory);
	start(&child, "dynamic", path);
	assert_int_equal(child.count, 2);
	module = module_named(&child, "/calloc_only.so");
	assert_non_null(module);
	assert_int_equal(module->kind, ALLOCATOR_UNKNOWN);
	assert_int_equal(module->point_count, 1);
	assert_int_equal(module->points[0].fn, FN_CALLOC);
	check_module(module, true);
	stop(&child);
}

/* A file whose soname is a dynamic loader's keeps its malloc to itself. */
static void test_loader(void **state)
{
	struct child child;
	char path[256];

	(void)state;
	compile("gcc", "-shared -fPIC -Wl,-soname,ld-other.so.1", loader_like, "libother.so");
	compile("gcc", "", program, "plain");
	snprintf(path, sizeof(path), "%s/libother.so", directory);
	start(&child, "plain", NULL);
	assert_true(is_mapped(&child, "/ld-linux-x86-64.so.2"));
	assert_null(module_named(&child, "/ld-linux-x86-64.so.2"));
	stop(&child);
	compile("gcc", "-shared -fPIC -Wl,-soname,ld-other.so.1", calloc_only, "libother.so");
	start(&child, "plain", path);
	assert_true(is_mapped(&child, "/libother.so"));
	assert_null(module_named(&child, "/libother.so"));
	assert_int_equal(child.count, 1);
	stop(&child);
}

static void require(const char *tool)
{
	char command[128];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", tool);
	if (system(command) != 0) {
		print_message("%s is not installed\n", tool);
		skip();
	}
}

/* musl's dynamic loader is its C library. */
static void test_musl(void **state)
{
	struct child child;

	(void)state;
	require("musl-gcc");
	compile("musl-gcc", "", program, "musl");
	start(&child, "musl", NULL);
	assert_int_equal(child.count, 1);
	assert_int_equal(child.modules[0].kind, ALLOCATOR_MUSL);
	check_module(&child.modules[0], true);
	assert_true(in_ranges(&child, child.memset));
	stop(&child);
}

static void test_musl_static(void **state)
{
	struct child child;

	(void)state;
	require("musl-gcc");
	compile("musl-gcc", "-static", program, "musl-static");
	start(&child, "musl-static", NULL);
	assert_int_equal(child.count, 1);
	assert_int_equal(child.modules[0].kind, ALLOCATOR_MUSL);
	check_module(&child.modules[0], false);
	assert_true(in_ranges(&child, child.memset));
	stop(&child);
}

/* Is each range a function of the static program that clears or copies, by its name? */
static void check_names(const struct child *child, const char *path, uint64_t bias)
{
	for (size_t i = 0; i < child->range_count; i++)
		run("nm '%s' | grep -i '^0*%lx ' | grep -E 'mem(set|cpy|move)|mempcpy|bzero' >/dev/null",
		    path, child->ranges[i].start - bias);
}

static void check_static(const char *options, const char *name)
{
	struct child child;
	char path[256];
	uint64_t bias = 0;

	compile("gcc", options, program, name);
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	start(&child, name, NULL);
	assert_int_equal(child.count, 1);
	assert_non_null(point_of(&child.modules[0], FN_MALLOC));
	assert_string_equal(child.modules[0].path, path);
	assert_int_equal(child.modules[0].kind, ALLOCATOR_GLIBC);
	check_module(&child.modules[0], false);
	assert_true(child.range_count >= 1 && child.range_count <= 8);
	for (size_t i = child.maps.count; strstr(options, "pie") && i-- > 0;)
		if (strcmp(child.maps.entries[i].path, path) == 0)
			bias = child.maps.entries[i].start;
	/* A program at a fixed address takes a function's PLT entry for its address. */
	if (bias)
		assert_true(in_ranges(&child, child.memset));
	check_names(&child, path, bias);
	stop(&child);
}

static void test_glibc_static(void **state)
{
	(void)state;
	check_static("-static", "static");
	check_static("-static-pie -fPIE", "static-pie");
}

/* Without symbols a static program tells whose allocator it has, but not where. */
static void test_static_stripped(void **state)
{
	struct child child;

	(void)state;
	compile("gcc", "-static -s", program, "stripped");
	start(&child, "stripped", NULL);
	assert_int_equal(child.count, 1);
	assert_int_equal(child.modules[0].kind, ALLOCATOR_GLIBC);
	assert_int_equal(child.modules[0].linkage, LINKAGE_STATIC);
	assert_int_equal(child.modules[0].point_count, 0);
	assert_int_equal(child.range_count, 0);
	stop(&child);
}

static void check_indirect(const char *options, const char *name)
{
	struct child child;
	char path[256];

	compile("gcc", options, program, name);
	compile("gcc", "-shared -fPIC", indirect_memset, "indirect.so");
	snprintf(path, sizeof(path), "%s/indirect.so", directory);
	start(&child, name, path);
	assert_non_null(strstr(maps_find(&child.maps, child.memset)->path, "/indirect.so"));
	assert_true(in_ranges(&child, child.memset));
	/* glibc's own is still there: libc itself calls it */
	assert_true(child.range_count >= 2 && child.range_count <= 8);
	stop(&child);
}

static void test_indirect_memset(void **state)
{
	(void)state;
	check_indirect("-fPIE -pie -Wl,-z,now", "bound-now");
	check_indirect("-fPIE -pie -Wl,-z,lazy", "bound-lazily");
}

static void test_moved_program(void **state)
{
	struct child child;

	(void)state;
	if (geteuid())
		skip(); /* what was deleted is opened by /proc/PID/map_files: CAP_SYS_ADMIN */
	compile("gcc", "-static", program, "deleted");
	start(&child, "deleted", NULL);
	stop(&child);
	run("cp %s/deleted %s/deleted2", directory, directory);
	start(&child, "deleted2", NULL);
	run("rm %s/deleted2", directory);
	allocator_modules_free(child.modules, child.count);
	maps_free(&child.maps);
	assert_int_equal(maps_read(child.pid, &child.maps), 0);
	assert_int_equal(
		allocator_modules_find(child.pid, &child.maps, &child.modules, &child.count), 0);
	assert_int_equal(child.count, 1);
	assert_true(child.maps.entries[0].deleted);
	stop(&child);
}

static void test_gone(void **state)
{
	struct allocator_module *modules;
	struct code_range ranges[RANGES];
	struct maps maps;
	size_t count;
	pid_t pid;

	(void)state;
	assert_int_equal(maps_read(getpid(), &maps), 0);
	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* The mappings of a living process under a dead one's number: the paths are still right. */
	assert_int_equal(allocator_modules_find(pid, &maps, &modules, &count), 0);
	allocator_modules_free(modules, count);
	for (size_t i = 0; i < maps.count; i++)
		if (maps.entries[i].inode)
			maps.entries[i].inode += 1u << 30;
	assert_true(allocator_modules_find(pid, &maps, &modules, &count) < 0);
	assert_int_equal(count, 0);
	allocator_modules_free(modules, count);
	assert_true(memory_code(pid, &maps, ranges, RANGES) < 0);
	maps_free(&maps);
}

#ifndef __SANITIZE_ADDRESS__
/* A child that calls one function between two stops. */
static pid_t start_traced(bool zero, size_t size)
{
	void *(*volatile set)(void *, int, size_t) = memset;
	void (*volatile clear)(void *, size_t) = bzero;
	char *volatile memory;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	memory = malloc(size);
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	if (zero)
		clear(memory, size);
	else
		set(memory, 7, size);
	_exit(0);
}

/*
 * Step the child through the call at entry. Its instructions must lie in the ranges, but for the
 * few of the PLT entry by which bzero reaches memset. Number of those inside.
 */
static size_t step_through(pid_t pid, uint64_t entry, const struct child *ranges)
{
	struct user_regs_struct regs;
	uint64_t stack = 0;
	size_t inside = 0, outside = 0;
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (;;) {
		assert_true(WIFSTOPPED(status));
		assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, &regs), 0);
		if (!stack && regs.rip == entry)
			stack = regs.rsp;
		if (stack && regs.rsp > stack)
			break;
		if (stack && in_ranges(ranges, regs.rip))
			inside++;
		else if (stack)
			outside++;
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(outside <= 3);
	return inside;
}

static void test_stepped_memset(void **state)
{
	/* Past 2 KiB it is the same loop, or the same string instruction, a step for each byte. */
	static const size_t sizes[] = { 3, 29, 61, 127, 251, 509, 1021, 4099 };
	struct child self = { 0 };
	void *(*volatile set)(void *, int, size_t) = memset;
	void (*volatile clear)(void *, size_t) = bzero;
	ssize_t count;

	(void)state;
	assert_int_equal(maps_read(getpid(), &self.maps), 0);
	count = memory_code(getpid(), &self.maps, self.ranges, RANGES);
	assert_true(count >= 1 && count <= 8);
	self.range_count = (size_t)count;
	for (size_t i = 0; i < self.range_count; i++)
		print_message("range %lx-%lx, %lu bytes\n", self.ranges[i].start,
			      self.ranges[i].end, self.ranges[i].end - self.ranges[i].start);
	assert_true(in_ranges(&self, (uint64_t)set));
	assert_true(in_ranges(&self, (uint64_t)clear));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t set_steps =
			step_through(start_traced(false, sizes[i]), (uint64_t)set, &self);
		size_t clear_steps =
			step_through(start_traced(true, sizes[i]), (uint64_t)clear, &self);

		print_message("%zu bytes: %zu steps of memset, %zu of bzero in the ranges\n",
			      sizes[i], set_steps, clear_steps);
		assert_true(set_steps >= 4);
		assert_true(clear_steps >= 4);
	}
	maps_free(&self.maps);
}
#endif

static int prepare(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	compile("gcc", "", program, "dynamic");
	return 0;
}

static int clean(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r '%s'", directory);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_glibc),		cmocka_unit_test(test_jemalloc),
		cmocka_unit_test(test_tcmalloc),	cmocka_unit_test(test_tcmalloc_minimal),
		cmocka_unit_test(test_mimalloc),	cmocka_unit_test(test_unknown_calloc),
		cmocka_unit_test(test_loader),		cmocka_unit_test(test_musl),
		cmocka_unit_test(test_musl_static),	cmocka_unit_test(test_glibc_static),
		cmocka_unit_test(test_static_stripped), cmocka_unit_test(test_indirect_memset),
		cmocka_unit_test(test_moved_program),	cmocka_unit_test(test_gone),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(test_stepped_memset),
#endif
	};

	return cmocka_run_group_tests(tests, prepare, clean);
}
