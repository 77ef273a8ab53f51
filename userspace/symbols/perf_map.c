// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE 1

#include "symbols/perf_map.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glib.h>

#include "base/root_open.h"
#include "host/maps.h"
#include "host/target_rights.h"

/* More than any run-time writes in practice; the file belongs to the target. */
#define FILE_MAX (64 * 1024 * 1024LL)
#define ENTRIES_MAX (1024 * 1024U)
#define CHUNK_BYTES (1024 * 1024)
#define NAME_MAX_BYTES 1024
/* A single function is not larger; also keeps start + size from overflowing. */
#define FUNCTION_MAX (1ULL << 32)
/* How many entries before the nearest one to try: a longer one may cover the address. */
#define OVERLAPS_MAX 64

struct entry {
	uint64_t start;
	uint64_t end;
	size_t name;	/* into names */
	uint32_t order; /* of writing */
};

struct perf_map {
	int references;
	int fd;
	dev_t device;
	ino_t inode;
	off_t size_seen;
	off_t parsed;	 /* bytes of whole lines */
	int64_t read_at; /* microseconds, monotonic */
	uint32_t next_order;
	GString *names;
	GArray *entries; /* struct entry, ascending by start, then by order */
};

/* The fields of /proc/PID/status that matter here: proc(5). */
static bool read_status(pid_t pid, uid_t uids[2], pid_t *own_pid)
{
	unsigned int real = 0;
	unsigned int effective = 0;
	bool have_uid = false;
	char path[64];
	char line[512];
	FILE *file;

	*own_pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Uid: %u %u", &real, &effective) == 2) {
			have_uid = true;
		} else if (strncmp(line, "NSpid:", 6) == 0) {
			/* One pid per nested namespace, the process's own last. */
			char *last = line + strcspn(line, "\n");

			while (last > line && !isdigit((unsigned char)last[-1]))
				*--last = '\0';
			while (last > line && isdigit((unsigned char)last[-1]))
				last--;
			*own_pid = (pid_t)strtol(last, NULL, 10);
		}
	}
	fclose(file);
	uids[0] = real;
	uids[1] = effective;
	return have_uid;
}

struct open_job {
	char name[64];
	int fd;
};

static void open_job_free(gpointer data)
{
	struct open_job *job = data;

	if (job->fd >= 0)
		close(job->fd);
	g_free(job);
}

/* What a process serves itself it may hold back when it is read. */
static void open_work(int root, void *data)
{
	struct open_job *job = data;

	job->fd = root_open_file(root, job->name, true);
	if (job->fd >= 0 && file_is_served(job->fd)) {
		close(job->fd);
		job->fd = -1;
	}
}

/* A descriptor, or -1. */
static int open_as(pid_t pid, pid_t own_pid)
{
	struct open_job *job = g_new0(struct open_job, 1);
	int fd;

	job->fd = -1;
	snprintf(job->name, sizeof(job->name), "tmp/perf-%d.map", own_pid);
	if (!with_target_rights(pid, NULL, open_work, job, open_job_free))
		return -1;
	fd = job->fd;
	g_free(job);
	return fd;
}

struct perf_map *perf_map_open(pid_t pid)
{
	struct perf_map *map = NULL;
	struct stat status;
	uid_t uids[2];
	pid_t own_pid;
	int fd = -1;

	if (!read_status(pid, uids, &own_pid))
		return NULL;
	fd = open_as(pid, own_pid);
	if (fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode))
		goto out;
	if (status.st_uid != 0 && status.st_uid != uids[0] && status.st_uid != uids[1])
		goto out;

	map = g_new0(struct perf_map, 1);
	map->references = 1;
	map->fd = fd;
	map->device = status.st_dev;
	map->inode = status.st_ino;
	map->names = g_string_new(NULL);
	map->entries = g_array_new(FALSE, FALSE, sizeof(struct entry));
	fd = -1;
out:
	if (fd >= 0)
		close(fd);
	return map;
}

struct perf_map *perf_map_ref(struct perf_map *map)
{
	if (map)
		map->references++;
	return map;
}

void perf_map_unref(struct perf_map *map)
{
	if (!map || --map->references)
		return;
	close(map->fd);
	g_string_free(map->names, TRUE);
	g_array_free(map->entries, TRUE);
	g_free(map);
}

bool perf_map_same(const struct perf_map *a, const struct perf_map *b)
{
	return a && b && a->device == b->device && a->inode == b->inode;
}

static int compare(const void *left, const void *right)
{
	const struct entry *a = left;
	const struct entry *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* A hexadecimal number and the blanks behind it; strtoull would take signs and line ends. */
static bool take_hex(const char **text, uint64_t *value)
{
	const char *at = *text;
	unsigned int digits = 0;

	if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	for (*value = 0; isxdigit((unsigned char)*at); at++, digits++)
		*value = *value << 4 | (uint64_t)g_ascii_xdigit_value(*at);
	if (digits == 0 || digits > 16 || *at != ' ')
		return false;
	*text = at + strspn(at, " ");
	return true;
}

static void parse_line(struct perf_map *map, const char *line)
{
	struct entry entry = { .name = map->names->len };
	uint64_t size;

	if (map->entries->len == ENTRIES_MAX || !take_hex(&line, &entry.start) ||
	    !take_hex(&line, &size) || !*line)
		return;
	if (size == 0 || size > FUNCTION_MAX || entry.start > UINT64_MAX - size)
		return;
	entry.end = entry.start + size;
	entry.order = map->next_order++;
	g_string_append_len(map->names, line, (gssize)strnlen(line, NAME_MAX_BYTES));
	g_string_append_c(map->names, '\0');
	g_array_append_val(map->entries, entry);
}

/* Parse the whole lines of text, in place; a last line still being written waits for its end. */
static size_t parse(struct perf_map *map, char *text, size_t len)
{
	size_t done = 0;
	char *end;

	while (done < len && (end = memchr(text + done, '\n', len - done))) {
		*end = '\0';
		parse_line(map, text + done);
		done = (size_t)(end - text) + 1;
	}
	return done;
}

/* Read what was appended since; everything if the file was truncated and written anew. */
static void read_more(struct perf_map *map, off_t size)
{
	char *chunk;
	ssize_t got;
	size_t done;

	if (size < map->parsed) {
		map->parsed = 0;
		g_string_truncate(map->names, 0);
		g_array_set_size(map->entries, 0);
	}
	chunk = g_malloc(CHUNK_BYTES);
	while (map->parsed < FILE_MAX) {
		got = pread(map->fd, chunk, CHUNK_BYTES, map->parsed);
		if (got <= 0)
			break;
		done = parse(map, chunk, (size_t)got);
		/* A line as long as the chunk is no name: skip that part of it. */
		if (done == 0 && got == CHUNK_BYTES)
			done = CHUNK_BYTES;
		if (done == 0)
			break;
		map->parsed += (off_t)done;
	}
	g_free(chunk);
	g_array_sort(map->entries, compare);
}

static const struct entry *find(const struct perf_map *map, uint64_t address)
{
	const struct entry *entries = (const struct entry *)(void *)map->entries->data;
	const struct entry *best = NULL;
	guint low = 0;
	guint high = map->entries->len;
	guint i;

	while (low < high) {
		guint middle = low + (high - low) / 2;

		if (entries[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (i = 0; i < OVERLAPS_MAX && low > 0; i++) {
		const struct entry *entry = &entries[--low];

		if (address < entry->end && (!best || entry->order > best->order))
			best = entry;
	}
	return best;
}

/* Whether the file changed since it was read, or was never read. */
static bool changed(struct perf_map *map)
{
	struct stat status;

	if (fstat(map->fd, &status) || status.st_size == map->size_seen)
		return false;
	map->size_seen = status.st_size;
	return true;
}

bool perf_map_find(struct perf_map *map, uint64_t address, const char **name, uint64_t *start)
{
	const struct entry *entry = find(map, address);
	int64_t now = g_get_monotonic_time();

	/*
	 * Runtimes append while they compile, and may reuse addresses: read again at once if the
	 * address is missing, and now and then since entries may be out of date.
	 */
	if ((!entry || now - map->read_at > G_USEC_PER_SEC) && changed(map)) {
		read_more(map, map->size_seen);
		map->read_at = now;
		entry = find(map, address);
	}
	if (!entry)
		return false;
	*name = map->names->str + entry->name;
	*start = entry->start;
	return true;
}

void perf_map_each(struct perf_map *map, void (*each)(void *context, uint64_t start, uint64_t end),
		   void *context)
{
	guint i;

	if (changed(map)) {
		read_more(map, map->size_seen);
		map->read_at = g_get_monotonic_time();
	}
	for (i = 0; i < map->entries->len; i++) {
		const struct entry *entry = &g_array_index(map->entries, struct entry, i);

		each(context, entry->start, entry->end);
	}
}
