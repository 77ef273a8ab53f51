/* SPDX-License-Identifier: GPL-2.0 */
/* root_open.h: opens files below another process's root directory, never outside of it. */
#ifndef MEMTOLL_ROOT_OPEN_H
#define MEMTOLL_ROOT_OPEN_H

#include <stdbool.h>
#include <sys/types.h>

/* Descriptor (O_PATH) of a process's root directory; pid 0 means our own. Or -errno. */
int root_open(pid_t pid);

/*
 * Open a file for reading below a root. Symbolic links, absolute ones and "..", are resolved
 * inside the root (openat2(2), RESOLVE_IN_ROOT), so a container cannot point at a file of the
 * host. Never blocks: anything but a regular file (a FIFO, a device) is refused with -EINVAL.
 * own_file: the last component must not be a symbolic link. A descriptor, or -errno.
 */
int root_open_file(int root, const char *path, bool own_file);

/* The same for a directory, for reading its entries. */
int root_open_directory(int root, const char *path);

#endif /* MEMTOLL_ROOT_OPEN_H */
