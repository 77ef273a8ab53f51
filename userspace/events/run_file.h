/* SPDX-License-Identifier: GPL-2.0 */
/*
 * run_file.h: the file that the area of a run is of, as what is said of it is summed. Each mapping of
 * shared anonymous memory has a file of its own without a name (shmem_zero_setup() in mm/shmem.c): a
 * program that maps such memory again and again would have a sum for each.
 */
#ifndef MEMTOLL_RUN_FILE_H
#define MEMTOLL_RUN_FILE_H

#include <linux/types.h>
#include <stdint.h>

#include "bpf/wire/records.h"

static inline uint64_t run_file_inode(const struct memtoll_run *run)
{
	return run->flags & RUN_ZERO_FILE ? ZERO_FILE_INODE : run->inode;
}

#endif /* MEMTOLL_RUN_FILE_H */
