// SPDX-License-Identifier: GPL-2.0
/*
 * test_slow_check.c: that the places of the C library's slow way see what was asked for, each call
 * that goes there and no other. A child makes prime numbers of calls of known sizes as soon as the
 * breakpoints are in its code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/slow_check.h"
#include "symbols/image.h"

#define LARGE 503 /* blocks that the thread's cache does not take */
#define SMALL 4999
#define CLEARED 211
#define ALIGNED 307
#define MOVED 101
#define MAPPED 7

#define LARGE_BYTES 10007
#define SMALL_BYTES 24
#define MAPPED_BYTES (50 << 20)

#define BREAKPOINT 0xcc
#define WAIT_MS 60000

/* Of the parent, found before the child is forked: it has the same addresses. */
static struct allocator_module *module;
static struct slow_paths paths;
static struct maps maps;

/* The compiler would leave out what it knows. */
static void *(*volatile allocate)(size_t) = malloc;
static void *(*volatile clear)(size_t, size_t) = calloc;
static void *(*volatile move)(void *, size_t) = realloc;
static int (*volatile align)(void **, size_t, size_t) = posix_memalign;
static void (*volatile release)(void *) = free;

static struct probe_point *point_of(const char *name)
{
	for (size_t i = 0; i < module->point_count; i++)
		if (!strcmp(module->points[i].symbol, name))
			return &module->points[i];
	fail_msg("no %s", name);
	return NULL;
}

/* Until the kernel has put a breakpoint where each of the functions is probed. */
static void await_probes(void)
{
	static const char *const names[] = { "malloc", "calloc", "realloc", "posix_memalign",
					     "free" };
	size_t probed = 0;

	while (probed < G_N_ELEMENTS(names)) {
		probed = 0;
		for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
			const volatile uint8_t *code = dlsym(RTLD_DEFAULT, names[i]);

			probed += code[point_of(names[i])->place.offset] == BREAKPOINT;
		}
		usleep(1000);
	}
}

/* Number of calls that it makes: of malloc, calloc, realloc, posix_memalign, free. */
static const uint64_t calls[] = { LARGE + SMALL + 2 * MOVED + MAPPED, CLEARED, MOVED, ALIGNED,
				  LARGE + SMALL + MAPPED };

static void work(void)
{
	static void *blocks[LARGE], *kept[MOVED];

	for (size_t i = 0; i < LARGE; i++)
		blocks[i] = allocate(LARGE_BYTES);
	for (size_t i = 0; i < SMALL; i++)
		release(allocate(SMALL_BYTES));
	for (size_t i = 0; i < CLEARED; i++)
		clear(3, LARGE_BYTES);
	/* The block behind it is in use: it cannot grow where it is. */
	for (size_t i = 0; i < MOVED; i++) {
		kept[i] = allocate(LARGE_BYTES);
		allocate(LARGE_BYTES);
		kept[i] = move(kept[i], 3 * LARGE_BYTES);
	}
	for (size_t i = 0; i < ALIGNED; i++)
		if (align(&kept[0], 4096, LARGE_BYTES))
			abort();
	for (size_t i = 0; i < MAPPED; i++)
		release(allocate(MAPPED_BYTES));
	for (size_t i = 0; i < LARGE; i++)
		release(blocks[i]);
}

static pid_t start(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Makes the thread's cache, and puts a block of that size into it. */
	release(allocate(SMALL_BYTES));
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	await_probes();
	work();
	while (true)
		pause();
}

static void check(const char *name, uint64_t entered, uint64_t slow,
		  const struct slow_check *checks)
{
	const struct probe_point *point = point_of(name);
	const struct slow_check *check = &checks[point - module->points];

	if (check->entered != entered || check->agreed != slow || check->differed)
		fail_msg("%s: of %lu calls %lu went the slow way and %lu with something else, not "
			 "%lu of %lu",
			 name, check->entered, check->agreed, check->differed, slow, entered);
}

static void check_values(enum uprobe_mechanism mechanism)
{
	struct slow_check checks[FAMILY_MAX];
	uint64_t all = 0;
	pid_t pid;

	if (geteuid())
		skip();
	for (size_t i = 0; i < G_N_ELEMENTS(calls); i++)
		all += calls[i];
	pid = start();
	assert_int_equal(slow_check(pid, mechanism, module, &paths, WAIT_MS, all, checks), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	check("malloc", calls[0], LARGE + 2 * MOVED + MAPPED, checks);
	check("calloc", calls[1], CLEARED, checks);
	check("realloc", calls[2], MOVED, checks);
	check("posix_memalign", calls[3], ALIGNED, checks);
	check("free", calls[4], LARGE + MAPPED, checks);
}

static void test_values(void **state)
{
	(void)state;
	check_values(uprobe_mechanism_find());
}

/* As on kernels before 6.6: each probe is an event of its own. */
static void test_values_by_events(void **state)
{
	(void)state;
	check_values(UPROBE_PERF);
}

static int find(void **state)
{
	struct allocator_module *modules;
	struct image image;
	size_t count;

	(void)state;
	if (maps_read(getpid(), &maps) || allocator_modules_find(getpid(), &maps, &modules, &count))
		return -1;
	for (size_t i = 0; i < count; i++)
		if (modules[i].kind == ALLOCATOR_GLIBC)
			module = &modules[i];
	for (size_t i = 0; module && i < maps.count; i++) {
		if (!maps.entries[i].exec || strcmp(maps.entries[i].path, module->path))
			continue;
		if (image_open(getpid(), &maps.entries[i], &image))
			return -1;
		slow_paths_read(&image, &paths);
		image_close(&image);
		return 0;
	}
	return -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_values),
					    cmocka_unit_test(test_values_by_events) };

#ifdef __SANITIZE_ADDRESS__
	/* The sanitizer's malloc is not the library's. */
	return 0;
#endif
	return cmocka_run_group_tests(tests, find, NULL);
}
