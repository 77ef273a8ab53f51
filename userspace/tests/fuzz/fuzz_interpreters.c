// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz_interpreters.c: structures of Ruby, PHP and Java as a process has them: a byte that says whose, then
 * memory with code, names and line tables. A word of that memory whose upper half is POINTER points
 * into it: cycles and overlaps are easily made.
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

#define CODE_STEP 512 /* from code to code */

static void look_at(const struct python_layout *layout, const struct python_code_key *key)
{
	static const uint32_t places[] = { 0, 8, 32, 4096, UINT32_MAX };
	struct python_code *code = python_code_read(getpid(), layout, key, NULL);
	size_t i;

	if (!code)
		return;
	if (!g_utf8_validate(code->function, -1, NULL) || !g_utf8_validate(code->file, -1, NULL) ||
	    (code->runs && code->runs->len > PYTHON_LINES_MAX))
		abort();
	for (i = 0; i < G_N_ELEMENTS(places); i++) {
		int32_t instruction = (int32_t)((uint32_t)key->start + places[i]);

		if (python_code_has(code, instruction))
			python_code_line(code, instruction);
	}
	python_code_unref(code);
}

static void begin(uint8_t whose, struct python_layout *layout)
{
	/* Of OpenJDK 17. */
	static const uint16_t java[JAVA_OFFSETS] = {
		[JAVA_METHOD_CONSTANT] = 8,
		[JAVA_CONSTANT_POOL] = 8,
		[JAVA_CONSTANT_WORDS] = 24,
		[JAVA_CONSTANT_FLAGS] = 28,
		[JAVA_CONSTANT_CODE] = 32,
		[JAVA_CONSTANT_NAME] = 34,
		[JAVA_CONSTANT_SIGNATURE] = 36,
		[JAVA_CONSTANT_BYTES] = 48,
		[JAVA_POOL_HOLDER] = 24,
		[JAVA_POOL_LENGTH] = 60,
		[JAVA_POOL_FILE] = 54,
		[JAVA_POOL_BYTES] = 72,
		[JAVA_CLASS_NAME] = 24,
		[JAVA_TEXT_LENGTH] = 4,
		[JAVA_TEXT] = 6,
	};

	switch (whose & 3) {
	case 0:
		layout->walk.kind = INTERPRETER_RUBY;
		layout->version = 0x0301;
		break;
	case 1:
		layout->walk.kind = INTERPRETER_PHP;
		layout->version = 0x0802;
		break;
	default:
		layout->walk.kind = INTERPRETER_JAVA;
		layout->version = (whose & 1 ? 25 : 17) << 8;
		memcpy(layout->java, java, sizeof(java));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct python_code_key keys[PYTHON_CODES_MAX];
	uint64_t addresses[PYTHON_CODES_MAX], type = 0;
	struct python_layout layout = {};
	uint8_t *memory;
	size_t count, i;

	if (size < 2)
		return 0;
	begin(data[0], &layout);
	size--;
	memory = g_memdup2(data + 1, size);
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
