// SPDX-License-Identifier: GPL-2.0
/* One file for each key, replaced as a whole: a header, and the prices as they are in memory. */
#include "probes/price_cache.h"

#include <fcntl.h>
#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/version.h"
#include "host/private_directory.h"

#define SUFFIX ".prices"
/* Of an error above it prices are measured again, but no more than so many times in an hour. */
#define SURE_SHARE 0.25
#define MEASURED_OFTEN 3

struct price_file {
	char magic[8];
	uint32_t size;
	uint32_t measured; /* how many times */
	int64_t time;	   /* of the first, CLOCK_BOOTTIME, seconds */
	struct calibration_result prices;
	uint32_t checksum; /* CRC-32 of what is before it */
};

static const char magic[8] = "memtollP";

static uint32_t checksum(const struct price_file *file)
{
	return (uint32_t)crc32_z(0, (const Bytef *)file, offsetof(struct price_file, checksum));
}

static int64_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec;
}

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

/* Name of the file: a hash of all that prices depend on. Freed by the caller; NULL: not known. */
static char *file_name(const struct price_key *key)
{
	g_autofree char *boot = NULL, *text = NULL, *hash = NULL;
	struct utsname kernel;
	struct stat self;

	if (!g_file_get_contents("/proc/sys/kernel/random/boot_id", &boot, NULL, NULL) ||
	    uname(&kernel) || stat("/proc/self/exe", &self))
		return NULL;
	text = g_strdup_printf("%s %s %s %s %ju %ju %jd.%09ld %d %d %d %d %d %d", boot,
			       kernel.release, kernel.version, memtoll_version,
			       (uintmax_t)self.st_dev, (uintmax_t)self.st_ino,
			       (intmax_t)self.st_ctim.tv_sec, self.st_ctim.tv_nsec, key->mechanism,
			       key->uprobes, key->set.faults, key->set.mappings, key->set.samples,
			       key->set.reads);
	hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
	return g_strconcat(hash, SUFFIX, NULL);
}

static bool read_file(int directory, const char *name, struct price_file *file)
{
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t size;
	int64_t now = now_s();

	if (fd < 0)
		return false;
	size = read(fd, file, sizeof(*file));
	close(fd);
	return size == sizeof(*file) && !memcmp(file->magic, magic, sizeof(magic)) &&
	       file->size == sizeof(*file) && file->checksum == checksum(file) &&
	       file->time <= now && now - file->time < PRICES_SECONDS;
}

/* The largest error of the prices that are paid most, as a share of them. */
static double unsure(const struct calibration_result *prices)
{
	const struct price *list[] = { &prices->malloc, &prices->free, &prices->fault, &prices->map,
				       &prices->read };
	double error = 0, hit = 0;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(list); i++) {
		error += list[i]->error_ns;
		hit += list[i]->hit_ns;
	}
	return hit > 0 ? error / hit : 1;
}

bool price_cache_read(const struct price_key *key, struct calibration_result *prices, double *age_s)
{
	g_autofree char *name = file_name(key);
	int directory = name ? directory_open() : -1;
	struct price_file file;
	bool found;

	if (directory < 0)
		return false;
	found = read_file(directory, name, &file) &&
		(file.measured >= MEASURED_OFTEN || unsure(&file.prices) <= SURE_SHARE);
	close(directory);
	if (!found)
		return false;
	*prices = file.prices;
	*age_s = (double)(now_s() - file.time);
	return true;
}

void price_cache_write(const struct price_key *key, struct calibration_result *prices,
		       double *age_s)
{
	g_autofree char *name = file_name(key);
	g_autofree char *unfinished = name ? g_strdup_printf("%s-%d", name, getpid()) : NULL;
	int directory = name ? directory_open() : -1, fd;
	struct price_file file, old;
	bool written;

	*age_s = 0;
	if (directory < 0)
		return;
	memset(&file, 0, sizeof(file));
	memcpy(file.magic, magic, sizeof(magic));
	file.size = sizeof(file);
	file.measured = 1;
	file.time = now_s();
	if (read_file(directory, name, &old)) {
		file.measured = old.measured + 1;
		file.time = old.time;
		if (unsure(&old.prices) < unsure(prices)) {
			*prices = old.prices;
			*age_s = (double)(now_s() - old.time);
		}
	}
	file.prices = *prices;
	file.checksum = checksum(&file);
	fd = openat(directory, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd >= 0) {
		written = write(fd, &file, sizeof(file)) == sizeof(file);
		close(fd);
		if (!written || renameat(directory, unfinished, directory, name))
			unlinkat(directory, unfinished, 0);
	}
	close(directory);
}
