// SPDX-License-Identifier: GPL-2.0
//
// places: touches memory by code of the standard library, of the compiler's headers and of operators
// that are compiled into it. Each round PAGES pages for each of them, new ones.
//
// usage: places ROUNDS PAGES
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <emmintrin.h>
#include <malloc.h>
#include <new>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#define NOINLINE __attribute__((noinline, noclone))
#define PAGE 4096UL

// What was stored there is read: by nobody that the compiler sees.
static void keep(void *memory)
{
	asm volatile("" : : "r"(memory) : "memory");
}

NOINLINE static void by_vector(size_t size)
{
	std::vector<char> bytes(size); /* SITE by_vector */

	keep(bytes.data());
}

NOINLINE static void by_string(size_t size)
{
	std::string text(size, 'x'); /* SITE by_string */

	keep(text.data());
}

template <typename T> NOINLINE static std::vector<T> by_template(size_t size)
{
	return std::vector<T>(size / sizeof(T)); /* SITE by_template */
}

NOINLINE static void by_instruction(char *from, size_t size)
{
	for (char *at = from; at < from + size; at += 16)
		_mm_stream_si128((__m128i *)at, _mm_setzero_si128()); /* SITE by_instruction */
}

NOINLINE static void by_algorithm(long *from, size_t size)
{
	std::generate(from, from + size / sizeof(long), [] { return 3L; }); /* SITE by_algorithm */
}

template <typename Fn> static void in_mapping(size_t size, Fn fill)
{
	void *memory =
		mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(1);
	fill(memory);
	munmap(memory, size);
}

void *operator new(size_t size)
{
	void *block = malloc(size);

	if (!block)
		abort();
	return block;
}

void operator delete(void *block) noexcept
{
	free(block);
}

void operator delete(void *block, size_t) noexcept
{
	free(block);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	size_t rounds = strtoul(argv[1], nullptr, 0), size = PAGE * strtoul(argv[2], nullptr, 0);

	mallopt(M_MMAP_THRESHOLD, 65536); // each block is a mapping
	for (size_t round = 0; round < rounds; round++) {
		by_vector(size);
		by_string(size);
		keep(by_template<int>(size).data());
		in_mapping(size, [=](void *memory) { by_instruction((char *)memory, size); });
		in_mapping(size, [=](void *memory) { by_algorithm((long *)memory, size); });
	}
	printf("{\"pid\": %d, \"rounds\": %zu}\n", getpid(), rounds);
	return 0;
}
