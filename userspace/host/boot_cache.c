// SPDX-License-Identifier: GPL-2.0
/* One file for each key, replaced as a whole: a header, and the content as it is in memory. */
#include "host/boot_cache.h"

#include <fcntl.h>
#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "host/private_directory.h"

#define SIZE_MOST (16U << 20) /* bytes of a content */

struct header {
	char magic[8];
	uint32_t size;	   /* of the content */
	uint32_t checksum; /* CRC-32 of it */
};

static const char magic[8] = "memtollB";

/* Freed by the caller; NULL: none is known. */
static char *directory_path(void)
{
	const char *chosen = secure_getenv("MEMTOLL_PRICES");
	const char *base = secure_getenv("XDG_RUNTIME_DIR");

	if (chosen)
		return *chosen ? g_strdup(chosen) : NULL;
	if (geteuid() == 0)
		return g_strdup("/run/memtoll");
	return base && *base == '/' ? g_build_filename(base, "memtoll", NULL) : NULL;
}

static int directory_open(void)
{
	g_autofree char *path = directory_path();

	return path ? private_directory_open(path) : -1;
}

bool boot_cache_keeps(void)
{
	int directory = directory_open();

	if (directory < 0)
		return false;
	close(directory);
	return true;
}

/* A hash of the boot and the key. Freed by the caller; NULL: the boot is not known. */
static char *file_name(const char *kind, const char *key)
{
	g_autofree char *boot = NULL, *text = NULL, *hash = NULL;

	if (!g_file_get_contents("/proc/sys/kernel/random/boot_id", &boot, NULL, NULL))
		return NULL;
	text = g_strconcat(boot, key, NULL);
	hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
	return g_strconcat(hash, ".", kind, NULL);
}

/* Ours alone: what lies behind a link, or is a pipe, is none. */
static bool is_own(int fd, off_t *size)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & (S_IWGRP | S_IWOTH))
		return false;
	*size = st.st_size;
	return true;
}

static bool is_whole(const struct header *header, const void *content)
{
	return header->checksum == (uint32_t)crc32_z(0, content, header->size);
}

/* NULL: it is not there, not ours or not whole. */
static void *read_file(int directory, const char *name, size_t *size)
{
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	g_autofree void *content = NULL;
	struct header header;
	off_t bytes;
	bool read_all = false;

	if (fd < 0)
		return NULL;
	if (is_own(fd, &bytes) && read(fd, &header, sizeof(header)) == sizeof(header) &&
	    !memcmp(header.magic, magic, sizeof(magic)) && header.size <= SIZE_MOST &&
	    bytes == (off_t)(sizeof(header) + header.size)) {
		content = g_malloc(MAX(header.size, 1));
		read_all = read(fd, content, header.size) == (ssize_t)header.size &&
			   is_whole(&header, content);
	}
	close(fd);
	if (!read_all)
		return NULL;
	*size = header.size;
	return g_steal_pointer(&content);
}

void *boot_cache_load(const char *kind, const char *key, size_t *size)
{
	g_autofree char *name = file_name(kind, key);
	int directory = name ? directory_open() : -1;
	void *content;

	if (directory < 0)
		return NULL;
	content = read_file(directory, name, size);
	close(directory);
	return content;
}

bool boot_cache_read(const char *kind, const char *key, void *content, size_t size)
{
	size_t found = 0;
	g_autofree void *kept = boot_cache_load(kind, key, &found);

	if (!kept || found != size)
		return false;
	memcpy(content, kept, size);
	return true;
}

/* Closes fd. */
static bool write_file(int fd, const void *content, size_t size)
{
	struct header header = {
		.size = (uint32_t)size,
		.checksum = (uint32_t)crc32_z(0, content, size),
	};
	bool written;

	memcpy(header.magic, magic, sizeof(magic));
	written = write(fd, &header, sizeof(header)) == sizeof(header) &&
		  write(fd, content, size) == (ssize_t)size;
	return close(fd) == 0 && written;
}

void boot_cache_write(const char *kind, const char *key, const void *content, size_t size)
{
	g_autofree char *name = file_name(kind, key);
	/* Not by pid: two containers may have the same. */
	g_autofree char *unfinished =
		name ? g_strdup_printf("%s-%08x", name, g_random_int()) : NULL;
	int directory = name ? directory_open() : -1, fd;

	if (directory < 0)
		return;
	fd = openat(directory, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd >= 0 &&
	    (!write_file(fd, content, size) || renameat(directory, unfinished, directory, name)))
		unlinkat(directory, unfinished, 0);
	close(directory);
}
