// SPDX-License-Identifier: GPL-2.0
/*
 * sockets: a server's way of reading: by read(2), from sockets, again and again.
 *
 * usage: sockets FILE READS [SECONDS PAUSE_US FILES]
 * READS reads of a socket that has nothing to say. Or, for SECONDS, reads of it, and then, until
 * FILES reads of FILE's first page are done, one of those every PAUSE_US microseconds, sockets in
 * between.
 */
#include <fcntl.h>
#include <sys/socket.h>

#include "workload.h"

static uint64_t socket_reads, file_reads;

static NOINLINE void read_socket(int fd)
{
	char byte;

	if (read(fd, &byte, 1) >= 0)
		_exit(3);
	socket_reads++;
}

static NOINLINE void read_file(int fd)
{
	char page[4096];

	if (lseek(fd, 0, SEEK_SET) || read(fd, page, sizeof(page)) != sizeof(page)) /* SITE read */
		_exit(4);
	file_reads++;
}

int main(int argc, char **argv)
{
	uint64_t reads = argc > 2 ? workload_number("READS", argv[2]) : 0, end_ns, next_ns, now;
	uint64_t seconds, pause_us, files;
	int pair[2], fd;

	alarm(WORKLOAD_LIFE_S);
	if (argc != 3 && argc != 6)
		return 2;
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair))
		return 1;
	if (argc == 3) {
		while (socket_reads < reads)
			read_socket(pair[0]);
	} else {
		seconds = workload_number("SECONDS", argv[3]);
		pause_us = workload_number("PAUSE_US", argv[4]);
		files = workload_number("FILES", argv[5]);
		next_ns = end_ns = workload_clock(CLOCK_MONOTONIC) + seconds * 1000000000ULL;
		while (file_reads < files) {
			now = workload_clock(CLOCK_MONOTONIC);
			read_socket(pair[0]);
			if (now >= next_ns) {
				read_file(fd);
				next_ns += pause_us * 1000;
			}
		}
	}
	workload_report("\"sockets\": %llu, \"files\": %llu", (unsigned long long)socket_reads,
			(unsigned long long)file_reads);
	return 0;
}
