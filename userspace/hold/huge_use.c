// SPDX-License-Identifier: GPL-2.0
#include "hold/huge_use.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host/timed_call.h"

/* include/uapi/linux/fs.h of Linux 6.7; libc's headers may be older. */
struct scan_argument {
	uint64_t size, flags, start, end, walk_end, regions, region_count, most_pages;
	uint64_t inverted, all_of, any_of, returned;
};

struct scan_region {
	uint64_t start, end, categories;
};

#define SCAN _IOWR('f', 16, struct scan_argument)
#define SCAN_FILE (1ULL << 2)
#define SCAN_PRESENT (1ULL << 3)
#define SCAN_HUGE (1ULL << 6)
#define ADDRESSES_END ((1ULL << 47) - VIEW_PAGE) /* TASK_SIZE_MAX */

#define REGIONS 512
/* Scans of so many regions; beyond that the rest is not looked at, and nothing is said. */
#define SCANS_MAX 256
/* A quarter of a gigabyte is read: 50 ms. */
#define LOOKED_MAX 128
#define READ_BYTES 65536

/* Owned by the worker thread: the caller may give up waiting. */
struct scan_job {
	int fd;
	int err;
	long count;
	struct scan_argument argument;
	struct scan_region regions[REGIONS];
};

static void scan_job_free(gpointer data)
{
	struct scan_job *job = data;

	close(job->fd);
	g_free(job);
}

static void scan(void *data)
{
	struct scan_job *job = data;

	job->count = ioctl(job->fd, SCAN, &job->argument);
	job->err = job->count < 0 ? -errno : 0;
}

/* Huge pages from *start on, and where to go on: at the end ADDRESSES_END. */
static int scan_some(const struct process_view *process, uint64_t *start, GArray *found)
{
	struct scan_job *job = g_new0(struct scan_job, 1);
	int err;
	long i;

	job->fd = fcntl(process->pagemap, F_DUPFD_CLOEXEC, 0);
	job->argument = (struct scan_argument){
		.size = sizeof(job->argument),
		.start = *start,
		.end = ADDRESSES_END,
		.regions = (uint64_t)(uintptr_t)job->regions,
		.region_count = REGIONS,
		.inverted = SCAN_FILE,
		.all_of = SCAN_HUGE | SCAN_PRESENT | SCAN_FILE,
		.returned = SCAN_HUGE,
	};
	if (!timed_call(process->pid, TIMED_CALL_FILE_MS, scan, job, scan_job_free))
		return -ETIMEDOUT;
	err = job->err;
	for (i = 0; !err && i < job->count; i++)
		g_array_append_val(found, job->regions[i]);
	*start = err || !job->count ? ADDRESSES_END : job->argument.walk_end;
	scan_job_free(job);
	return err;
}

static int find_regions(const struct process_view *process, GArray *found)
{
	uint64_t start = 0;
	unsigned int scans;
	int err = 0;

	for (scans = 0; !err && start < ADDRESSES_END; scans++)
		err = scans < SCANS_MAX ? scan_some(process, &start, found) : -E2BIG;
	return err;
}

static bool is_zero(const uint8_t *page)
{
	return !page[0] && !memcmp(page, page + 1, VIEW_PAGE - 1);
}

/* Bytes of a huge page that are in pages of zeros; false: it is not there any more. */
static bool look_at(const struct memory_view *view, uint64_t address, uint8_t *buffer,
		    uint64_t *zero)
{
	uint64_t done, at;

	*zero = 0;
	for (done = 0; done < HUGE_BYTES; done += READ_BYTES) {
		if (!view->read(view->context, address + done, buffer, READ_BYTES))
			return false;
		for (at = 0; at < READ_BYTES; at += VIEW_PAGE)
			*zero += is_zero(buffer + at) ? VIEW_PAGE : 0;
	}
	return true;
}

static uint64_t pages_of(const GArray *regions)
{
	uint64_t bytes = 0;
	guint i;

	for (i = 0; i < regions->len; i++) {
		const struct scan_region *region = &g_array_index(regions, struct scan_region, i);

		bytes += region->end - region->start;
	}
	return bytes / HUGE_BYTES;
}

/* The address of one of the pages, by its number. */
static uint64_t page_at(const GArray *regions, uint64_t number)
{
	guint i;

	for (i = 0; i < regions->len; i++) {
		const struct scan_region *region = &g_array_index(regions, struct scan_region, i);
		uint64_t pages = (region->end - region->start) / HUGE_BYTES;

		if (number < pages)
			return region->start + number * HUGE_BYTES;
		number -= pages;
	}
	return 0;
}

void huge_use_estimate(struct huge_use *use, const uint64_t *zero, uint64_t count)
{
	double n = (double)count, all = (double)use->pages, mean = 0, squares = 0, error = 0;
	double most = all * HUGE_BYTES;
	uint64_t i;

	use->looked = count;
	use->known = count > 0;
	if (!count)
		return;
	for (i = 0; i < count; i++)
		mean += (double)zero[i] / n;
	for (i = 0; i < count; i++)
		squares += ((double)zero[i] - mean) * ((double)zero[i] - mean);
	if (count > 1)
		error = 1.96 * all * sqrt(squares / (n - 1) / n * (1 - MIN(n / all, 1)));
	else if (use->pages > 1)
		error = most; /* of one nothing is known of the others */
	use->zero = (uint64_t)(all * mean);
	use->low = (uint64_t)MAX(all * mean - error, 0);
	use->high = (uint64_t)MIN(all * mean + error, most);
}

int huge_use_read(const struct process_view *process, struct huge_use *use)
{
	g_autoptr(GArray) regions = g_array_new(FALSE, FALSE, sizeof(struct scan_region));
	g_autofree uint8_t *buffer = g_malloc(READ_BYTES);
	uint64_t zero[LOOKED_MAX], count = 0, i, wanted;
	int err = find_regions(process, regions);

	*use = (struct huge_use){ 0 };
	if (err)
		return err;
	use->pages = pages_of(regions);
	wanted = MIN(use->pages, LOOKED_MAX);
	for (i = 0; i < wanted; i++) {
		uint64_t address = page_at(regions, i * use->pages / wanted);

		if (look_at(&process->view, address, buffer, &zero[count]))
			count++;
	}
	huge_use_estimate(use, zero, count);
	return 0;
}
