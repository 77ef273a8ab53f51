// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE 1

#include "base/root_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>

int root_open(pid_t pid)
{
	char path[64] = "/";
	int fd;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/root", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int root_open_file(int root, const char *path, bool own_file)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | (own_file ? O_NOFOLLOW : 0),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	struct stat status;
	char found[64];
	int place;
	int fd;

	/* O_PATH first: opening a device may act on it, so it is opened only if a regular file. */
	place = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (place < 0)
		return -errno;
	fd = -EINVAL;
	if (fstat(place, &status)) {
		fd = -errno;
	} else if (S_ISREG(status.st_mode)) {
		snprintf(found, sizeof(found), "/proc/self/fd/%d", place);
		fd = open(found, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
	}
	close(place);
	return fd;
}

int root_open_directory(int root, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}
