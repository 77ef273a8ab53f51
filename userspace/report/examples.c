// SPDX-License-Identifier: GPL-2.0
/* examples.c: the files of analysis/memtoll/examples, as they are. */
#include "report/examples.h"

#include <string.h>

#define EXAMPLE(name)                                                        \
	extern const unsigned char example_##name[], example_##name##_end[]; \
	__asm__(".pushsection .rodata\n"                                     \
		"example_" #name ":\n"                                       \
		".incbin \"analysis/memtoll/examples/" #name ".memtoll\"\n"  \
		"example_" #name "_end:\n"                                   \
		".byte 0\n"                                                  \
		".popsection\n")

EXAMPLE(zeroing);
EXAMPLE(swap);
EXAMPLE(healthy);

const struct example examples[] = {
	{ "zeroing", "10 MiB from calloc, 1009 times, that nobody touches", example_zeroing,
	  example_zeroing_end },
	{ "swap", "four passes over 160 MiB in a memory cgroup of 80 MiB", example_swap,
	  example_swap_end },
	{ "healthy", "a program that computes", example_healthy, example_healthy_end },
};
const size_t examples_count = sizeof(examples) / sizeof(*examples);

const struct example *example_find(const char *name)
{
	size_t i;

	for (i = 0; i < examples_count; i++)
		if (!strcmp(examples[i].name, name))
			return &examples[i];
	return NULL;
}
