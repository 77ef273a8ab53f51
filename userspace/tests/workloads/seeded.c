// SPDX-License-Identifier: GPL-2.0
/*
 * seeded.c: seeded REGRESSION...: twenty small tasks, each in a function of its own. Those that are
 * named do what a careless change would make of them; of "none" no one does. Prints nothing.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 40
#define PAGE 4096UL
#define KIB 1024UL
#define MIB (1024 * KIB)

static char *volatile kept;

static void touch(char *block, size_t bytes)
{
	size_t at;

	for (at = 0; at < bytes; at += PAGE)
		block[at] = 1;
}

/* Memory that the caller fills anyway is cleared. */
static void clear_what_is_filled(bool careless)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		char *block = careless ? calloc(1, 60 * KIB) : malloc(60 * KIB);

		memset(block, 1, 60 * KIB);
		free(block);
	}
}

/* One more buffer is cleared. */
static void clear_once_more(bool careless)
{
	int i, count = careless ? 3 : 2;

	for (i = 0; i < count; i++) {
		kept = calloc(1, 100 * KIB);
		kept[0] = 1;
		free(kept);
	}
}

/* A buffer is no longer used again. */
static void lose_reuse(bool careless)
{
	char *buffer = malloc(300);
	int i;

	for (i = 0; i < ROUNDS; i++) {
		if (careless) {
			free(buffer);
			buffer = malloc(300);
		}
		buffer[0] = 1;
	}
	free(buffer);
}

/* A text grows by a few bytes at a time, and not by its own size. */
static void grow_by_steps(bool careless)
{
	size_t size = 64;
	char *text = malloc(size);

	while (size < 16 * KIB) {
		size += careless ? 64 : size;
		text = realloc(text, size);
	}
	free(text);
}

static void fork_in_a_loop(bool careless)
{
	int i, count = careless ? 12 : 1;

	for (i = 0; i < count; i++) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	}
}

static void take_a_bigger_batch(bool careless)
{
	size_t bytes = careless ? 64 * KIB : 16 * KIB;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		kept = malloc(bytes);
		kept[0] = 1;
		free(kept);
	}
}

static void map_each_time(bool careless)
{
	char *area = MAP_FAILED;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		if (careless && area != MAP_FAILED)
			munmap(area, PAGE);
		if (careless || area == MAP_FAILED)
			area = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				    -1, 0);
		area[0] = 1;
	}
	munmap(area, PAGE);
}

static void read_whole(size_t bytes)
{
	static char block[64 * KIB];
	int fd = open("/proc/self/exe", O_RDONLY);

	while (read(fd, block, bytes) > 0)
		;
	close(fd);
}

static void read_in_pieces(bool careless)
{
	read_whole(careless ? 512 : 64 * KIB);
}

static void read_again(bool careless)
{
	int i, count = careless ? 8 : 1;

	for (i = 0; i < count; i++)
		read_whole(4 * KIB);
}

static void touch_more(bool careless)
{
	static char table[8 * MIB];

	touch(table, careless ? 6 * MIB : 2 * MIB);
}

/* Memory is given back that is used again at once. */
static void give_back_and_take(bool careless)
{
	char *area = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	for (i = 0; i < 4; i++) {
		touch(area, MIB);
		if (careless)
			madvise(area, MIB, MADV_DONTNEED);
	}
	munmap(area, MIB);
}

static void remap_by_steps(bool careless)
{
	size_t size = PAGE, step = careless ? PAGE : 32 * PAGE;
	char *area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	while (size < 64 * PAGE) {
		area = mremap(area, size, size + step, MREMAP_MAYMOVE);
		size += step;
	}
	munmap(area, size);
}

static void populate_more(bool careless)
{
	size_t size = careless ? 4 * MIB : MIB;

	munmap(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
		    -1, 0),
	       size);
}

static void copy_each_name(bool careless)
{
	char name[] = "a name that is looked at";
	int i;

	for (i = 0; i < ROUNDS; i++) {
		char *copy = careless || !i ? strdup(name) : NULL;

		kept = copy ? copy : name;
		free(copy);
	}
}

/* Blocks of which all were given back are kept. */
static void leak(bool careless)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		char *block = malloc(50 * KIB);

		touch(block, 50 * KIB);
		if (!careless)
			free(block);
	}
}

static void align_each(bool careless)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		void *block = NULL;

		if (careless || !i)
			(void)!posix_memalign(&block, 64, 200);
		free(block);
	}
}

static void trim_each_time(bool careless)
{
	int i;

	for (i = 0; i < 8; i++) {
		char *block = malloc(120 * KIB);

		touch(block, 120 * KIB);
		free(block);
		if (careless)
			malloc_trim(0);
	}
}

static void *nothing(void *of)
{
	return of;
}

static void a_thread_for_each(bool careless)
{
	int i, count = careless ? 24 : 1;

	for (i = 0; i < count; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, nothing, NULL);
		pthread_join(thread, NULL);
	}
}

static void write_after_fork(bool careless)
{
	static char shared[2 * MIB];
	pid_t child;

	touch(shared, sizeof(shared));
	child = fork();
	if (!child) {
		touch(shared, careless ? sizeof(shared) : 64 * KIB);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

/* The heap is made smaller at each free. Last, as the threshold stays. */
static void shrink_each_time(bool careless)
{
	int i;

	if (careless) {
		mallopt(M_TRIM_THRESHOLD, 0);
		mallopt(M_TOP_PAD, 0);
	}
	for (i = 0; i < ROUNDS; i++) {
		kept = malloc(90 * KIB);
		kept[0] = 1;
		free(kept);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(bool careless);
	} tasks[] = {
#define TASK(name) { #name, name }
		TASK(clear_what_is_filled), TASK(clear_once_more),    TASK(lose_reuse),
		TASK(grow_by_steps),	    TASK(fork_in_a_loop),     TASK(take_a_bigger_batch),
		TASK(map_each_time),	    TASK(read_in_pieces),     TASK(read_again),
		TASK(touch_more),	    TASK(give_back_and_take), TASK(remap_by_steps),
		TASK(populate_more),	    TASK(copy_each_name),     TASK(leak),
		TASK(align_each),	    TASK(trim_each_time),     TASK(a_thread_for_each),
		TASK(write_after_fork),	    TASK(shrink_each_time),
	};
	size_t i;

	if (argc < 2)
		return 2;
	for (i = 0; i < sizeof(tasks) / sizeof(*tasks); i++) {
		bool careless = false;

		for (int named = 1; named < argc; named++)
			careless |= !strcmp(argv[named], tasks[i].name);
		tasks[i].run(careless);
	}
	return 0;
}
