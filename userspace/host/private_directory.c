// SPDX-License-Identifier: GPL-2.0
#include "host/private_directory.h"

#include <fcntl.h>
#include <glib.h>
#include <sys/stat.h>
#include <unistd.h>

int private_directory_open(const char *path)
{
	struct stat st;
	int fd = -1;

	/* If it cannot be created open() fails, too. */
	if (g_mkdir_with_parents(path, 0700) == 0)
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	    (st.st_mode & (S_IWGRP | S_IWOTH)) == 0)
		return fd;
	close(fd);
	return -1;
}
