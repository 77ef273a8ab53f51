// SPDX-License-Identifier: GPL-2.0
#include "hold/memory_view.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <unistd.h>

#include "host/target_memory.h"
#include "host/timed_call.h"

/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGEMAP_PRESENT (1ULL << 63)
#define PAGEMAP_SWAPPED (1ULL << 62)
#define ENTRIES 65536U	/* at a time */
#define PAUSE_US 100000 /* a thread that waits for a processor in the middle of free() gets one */

static bool read_memory(void *context, uint64_t address, void *to, size_t size)
{
	const struct process_view *process = context;

	return !target_memory_read(process->pid, address, to, size);
}

/* Owned by the worker thread: the caller may give up waiting. */
struct pages_job {
	int fd;
	uint64_t page;
	size_t count;
	bool read;
	uint64_t entries[];
};

static void pages_job_free(gpointer data)
{
	struct pages_job *job = data;

	close(job->fd);
	g_free(job);
}

static void read_entries(void *data)
{
	struct pages_job *job = data;
	size_t size = job->count * sizeof(*job->entries);

	job->read = pread(job->fd, job->entries, size, (off_t)(job->page * sizeof(uint64_t))) ==
		    (ssize_t)size;
}

static bool read_some(const struct process_view *process, uint64_t page, size_t count,
		      uint8_t *states)
{
	struct pages_job *job = g_malloc(sizeof(*job) + count * sizeof(*job->entries));
	bool read;
	size_t i;

	*job = (struct pages_job){ .fd = fcntl(process->pagemap, F_DUPFD_CLOEXEC, 0),
				   .page = page,
				   .count = count };
	if (!timed_call(process->pid, TIMED_CALL_FILE_MS, read_entries, job, pages_job_free))
		return false;
	read = job->read;
	for (i = 0; read && i < count; i++)
		states[i] = job->entries[i] & PAGEMAP_PRESENT ? PAGE_RESIDENT :
			    job->entries[i] & PAGEMAP_SWAPPED ? PAGE_SWAPPED :
								PAGE_ABSENT;
	pages_job_free(job);
	return read;
}

static bool read_pages(void *context, uint64_t address, size_t count, uint8_t *states)
{
	size_t done, part;

	for (done = 0; done < count; done += part) {
		part = MIN(count - done, ENTRIES);
		if (!read_some(context, address / VIEW_PAGE + done, part, states + done))
			return false;
	}
	return true;
}

static void let_go_on(void *context)
{
	(void)context;
	g_usleep(PAUSE_US);
}

int process_view_open(pid_t pid, struct process_view *process)
{
	char path[64];

	*process = (struct process_view){
		.view = { .read = read_memory,
			  .pages = read_pages,
			  .pause = let_go_on,
			  .context = process },
		.pid = pid,
	};
	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	process->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	return process->pagemap < 0 ? -errno : 0;
}

void process_view_close(struct process_view *process)
{
	if (process->pagemap >= 0)
		close(process->pagemap);
	process->pagemap = -1;
}

static void add_part(struct page_bytes *sum, uint8_t state, uint64_t bytes)
{
	sum->bytes += bytes;
	if (state == PAGE_RESIDENT)
		sum->resident += bytes;
	else if (state == PAGE_SWAPPED)
		sum->swapped += bytes;
}

void page_bytes_add(struct page_bytes *sum, const struct page_range *range, uint64_t start,
		    uint64_t end)
{
	uint64_t page = (start - range->first) / VIEW_PAGE, next;

	for (; start < end && page < range->count; page++, start = next) {
		next = MIN(end, range->first + (page + 1) * VIEW_PAGE);
		add_part(sum, range->states[page], next - start);
	}
}

void page_bytes_join(struct page_bytes *sum, const struct page_bytes *other)
{
	sum->bytes += other->bytes;
	sum->resident += other->resident;
	sum->swapped += other->swapped;
}
