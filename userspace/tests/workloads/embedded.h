/* SPDX-License-Identifier: GPL-2.0 */
/* embedded.h: an allocator that is linked into a program under the prefix je_. */
#include <stdlib.h>

void *je_calloc(size_t count, size_t size);
void je_free(void *block);
