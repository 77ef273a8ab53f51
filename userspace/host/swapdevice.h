/* SPDX-License-Identifier: GPL-2.0 */
/* swapdevice.h: swap areas (/proc/swaps), and which of them a swap entry's number refers to. */
#ifndef MEMTOLL_SWAPDEVICE_H
#define MEMTOLL_SWAPDEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers that a swap entry can hold: MAX_SWAPFILES_SHIFT is 5, include/linux/swap.h. */
#define SWAP_TYPES 32

struct swap_devices;

/* Whether any swap is on. */
bool swap_is_on(void);

/* Never NULL; empty where there is no swap or /proc/swaps cannot be read. */
struct swap_devices *swap_devices_read(void);
struct swap_devices *swap_devices_read_below(const char *root); /* for tests */
void swap_devices_free(struct swap_devices *devices);

/* Read again. True if a device was added or removed: numbers may refer to others now. */
bool swap_devices_refresh(struct swap_devices *devices);

size_t swap_devices_count(const struct swap_devices *devices);

/*
 * Whether the device of this number is zram. types_seen[t] is true for every number seen since the
 * devices last changed. The kernel lists devices in the order of their numbers, with gaps where
 * others were switched off; *known is false where devices of both kinds are possible.
 */
bool swap_devices_is_zram(const struct swap_devices *devices, const bool *types_seen,
			  unsigned int type, bool *known);

struct swap_device {
	const char *path;
	const char *kind; /* "disk", "file", "zram" */
	uint64_t size_bytes;
	int priority;
	int type; /* its number; -1: not known from the numbers seen */
};

/*
 * Call each() for all devices, with the numbers that follow from types_seen (NULL: none seen). 0,
 * or the callback's error.
 */
int swap_devices_each(const struct swap_devices *devices, const bool *types_seen,
		      int (*each)(void *context, const struct swap_device *device), void *context);

#endif /* MEMTOLL_SWAPDEVICE_H */
