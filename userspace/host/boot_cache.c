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

/* Ours alone, and of this size: what lies behind a link, or is a pipe, is none. */
static bool is_own(int fd, size_t size)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH)) && st.st_size == (off_t)size;
}

static bool read_file(int directory, const char *name, void *content, size_t size)
{
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct header header;
	bool is_whole;

	if (fd < 0)
		return false;
	is_whole = is_own(fd, sizeof(header) + size) &&
		   read(fd, &header, sizeof(header)) == sizeof(header) &&
		   read(fd, content, size) == (ssize_t)size;
	close(fd);
	return is_whole && !memcmp(header.magic, magic, sizeof(magic)) && header.size == size &&
	       header.checksum == (uint32_t)crc32_z(0, content, size);
}

bool boot_cache_read(const char *kind, const char *key, void *content, size_t size)
{
	g_autofree char *name = file_name(kind, key);
	int directory = name ? directory_open() : -1;
	bool found;

	if (directory < 0)
		return false;
	found = read_file(directory, name, content, size);
	close(directory);
	return found;
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
