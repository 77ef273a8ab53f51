/* SPDX-License-Identifier: GPL-2.0 */
/* pointers.h: words of a fuzzer's input that become pointers into it, where its memory is. */
#ifndef MEMTOLL_FUZZ_POINTERS_H
#define MEMTOLL_FUZZ_POINTERS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define POINTER 0x5eed5eedU

static inline void relocate(uint8_t *memory, size_t size)
{
	uint64_t word;
	size_t at;

	for (at = 0; at + sizeof(word) <= size; at += sizeof(word)) {
		memcpy(&word, memory + at, sizeof(word));
		if (word >> 32 != POINTER)
			continue;
		word = (uint64_t)(uintptr_t)memory + (uint32_t)word % size;
		memcpy(memory + at, &word, sizeof(word));
	}
}

#endif /* MEMTOLL_FUZZ_POINTERS_H */
