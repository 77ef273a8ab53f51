/* SPDX-License-Identifier: GPL-2.0 */
/* private_directory.h: directories whose files are trusted, since nobody else can write there. */
#ifndef MEMTOLL_PRIVATE_DIRECTORY_H
#define MEMTOLL_PRIVATE_DIRECTORY_H

/*
 * Made with its parents where it is missing. A descriptor; -1: it cannot be made or opened, is a
 * symbolic link, or somebody else owns it or may write to it.
 */
int private_directory_open(const char *path);

#endif /* MEMTOLL_PRIVATE_DIRECTORY_H */
