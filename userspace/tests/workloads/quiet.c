// SPDX-License-Identifier: GPL-2.0
/*
 * quiet: a server that does nothing but small system calls for as long as nobody asks for more.
 *
 * usage: quiet FILE LIBRARY [REST_MS]
 * For each line read, "KIND NUMBER PAUSE_US": so many times, with a pause after each, map (mmap and munmap
 * of 64 KiB), pread, direct (pread with O_DIRECT), touch (a page of 64 MiB for the first time) or
 * library (liblate.so, brought in with the first time, allocates and frees). A line with what was done
 * after each. In between and in the pauses getppid(2), again and again; with REST_MS it rests so long
 * after each millisecond in between, and for most of each pause.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "workload.h"

#define BLOCK 65536UL
#define PAGE 4096UL
#define TOUCHED (64UL << 20)

static uint64_t idle_calls;
static char *page;
static char *pages;
static int file, direct, rest_ms;

static NOINLINE void map_once(void)
{
	void *block = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED || munmap(block, BLOCK))
		_exit(3);
}

static NOINLINE void read_once(int fd)
{
	if (pread(fd, page, PAGE, 0) != (ssize_t)PAGE)
		_exit(4);
}

static NOINLINE void call_library(const char *path)
{
	static int (*keep)(void);
	void *library;

	if (!keep) {
		library = dlopen(path, RTLD_NOW);
		keep = library ? (int (*)(void))dlsym(library, "late_keep") : NULL;
	}
	if (!keep || keep())
		_exit(6);
}

static NOINLINE void touch_once(uint64_t number)
{
	pages[number * PAGE % TOUCHED] = 1;
}

static void idle(uint64_t us)
{
	uint64_t end = workload_clock(CLOCK_MONOTONIC) + us * 1000;

	for (; workload_clock(CLOCK_MONOTONIC) < end; idle_calls++)
		syscall(SYS_getppid);
}

static void take_pause(uint64_t us)
{
	uint64_t busy_us = rest_ms ? us / 4 : us;

	idle(busy_us);
	if (us > busy_us)
		usleep((useconds_t)(us - busy_us));
}

static void work(const char *kind, uint64_t number, uint64_t pause_us, const char *library)
{
	for (uint64_t i = 0; i < number; i++) {
		if (!strcmp(kind, "map"))
			map_once();
		else if (!strcmp(kind, "pread"))
			read_once(file);
		else if (!strcmp(kind, "direct"))
			read_once(direct);
		else if (!strcmp(kind, "touch"))
			touch_once(i);
		else if (!strcmp(kind, "library"))
			call_library(library);
		else
			_exit(5);
		take_pause(pause_us);
	}
}

/* One line, and no byte of the next. false: there is none. */
static bool read_line(char *line, size_t size)
{
	size_t length = 0;

	while (length + 1 < size) {
		if (read(STDIN_FILENO, &line[length], 1) != 1)
			return false;
		if (line[length++] == '\n')
			break;
	}
	line[length] = '\0';
	return true;
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned long number, pause_us;
	char line[64], kind[16];

	alarm(WORKLOAD_LIFE_S);
	if (argc != 3 && argc != 4)
		return 2;
	if (argc == 4)
		rest_ms = (int)workload_number(argv[0], argv[3]);
	file = open(argv[1], O_RDONLY | O_CLOEXEC);
	direct = open(argv[1], O_RDONLY | O_CLOEXEC | O_DIRECT);
	page = aligned_alloc(PAGE, PAGE);
	pages = mmap(NULL, TOUCHED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (file < 0 || !page || pages == MAP_FAILED)
		return 1;
	madvise(pages, TOUCHED, MADV_NOHUGEPAGE);
	workload_report("\"ready\": true, \"direct\": %s", direct < 0 ? "false" : "true");
	for (;;) {
		idle(1000);
		if (!poll(&input, 1, rest_ms))
			continue;
		if (!read_line(line, sizeof(line)))
			return 0;
		if (sscanf(line, "%15s %lu %lu", kind, &number, &pause_us) != 3)
			return 2;
		work(kind, number, pause_us, argv[2]);
		workload_report("\"done\": \"%s\", \"number\": %lu, \"idle_calls\": %lu", kind,
				number, idle_calls);
	}
}
