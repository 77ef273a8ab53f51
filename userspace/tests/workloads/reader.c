// SPDX-License-Identifier: GPL-2.0
/*
 * reader: reads blocks of a file by every system call there is for it.
 *
 * usage: reader FILE CALL SIZE COUNT PASSES [OPTION...]
 *   CALL      read, pread, readv, preadv, preadv2, aio or uring
 *   --direct  past the page cache
 *   --cold    the page cache is emptied of the file before each pass
 *   --held    the file is locked in the page cache first
 *   --fill    so many MiB of memory are used before each read
 *   --clocked each read between two looks at the clocks
 *   --random  blocks in no order: COUNT draws a pass, with repeats
 *   --pause   half way it does nothing for so many seconds
 *   --beside  a second thread does nothing meanwhile
 *   --map     after so many reads an area is mapped, used, made twice as long and unmapped, and the
 *             heap grows by a page
 *   --cache   blocks are kept in an LRU cache of so many first, and read only where it misses
 * Prints how many calls read how many bytes, of different blocks how many, and, if clocked, how
 * long those reads had no CPU in which the thread went to sleep.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "workload.h"

#define PAGE 4096UL

struct reader {
	int fd;
	const char *call;
	size_t size;
	char *buffer;
	aio_context_t aio;
	int ring;
	struct io_uring_params params;
	char *sq;
	char *cq;
	struct io_uring_sqe *sqes;
};

static int open_ring(struct reader *reader)
{
	struct io_uring_params *params = &reader->params;

	reader->ring = (int)syscall(SYS_io_uring_setup, 4, params);
	if (reader->ring < 0)
		return 1;
	reader->sq = mmap(NULL, params->sq_off.array + params->sq_entries * sizeof(unsigned int),
			  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, reader->ring,
			  IORING_OFF_SQ_RING);
	reader->cq =
		mmap(NULL, params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe),
		     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, reader->ring,
		     IORING_OFF_CQ_RING);
	reader->sqes =
		mmap(NULL, params->sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_POPULATE, reader->ring, IORING_OFF_SQES);
	return reader->sq == MAP_FAILED || reader->cq == MAP_FAILED || reader->sqes == MAP_FAILED;
}

static NOINLINE long read_by_ring(struct reader *reader, uint64_t at)
{
	const struct io_uring_params *params = &reader->params;
	unsigned int *tail = (unsigned int *)(reader->sq + params->sq_off.tail);
	unsigned int *head = (unsigned int *)(reader->cq + params->cq_off.head);
	unsigned int mask = params->sq_entries - 1, cq_mask = params->cq_entries - 1;
	unsigned int slot = *tail & mask;
	struct io_uring_cqe *cqes = (struct io_uring_cqe *)(reader->cq + params->cq_off.cqes);
	long result;

	memset(&reader->sqes[slot], 0, sizeof(*reader->sqes));
	reader->sqes[slot].opcode = IORING_OP_READ;
	reader->sqes[slot].fd = reader->fd;
	reader->sqes[slot].addr = (uintptr_t)reader->buffer;
	reader->sqes[slot].len = (unsigned int)reader->size;
	reader->sqes[slot].off = at;
	((unsigned int *)(reader->sq + params->sq_off.array))[slot] = slot;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, reader->ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		return -1;
	result = cqes[*head & cq_mask].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return result;
}

static NOINLINE long read_by_aio(struct reader *reader, uint64_t at)
{
	struct iocb request = {
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_fildes = (unsigned int)reader->fd,
		.aio_buf = (uintptr_t)reader->buffer,
		.aio_nbytes = reader->size,
		.aio_offset = (int64_t)at,
	};
	struct iocb *list[] = { &request };
	struct io_event event;

	if (syscall(SYS_io_submit, reader->aio, 1, list) != 1 ||
	    syscall(SYS_io_getevents, reader->aio, 1, 1, &event, NULL) != 1)
		return -1;
	return (long)event.res;
}

static NOINLINE long read_block(struct reader *reader, uint64_t at)
{
	struct iovec halves[] = {
		{ reader->buffer, reader->size / 2 },
		{ reader->buffer + reader->size / 2, reader->size - reader->size / 2 },
	};

	if (!strcmp(reader->call, "pread"))
		return pread(reader->fd, reader->buffer, reader->size, (off_t)at); /* SITE pread */
	if (!strcmp(reader->call, "preadv"))
		return preadv(reader->fd, halves, 2, (off_t)at);
	if (!strcmp(reader->call, "preadv2"))
		return preadv2(reader->fd, halves, 2, (off_t)at, 0);
	if (!strcmp(reader->call, "aio"))
		return read_by_aio(reader, at);
	if (!strcmp(reader->call, "uring"))
		return read_by_ring(reader, at);
	/* The seek is not a read. */
	if (lseek(reader->fd, (off_t)at, SEEK_SET) < 0)
		return -1;
	if (!strcmp(reader->call, "readv"))
		return readv(reader->fd, halves, 2);
	return read(reader->fd, reader->buffer, reader->size); /* SITE read */
}

/*
 * What is locked is not evicted, and its mapping notes the time of access, which a read may have to
 * wait for.
 */
static int hold(const struct reader *reader, size_t size)
{
	void *pages = mmap(NULL, size, PROT_READ, MAP_SHARED, reader->fd, 0);

	return pages == MAP_FAILED || mlock(pages, size);
}

/* In a memory cgroup that allows less: what was used before has to go. */
static int fill(size_t bytes)
{
	char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return 1;
	for (size_t at = 0; at < bytes; at += 4096)
		pages[at] = 1;
	return munmap(pages, bytes);
}

/* An LRU cache, by the time each block was used last: slow and plainly right. */
struct cache {
	uint64_t *blocks;
	uint64_t *used;
	uint64_t size;
	uint64_t now;
};

static int cache_has(struct cache *cache, uint64_t block)
{
	uint64_t oldest = 0;

	cache->now++;
	for (uint64_t i = 0; i < cache->size; i++) {
		if (cache->used[i] && cache->blocks[i] == block) {
			cache->used[i] = cache->now;
			return 1;
		}
		if (cache->used[i] < cache->used[oldest])
			oldest = i;
	}
	if (!cache->size)
		return 0;
	cache->blocks[oldest] = block;
	cache->used[oldest] = cache->now;
	return 0;
}

/* Numerical Recipes' 64-bit generator: the same order in each run. */
static uint64_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

/* Time off the CPU, and how often the thread went to sleep, up to now. */
struct clocks {
	uint64_t off_cpu_ns;
	long sleeps;
};

static struct clocks clocks_now(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (struct clocks){
		.off_cpu_ns =
			workload_clock(CLOCK_MONOTONIC) - workload_clock(CLOCK_THREAD_CPUTIME_ID),
		.sleeps = usage.ru_nvcsw,
	};
}

static char *map_area(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static char *lengthen_area(char *area, size_t size)
{
	return mremap(area, size, 2 * size, MREMAP_MAYMOVE);
}

static int unmap_area(char *area, size_t size)
{
	return munmap(area, size);
}

/* Areas of 68 KiB, 3 and 8 MiB in turn: huge pages would be one fault for many. */
static int use_area(uint64_t number)
{
	static const size_t sizes[] = { 17 * PAGE, 3UL << 20, 8UL << 20 };
	size_t size = sizes[number % 3];
	char *area = map_area(size);

	if (area == MAP_FAILED || madvise(area, size, MADV_NOHUGEPAGE))
		return 1;
	area[0] = 1;
	area = lengthen_area(area, size);
	if (area == MAP_FAILED)
		return 1;
	area[2 * size - 1] = 1;
	return unmap_area(area, 2 * size) || sbrk(PAGE) == (void *)-1;
}

static void *do_nothing(void *unused)
{
	for (;;)
		pause();
	return unused;
}

int main(int argc, char **argv)
{
	struct reader reader = {};
	struct cache cache = {};
	uint64_t count, passes, mapped = 0, every = 0, calls = 0, bytes = 0, different = 0,
				state = 1, asleep_ns = 0;
	int direct = 0, cold = 0, held = 0, clocked = 0, scattered = 0, beside = 0, i;
	struct clocks before = {}, after;
	struct timespec idle = {};
	pthread_t thread;
	size_t filled = 0;
	unsigned char *seen;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 6)
		return 2;
	for (i = 6; i < argc; i++) {
		direct |= !strcmp(argv[i], "--direct");
		cold |= !strcmp(argv[i], "--cold");
		held |= !strcmp(argv[i], "--held");
		clocked |= !strcmp(argv[i], "--clocked");
		scattered |= !strcmp(argv[i], "--random");
		beside |= !strcmp(argv[i], "--beside");
		if (!strcmp(argv[i], "--fill") && i + 1 < argc)
			filled = workload_number(argv[0], argv[++i]);
		if (!strcmp(argv[i], "--pause") && i + 1 < argc)
			idle.tv_sec = (time_t)workload_number(argv[0], argv[++i]);
		if (!strcmp(argv[i], "--map") && i + 1 < argc)
			every = workload_number(argv[0], argv[++i]);
		if (!strcmp(argv[i], "--cache") && i + 1 < argc)
			cache.size = workload_number(argv[0], argv[++i]);
	}
	reader.call = argv[2];
	reader.size = workload_number(argv[0], argv[3]);
	count = workload_number(argv[0], argv[4]);
	passes = workload_number(argv[0], argv[5]);
	reader.fd = open(argv[1], O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
	if (reader.fd < 0 || posix_memalign((void **)&reader.buffer, 4096, reader.size))
		return 1;
	if (held && hold(&reader, count * reader.size))
		return 1;
	if (!strcmp(reader.call, "aio") && syscall(SYS_io_setup, 4, &reader.aio))
		return 1;
	if (!strcmp(reader.call, "uring") && open_ring(&reader))
		return 1;
	if (beside && pthread_create(&thread, NULL, do_nothing, NULL))
		return 1;
	seen = calloc(count, 1);
	cache.blocks = calloc(cache.size + 1, sizeof(*cache.blocks));
	cache.used = calloc(cache.size + 1, sizeof(*cache.used));
	for (uint64_t pass = 0; pass < passes; pass++) {
		if (idle.tv_sec && pass == passes / 2)
			nanosleep(&idle, NULL);
		if (cold && posix_fadvise(reader.fd, 0, 0, POSIX_FADV_DONTNEED))
			return 1;
		for (uint64_t k = 0; k < count; k++) {
			uint64_t block = scattered ? draw(&state) % count : k;

			if (cache_has(&cache, block))
				continue;
			if (filled && fill(filled << 20))
				return 1;
			if (clocked)
				before = clocks_now();
			if (read_block(&reader, block * reader.size) != (long)reader.size)
				return 1;
			if (clocked) {
				after = clocks_now();
				if (after.sleeps != before.sleeps)
					asleep_ns += after.off_cpu_ns - before.off_cpu_ns;
			}
			calls++;
			if (every && calls % every == 0 && use_area(mapped++))
				return 1;
			bytes += reader.size;
			different += !seen[block];
			seen[block] = 1;
		}
	}
	workload_report("\"reads\": %llu, \"bytes\": %llu, \"different\": %llu, "
			"\"asleep_ns\": %llu, \"mapped\": %llu",
			(unsigned long long)calls, (unsigned long long)bytes,
			(unsigned long long)different, (unsigned long long)asleep_ns,
			(unsigned long long)mapped);
	return 0;
}
