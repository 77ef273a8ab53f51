// SPDX-License-Identifier: GPL-2.0
/*
 * busy: computes, in leaf functions, through PLT entries, in the vdso and in system calls, at
 * changing depths.
 *
 * usage: busy SECONDS (of its CPU time)
 */
#include <fcntl.h>

#include "../workload.h"

static volatile unsigned int result;

static NOINLINE unsigned int leaf(unsigned int value)
{
	int round;

	for (round = 0; round < 31; round++)
		value = value * 2654435761U ^ value >> 13;
	return value;
}

static NOINLINE unsigned int saver(unsigned int value)
{
	unsigned int one = leaf(value), two = leaf(one), three = leaf(two), four = leaf(three);

	return one ^ two ^ three ^ four;
}

static NOINLINE void through_plt(unsigned int value)
{
	char text[32];
	int round;

	for (round = 0; round < 97; round++) {
		value += (unsigned int)abs((int)value) + (unsigned int)ffs((int)value);
		text[value % 31] = 'a';
		text[31] = '\0';
		value += (unsigned int)strlen(text + value % 31);
	}
	result += value;
}

static NOINLINE void in_vdso(void)
{
	struct timespec now;
	int round;

	for (round = 0; round < 53; round++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		result += (unsigned int)now.tv_nsec;
	}
}

static NOINLINE void in_kernel(int fd)
{
	static char block[16384];

	result += (unsigned int)read(fd, block, sizeof(block)) +
		  (unsigned char)block[sizeof(block) / 2];
}

static NOINLINE void at_depth(int fd, int depth)
{
	if (depth) {
		at_depth(fd, depth - 1);
		result += saver(result);
		return;
	}
	result += saver(result);
	through_plt(result);
	in_vdso();
	in_kernel(fd);
}

int main(int argc, char **argv)
{
	uint64_t end_ns = workload_number("SECONDS", argc > 1 ? argv[1] : "1") * 1000000000ULL;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC), depth = 0;

	if (fd < 0)
		return 1;
	alarm(WORKLOAD_LIFE_S);
	while (workload_clock(CLOCK_PROCESS_CPUTIME_ID) < end_ns)
		at_depth(fd, depth++ % 13);
	close(fd);
	workload_report("\"done\": true");
	return 0;
}
