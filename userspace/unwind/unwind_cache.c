// SPDX-License-Identifier: GPL-2.0
/* One file for each key: a header, and the rows as they are in memory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "host/maps.h"
#include "host/private_directory.h"
#include "unwind/unwind_cache.h"

/* To be raised whenever the same file compiles to different rows. */
#define FORMAT_VERSION 2
#define SUFFIX ".rows"
#define UNFINISHED ".new-"
#define KEY_MIN 16 /* characters */
#define KEY_MAX 128

/* An unfinished file that is older was left behind by a program that died. */
#define UNFINISHED_SECONDS 3600
/* The time of last use is renewed only when it is older, so that not every read writes. */
#define USED_SECONDS 3600
/* Stores between two listings of the directory, where other processes store as well. */
#define STORES_UNSEEN 64

struct cache_header {
	char magic[8];
	uint32_t version;
	uint32_t skipped;
	uint64_t base;
	uint32_t count;
	uint32_t checksum; /* CRC-32 of the header, with 0 here, and of the rows */
};

_Static_assert(sizeof(struct cache_header) == 32, "no padding in a file");
static const char magic[8] = "memtollU";

static bool is_key(const char *text)
{
	size_t length = strspn(text, "0123456789abcdef");

	return text[length] == '\0' && length % 2 == 0 && length >= KEY_MIN && length <= KEY_MAX;
}

char *unwind_file_key(const char *build_id_hex, int fd)
{
	g_autofree char *text = NULL;
	struct stat st;

	if (fstat(fd, &st))
		return NULL;
	text = g_strdup_printf("%ju %ju %jd %jd.%09ld %jd.%09ld %s", (uintmax_t)st.st_dev,
			       (uintmax_t)st.st_ino, (intmax_t)st.st_size,
			       (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
			       (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec, build_id_hex);
	return g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
}

/* ---- the directory ---- */

/* Freed by the caller; NULL: no cache. */
static char *directory_path(void)
{
	const char *chosen = getenv("MEMTOLL_CACHE"), *base;

	if (chosen)
		return *chosen ? g_strdup(chosen) : NULL;
	if (geteuid() == 0)
		return g_strdup("/var/cache/memtoll/unwind");
	base = getenv("XDG_CACHE_HOME");
	/* XDG Base Directory Specification: a relative path counts as none. */
	if (base && *base == '/')
		return g_build_filename(base, "memtoll", "unwind", NULL);
	base = getenv("HOME");
	if (base && *base == '/')
		return g_build_filename(base, ".cache", "memtoll", "unwind", NULL);
	return NULL;
}

static int directory_open(void)
{
	g_autofree char *path = directory_path();

	return path ? private_directory_open(path) : -1;
}

/* ---- reading ---- */

static uint32_t checksum(const struct cache_header *header, const struct memtoll_unwind_row *rows)
{
	struct cache_header copy = *header;
	uLong sum;

	copy.checksum = 0;
	sum = crc32_z(0, (const Bytef *)&copy, sizeof(copy));
	return (uint32_t)crc32_z(sum, (const Bytef *)rows, header->count * sizeof(*rows));
}

/* BPF programs bisect the rows. */
static bool is_ascending(const struct unwind_table *table)
{
	for (size_t i = 1; i < table->count; i++)
		if (table->rows[i - 1].pc >= table->rows[i].pc)
			return false;
	return true;
}

static bool read_table(int fd, size_t count, struct unwind_table *table)
{
	struct cache_header header;
	struct iovec parts[2] = {
		{ .iov_base = &header, .iov_len = sizeof(header) },
		{ .iov_len = count * sizeof(*table->rows) },
	};
	ssize_t size = (ssize_t)(sizeof(header) + parts[1].iov_len);

	table->rows = malloc(parts[1].iov_len);
	if (!table->rows)
		return false;
	parts[1].iov_base = table->rows;
	if (readv(fd, parts, 2) != size || memcmp(header.magic, magic, sizeof(magic)) != 0 ||
	    header.version != FORMAT_VERSION || header.count != count ||
	    header.checksum != checksum(&header, table->rows))
		return false;
	table->count = count;
	table->base = header.base;
	table->skipped = header.skipped;
	return is_ascending(table);
}

static bool cache_read(int directory, const char *name, struct unwind_table *table)
{
	bool is_found = false;
	struct stat st;
	size_t count;
	int fd;

	/* O_NONBLOCK: opening a FIFO would wait for ever. */
	fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_size <= (off_t)sizeof(struct cache_header))
		goto out;
	count = ((size_t)st.st_size - sizeof(struct cache_header)) / sizeof(*table->rows);
	if (count == 0 || count > UNWIND_ROWS_MAX || (size_t)st.st_size % sizeof(*table->rows))
		goto out;
	is_found = read_table(fd, count, table);
	if (!is_found)
		unwind_table_free(table);
	else if (time(NULL) - st.st_mtime > USED_SECONDS)
		futimens(fd, NULL);
out:
	close(fd);
	return is_found;
}

/* ---- the limit ---- */

struct cached {
	char name[KEY_MAX + sizeof(SUFFIX)];
	uint64_t bytes;
	struct timespec used;
};

static gint compare_use(gconstpointer first, gconstpointer second)
{
	const struct cached *a = first, *b = second;

	if (a->used.tv_sec != b->used.tv_sec)
		return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
	if (a->used.tv_nsec != b->used.tv_nsec)
		return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Whether this names a table: $MEMTOLL_CACHE may be a directory with files of other programs. */
static bool is_table_name(const char *name)
{
	char key[KEY_MAX + 1];
	size_t length = strlen(name);

	if (!g_str_has_suffix(name, SUFFIX) || length - strlen(SUFFIX) > KEY_MAX)
		return false;
	g_strlcpy(key, name, length - strlen(SUFFIX) + 1);
	return is_key(key);
}

/* The tables in the directory; removes what programs left that died while storing. */
static GArray *list_tables(int directory, uint64_t *bytes)
{
	GArray *tables = g_array_new(FALSE, TRUE, sizeof(struct cached));
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *listing = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat st;

	*bytes = 0;
	if (!listing && fd >= 0)
		close(fd);
	while (listing && (entry = readdir(listing))) {
		bool is_unfinished = g_str_has_prefix(entry->d_name, UNFINISHED);
		struct cached cached = { 0 };

		if ((!is_unfinished && !is_table_name(entry->d_name)) ||
		    fstatat(directory, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		if (is_unfinished) {
			if (time(NULL) - st.st_mtime > UNFINISHED_SECONDS)
				unlinkat(directory, entry->d_name, 0);
			continue;
		}
		g_strlcpy(cached.name, entry->d_name, sizeof(cached.name));
		cached.bytes = (uint64_t)st.st_size;
		cached.used = st.st_mtim;
		g_array_append_val(tables, cached);
		*bytes += cached.bytes;
	}
	if (listing)
		closedir(listing);
	return tables;
}

/* Remove the least recently used tables beyond the limit. Bytes of those that remain. */
static uint64_t remove_oldest(int directory)
{
	uint64_t bytes;
	GArray *tables = list_tables(directory, &bytes);

	g_array_sort(tables, compare_use);
	for (guint i = 0; i < tables->len && bytes > UNWIND_CACHE_BYTES; i++) {
		const struct cached *cached = &g_array_index(tables, struct cached, i);

		if (unlinkat(directory, cached->name, 0) == 0)
			bytes -= cached->bytes;
	}
	g_array_free(tables, TRUE);
	return bytes;
}

/* A listing costs as much as reading a hundred tables, so stores are added up in between. */
static void keep_limit(int directory, uint64_t stored)
{
	static GMutex mutex;
	static uint64_t bytes;
	static unsigned int stores;
	static struct stat seen;
	struct stat st;

	g_mutex_lock(&mutex);
	bytes += stored;
	if (fstat(directory, &st) == 0 &&
	    (stores++ % STORES_UNSEEN == 0 || bytes > UNWIND_CACHE_BYTES ||
	     st.st_ino != seen.st_ino || st.st_dev != seen.st_dev)) {
		bytes = remove_oldest(directory);
		seen = st;
	}
	g_mutex_unlock(&mutex);
}

/* ---- writing ---- */

static bool write_table(int fd, const struct unwind_table *table)
{
	struct cache_header header = {
		.version = FORMAT_VERSION,
		.skipped = table->skipped,
		.base = table->base,
		.count = (uint32_t)table->count,
	};
	struct iovec parts[2] = {
		{ .iov_base = &header, .iov_len = sizeof(header) },
		{ .iov_base = table->rows, .iov_len = table->count * sizeof(*table->rows) },
	};

	memcpy(header.magic, magic, sizeof(magic));
	header.checksum = checksum(&header, table->rows);
	return writev(fd, parts, 2) == (ssize_t)(sizeof(header) + parts[1].iov_len);
}

/* Readers see the whole file or none; after a crash of the machine the checksum is wrong. */
static void cache_write(int directory, const char *name, const struct unwind_table *table)
{
	char unfinished[64];
	uint64_t number;
	bool is_written;
	int fd;

	/* Not named by our pid: the directory may be shared between containers. */
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return;
	snprintf(unfinished, sizeof(unfinished), UNFINISHED "%016" PRIx64, number);
	fd = openat(directory, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return;
	is_written = write_table(fd, table);
	if (close(fd) != 0 || !is_written ||
	    renameat(directory, unfinished, directory, name) != 0) {
		unlinkat(directory, unfinished, 0);
		return;
	}
	keep_limit(directory, sizeof(struct cache_header) + table->count * sizeof(*table->rows));
}

int unwind_cache_get(const char *key, int fd, struct unwind_table *table)
{
	char name[KEY_MAX + sizeof(SUFFIX)];
	int directory = -1, err;

	memset(table, 0, sizeof(*table));
	if (is_key(key) && !file_is_served(fd))
		directory = directory_open();
	if (directory < 0)
		return unwind_table_compile(fd, table);
	snprintf(name, sizeof(name), "%s" SUFFIX, key);
	err = 0;
	if (!cache_read(directory, name, table)) {
		err = unwind_table_compile(fd, table);
		if (!err)
			cache_write(directory, name, table);
	}
	close(directory);
	return err;
}
