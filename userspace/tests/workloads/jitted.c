// SPDX-License-Identifier: GPL-2.0
/*
 * jitted: makes code, names it by a perf map, and allocates through it and a library. The map stays
 * for whoever reads it late.
 *
 * usage: jitted LIBRARY inner|outer kept|lost ROUNDS BYTES
 * inner: the code calls the library, which calls calloc; outer: the library calls the code, which
 * calls calloc. lost: the code has something else in the register of the frame pointer. Begins when
 * it reads a line.
 */
#include <dlfcn.h>
#include <sys/mman.h>

#include "passes.h"
#include "workload.h"

#define MADE_SIZE 4096

static const unsigned char kept[] = {
	0x55,		  /* push %rbp */
	0x48, 0x89, 0xe5, /* mov %rsp,%rbp */
	0xff, 0xd2,	  /* call *%rdx: the third argument, with the first two */
	0x5d,		  /* pop %rbp */
	0xc3,		  /* ret */
};

static const unsigned char lost[] = {
	0x55,			      /* push %rbp */
	0xbd, 0x03, 0x00, 0x00, 0x00, /* mov $3,%ebp */
	0xff, 0xd2,		      /* call *%rdx */
	0x5d,			      /* pop %rbp */
	0xc3,			      /* ret */
};

static made_fn *make(const unsigned char *code, size_t size)
{
	void *made =
		mmap(NULL, MADE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	FILE *map;

	if (made == MAP_FAILED)
		return NULL;
	memcpy(made, code, size);
	if (mprotect(made, MADE_SIZE, PROT_READ | PROT_EXEC))
		return NULL;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "wx");
	if (!map)
		return NULL;
	fprintf(map, "%lx %zx made_by_us\n", (unsigned long)made, size);
	return fclose(map) ? NULL : (made_fn *)made;
}

int main(int argc, char **argv)
{
	void *(*back)(made_fn * made, size_t count, size_t size);
	uint64_t rounds, bytes;
	alloc_fn *pass;
	made_fn *made;
	void *library;

	if (argc != 6)
		return 2;
	library = dlopen(argv[1], RTLD_NOW);
	if (!library)
		return 1;
	pass = (alloc_fn *)dlsym(library, "pass_on");
	back = (void *(*)(made_fn *, size_t, size_t))dlsym(library, "call_back");
	made = strcmp(argv[3], "lost") ? make(kept, sizeof(kept)) : make(lost, sizeof(lost));
	if (!pass || !back || !made)
		return 1;
	rounds = workload_number("ROUNDS", argv[4]);
	bytes = workload_number("BYTES", argv[5]);
	workload_wait();
	for (uint64_t i = 0; i < rounds; i++) {
		workload_sink = strcmp(argv[2], "outer") ? made(1, bytes, pass) : /* SITE calls */
							   back(made, 1, bytes);
		free(workload_sink);
	}
	workload_report("\"rounds\": %llu", (unsigned long long)rounds);
	return 0;
}
