// SPDX-License-Identifier: GPL-2.0
/* liblate.so: allocates for a program that maps it while it runs; without frame pointers. */
#include <stdlib.h>

#define BLOCK (256UL << 10)

__attribute__((visibility("default"), noinline, optimize("omit-frame-pointer"))) int late_keep(void)
{
	char *volatile block = malloc(BLOCK);

	if (!block)
		return -1;
	block[0] = 1;
	free(block);
	return 0;
}
