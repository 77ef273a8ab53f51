// SPDX-License-Identifier: GPL-2.0
/*
 * loads: work in which the kernel's part is most of it, and what a unit of it costs.
 *
 * usage: loads pread|random|mapped|maps|fork|accept|prefork FILE
 *   pread   pread of 4 KiB at a time of FILE, which is in the page cache
 *   random  first touch of pages in no order; memory is given back for each round
 *   mapped  FILE is mapped, one byte of some pages is read in no order, and it is unmapped
 *   maps    a page is mapped, written to and unmapped, from three places in turn
 *   fork    a child writes to 31 inherited pages, and ends
 *   accept  a child answers one connection, reads from FILE for it, and ends
 *   prefork five children, forked beforehand, answer requests: they allocate, write to memory that is
 *           fresh, and read from FILE; their numbers are in the first line
 * For each line read, a number of milliseconds, it works that long. Then a line with the units done
 * and their CPU time, with that of all children; ends with standard input.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "workload.h"

#define PAGE 4096UL
#define PREADS 1009
#define TOUCHED 4099UL /* pages */
#define LOOKS 2003
#define MAPS 503
#define FORKS 7
#define INHERITED 31
#define WORKERS 5
#define BLOCKS 199
#define BODY (17 * PAGE)

static struct {
	pid_t pid;
	int fd;
	clockid_t clock;
} workers[WORKERS];
static int file_fd;
static uint64_t file_pages;
static char *pages;
static uint64_t state = 1;

/* Numerical Recipes' 64-bit generator. */
static uint64_t draw(uint64_t below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % below;
}

static NOINLINE uint64_t preads(void)
{
	static char buffer[PAGE];

	for (int i = 0; i < PREADS; i++)
		if (pread(file_fd, buffer, PAGE, (off_t)(draw(file_pages) * PAGE)) != PAGE)
			_exit(1);
	return PREADS;
}

static NOINLINE uint64_t touch_randomly(void)
{
	if (madvise(pages, TOUCHED * PAGE, MADV_DONTNEED))
		_exit(1);
	/* 4,099 is a prime: each page once. */
	for (uint64_t i = 0, step = 1 + draw(TOUCHED - 1), at = 0; i < TOUCHED; i++) {
		pages[at * PAGE] = 1;
		at = (at + step) % TOUCHED;
	}
	return TOUCHED;
}

static NOINLINE uint64_t look_at_mapped(void)
{
	volatile char *mapped = mmap(NULL, file_pages * PAGE, PROT_READ, MAP_SHARED, file_fd, 0);
	char sum = 0;

	if (mapped == MAP_FAILED)
		_exit(1);
	for (int i = 0; i < LOOKS; i++)
		sum += mapped[draw(file_pages) * PAGE];
	pages[0] = sum;
	if (munmap((void *)mapped, file_pages * PAGE))
		_exit(1);
	return LOOKS;
}

static NOINLINE void map_and_write(void)
{
	char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		_exit(1);
	page[0] = 1;
	if (munmap(page, PAGE))
		_exit(1);
}

static NOINLINE uint64_t map_small(void)
{
	for (int i = 0; i < MAPS; i++) {
		map_and_write();
		map_and_write();
		map_and_write();
	}
	return 3 * MAPS;
}

static void wait_for(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child || status)
		_exit(1);
}

static NOINLINE uint64_t fork_and_write(void)
{
	for (int i = 0; i < FORKS; i++) {
		pid_t child = fork();

		if (!child) {
			for (uint64_t page = 0; page < INHERITED; page++)
				pages[page * 3 * PAGE] = 2;
			_exit(0);
		}
		wait_for(child);
	}
	return FORKS;
}

static void answer(int fd)
{
	char buffer[PAGE];

	for (int i = 0; i < 3; i++)
		if (pread(file_fd, buffer, sizeof(buffer), (off_t)(draw(file_pages) * PAGE)) < 0)
			_exit(1);
	if (write(fd, buffer, 1) != 1)
		_exit(1);
	_exit(0);
}

/* A connection as an accept would give it. */
static NOINLINE uint64_t serve(void)
{
	for (int i = 0; i < FORKS; i++) {
		int ends[2];
		char byte;
		pid_t child;

		if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
			_exit(1);
		child = fork();
		if (!child)
			answer(ends[1]);
		if (read(ends[0], &byte, 1) != 1)
			_exit(1);
		close(ends[0]);
		close(ends[1]);
		wait_for(child);
	}
	return FORKS;
}

static void work_for_requests(int fd)
{
	char *blocks[BLOCKS], byte, *body;

	alarm(WORKLOAD_LIFE_S);
	while (read(fd, &byte, 1) == 1) {
		body = mmap(NULL, BODY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (body == MAP_FAILED || pread(file_fd, body, BODY, 0) < 0)
			_exit(1);
		for (int i = 0; i < BLOCKS; i++) {
			blocks[i] = malloc(draw(3000) + 1);
			blocks[i][0] = body[i];
		}
		for (int i = 0; i < BLOCKS; i++)
			free(blocks[i]);
		if (munmap(body, BODY) || write(fd, &byte, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static void prefork(void)
{
	for (int i = 0; i < WORKERS; i++) {
		int ends[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
			_exit(1);
		workers[i].pid = fork();
		if (!workers[i].pid) {
			/* It ends with its parent: nobody else holds the other end. */
			close(ends[0]);
			for (int k = 0; k < i; k++)
				close(workers[k].fd);
			work_for_requests(ends[1]);
		}
		if (workers[i].pid < 0 || clock_getcpuclockid(workers[i].pid, &workers[i].clock))
			_exit(1);
		workers[i].fd = ends[0];
		close(ends[1]);
	}
}

/* A request for each, at once. */
static NOINLINE uint64_t request(void)
{
	char byte = 0;

	for (int i = 0; i < WORKERS; i++)
		if (write(workers[i].fd, &byte, 1) != 1)
			_exit(1);
	for (int i = 0; i < WORKERS; i++)
		if (read(workers[i].fd, &byte, 1) != 1)
			_exit(1);
	return WORKERS;
}

static uint64_t cpu_ns(void)
{
	struct rusage children;
	uint64_t workers_ns = 0;

	for (int i = 0; i < WORKERS && workers[i].pid; i++)
		workers_ns += workload_clock(workers[i].clock);
	getrusage(RUSAGE_CHILDREN, &children);
	return workload_clock(CLOCK_PROCESS_CPUTIME_ID) + workers_ns +
	       (uint64_t)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1000000000ULL +
	       (uint64_t)(children.ru_utime.tv_usec + children.ru_stime.tv_usec) * 1000ULL;
}

static void turn(uint64_t (*work)(void), uint64_t milliseconds)
{
	uint64_t until_ns = workload_clock(CLOCK_MONOTONIC) + milliseconds * 1000000ULL;
	uint64_t units = 0, before_ns = cpu_ns();

	do
		units += work();
	while (workload_clock(CLOCK_MONOTONIC) < until_ns);
	workload_report("\"ops\": %llu, \"ops_cpu_ns\": %llu", (unsigned long long)units,
			(unsigned long long)(cpu_ns() - before_ns));
}

static int read_whole_file(const char *path)
{
	char buffer[16 * PAGE];
	struct stat status;

	file_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (file_fd < 0 || fstat(file_fd, &status))
		return 1;
	file_pages = (uint64_t)status.st_size / PAGE;
	while (read(file_fd, buffer, sizeof(buffer)) > 0)
		;
	return !file_pages;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		uint64_t (*work)(void);
	} kinds[] = {
		{ "pread", preads },	{ "random", touch_randomly }, { "mapped", look_at_mapped },
		{ "maps", map_small },	{ "fork", fork_and_write },   { "accept", serve },
		{ "prefork", request },
	};
	uint64_t (*work)(void) = NULL;
	char line[32];

	alarm(WORKLOAD_LIFE_S);
	if (argc != 3 || read_whole_file(argv[2]))
		return 2;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(argv[1], kinds[i].name))
			work = kinds[i].work;
	pages = mmap(NULL, TOUCHED * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (!work || pages == MAP_FAILED)
		return 2;
	madvise(pages, TOUCHED * PAGE, MADV_NOHUGEPAGE);
	memset(pages, 1, INHERITED * 3 * PAGE);
	if (work == request) {
		prefork();
		workload_report("\"workers\": [%d, %d, %d, %d, %d]", workers[0].pid, workers[1].pid,
				workers[2].pid, workers[3].pid, workers[4].pid);
	} else {
		workload_report("\"ready\": true");
	}
	while (fgets(line, sizeof(line), stdin)) {
		alarm(WORKLOAD_LIFE_S);
		line[strcspn(line, "\n")] = '\0';
		turn(work, workload_number("milliseconds", line));
	}
	return 0;
}
