/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fuzz.h: what a fuzzer gives driver.c. The first function is libFuzzer's, so that a
 * coverage-guided engine can be linked in driver.c's place.
 */
#ifndef MEMTOLL_FUZZ_H
#define MEMTOLL_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/*
 * Look at an input. It is wrong to crash, to run for long, to take much memory, or to leak any. 0.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * What of a good input is worth changing, besides anything: ranges of it. Number of those, at most
 * FUZZ_REGIONS. The default has none.
 */
#define FUZZ_REGIONS 16

struct fuzz_region {
	size_t offset;
	size_t size;
};

size_t fuzz_regions(const uint8_t *data, size_t size, struct fuzz_region *regions);

/* For those whose code wants a file: made once, removed at the end; its content is replaced. */
const char *fuzz_file(const void *bytes, size_t size);

#endif /* MEMTOLL_FUZZ_H */
