// SPDX-License-Identifier: GPL-2.0
#include "host/target_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/timed_call.h"

/* Owned by the worker thread: the caller may give up waiting. */
struct memory_job {
	pid_t pid;
	int err;
	size_t count;
	struct memory_range *ranges; /* to: into bytes */
	char *bytes;
};

static void memory_job_free(gpointer data)
{
	struct memory_job *job = data;

	g_free(job->ranges);
	g_free(job->bytes);
	g_free(job);
}

/*
 * Another process's memory without a change to it: process_vm_readv(2) pins what it reads, and to be
 * pinned a page that processes share since a fork is copied first (gup_must_unshare(), kernel commit
 * a7f226604170), huge pages in small ones. Reads of /proc/PID/mem pin nothing, and ask no handler
 * of a userfaultfd for what is not there: they fail.
 */
static int open_memory(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ENOENT ? -ESRCH : -errno;
}

/* 0, -EFAULT: not all of it is there; -ESRCH: the process is gone, or is another program. */
static int read_range(int memory, const struct memory_range *range)
{
	size_t done = 0;

	while (done < range->size) {
		ssize_t got = pread(memory, (char *)range->to + done, range->size - done,
				    (off_t)(range->address + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (!got)
			return -ESRCH;
		if (got < 0)
			return -EFAULT;
		done += (size_t)got;
	}
	return 0;
}

static void read_ranges(void *data)
{
	struct memory_job *job = data;
	int memory = open_memory(job->pid), err = 0;
	size_t i;

	job->err = memory < 0 ? memory : -EFAULT;
	for (i = 0; memory >= 0 && i < job->count && err != -ESRCH; i++) {
		err = read_range(memory, &job->ranges[i]);
		job->ranges[i].read = !err;
		if (!err)
			job->err = 0;
		else if (err == -ESRCH && job->err)
			job->err = err;
	}
	if (memory >= 0)
		close(memory);
}

int target_memory_read_all(pid_t pid, struct memory_range *ranges, size_t count)
{
	struct memory_job *job = g_new0(struct memory_job, 1);
	size_t bytes = 0, i;
	int err;

	for (i = 0; i < count; i++)
		bytes += ranges[i].size;
	job->pid = pid;
	job->count = count;
	job->ranges = g_memdup2(ranges, count * sizeof(*ranges));
	job->bytes = g_malloc(bytes);
	for (i = 0, bytes = 0; i < count; i++) {
		ranges[i].read = job->ranges[i].read = false;
		job->ranges[i].to = job->bytes + bytes;
		bytes += ranges[i].size;
	}
	if (!timed_call(pid, TIMED_CALL_MEMORY_MS, read_ranges, job, memory_job_free))
		return -ETIMEDOUT;
	err = job->err;
	for (i = 0; i < count; i++) {
		ranges[i].read = job->ranges[i].read;
		if (ranges[i].read)
			memcpy(ranges[i].to, job->ranges[i].to, ranges[i].size);
	}
	memory_job_free(job);
	return err;
}

int target_memory_read(pid_t pid, uint64_t address, void *to, size_t size)
{
	struct memory_range range = { .address = address, .to = to, .size = size };

	return target_memory_read_all(pid, &range, 1);
}

#define PAGEMAP_PRESENT (1ULL << 63) /* Documentation/admin-guide/mm/pagemap.rst */
#define PAGE_BYTES 4096

struct used_job {
	pid_t pid;
	uint64_t address;
	size_t pages;
	uint64_t *entries;
	char *bytes;
	uint64_t used;
	int err;
};

static void used_job_free(gpointer data)
{
	struct used_job *job = data;

	g_free(job->entries);
	g_free(job->bytes);
	g_free(job);
}

/* Reading what is not there would map the shared zero page, which the process then has. */
static int check_present(const struct used_job *job)
{
	size_t size = job->pages * sizeof(*job->entries), i;
	char path[64];
	int fd, err = 0;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", job->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (pread(fd, job->entries, size, (off_t)(job->address / PAGE_BYTES * sizeof(uint64_t))) !=
	    (ssize_t)size)
		err = -ENOENT;
	for (i = 0; i < job->pages && !err; i++)
		if (!(job->entries[i] & PAGEMAP_PRESENT))
			err = -ENOENT;
	close(fd);
	return err;
}

static bool is_zero(const uint64_t *words)
{
	size_t i;

	for (i = 0; i < PAGE_BYTES / sizeof(*words); i++)
		if (words[i])
			return false;
	return true;
}

static void count_used(void *data)
{
	struct used_job *job = data;
	struct memory_range range = { job->address, job->bytes, job->pages * PAGE_BYTES, false };
	int memory;
	size_t i;

	job->err = check_present(job);
	if (job->err)
		return;
	memory = open_memory(job->pid);
	job->err = memory < 0 ? memory : read_range(memory, &range);
	if (memory >= 0)
		close(memory);
	if (job->err == -EFAULT)
		job->err = -ENOENT;
	for (i = 0; i < job->pages && !job->err; i++)
		job->used += !is_zero((const uint64_t *)(job->bytes + i * PAGE_BYTES));
}

int target_memory_used(pid_t pid, uint64_t address, size_t size, uint64_t *used)
{
	struct used_job *job = g_new0(struct used_job, 1);
	int err;

	job->pid = pid;
	job->address = address;
	job->pages = size / PAGE_BYTES;
	job->entries = g_new(uint64_t, job->pages);
	job->bytes = g_malloc(job->pages * PAGE_BYTES);
	if (!timed_call(pid, TIMED_CALL_MEMORY_MS, count_used, job, used_job_free))
		return -ETIMEDOUT;
	err = job->err;
	*used = job->used;
	used_job_free(job);
	return err;
}

struct file_job {
	char path[64];
	size_t limit;
	int err;
	GString *content;
};

static void file_job_free(gpointer data)
{
	struct file_job *job = data;

	g_string_free(job->content, TRUE);
	g_free(job);
}

static void read_file(void *data)
{
	struct file_job *job = data;
	char buffer[4096];
	ssize_t got = 1;
	int fd = open(job->path, O_RDONLY | O_CLOEXEC);

	job->err = fd < 0 ? -errno : 0;
	while (!job->err && got && job->content->len < job->limit) {
		got = read(fd, buffer, MIN(sizeof(buffer), job->limit - job->content->len));
		if (got > 0)
			g_string_append_len(job->content, buffer, got);
		else if (got < 0 && errno != EINTR)
			job->err = -errno;
	}
	if (fd >= 0)
		close(fd);
}

int target_memory_file(pid_t pid, const char *name, size_t limit, GString *content)
{
	struct file_job *job = g_new0(struct file_job, 1);
	int err;

	snprintf(job->path, sizeof(job->path), "/proc/%d/%s", pid, name);
	job->limit = limit;
	job->content = g_string_new(NULL);
	if (!timed_call(pid, TIMED_CALL_MEMORY_MS, read_file, job, file_job_free))
		return -ETIMEDOUT;
	g_string_append_len(content, job->content->str, (gssize)job->content->len);
	err = job->err;
	file_job_free(job);
	return err;
}
