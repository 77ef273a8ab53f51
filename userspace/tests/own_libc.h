/* SPDX-License-Identifier: GPL-2.0 */
/* own_libc.h: where the C library of the test itself is. */
#ifndef MEMTOLL_TESTS_OWN_LIBC_H
#define MEMTOLL_TESTS_OWN_LIBC_H

#include <link.h>
#include <stdio.h>
#include <string.h>

static inline int note_libc(struct dl_phdr_info *info, size_t size, void *path)
{
	(void)size;
	if (!strstr(info->dlpi_name, "/libc.so"))
		return 0;
	snprintf(path, 256, "%s", info->dlpi_name);
	return 1;
}

/* "" if it is linked statically. */
static inline const char *own_libc(void)
{
	static char path[256];

	dl_iterate_phdr(note_libc, path);
	return path;
}

#endif /* MEMTOLL_TESTS_OWN_LIBC_H */
