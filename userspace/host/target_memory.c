// SPDX-License-Identifier: GPL-2.0
#include "host/target_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
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

/* Read from the first range on, IOV_MAX at most: number of ranges read, or -errno. */
static ssize_t read_some(pid_t pid, const struct memory_range *ranges, size_t count)
{
	struct iovec local[IOV_MAX], remote[IOV_MAX];
	size_t whole = 0, i;
	ssize_t got;

	for (i = 0; i < count; i++) {
		local[i] = (struct iovec){ ranges[i].to, ranges[i].size };
		remote[i] = (struct iovec){ (void *)(uintptr_t)ranges[i].address, ranges[i].size };
	}
	got = process_vm_readv(pid, local, count, remote, count, 0);
	if (got < 0)
		return -errno;
	while (whole < count && (size_t)got >= ranges[whole].size)
		got -= (ssize_t)ranges[whole++].size;
	return (ssize_t)whole;
}

/* The call stops at the first address that cannot be read: continue after it. */
static void read_ranges(void *data)
{
	struct memory_job *job = data;
	size_t next = 0, all = 0, wanted, i;
	ssize_t got = 0;

	job->err = -EFAULT;
	while (next < job->count) {
		wanted = MIN(job->count - next, IOV_MAX);
		got = read_some(job->pid, job->ranges + next, wanted);
		/* Not a bad address: the process is gone, or may not be read. */
		if (got < 0 && got != -EFAULT)
			break;
		got = MAX(got, 0);
		for (i = 0; i < (size_t)got; i++)
			job->ranges[next + i].read = true;
		all += (size_t)got;
		next += (size_t)got + ((size_t)got < wanted);
	}
	if (all)
		job->err = 0;
	else if (got < 0)
		job->err = (int)got;
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
	ssize_t got;
	size_t i;

	job->err = check_present(job);
	if (job->err)
		return;
	got = read_some(job->pid, &range, 1);
	job->err = got == 1 ? 0 : got < 0 ? (int)got : -ENOENT;
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
