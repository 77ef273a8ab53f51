// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz_planted.c: a fault for test_fuzz.py: is it found, kept, and found again? Not part of make
 * fuzz.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	volatile uint8_t read;

	/*
	 * One byte of the header has a value that few changes give it: then one byte too many is
	 * read.
	 */
	read = data[size > 64 && data[16] == 0x7f ? size : size - 1];
	(void)read;
	return 0;
}
