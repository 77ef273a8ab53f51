// SPDX-License-Identifier: GPL-2.0
/*
 * stores: one block of memory is written to by code of many kinds, each of which has its function
 * and the same CPU time: clearing that is not called memset, filling with what is not zero, copying,
 * and loops that only look like these.
 *
 * usage: stores MILLISECONDS [wait]
 * Waits for a line before it begins, if told so.
 * Reports how many bytes each function wrote, and in what CPU time.
 */
#include <immintrin.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

#define BYTES 1000003UL
#define WORDS (BYTES / 16 * 2)
#define ARRAY 16008
#define FIELD 20011
#define LOOK_NS 1000000
#define VECTOR __attribute__((optimize("O3", "no-tree-loop-distribute-patterns")))

struct item {
	uint64_t key, value[2];
	uint32_t rank, more;
};

static char *block, *other;
static uint64_t sum;

static NOINLINE void wipe_bytes(void)
{
	volatile char *at;

	for (at = block; at < block + BYTES; at++)
		*at = 0;
}

static NOINLINE VECTOR void wipe_vector(void)
{
	uint64_t *words = (uint64_t *)block;
	size_t i;

	for (i = 0; i < WORDS; i++)
		words[i] = 0;
}

static NOINLINE void wipe_stream(void)
{
	__m128i zero = _mm_setzero_si128();
	size_t i;

	for (i = 0; i + 64 <= BYTES; i += 64) {
		_mm_stream_si128((__m128i *)(block + i), zero);
		_mm_stream_si128((__m128i *)(block + i + 16), zero);
		_mm_stream_si128((__m128i *)(block + i + 32), zero);
		_mm_stream_si128((__m128i *)(block + i + 48), zero);
	}
	_mm_sfence();
}

static NOINLINE void wipe_string(void)
{
	size_t words = WORDS;
	char *at = block;

	__asm__ volatile("rep stosq" : "+D"(at), "+c"(words) : "a"(0UL) : "memory");
}

/* So short that the processor is through with it when it waits: at the return, not at the store. */
static NOINLINE void wipe_one(char *at, size_t words)
{
	__asm__ volatile("rep stosq" : "+D"(at), "+c"(words) : "a"(0UL) : "memory");
}

static NOINLINE void wipe_pieces(void)
{
	size_t i;

	for (i = 0; i + 2040 <= BYTES; i += 2040)
		wipe_one(block + i, 255);
}

/* As compilers initialise an array: how long it is stands in the code. */
static NOINLINE void wipe_local(void)
{
	uint64_t words[ARRAY / 8];
	size_t count = ARRAY / 8;
	void *at = words;

	__asm__ volatile("rep stosq" : "+D"(at), "+c"(count) : "a"(0UL) : "memory");
	sum += words[3];
}

static NOINLINE void wipe_array(void)
{
	size_t i;

	for (i = 0; i < BYTES / ARRAY; i++)
		wipe_local();
}

static NOINLINE void wipe_static(void)
{
	static char field[FIELD];
	size_t i;

	for (i = 0; i < BYTES / FIELD; i++)
		wipe_one(field, FIELD / 8);
}

static NOINLINE void fill_string(void)
{
	size_t bytes = BYTES;
	char *at = block;

	__asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(0xffUL) : "memory");
}

/* The value comes from elsewhere, as in Go's duffzero: what it is only memory tells. */
static NOINLINE void row(char *at, char *end, __m128i value)
{
	__asm__ volatile("1:\n\t"
			 "movups %2, (%0)\n\t"
			 "movups %2, 16(%0)\n\t"
			 "movups %2, 32(%0)\n\t"
			 "movups %2, 48(%0)\n\t"
			 "leaq 64(%0), %0\n\t"
			 "movups %2, (%0)\n\t"
			 "movups %2, 16(%0)\n\t"
			 "movups %2, 32(%0)\n\t"
			 "movups %2, 48(%0)\n\t"
			 "leaq 64(%0), %0\n\t"
			 "cmpq %1, %0\n\t"
			 "jb 1b"
			 : "+r"(at)
			 : "r"(end), "x"(value)
			 : "memory");
}

static NOINLINE void wipe_row(void)
{
	row(block, block + BYTES - 128, _mm_setzero_si128());
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void fill_row(void)
{
	row(block, block + BYTES - 128, _mm_set1_epi8(0x33));
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void fill_memset(void)
{
	memset(block, 0xdd, BYTES);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void wipe_memset(void)
{
	memset(block, 0, BYTES);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE VECTOR void fill_vector(void)
{
	uint64_t *words = (uint64_t *)block;
	size_t i;

	for (i = 0; i < WORDS; i++)
		words[i] = 0xdddddddddddddddd;
}

static NOINLINE VECTOR void copy_items(void)
{
	const struct item *from = (const struct item *)other;
	struct item *to = (struct item *)block;
	size_t i;

	for (i = 0; i < BYTES / sizeof(*to); i++)
		to[i] = from[i];
}

static NOINLINE void copy_memcpy(void)
{
	memcpy(block, other, BYTES);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void copy_string(void)
{
	size_t words = WORDS;
	const char *from = other;
	char *to = block;

	__asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words)::"memory");
}

/* A word of each page: memory is touched, and not cleared. */
static NOINLINE void plain_touch(void)
{
	size_t i, k;

	for (k = 0; k < 4096; k++)
		for (i = 0; i < BYTES; i += 4096)
			*(volatile uint64_t *)(block + i) = 0;
}

/* What is taken is cleared: most of the work is taking it. */
static NOINLINE void plain_take(void)
{
	uint64_t *words = (uint64_t *)block;
	size_t i;

	for (i = 0; i < WORDS; i++) {
		sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15;
		words[i] = 0;
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} kinds[] = {
	{ "wipe_bytes", wipe_bytes },	{ "wipe_vector", wipe_vector },
	{ "wipe_stream", wipe_stream }, { "wipe_string", wipe_string },
	{ "wipe_pieces", wipe_pieces }, { "wipe_row", wipe_row },
	{ "wipe_array", wipe_array },	{ "wipe_static", wipe_static },
	{ "wipe_memset", wipe_memset }, { "fill_string", fill_string },
	{ "fill_row", fill_row },	{ "fill_memset", fill_memset },
	{ "fill_vector", fill_vector }, { "copy_items", copy_items },
	{ "copy_memcpy", copy_memcpy }, { "copy_string", copy_string },
	{ "plain_touch", plain_touch }, { "plain_take", plain_take },
};

/*
 * Up to a CPU time, and when it ended. Rounds. The clock is a system call, some 2 us of a round of
 * 20: it is looked at so seldom that its time is not the kind's.
 */
static uint64_t run_for(void (*run)(void), uint64_t until_ns, uint64_t *now_ns)
{
	uint64_t at_once = 1, rounds = 0, before_ns, i;

	*now_ns = workload_clock(CLOCK_THREAD_CPUTIME_ID);
	do {
		before_ns = *now_ns;
		for (i = 0; i < at_once; i++)
			run();
		rounds += at_once;
		*now_ns = workload_clock(CLOCK_THREAD_CPUTIME_ID);
		if (*now_ns - before_ns < LOOK_NS)
			at_once *= 2;
	} while (*now_ns < until_ns);
	return rounds;
}

int main(int argc, char **argv)
{
	uint64_t each_ns, begun_ns, rounds, now_ns;
	size_t i;

	alarm(WORKLOAD_LIFE_S);
	if (argc != 2 && argc != 3)
		return 2;
	each_ns = workload_number("MILLISECONDS", argv[1]) * 1000000ULL;
	block = malloc(BYTES); /* SITE block */
	other = malloc(BYTES);
	if (!block || !other)
		return 1;
	memset(other, 0x77, BYTES);
	if (argc == 3)
		workload_wait();
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		begun_ns = workload_clock(CLOCK_THREAD_CPUTIME_ID);
		rounds = run_for(kinds[i].run, begun_ns + each_ns, &now_ns);
		workload_report("\"kind\": \"%s\", \"bytes\": %llu, \"kind_ns\": %llu",
				kinds[i].name, (unsigned long long)(rounds * BYTES),
				(unsigned long long)(now_ns - begun_ns));
	}
	return (int)(sum & 0);
}
