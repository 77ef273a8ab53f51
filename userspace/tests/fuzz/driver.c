// SPDX-License-Identifier: GPL-2.0
/*
 * driver.c: runs a fuzzer (fuzz.h) on files that it damages, each try as its number and the seed
 * say:
 *
 *     NAME [--seed N] [--first N] [--tries N] [--seconds N] [--keep DIRECTORY] FILE...
 *     NAME --input FILE	try a file as it is, one that was kept
 *
 * A child makes the tries; if it dies, the number of the try says which input to make again and
 * keep. Exit status: 0 nothing found, 1 something, 2 usage. The sanitizers are what notices.
 */
#define _GNU_SOURCE 1

#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRY_SECONDS 60	  /* on a busy machine, under the sanitizers */
#define TRIES_AT_ONCE 500 /* of one child: leaks are reported when it exits */
#define CHANGES_MAX 23

struct input {
	uint8_t *bytes;
	size_t size;
	struct fuzz_region regions[FUZZ_REGIONS];
	size_t region_count;
};

static struct input *inputs;
static size_t input_count, largest;
static uint64_t seed, state;
static char file_path[PATH_MAX];

/* Of the sanitizers, where it is built with them: no input is worth that much. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "hard_rss_limit_mb=1500:max_allocation_size_mb=600:allocator_may_return_null=0";
}

__attribute__((weak)) size_t fuzz_regions(const uint8_t *data, size_t size,
					  struct fuzz_region *regions)
{
	(void)data;
	(void)size;
	(void)regions;
	return 0;
}

const char *fuzz_file(const void *bytes, size_t size)
{
	const char *directory = getenv("TMPDIR");
	int fd;

	if (!*file_path)
		snprintf(file_path, sizeof(file_path), "%s/memtoll-fuzz-%d",
			 directory ? directory : "/tmp", (int)getpid());
	fd = open(file_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size || ftruncate(fd, (off_t)size)) {
		perror(file_path);
		_exit(2);
	}
	close(fd);
	return file_path;
}

/* splitmix64 */
static uint64_t next_random(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static size_t below(size_t limit)
{
	return limit ? next_random() % limit : 0;
}

/* What offsets, sizes and counts should not be. */
static uint64_t odd_number(size_t size)
{
	const uint64_t odd[] = {
		0,	    1,		2,	   0x7f,       0x80,	 0xff,
		0x7fff,	    0xffff,	INT32_MAX, UINT32_MAX, 1U << 31, INT64_MAX,
		UINT64_MAX, 1ULL << 63, size,	   size - 1,   size + 1, next_random(),
	};

	return odd[below(sizeof(odd) / sizeof(*odd))];
}

static void change(uint8_t *bytes, size_t size, const struct input *input)
{
	const struct fuzz_region *region = &input->regions[below(input->region_count)];
	size_t at, width = (size_t)1 << below(4);
	uint64_t value;

	at = input->region_count && next_random() % 4 ? region->offset + below(region->size) :
							below(size);
	if (at >= size)
		return;
	if (width > size - at)
		width = size - at;
	switch (next_random() % 4) {
	case 0:
		bytes[at] ^= (uint8_t)(1 << below(8));
		break;
	case 1:
		bytes[at] = (uint8_t)next_random();
		break;
	case 2:
		value = odd_number(size);
		memcpy(bytes + at, &value, width);
		break;
	default: /* what belongs somewhere else */
		width = 1 + below(size - at < 64 ? size - at : 64);
		memmove(bytes + at, bytes + below(size - width + 1), width);
		break;
	}
}

/* The input of a try: the same for the same seed, number and files. Its size. */
static size_t make_input(uint64_t number, uint8_t *bytes)
{
	const struct input *input;
	size_t size, changes;

	state = seed * 0xd1342543de82ef95 + number;
	input = &inputs[below(input_count)];
	size = input->size;
	memcpy(bytes, input->bytes, size);
	for (changes = 1 + below(CHANGES_MAX); changes; changes--)
		change(bytes, size, input);
	return next_random() % 16 ? size : 1 + below(size);
}

static void read_input(const char *path)
{
	struct input *input;
	FILE *file = fopen(path, "rb");
	long size;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) <= 0) {
		fprintf(stderr, "%s: %s\n", path, file ? "empty" : strerror(errno));
		exit(2);
	}
	rewind(file);
	inputs = realloc(inputs, (input_count + 1) * sizeof(*inputs));
	input = &inputs[input_count++];
	input->size = (size_t)size;
	input->bytes = malloc(input->size);
	if (fread(input->bytes, 1, input->size, file) != input->size)
		exit(2);
	fclose(file);
	if (input->size > largest)
		largest = input->size;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/*
 * In the child: tries from *number on. An input has its own size in memory, so that reads beyond
 * show.
 */
static void make_tries(uint64_t *number, uint64_t end, double until)
{
	uint8_t *bytes = malloc(largest);

	for (; *number < end && now() < until; ++*number) {
		size_t size = make_input(*number, bytes);
		uint8_t *exact = malloc(size);

		memcpy(exact, bytes, size);
		alarm(TRY_SECONDS);
		LLVMFuzzerTestOneInput(exact, size);
		alarm(0);
		free(exact);
	}
	free(bytes);
}

static void keep_input(const char *directory, const char *name, uint64_t number)
{
	uint8_t *bytes = malloc(largest);
	size_t size = make_input(number, bytes);
	char path[PATH_MAX];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s-%" PRIu64 "-%" PRIu64, directory, basename(name), seed,
		 number);
	out = fopen(path, "wb");
	if (out && fwrite(bytes, 1, size, out) == size && !fclose(out))
		fprintf(stderr, "%s: kept; again: %s --input %s\n", basename(name), name, path);
	else
		perror(path);
	free(bytes);
}

/* Whether the child that came to an end with this try found something; said if so. */
static bool is_found(const char *name, int status, uint64_t first, uint64_t number)
{
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return false;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		fprintf(stderr, "%s: try %" PRIu64 " ran for more than %d s\n", name, number,
			TRY_SECONDS);
	else
		fprintf(stderr,
			"%s: found by try %" PRIu64 ", or, if it is a leak, by one from %" PRIu64
			" on\n",
			name, number, first);
	return true;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "first", required_argument, NULL, 'f' },
		{ "tries", required_argument, NULL, 't' },
		{ "seconds", required_argument, NULL, 'd' },
		{ "keep", required_argument, NULL, 'k' },
		{ "input", required_argument, NULL, 'i' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t first = 0, tries = UINT64_MAX / 2, *number;
	double until = 1e300;
	const char *keep = ".";
	bool found = false;
	size_t i;
	int option;

	seed = (uint64_t)time(NULL) % 1000000;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 's':
			seed = strtoull(optarg, NULL, 10);
			break;
		case 'f':
			first = strtoull(optarg, NULL, 10);
			break;
		case 't':
			tries = strtoull(optarg, NULL, 10);
			break;
		case 'd':
			until = now() + strtod(optarg, NULL);
			break;
		case 'k':
			keep = optarg;
			break;
		case 'i':
			read_input(optarg);
			LLVMFuzzerTestOneInput(inputs[0].bytes, inputs[0].size);
			unlink(file_path);
			return 0;
		default:
			return 2;
		}
	}
	if (optind == argc) {
		fprintf(stderr, "%s: name files to begin with\n", argv[0]);
		return 2;
	}
	for (option = optind; option < argc; option++)
		read_input(argv[option]);
	for (i = 0; i < input_count; i++)
		inputs[i].region_count =
			fuzz_regions(inputs[i].bytes, inputs[i].size, inputs[i].regions);
	number = mmap(NULL, sizeof(*number), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (number == MAP_FAILED)
		return 2;
	*number = first;
	fuzz_file("", 0); /* its name is the parent's, who removes it */
	while (!found && *number < first + tries && now() < until) {
		uint64_t begin = *number, end = first + tries;
		int status;
		pid_t pid;

		if (end - begin > TRIES_AT_ONCE)
			end = begin + TRIES_AT_ONCE;
		pid = fork();
		if (pid == 0) {
			make_tries(number, end, until);
			exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid) {
			perror("fork");
			break;
		}
		found = is_found(basename(argv[0]), status, begin, *number);
	}
	unlink(file_path);
	if (found)
		keep_input(keep, argv[0], *number);
	else
		printf("%s: %" PRIu64 " tries, nothing found (--seed %" PRIu64 ")\n",
		       basename(argv[0]), *number - first, seed);
	return found;
}
