// SPDX-License-Identifier: GPL-2.0
/*
 * quitter: allocates, frees nothing and leaves by _exit(2), without atexit handlers.
 *
 * usage: quitter N SIZE STATUS [--wait]
 */
#include "workload.h"

static NOINLINE void *keep_block(uint64_t size)
{
	void *block = calloc(size, 1); /* SITE calloc */

	workload_sink = block;
	return block;
}

int main(int argc, char **argv)
{
	uint64_t calls, size;
	int status;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 4)
		return 2;
	calls = workload_number(argv[0], argv[1]);
	size = workload_number(argv[0], argv[2]);
	status = (int)workload_number(argv[0], argv[3]);
	if (argc > 4 && !strcmp(argv[4], "--wait"))
		workload_wait();
	for (uint64_t i = 0; i < calls; i++) {
		if (!keep_block(size))
			_exit(1);
	}
	workload_report("\"calls\": %llu, \"bytes\": %llu", (unsigned long long)calls,
			(unsigned long long)(calls * size));
	_exit(status);
}
