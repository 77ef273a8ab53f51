/* SPDX-License-Identifier: GPL-2.0 */
/* threshold_names.h: glibc's thresholds, as indexes of tables. */
#ifndef MEMTOLL_THRESHOLD_NAMES_H
#define MEMTOLL_THRESHOLD_NAMES_H

enum threshold_name {
	THRESHOLD_MMAP = 0,
	THRESHOLD_TRIM = 1,
	THRESHOLD_TOP_PAD = 2,
	THRESHOLD_NAMES = 3,
};

#endif /* MEMTOLL_THRESHOLD_NAMES_H */
