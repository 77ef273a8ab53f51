// SPDX-License-Identifier: GPL-2.0
//
// operators: C++'s operators, whose fast path in some allocators does not come by malloc.
//
// usage: operators N    N blocks by new char[], N by new of a class with an alignment
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

struct alignas(64) Aligned {
	char bytes[192];
};

static void *volatile sink;

__attribute__((noinline)) static char *make_array(size_t n)
{
	char *block = new char[100 + n % 89]; /* SITE array */

	sink = block;
	return block;
}

__attribute__((noinline)) static Aligned *make_aligned()
{
	Aligned *block = new Aligned; /* SITE aligned */

	sink = block;
	return block;
}

__attribute__((noinline)) static void drop_array(char *block)
{
	delete[] block; /* SITE drop */
	sink = nullptr;
}

int main(int argc, char **argv)
{
	long rounds = argc == 2 ? atol(argv[1]) : 0;

	printf("{\"pid\": %d}\n", getpid());
	fflush(stdout);
	for (long round = 0; round < rounds; round++) {
		char *array = make_array(round);
		Aligned *aligned = make_aligned();

		drop_array(array);
		delete aligned;
	}
	return 0;
}
