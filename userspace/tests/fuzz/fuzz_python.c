// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz_python.c: an interpreter's structures as a process has them: its own words on where what is
 * (3.13 and later), then memory with code objects, names and line tables. A word of that memory whose
 * upper half is POINTER points into it: cycles and overlaps are easily made.
 */
#define _GNU_SOURCE 1

#include "fuzz.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "python/python_code.h"
#include "python/python_offsets.h"
#include "tests/fuzz/pointers.h"

#define CODE_STEP 512 /* from code object to code object */
#define LINES_BYTES_MAX (1 << 20)

static void look_at(const struct python_layout *layout, const struct python_code_key *key)
{
	static const int32_t places[] = { -1, 0, 2, 4096, INT32_MAX };
	struct python_code *code = python_code_read(getpid(), layout, key, NULL);
	size_t i;

	if (!code)
		return;
	if (!g_utf8_validate(code->function, -1, NULL) || !g_utf8_validate(code->file, -1, NULL) ||
	    code->line_bytes > LINES_BYTES_MAX)
		abort();
	python_code_is_internal(code);
	for (i = 0; i < G_N_ELEMENTS(places); i++)
		if (python_code_has(code, places[i]))
			python_code_line(code, places[i]);
	python_code_unref(code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct python_code_key keys[PYTHON_CODES_MAX];
	uint64_t words[PYTHON_DEBUG_WORDS], addresses[PYTHON_CODES_MAX], type = 0;
	struct python_layout layout;
	uint8_t *memory;
	size_t count, i;

	if (size <= sizeof(words))
		return 0;
	memcpy(words, data, sizeof(words));
	if (python_offsets_described(words, &layout))
		return 0;
	/* What BPF programs read at once: they trust it. */
	if (layout.walk.state_bytes > MEMTOLL_PYTHON_CHUNK ||
	    layout.walk.frame_bytes > MEMTOLL_PYTHON_CHUNK)
		abort();
	size -= sizeof(words);
	memory = g_memdup2(data + sizeof(words), size);
	relocate(memory, size);
	count = MIN(size / CODE_STEP + 1, PYTHON_CODES_MAX);
	for (i = 0; i < count; i++)
		addresses[i] = (uint64_t)(uintptr_t)memory + i * CODE_STEP;
	python_code_peek(getpid(), &layout, &type, addresses, count, keys);
	for (i = 0; i < count; i++)
		if (keys[i].type)
			look_at(&layout, &keys[i]);
	g_free(memory);
	return 0;
}
