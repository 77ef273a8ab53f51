/* SPDX-License-Identifier: GPL-2.0 */
/* code_bytes.h: what reading code objects of any interpreter takes. */
#ifndef MEMTOLL_CODE_BYTES_H
#define MEMTOLL_CODE_BYTES_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "host/target_memory.h"
#include "python/python_code.h"

static inline bool code_peek(pid_t pid, uint64_t address, void *buffer, size_t size)
{
	return !target_memory_read(pid, address, buffer, size);
}

static inline uint64_t code_word(const uint8_t *bytes, uint16_t offset)
{
	uint64_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

static inline uint32_t code_half(const uint8_t *bytes, uint16_t offset)
{
	uint32_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

/* Replaces characters that must not be in a report. */
static inline gunichar code_printable(gunichar character)
{
	if (character < 0x20 || character == 0x7f)
		return '?';
	return g_unichar_validate(character) ? character : 0xfffd;
}

/* UTF-8, whatever the bytes are. */
static inline char *code_text(const char *bytes, size_t size)
{
	g_autofree char *valid = g_utf8_make_valid(bytes, (gssize)strnlen(bytes, size));
	GString *string = g_string_new(NULL);
	const char *at;

	for (at = valid; *at; at = g_utf8_next_char(at))
		g_string_append_unichar(string, code_printable(g_utf8_get_char(at)));
	return g_string_free(string, FALSE);
}

/* One instruction more, with its line; 0, or that of the one before: nothing to add. */
static inline void code_run_add(GArray *runs, uint32_t from, uint32_t line)
{
	struct python_run run = { from, line };

	if (line &&
	    (!runs->len || g_array_index(runs, struct python_run, runs->len - 1).line != line))
		g_array_append_val(runs, run);
}

#endif /* MEMTOLL_CODE_BYTES_H */
