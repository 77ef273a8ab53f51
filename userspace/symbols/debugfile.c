// SPDX-License-Identifier: GPL-2.0
/*
 * Not libdwfl's dwfl_standard_find_debuginfo(): it asks debuginfod servers where DEBUGINFOD_URLS is
 * set, which must not happen on a production host, and unsetting the variable would change the
 * environment of the commands that memtoll starts. It also opens whatever the program names, even a
 * FIFO, and knows nothing of the root directories of containers.
 */
#define _GNU_SOURCE 1

#include "symbols/debugfile.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>
#include <glib.h>
#include <zlib.h>

#include "base/root_open.h"
#include "host/maps.h"
#include "host/target_rights.h"
#include "host/timed_call.h"

#define DEBUG_DIR "/usr/lib/debug"
/*
 * Larger files are not read to check a CRC, which only files without a build-id need, nor more than
 * so much of all of them: a program may name a file of terabytes, and have a thousand libraries that
 * do.
 */
#define CRC_BYTES_MAX (256LL << 20)
#define CRC_BYTES_ALL (1LL << 30)

void build_id_text(const void *bits, size_t len, char *text)
{
	const unsigned char *bytes = bits;
	size_t i;

	text[0] = '\0';
	if (len > (BUILD_ID_TEXT - 1) / 2)
		return;
	for (i = 0; i < len; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

void build_id_of(Elf *elf, char *text)
{
	const void *bits = NULL;
	ssize_t len = dwelf_elf_gnu_build_id(elf, &bits);

	build_id_text(bits, len > 0 ? (size_t)len : 0, text);
}

bool is_elf_file(int fd)
{
	char magic[SELFMAG];

	return pread(fd, magic, SELFMAG, 0) == SELFMAG && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

/* Threads that look for debug files may be several. */
static bool take_bytes(off_t size)
{
	static GMutex lock;
	static off_t left = CRC_BYTES_ALL;
	bool taken;

	g_mutex_lock(&lock);
	taken = size <= left;
	if (taken)
		left -= size;
	g_mutex_unlock(&lock);
	return taken;
}

static bool crc_agrees(int fd, uint32_t wanted)
{
	unsigned char *chunk;
	struct stat status;
	off_t at = 0;
	ssize_t got;
	uLong crc = crc32(0, NULL, 0);
	const size_t size = 64 * 1024;

	if (fstat(fd, &status) || status.st_size > CRC_BYTES_MAX || !take_bytes(status.st_size))
		return false;
	chunk = g_malloc(size);
	while (at < status.st_size && (got = pread(fd, chunk, size, at)) > 0) {
		crc = crc32(crc, chunk, (uInt)got);
		at += got;
	}
	g_free(chunk);
	return at == status.st_size && crc == wanted;
}

static bool belongs(int fd, const struct debugfile_query *query, bool by_crc)
{
	char build_id[BUILD_ID_TEXT] = "";
	Elf *elf;

	if (!is_elf_file(fd))
		return false;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return false;
	build_id_of(elf, build_id);
	elf_end(elf);
	if (build_id[0] && query->build_id[0])
		return strcmp(build_id, query->build_id) == 0;
	return by_crc && crc_agrees(fd, query->crc);
}

/* Frees path, or hands it to *found. */
static int try_path(int root, char *path, const struct debugfile_query *query, bool by_crc,
		    char **found)
{
	int fd = root_open_file(root, path, false);

	if (fd >= 0 && belongs(fd, query, by_crc)) {
		*found = path;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	g_free(path);
	return -1;
}

static int try_root(int root, const struct debugfile_query *query, char **found)
{
	char *directory;
	int fd = -1;

	if (strlen(query->build_id) > 2)
		fd = try_path(root,
			      g_strdup_printf(DEBUG_DIR "/.build-id/%.2s/%s.debug", query->build_id,
					      query->build_id + 2),
			      query, false, found);
	if (fd >= 0 || !query->link || !*query->link)
		return fd;
	if (query->link[0] == '/')
		return try_path(root, g_strdup(query->link), query, true, found);
	directory = g_path_get_dirname(query->path);
	fd = try_path(root, g_build_filename(directory, query->link, NULL), query, true, found);
	if (fd < 0)
		fd = try_path(root, g_build_filename(directory, ".debug", query->link, NULL), query,
			      true, found);
	if (fd < 0)
		fd = try_path(root, g_build_filename(DEBUG_DIR, directory, query->link, NULL),
			      query, true, found);
	g_free(directory);
	return fd;
}

static int search(const struct debugfile_query *query, char **found)
{
	int root = root_open(0);
	int fd = -1;

	*found = NULL;
	if (root >= 0) {
		fd = try_root(root, query, found);
		close(root);
	}
	if (fd < 0 && query->root >= 0)
		fd = try_root(query->root, query, found);
	return fd;
}

struct search_job {
	struct debugfile_query query; /* with own copies */
	struct target_rights rights;
	char *found;
	int fd;
};

static void search_job_free(gpointer data)
{
	struct search_job *job = data;

	if (job->fd >= 0)
		close(job->fd);
	if (job->query.root >= 0)
		close(job->query.root);
	g_free((char *)job->query.path);
	g_free((char *)job->query.build_id);
	g_free((char *)job->query.link);
	g_free(job->found);
	g_free(job);
}

static gpointer search_work(gpointer data)
{
	struct search_job *job = data;

	if (job->query.rights && !target_rights_take(job->query.rights))
		return NULL;
	job->fd = search(&job->query, &job->found);
	/* Its process may hold back what is read of it later. */
	if (job->fd >= 0 && file_is_served(job->fd)) {
		close(job->fd);
		job->fd = -1;
	}
	return NULL;
}

/* Rights are not given back: in a thread of its own. */
static void search_begin(void *data)
{
	GThread *thread = g_thread_try_new("debug files", search_work, data, NULL);

	if (thread)
		g_thread_join(thread);
}

/* A root that does not answer is not to keep others from being asked: a number no process has. */
static int root_number(int root)
{
	return (int)(3U << 30 | (unsigned int)(root + 1));
}

int debugfile_open(const struct debugfile_query *query, char **found)
{
	struct search_job *job = g_new0(struct search_job, 1);
	int fd;

	*found = NULL;
	job->query = (struct debugfile_query){
		.path = g_strdup(query->path),
		.build_id = g_strdup(query->build_id),
		.link = g_strdup(query->link),
		.crc = query->crc,
		.root = query->root < 0 ? -1 : fcntl(query->root, F_DUPFD_CLOEXEC, 0),
	};
	job->fd = -1;
	if (query->rights) {
		job->rights = *query->rights;
		job->query.rights = &job->rights;
	}
	if (!timed_call(root_number(query->root), TIMED_CALL_FILE_MS, search_begin, job,
			search_job_free))
		return -1;
	fd = job->fd;
	job->fd = -1;
	if (fd >= 0)
		*found = g_steal_pointer(&job->found);
	search_job_free(job);
	return fd;
}

/* The paths below a directory where a file of this build-id may lie, NULL-terminated. */
static void paths_in(const struct debugfile_query *query, char *paths[])
{
	g_autofree char *base = g_path_get_basename(query->path);
	size_t count = 0;

	if (strlen(query->build_id) > 2) {
		paths[count++] = g_strdup_printf("/.build-id/%.2s/%s.debug", query->build_id,
						 query->build_id + 2);
		paths[count++] =
			g_strdup_printf("/.build-id/%.2s/%s", query->build_id, query->build_id + 2);
		/* As debuginfod-find keeps them. */
		paths[count++] = g_strdup_printf("/%s/debuginfo", query->build_id);
	}
	paths[count++] = g_strdup_printf("%s.debug", query->path);
	paths[count++] = g_strdup(query->path);
	paths[count++] = g_strdup_printf("/%s.debug", base);
	paths[count++] = g_strdup_printf("/%s", base);
	paths[count] = NULL;
}

static int find_in(const char *directory, const struct debugfile_query *query, char **found)
{
	int root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	char *paths[8], *below = NULL;
	size_t i;

	if (root < 0)
		return -1;
	paths_in(query, paths);
	for (i = 0; paths[i]; i++) {
		if (fd < 0)
			fd = try_path(root, paths[i], query, false, &below);
		else
			g_free(paths[i]);
	}
	close(root);
	*found = fd < 0 ? NULL : g_build_filename(directory, below, NULL);
	g_free(below);
	return fd;
}

int debugfile_find(const char *build_id, const char *module, char *const *directories, char **found)
{
	const struct debugfile_query query = { .path = module, .build_id = build_id, .root = -1 };
	int fd = -1, root;

	elf_version(EV_CURRENT);
	*found = NULL;
	for (; directories && *directories && fd < 0; directories++)
		fd = find_in(*directories, &query, found);
	root = fd < 0 && module[0] == '/' ? root_open(0) : -1;
	if (root >= 0) {
		fd = try_path(root, g_strdup(module), &query, false, found);
		close(root);
	}
	return fd < 0 ? search(&query, found) : fd;
}
