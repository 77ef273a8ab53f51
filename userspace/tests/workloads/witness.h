/* SPDX-License-Identifier: GPL-2.0 */
/*
 * witness.h: what a workload can learn from the kernel about its own memory. Allocates nothing:
 * that would spoil the counts it is a witness for.
 */
#ifndef MEMTOLL_WITNESS_H
#define MEMTOLL_WITNESS_H

#include <fcntl.h>

#include "workload.h"

#define PAGE 4096UL

/* Bits of an entry of /proc/PID/pagemap (admin-guide/mm/pagemap.rst). */
#define PAGEMAP_PRESENT (1ULL << 63)

/* Faults of the process so far, minor and major. */
static inline uint64_t witness_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_minflt + usage.ru_majflt);
}

/* Pages of [start, start + len) that are mapped now; whole pages are counted. */
__attribute__((unused)) static uint64_t witness_present(const void *start, uint64_t len)
{
	uint64_t at = (uint64_t)start / PAGE, end = ((uint64_t)start + len + PAGE - 1) / PAGE;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entries[512], present = 0;

	if (fd < 0)
		_exit(122);
	while (at < end) {
		uint64_t want = end - at < 512 ? end - at : 512;
		ssize_t got = pread(fd, entries, want * 8, (off_t)(at * 8));

		if (got <= 0 || got % 8)
			_exit(123);
		for (ssize_t i = 0; i < got / 8; i++)
			present += (entries[i] & PAGEMAP_PRESENT) != 0;
		at += (uint64_t)got / 8;
	}
	close(fd);
	return present;
}

static char witness_text[1 << 20];

/* A file of /proc as a string. */
static inline char *witness_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got;

	if (fd < 0)
		_exit(124);
	while ((got = read(fd, witness_text + len, sizeof(witness_text) - 1 - len)) > 0)
		len += (size_t)got;
	close(fd);
	witness_text[len] = '\0';
	return witness_text;
}

/* Bounds of the mapping that holds an address. */
__attribute__((unused)) static void witness_mapping(const void *address, uint64_t *start,
						    uint64_t *end)
{
	char *line = witness_file("/proc/self/maps");

	*start = *end = 0;
	while (*line) {
		char *rest;
		uint64_t first = strtoull(line, &rest, 16);
		uint64_t last = strtoull(rest + 1, &rest, 16);

		if ((uint64_t)address >= first && (uint64_t)address < last) {
			*start = first;
			*end = last;
			return;
		}
		line = strchr(rest, '\n') + 1;
	}
	_exit(125);
}

/* A field of smaps ("AnonHugePages", kB), summed over the mappings inside [start, start + len). */
__attribute__((unused)) static uint64_t witness_smaps(const void *start, uint64_t len,
						      const char *field)
{
	char *line = witness_file("/proc/self/smaps");
	size_t name = strlen(field);
	uint64_t sum = 0;
	int inside = 0;

	for (; *line; line = strchr(line, '\n') + 1) {
		char *rest;
		uint64_t first = strtoull(line, &rest, 16);

		if (rest > line && *rest == '-')
			inside = first >= (uint64_t)start &&
				 strtoull(rest + 1, NULL, 16) <= (uint64_t)start + len;
		else if (inside && !strncmp(line, field, name) && line[name] == ':')
			sum += strtoull(line + name + 1, NULL, 10);
	}
	return sum;
}

#endif /* MEMTOLL_WITNESS_H */
