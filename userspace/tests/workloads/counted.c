// SPDX-License-Identifier: GPL-2.0
/*
 * counted.c: [THREADS]: blocks of which nine of ten are freed again, in each of so many threads that
 * then rest. For each line on stdin, and at the start, it says what its allocator counts (jemalloc,
 * tcmalloc, mimalloc; preloaded), an object of JSON; for "purge" that has given pages back first.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCKS 9973
#define THREADS_MAX 16

typedef int control_fn(const char *, void *, size_t *, void *, size_t);
typedef int property_fn(const char *, size_t *);
typedef void release_fn(void);
typedef void process_fn(size_t *, size_t *, size_t *, size_t *, size_t *, size_t *, size_t *,
			size_t *);

static pthread_barrier_t filled;

static void fill(void)
{
	char **blocks = calloc(BLOCKS, sizeof(*blocks));
	size_t i;

	for (i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(200 + i % 7 * 1000);
		if (!blocks[i])
			abort();
		memset(blocks[i], 1, 200 + i % 7 * 1000);
	}
	for (i = 0; i < BLOCKS; i++)
		if (i % 1000 >= 100)
			free(blocks[i]);
}

static void *fill_and_rest(void *unused)
{
	fill();
	pthread_barrier_wait(&filled);
	pause();
	return unused;
}

static size_t control(control_fn *mallctl, const char *name)
{
	size_t value = 0, size = sizeof(value);

	if (mallctl(name, &value, &size, NULL, 0))
		abort();
	return value;
}

static void tell_jemalloc(control_fn *mallctl, char *text, size_t size)
{
	uint64_t epoch = 1;
	size_t width = sizeof(epoch);

	mallctl("epoch", &epoch, &width, &epoch, sizeof(epoch));
	snprintf(text, size,
		 "{\"active\": %zu, \"dirty\": %zu, \"muzzy\": %zu, \"retained\": %zu}\n",
		 control(mallctl, "stats.active"),
		 control(mallctl, "stats.arenas.4096.pdirty") * 4096,
		 control(mallctl, "stats.arenas.4096.pmuzzy") * 4096,
		 control(mallctl, "stats.retained"));
}

static void tell_tcmalloc(property_fn *property, char *text, size_t size)
{
	size_t heap = 0, kept = 0, unmapped = 0;

	property("generic.heap_size", &heap);
	property("tcmalloc.pageheap_free_bytes", &kept);
	property("tcmalloc.pageheap_unmapped_bytes", &unmapped);
	snprintf(text, size, "{\"active\": %zu, \"dirty\": %zu, \"muzzy\": 0, \"retained\": %zu}\n",
		 heap - kept - unmapped, kept, unmapped);
}

static void tell_mimalloc(process_fn *process, char *text, size_t size)
{
	size_t committed = 0;

	process(NULL, NULL, NULL, NULL, NULL, &committed, NULL, NULL);
	snprintf(text, size, "{\"committed\": %zu}\n", committed);
}

/* No memory of the allocator's is needed to say it. */
static void tell(void)
{
	control_fn *mallctl = (control_fn *)dlsym(RTLD_DEFAULT, "mallctl");
	property_fn *property =
		(property_fn *)dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
	process_fn *process = (process_fn *)dlsym(RTLD_DEFAULT, "mi_process_info");
	char text[512] = "{}\n";

	if (mallctl)
		tell_jemalloc(mallctl, text, sizeof(text));
	else if (property)
		tell_tcmalloc(property, text, sizeof(text));
	else if (process)
		tell_mimalloc(process, text, sizeof(text));
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		abort();
}

static void purge(void)
{
	control_fn *mallctl = (control_fn *)dlsym(RTLD_DEFAULT, "mallctl");
	release_fn *release =
		(release_fn *)dlsym(RTLD_DEFAULT, "MallocExtension_ReleaseFreeMemory");

	if (mallctl && mallctl("arena.4096.purge", NULL, NULL, NULL, 0))
		abort();
	if (release)
		release();
}

int main(int argc, char **argv)
{
	unsigned int threads = argc > 1 ? (unsigned int)atoi(argv[1]) : 1, i;
	char got, last = 0;
	pthread_t thread;

	pthread_barrier_init(&filled, NULL, threads + 1);
	for (i = 0; i < threads && i < THREADS_MAX; i++)
		if (pthread_create(&thread, NULL, fill_and_rest, NULL))
			abort();
	pthread_barrier_wait(&filled);
	/* What it takes to count is allocated now. */
	tell();
	while (read(STDIN_FILENO, &got, 1) == 1) {
		if (got == '\n') {
			if (last == 'e')
				purge();
			tell();
		}
		last = got;
	}
	return 0;
}
