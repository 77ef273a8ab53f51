// SPDX-License-Identifier: GPL-2.0
#include "watch/part_file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <unistd.h>

char *part_file_path(const char *directory, const char *name)
{
	return g_strdup_printf("%s/.%s.part", directory, name);
}

int part_file_settle(const char *directory, const char *name)
{
	g_autofree char *path = part_file_path(directory, name);
	g_autofree char *settled = g_strdup_printf("%s/%s", directory, name);
	int fd;

	if (renameat2(AT_FDCWD, path, AT_FDCWD, settled, RENAME_NOREPLACE)) {
		/* File systems that cannot do that (NFS): the directory is locked, and the name new. */
		if (errno != EINVAL || !access(settled, F_OK) || rename(path, settled))
			return -errno;
	}
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	return 0;
}

void part_file_remove(const char *directory, const char *name)
{
	g_autofree char *path = part_file_path(directory, name);
	g_autofree char *journal = g_strconcat(path, "-journal", NULL);

	unlink(path);
	unlink(journal);
}
