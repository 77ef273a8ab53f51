/* SPDX-License-Identifier: GPL-2.0 */
/*
 * workload.h: what the programs under test share.
 *
 * They print JSON with their own counters, so that a test compares memtoll with a witness that
 * knows nothing of it. They print with write(2) from a buffer on the stack: stdio allocates, and
 * an allocation the program did not mean would spoil a total that must be exact.
 */
#ifndef MEMTOLL_WORKLOAD_H
#define MEMTOLL_WORKLOAD_H

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* A workload whose test died ends by itself. Survives exec, not fork. */
#define WORKLOAD_LIFE_S 120

/* Own frame, own symbol: the test finds the call by function and line. */
#define NOINLINE __attribute__((noinline, noclone))

/* Stores the compiler must not drop, and with them the allocations they belong to. */
static void *volatile workload_sink __attribute__((unused));

static inline uint64_t workload_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static inline void workload_write(const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(STDOUT_FILENO, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(120);
		text += n;
		len -= (size_t)n;
	}
}

/*
 * One line of JSON: getrusage(2) of this process up to now, its CPU time, and the members that
 * extra formats (without a leading comma; "" for none). Fault counts include what the process did
 * before exec.
 */
__attribute__((format(printf, 1, 2), unused)) static void workload_report(const char *extra, ...)
{
	struct rusage usage;
	char line[1024];
	va_list args;
	int len;

	getrusage(RUSAGE_SELF, &usage);
	len = snprintf(line, sizeof(line),
		       "{\"pid\": %d, \"minflt\": %ld, \"majflt\": %ld, \"utime_us\": %lld, "
		       "\"stime_us\": %lld, \"cpu_ns\": %llu, \"time_ns\": %llu",
		       getpid(), usage.ru_minflt, usage.ru_majflt,
		       usage.ru_utime.tv_sec * 1000000LL + usage.ru_utime.tv_usec,
		       usage.ru_stime.tv_sec * 1000000LL + usage.ru_stime.tv_usec,
		       (unsigned long long)workload_clock(CLOCK_PROCESS_CPUTIME_ID),
		       (unsigned long long)workload_clock(CLOCK_MONOTONIC));
	if (extra[0]) {
		line[len++] = ',';
		line[len++] = ' ';
		va_start(args, extra);
		len += vsnprintf(line + len, sizeof(line) - (size_t)len - 2, extra, args);
		va_end(args);
	}
	line[len++] = '}';
	line[len++] = '\n';
	workload_write(line, (size_t)len);
}

/* Say that the process is up, then wait for a line or the end of standard input. */
static inline void workload_wait(void)
{
	char byte;

	workload_report("\"ready\": true");
	while (read(STDIN_FILENO, &byte, 1) == 1 && byte != '\n')
		;
}

static inline uint64_t workload_number(const char *name, const char *text)
{
	char message[160];
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || end == text || *end) {
		int len = snprintf(message, sizeof(message), "%s: not a number: %s\n", name, text);

		if (write(STDERR_FILENO, message, (size_t)len) < 0)
			_exit(121);
		_exit(2);
	}
	return value;
}

/*
 * Speed for the tests that attach to a running process: reports the calls so far, ten lines a
 * second, and says when the given number of seconds is over.
 */
struct workload_pace {
	uint64_t start_ns;
	uint64_t next_ns;
	uint64_t end_ns;
};

static inline void workload_pace_start(struct workload_pace *pace, uint64_t seconds)
{
	pace->start_ns = workload_clock(CLOCK_MONOTONIC);
	pace->next_ns = pace->start_ns + 100000000ULL;
	pace->end_ns = pace->start_ns + seconds * 1000000000ULL;
}

/* 0 when the time is over. */
static inline int workload_pace_step(struct workload_pace *pace, uint64_t calls)
{
	uint64_t now = workload_clock(CLOCK_MONOTONIC);

	if (now >= pace->next_ns) {
		pace->next_ns = now + 100000000ULL;
		workload_report("\"pace\": true, \"calls\": %llu", (unsigned long long)calls);
	}
	return now < pace->end_ns;
}

#endif /* MEMTOLL_WORKLOAD_H */
