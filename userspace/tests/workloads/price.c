// SPDX-License-Identifier: GPL-2.0
/*
 * price: one operation again and again, and what one costs in CPU time.
 *
 * usage: price pair|calloc|fault|storm|map|call|thread|fork|spawn|switch THREADS
 *   pair    malloc of 40 bytes and its free
 *   calloc  calloc of 1,000 bytes; the frees are not timed
 *   fault   first touch of a page that was given back by madvise(MADV_DONTNEED)
 *   storm   malloc of 33 MiB, first touch of each page, free; per page
 *   map     mmap of a page, not touched, and its munmap
 *   call    a system call that does next to nothing
 *   thread  a thread that does nothing, and waiting for its end; with what it takes itself
 *   fork    a child that does nothing, likewise
 *   spawn   posix_spawn() of this program, to do nothing, likewise
 *   switch  a byte to another process, which sleeps until then, and its answer
 * For each line read, a number of milliseconds, all threads work that long. Then a line with the
 * operations and the CPU time of them alone; ends with standard input.
 */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "workload.h"

extern char **environ;

#define THREADS_MAX 64
#define PAGE 4096UL
#define PAIRS 499
#define CALLOCS 61
#define FAULTS 509
#define STORM (33UL << 20)
#define MAPS 101
#define CALLS 997
#define STARTS 31
#define SWITCHES 103

struct worker {
	pthread_t thread;
	uint64_t (*batch)(struct worker *worker); /* operations done */
	uint64_t until_ns;
	uint64_t ops;
	uint64_t cpu_ns;
	uint64_t started_ns;
	char *pages;
};

static void begin(struct worker *worker)
{
	worker->started_ns = workload_clock(CLOCK_THREAD_CPUTIME_ID);
}

static void finish(struct worker *worker)
{
	worker->cpu_ns += workload_clock(CLOCK_THREAD_CPUTIME_ID) - worker->started_ns;
}

static uint64_t batch_pairs(struct worker *worker)
{
	begin(worker);
	for (int i = 0; i < PAIRS; i++) {
		void *volatile block = malloc(40);

		free(block);
	}
	finish(worker);
	return PAIRS;
}

static uint64_t batch_callocs(struct worker *worker)
{
	void *blocks[CALLOCS];

	begin(worker);
	for (int i = 0; i < CALLOCS; i++)
		blocks[i] = calloc(1000, 1);
	finish(worker);
	for (int i = 0; i < CALLOCS; i++)
		free(blocks[i]);
	return CALLOCS;
}

static void touch(volatile char *pages, unsigned long len)
{
	for (unsigned long at = 0; at < len; at += PAGE)
		pages[at] = 1;
}

static uint64_t batch_faults(struct worker *worker)
{
	if (madvise(worker->pages, FAULTS * PAGE, MADV_DONTNEED))
		_exit(1);
	begin(worker);
	touch(worker->pages, FAULTS * PAGE);
	finish(worker);
	return FAULTS;
}

static uint64_t batch_storm(struct worker *worker)
{
	char *block;

	begin(worker);
	block = malloc(STORM);
	if (!block)
		_exit(1);
	touch(block, STORM);
	free(block);
	finish(worker);
	return STORM / PAGE;
}

static uint64_t batch_maps(struct worker *worker)
{
	begin(worker);
	for (int i = 0; i < MAPS; i++) {
		void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);

		if (page == MAP_FAILED || munmap(page, PAGE))
			_exit(1);
	}
	finish(worker);
	return MAPS;
}

static uint64_t batch_calls(struct worker *worker)
{
	begin(worker);
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	finish(worker);
	return CALLS;
}

/* Of the whole process and of its children that have been waited for. */
static uint64_t family_cpu_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	return workload_clock(CLOCK_PROCESS_CPUTIME_ID) +
	       (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000ULL +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ULL;
}

static uint64_t batch_starts(struct worker *worker, void (*start)(void))
{
	uint64_t before = family_cpu_ns();

	for (int i = 0; i < STARTS; i++)
		start();
	worker->cpu_ns += family_cpu_ns() - before;
	return STARTS;
}

static void *nothing(void *argument)
{
	return argument;
}

static void start_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
		_exit(1);
}

static void wait_for(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		_exit(1);
}

static void start_fork(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	wait_for(pid);
}

static void start_spawn(void)
{
	char *const command[] = { "price", "call", "0", NULL };
	pid_t pid;

	if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, command, environ))
		_exit(1);
	wait_for(pid);
}

static uint64_t batch_threads(struct worker *worker)
{
	return batch_starts(worker, start_thread);
}

static uint64_t batch_forks(struct worker *worker)
{
	return batch_starts(worker, start_fork);
}

static uint64_t batch_spawns(struct worker *worker)
{
	return batch_starts(worker, start_spawn);
}

/* A process that answers each byte, and ends with its parent. */
static int make_partner(int to[2], int from[2])
{
	pid_t parent = getpid(), child;
	char byte;

	if (pipe(to) || pipe(from))
		return 1;
	child = fork();
	if (child)
		return child < 0;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	while (read(to[0], &byte, 1) == 1 && write(from[1], &byte, 1) == 1)
		;
	_exit(0);
}

static uint64_t batch_switches(struct worker *worker)
{
	static int to[2], from[2];
	char byte = 0;

	if (!to[1] && make_partner(to, from))
		_exit(1);
	begin(worker);
	for (int i = 0; i < SWITCHES; i++)
		if (write(to[1], &byte, 1) != 1 || read(from[0], &byte, 1) != 1)
			_exit(1);
	finish(worker);
	return SWITCHES;
}

static void *work(void *argument)
{
	struct worker *worker = argument;

	worker->ops = 0;
	worker->cpu_ns = 0;
	while (workload_clock(CLOCK_MONOTONIC) < worker->until_ns)
		worker->ops += worker->batch(worker);
	return NULL;
}

static int prepare(struct worker *worker, const char *kind)
{
	if (!strcmp(kind, "pair"))
		worker->batch = batch_pairs;
	else if (!strcmp(kind, "calloc"))
		worker->batch = batch_callocs;
	else if (!strcmp(kind, "fault"))
		worker->batch = batch_faults;
	else if (!strcmp(kind, "storm"))
		worker->batch = batch_storm;
	else if (!strcmp(kind, "map"))
		worker->batch = batch_maps;
	else if (!strcmp(kind, "call"))
		worker->batch = batch_calls;
	else if (!strcmp(kind, "switch"))
		worker->batch = batch_switches;
	else if (!strcmp(kind, "thread"))
		worker->batch = batch_threads;
	else if (!strcmp(kind, "fork"))
		worker->batch = batch_forks;
	else if (!strcmp(kind, "spawn"))
		worker->batch = batch_spawns;
	else
		return 2;
	if (worker->batch != batch_faults)
		return 0;
	worker->pages = mmap(NULL, FAULTS * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (worker->pages == MAP_FAILED)
		return 1;
	/* Fails where the kernel has no huge pages; where it has, a page is not one fault. */
	madvise(worker->pages, FAULTS * PAGE, MADV_NOHUGEPAGE);
	return 0;
}

/* The first worker is the main thread: with one there is no other. */
static void turn(struct worker *workers, int count, uint64_t milliseconds)
{
	uint64_t until_ns = workload_clock(CLOCK_MONOTONIC) + milliseconds * 1000000ULL;
	uint64_t ops = 0, cpu_ns = 0;

	for (int i = 0; i < count; i++)
		workers[i].until_ns = until_ns;
	for (int i = 1; i < count; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			_exit(1);
	work(&workers[0]);
	for (int i = 1; i < count; i++)
		pthread_join(workers[i].thread, NULL);
	for (int i = 0; i < count; i++) {
		ops += workers[i].ops;
		cpu_ns += workers[i].cpu_ns;
	}
	workload_report("\"ops\": %llu, \"ops_cpu_ns\": %llu", (unsigned long long)ops,
			(unsigned long long)cpu_ns);
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	char line[32];
	uint64_t count;

	alarm(WORKLOAD_LIFE_S);
	if (argc != 3)
		return 2;
	count = workload_number(argv[0], argv[2]);
	if (!count)
		return 0;
	if (count > THREADS_MAX)
		return 2;
	for (uint64_t i = 0; i < count; i++) {
		int failed = prepare(&workers[i], argv[1]);

		if (failed)
			return failed;
	}
	workload_report("\"ready\": true");
	while (fgets(line, sizeof(line), stdin)) {
		/* Who asks for a turn lives: a round of the benchmark has many. */
		alarm(WORKLOAD_LIFE_S);
		line[strcspn(line, "\n")] = '\0';
		turn(workers, (int)count, workload_number("milliseconds", line));
	}
	return 0;
}
