// SPDX-License-Identifier: GPL-2.0
/*
 * maps.c: a process's mappings. Whatever it can choose itself (their number, the paths) is read as
 * hostile; it may vanish, or change what it maps, between any two reads.
 */
#include "host/maps.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/keyed_hash.h"
#include "host/timed_call.h"

/* A line of /proc/PID/maps that is longer is cut: it has a path of megabytes. */
#define LINE_MAX_BYTES (64U << 10)
/* So many are asked for, kept or not. */
#define ASKED_MAX (4 * (MAPS_CODE_MAX + MAPS_DATA_MAX))
/* The highest address there is, for the kernel's own page at the end. */
#define ADDRESS_END 0xffffffffff601000ULL

static const char deleted_suffix[] = " (deleted)";

/* include/uapi/linux/fs.h since Linux 6.11 (ed5d583a88a9); the build's headers may be older. */
struct map_query {
	__u64 size;
	__u64 query_flags;
	__u64 query_addr;
	__u64 vma_start;
	__u64 vma_end;
	__u64 vma_flags;
	__u64 vma_page_size;
	__u64 vma_offset;
	__u64 inode;
	__u32 dev_major;
	__u32 dev_minor;
	__u32 vma_name_size;
	__u32 build_id_size;
	__u64 vma_name_addr;
	__u64 build_id_addr;
};

#define MAP_QUERY _IOWR('f', 17, struct map_query)
#define MAP_READABLE 0x01
#define MAP_WRITABLE 0x02
#define MAP_EXECUTABLE 0x04
#define MAP_IS_SHARED 0x08
#define MAP_COVERING_OR_NEXT 0x10

/* A file that was met, and how it is called. */
struct known_file {
	struct mapping mapping;
	bool has_code;
};

struct reading {
	GArray *entries;
	GHashTable *files; /* of struct known_file */
	GStringChunk *paths;
	size_t path_bytes;
	size_t files_with_code;
	size_t code;
	size_t data;
	uint64_t left_out;
};

bool is_same_file(const struct mapping *a, const struct mapping *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

guint mapping_file_hash(gconstpointer key)
{
	const struct mapping *mapping = key;

	return keyed_hash_file(mapping->inode, mapping->dev_major << 20 ^ mapping->dev_minor);
}

gboolean mapping_file_equal(gconstpointer a, gconstpointer b)
{
	return is_same_file(a, b);
}

static void reading_begin(struct reading *reading)
{
	*reading = (struct reading){
		.entries = g_array_new(FALSE, FALSE, sizeof(struct mapping)),
		.files = g_hash_table_new_full(mapping_file_hash, mapping_file_equal, NULL, g_free),
		.paths = g_string_chunk_new(4096),
	};
}

static void reading_end(struct reading *reading, struct maps *maps)
{
	maps->count = reading->entries->len;
	maps->entries = (struct mapping *)(void *)g_array_free(reading->entries, FALSE);
	maps->paths = reading->paths;
	maps->left_out = reading->left_out;
	g_hash_table_destroy(reading->files);
}

/* Name a mapping, of which len bytes of text are the kernel's word. */
static void set_path(struct reading *reading, struct mapping *mapping, const char *text, size_t len)
{
	const size_t suffix = strlen(deleted_suffix);
	g_autofree char *path = g_strndup(text, len);
	char *last;

	len = strlen(path);
	mapping->deleted = path[0] == '/' && g_str_has_suffix(path, deleted_suffix);
	if (mapping->deleted)
		path[len -= suffix] = '\0';
	last = strrchr(path, '/');
	if (path[0] == '/' && reading->path_bytes + len > MAPS_PATHS_MAX) {
		g_autofree char *rest = g_strdup_printf("/...%s", last);

		mapping->path = g_string_chunk_insert(reading->paths, rest);
		return;
	}
	reading->path_bytes += len;
	mapping->path = g_string_chunk_insert(reading->paths, path);
}

/* What is known of the mapping's file, which has one. NULL: it is met for the first time. */
static struct known_file *find_file(const struct reading *reading, struct mapping *mapping)
{
	struct known_file *file = g_hash_table_lookup(reading->files, mapping);

	if (!file)
		return NULL;
	mapping->path = file->mapping.path;
	mapping->deleted = file->mapping.deleted;
	return file;
}

/* True: there is room for one more, of this file. */
static bool has_room(struct reading *reading, struct known_file *file,
		     const struct mapping *mapping)
{
	if (!mapping->exec)
		return reading->data++ < MAPS_DATA_MAX;
	if (reading->code >= MAPS_CODE_MAX)
		return false;
	if (file && !file->has_code) {
		if (reading->files_with_code >= MAPS_FILES_MAX)
			return false;
		reading->files_with_code++;
		file->has_code = true;
	}
	reading->code++;
	return true;
}

/*
 * Append a mapping that has its path, keeping entries ascending and disjoint: between two reads the
 * process may have merged mappings, and the rest then begins below the last entry.
 */
static void append(struct reading *reading, struct known_file *file, struct mapping *mapping)
{
	uint64_t last_end = 0;

	if (mapping->inode && !file) {
		file = g_new0(struct known_file, 1);
		file->mapping = *mapping;
		g_hash_table_add(reading->files, file);
	}
	if (reading->entries->len > 0)
		last_end =
			g_array_index(reading->entries, struct mapping, reading->entries->len - 1)
				.end;
	if (mapping->end <= last_end)
		return;
	if (!has_room(reading, file, mapping)) {
		reading->left_out += mapping->exec;
		return;
	}
	if (mapping->start < last_end) {
		if (mapping->inode)
			mapping->offset += last_end - mapping->start;
		mapping->start = last_end;
	}
	g_array_append_vals(reading->entries, mapping, 1);
}

/* ---- asked one by one ---- */

/* The mapping that ends after address; name has size bytes, or is NULL. 0 or -errno. */
static int ask(int fd, uint64_t address, char *name, uint32_t size, struct map_query *query)
{
	*query = (struct map_query){
		.size = sizeof(*query),
		.query_flags = MAP_COVERING_OR_NEXT,
		.query_addr = address,
		.vma_name_size = name ? size : 0,
		.vma_name_addr = (uintptr_t)name,
	};
	return ioctl(fd, MAP_QUERY, query) ? -errno : 0;
}

static void take_answer(const struct map_query *query, struct mapping *mapping)
{
	*mapping = (struct mapping){
		.start = query->vma_start,
		.end = query->vma_end,
		.offset = query->vma_offset,
		.inode = query->inode,
		.dev_major = query->dev_major,
		.dev_minor = query->dev_minor,
		.read = query->vma_flags & MAP_READABLE,
		.write = query->vma_flags & MAP_WRITABLE,
		.exec = query->vma_flags & MAP_EXECUTABLE,
		.shared = query->vma_flags & MAP_IS_SHARED,
		.path = "",
	};
}

/* Without an answer only where the process is gone: then, and at the end, -errno. */
static int ask_next(int fd, uint64_t address, struct reading *reading, uint64_t *next)
{
	struct known_file *file = NULL;
	struct map_query query;
	struct mapping mapping;
	char name[PATH_MAX];
	int err = ask(fd, address, NULL, 0, &query);

	if (err)
		return err;
	take_answer(&query, &mapping);
	if (mapping.inode)
		file = find_file(reading, &mapping);
	if (!file) {
		/* From the address on, so that it goes forward whatever is mapped meanwhile. */
		err = ask(fd, MAX(address, mapping.start), name, sizeof(name), &query);
		if (!err) {
			/* It may be another one by now, and then this one counts. */
			take_answer(&query, &mapping);
			if (query.vma_name_size)
				set_path(reading, &mapping, name, query.vma_name_size);
			if (mapping.inode)
				file = g_hash_table_lookup(reading->files, &mapping);
		} else if (err == -ENAMETOOLONG) {
			mapping.path = "/...";
		} else {
			return err;
		}
	}
	*next = mapping.end;
	append(reading, file, &mapping);
	return 0;
}

/* -ENOTTY: this kernel does not know the question. */
static int ask_all(int fd, struct reading *reading)
{
	uint64_t address = 0;
	unsigned int asked;
	int err = 0;

	/* Whoever maps before it and unmaps behind it is not followed for ever. */
	for (asked = 0; !err && asked < ASKED_MAX; asked++)
		err = ask_next(fd, address, reading, &address);
	reading->left_out += !err;
	return err == -ENOENT ? 0 : err;
}

/* ---- read as text ---- */

/* Read a number in the given base and the character that must follow it. */
static bool take_number(const char **cursor, int base, char follower, uint64_t *value)
{
	char *end;

	if (!isxdigit((unsigned char)**cursor))
		return false;
	errno = 0;
	*value = strtoull(*cursor, &end, base);
	if (errno || end == *cursor || *end != follower)
		return false;
	*cursor = end + 1;
	return true;
}

/*
 * The path of a maps line. seq_path() writes a newline as \012 and nothing else specially, so a
 * backslash in front of other digits is part of the name.
 */
static void unescape_path(struct reading *reading, struct mapping *mapping, const char *text)
{
	g_autoptr(GString) path = g_string_new(NULL);

	for (; *text; text++) {
		if (strncmp(text, "\\012", 4) == 0) {
			g_string_append_c(path, '\n');
			text += 3;
		} else {
			g_string_append_c(path, *text);
		}
	}
	set_path(reading, mapping, path->str, path->len);
}

/* "start-end rwxp offset major:minor inode      path"; where the path begins, or NULL. */
static const char *parse_numbers(const char *line, struct mapping *mapping)
{
	uint64_t major, minor;
	const char *cursor = line;

	memset(mapping, 0, sizeof(*mapping));
	mapping->path = "";
	if (!take_number(&cursor, 16, '-', &mapping->start) ||
	    !take_number(&cursor, 16, ' ', &mapping->end) || mapping->start >= mapping->end)
		return NULL;
	if (strnlen(cursor, 5) < 5 || cursor[4] != ' ')
		return NULL;
	mapping->read = cursor[0] == 'r';
	mapping->write = cursor[1] == 'w';
	mapping->exec = cursor[2] == 'x';
	mapping->shared = cursor[3] == 's';
	cursor += 5;
	if (!take_number(&cursor, 16, ' ', &mapping->offset) ||
	    !take_number(&cursor, 16, ':', &major) || !take_number(&cursor, 16, ' ', &minor) ||
	    major > UINT32_MAX || minor > UINT32_MAX)
		return NULL;
	mapping->dev_major = (uint32_t)major;
	mapping->dev_minor = (uint32_t)minor;
	/* The kernel ends the inode with a space also where no path follows. */
	if (!take_number(&cursor, 10, ' ', &mapping->inode))
		return NULL;
	return cursor + strspn(cursor, " ");
}

static void take_line(struct reading *reading, const char *line)
{
	struct known_file *file = NULL;
	struct mapping mapping;
	const char *path = parse_numbers(line, &mapping);

	if (!path)
		return;
	if (mapping.inode)
		file = find_file(reading, &mapping);
	if (!file)
		unescape_path(reading, &mapping, path);
	append(reading, file, &mapping);
}

/* All whole lines of text, which are taken out of it. */
static void take_lines(struct reading *reading, GString *text)
{
	char *line = text->str, *end;

	for (; (end = memchr(line, '\n', text->len - (size_t)(line - text->str))); line = end + 1) {
		*end = '\0';
		take_line(reading, line);
	}
	g_string_erase(text, 0, line - text->str);
}

static int read_text(int fd, struct reading *reading)
{
	g_autoptr(GString) text = g_string_new(NULL);
	static const size_t chunk = 64 << 10;
	g_autofree char *buffer = g_malloc(chunk);
	ssize_t got;
	int err = 0;

	do {
		got = read(fd, buffer, chunk);
		if (got < 0 && errno != EINTR)
			err = -errno;
		if (got <= 0)
			continue;
		/*
		 * The rest of a line that is too long makes no line of its own: it is not
		 * hexadecimal.
		 */
		if (text->len > LINE_MAX_BYTES)
			g_string_truncate(text, LINE_MAX_BYTES);
		g_string_append_len(text, buffer, got);
		take_lines(reading, text);
	} while (!err && got);
	return err;
}

/* ---- both ---- */

/*
 * A page of the kernel's, which every process has or none: /proc/PID/maps lists it at its end, and
 * it is no mapping that could be asked for (get_gate_vma()).
 */
static bool has_vsyscall(void)
{
	static gsize known;

	if (g_once_init_enter(&known)) {
		g_autofree char *text = NULL;
		bool has = g_file_get_contents("/proc/self/maps", &text, NULL, NULL) &&
			   strstr(text, "[vsyscall]\n");

		g_once_init_leave(&known, has ? 2 : 1);
	}
	return known == 2;
}

static void append_vsyscall(struct reading *reading)
{
	struct mapping page = {
		.start = ADDRESS_END - 4096, .end = ADDRESS_END, .exec = true, .path = "[vsyscall]"
	};

	if (has_vsyscall())
		append(reading, NULL, &page);
}

/* fd: -errno where the file could not be opened. */
static int read_file(int fd, bool may_ask, struct maps *maps)
{
	struct reading reading;
	int err;

	reading_begin(&reading);
	err = fd < 0 ? fd : may_ask ? ask_all(fd, &reading) : -ENOTTY;
	if (err == -ENOTTY)
		err = read_text(fd, &reading);
	else if (!err && reading.entries->len)
		append_vsyscall(&reading);
	/* Zombies and kernel threads have no address space: the file is there, but empty. */
	if (!err && reading.entries->len == 0)
		err = -ESRCH;
	reading_end(&reading, maps);
	return err;
}

static int read_maps(pid_t pid, bool may_ask, struct maps *maps)
{
	char path[64];
	int err, fd;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	err = read_file(fd < 0 ? -errno : fd, may_ask, maps);
	if (fd >= 0)
		close(fd);
	return err;
}

struct maps_job {
	pid_t pid;
	bool may_ask;
	int err;
	struct maps maps;
};

static void maps_job_free(gpointer data)
{
	struct maps_job *job = data;

	maps_free(&job->maps);
	g_free(job);
}

static void maps_work(void *data)
{
	struct maps_job *job = data;

	job->err = read_maps(job->pid, job->may_ask, &job->maps);
}

/*
 * The kernel takes the lock of the process's map, which that can hold for as long as a file system
 * of its own likes. Whose memory does not answer may be asked for its map all the same: by another
 * number.
 */
static int read_bounded(pid_t pid, bool may_ask, struct maps *maps)
{
	struct maps_job *job = g_new0(struct maps_job, 1);
	int err;

	*maps = (struct maps){};
	job->pid = pid;
	job->may_ask = may_ask;
	if (!timed_call(-pid, TIMED_CALL_FILE_MS, maps_work, job, maps_job_free))
		return -ETIMEDOUT;
	*maps = job->maps;
	err = job->err;
	g_free(job);
	return err;
}

int maps_read(pid_t pid, struct maps *maps)
{
	return read_bounded(pid, true, maps);
}

int maps_read_text(pid_t pid, struct maps *maps)
{
	return read_bounded(pid, false, maps);
}

int maps_read_open(int fd, struct maps *maps)
{
	return read_file(fd, false, maps);
}

void maps_free(struct maps *maps)
{
	if (maps->paths)
		g_string_chunk_free(maps->paths);
	g_free(maps->entries);
	maps->paths = NULL;
	maps->entries = NULL;
	maps->count = 0;
}

const struct mapping *maps_find(const struct maps *maps, uint64_t address)
{
	size_t low = 0, high = maps->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct mapping *mapping = &maps->entries[middle];

		if (address < mapping->start)
			high = middle;
		else if (address >= mapping->end)
			low = middle + 1;
		else
			return mapping;
	}
	return NULL;
}

/*
 * Open path for reading if it is a regular file, and, where mapping is not NULL, the very file
 * that is mapped. The first open is O_PATH: opening a device or a FIFO could act or block.
 */
static int open_regular(const char *path, const struct mapping *mapping)
{
	int handle, err, fd;
	char reopen[64];
	struct statx st;

	handle = open(path, O_PATH | O_CLOEXEC);
	if (handle < 0)
		return -errno;
	/* As the kernel knows it: no server is asked. */
	if (statx(handle, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &st)) {
		err = -errno;
		goto out;
	}
	err = -EINVAL;
	if (!S_ISREG(st.stx_mode))
		goto out;
	err = -ESTALE;
	if (mapping && (st.stx_ino != mapping->inode || st.stx_dev_major != mapping->dev_major ||
			st.stx_dev_minor != mapping->dev_minor))
		goto out;
	snprintf(reopen, sizeof(reopen), "/proc/self/fd/%d", handle);
	fd = open(reopen, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	err = fd < 0 ? -errno : fd;
out:
	close(handle);
	return err;
}

/* same: only if it is still that mapping's. Overlays give other numbers here than in the map. */
static int open_mapped(pid_t pid, const struct mapping *mapping, bool same)
{
	char link[96];

	snprintf(link, sizeof(link), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, mapping->start,
		 mapping->end);
	return open_regular(link, same ? mapping : NULL);
}

static int open_file(pid_t pid, const struct mapping *mapping)
{
	int fd, first = open_mapped(pid, mapping, false);
	char *path;

	if (first >= 0 || first == -EINVAL || mapping->path[0] != '/')
		return first;
	path = g_strdup_printf("/proc/%d/root%s", pid, mapping->path);
	fd = open_regular(path, mapping);
	g_free(path);
	if (fd < 0)
		fd = open_regular(mapping->path, mapping);
	/* Missing privileges are what the user can do something about: tell them first. */
	return fd < 0 && (first == -EPERM || first == -EACCES) ? first : fd;
}

struct open_job {
	pid_t pid;
	struct mapping mapping;
	char *path;
	int fd;
	bool served;
};

static void open_job_free(gpointer data)
{
	struct open_job *job = data;

	if (job->fd >= 0)
		close(job->fd);
	g_free(job->path);
	g_free(job);
}

static void open_work(void *data)
{
	struct open_job *job = data;

	job->fd = open_file(job->pid, &job->mapping);
	job->served = job->fd < 0 || file_is_served(job->fd);
}

/* One that does not answer is not to keep others from being asked: a number no process has. */
static int file_system_number(const struct mapping *mapping)
{
	return (int)(1U << 31 | mapping->dev_major << 20 | mapping->dev_minor);
}

bool file_is_served(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) || fs.f_type == FUSE_SUPER_MAGIC;
}

/*
 * File systems on block devices that are the kernel's own answer: what they have mapped is opened
 * here and now. Others share their numbers (of major 0) with whatever comes.
 */
static GMutex answering_lock;
static GHashTable *answering;

static bool does_answer(const struct mapping *mapping)
{
	bool does;

	g_mutex_lock(&answering_lock);
	does = answering &&
	       g_hash_table_contains(answering, GINT_TO_POINTER(file_system_number(mapping)));
	g_mutex_unlock(&answering_lock);
	return does;
}

static void note_answering(const struct mapping *mapping)
{
	g_mutex_lock(&answering_lock);
	if (!answering)
		answering = g_hash_table_new(NULL, NULL);
	g_hash_table_add(answering, GINT_TO_POINTER(file_system_number(mapping)));
	g_mutex_unlock(&answering_lock);
}

int mapping_open(pid_t pid, const struct mapping *mapping)
{
	struct open_job *job;
	int fd = -1;

	if (mapping->inode == 0)
		return -ENOENT;
	if (does_answer(mapping))
		fd = open_mapped(pid, mapping, true);
	if (fd >= 0)
		return fd;
	job = g_new0(struct open_job, 1);
	job->pid = pid;
	job->mapping = *mapping;
	job->mapping.path = job->path = g_strdup(mapping->path);
	job->fd = -1;
	if (!timed_call(file_system_number(mapping), TIMED_CALL_FILE_MS, open_work, job,
			open_job_free))
		return -ETIMEDOUT;
	if (!job->served && mapping->dev_major)
		note_answering(mapping);
	fd = job->fd;
	job->fd = -1;
	open_job_free(job);
	return fd;
}
