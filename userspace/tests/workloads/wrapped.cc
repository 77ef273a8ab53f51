// SPDX-License-Identifier: GPL-2.0
//
// wrapped: blocks from three places, all by one function that calls malloc.
//
// usage: wrapped new|xmalloc ROUNDS BYTES    one block at the start, then ROUNDS times one block at
//                                            one place and two at another
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

static bool by_new;
static void *volatile sink;

__attribute__((noinline)) static void *xmalloc(size_t size)
{
	void *block = malloc(size);

	if (!block)
		abort();
	return block;
}

// Not alike, or the compiler makes one function of them.
__attribute__((noinline)) static void at_start(size_t size)
{
	sink = by_new ? new char[size] : xmalloc(size); /* SITE start */
	__asm__ volatile("nop" ::: "memory");
}

__attribute__((noinline)) static void once(size_t size)
{
	sink = by_new ? new char[size] : xmalloc(size); /* SITE once */
	__asm__ volatile("nop; nop" ::: "memory");
}

__attribute__((noinline)) static void twice(size_t size)
{
	sink = by_new ? new char[size] : xmalloc(size); /* SITE twice */
	__asm__ volatile("nop; nop; nop" ::: "memory");
}

static void drop()
{
	if (by_new)
		delete[] static_cast<char *>(sink);
	else
		free(sink);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	by_new = !strcmp(argv[1], "new");
	long rounds = atol(argv[2]);
	size_t size = static_cast<size_t>(atol(argv[3]));

	printf("{\"pid\": %d}\n", getpid());
	fflush(stdout);
	at_start(40);
	drop();
	for (long round = 0; round < rounds; round++) {
		once(size);
		drop();
		for (int i = 0; i < 2; i++) {
			twice(size + 1);
			drop();
		}
	}
	return 0;
}
