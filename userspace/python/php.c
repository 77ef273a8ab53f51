// SPDX-License-Identifier: GPL-2.0
#include "python/php.h"

#include <errno.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "host/target_memory.h"
#include "python/code_bytes.h"

/* Offsets in bytes: of a function, a class, a string, an instruction. */
struct php_layout {
	uint16_t version; /* 0x0802: 8.2 */
	struct memtoll_python_offsets walk;
	uint16_t function_name, function_class, function_size, function_start, function_file;
	uint16_t function_first_line, function_bytes;
	uint16_t class_name;
	uint16_t string_length, string_data;
	uint16_t instruction_bytes, instruction_line;
};

/* Computed by offsetof() with the headers of the release. */
static const struct php_layout layouts[] = {
	{
		.version = 0x0802,
		.walk = {
			.kind = INTERPRETER_PHP, .state_frame = 488, .frame_bytes = 56,
			.frame_instruction = 0, .frame_code = 24, .frame_owner = 40,
			.frame_previous = 48,
		},
		.function_name = 8, .function_class = 16, .function_size = 80,
		.function_start = 88, .function_file = 152, .function_first_line = 160,
		.function_bytes = 164,
		.class_name = 8, .string_length = 16, .string_data = 24,
		.instruction_bytes = 32, .instruction_line = 24,
	},
};

#define FUNCTION_BYTES 168
#define INTERNAL_FUNCTION 1 /* the bit: 2 and 4 are code of PHP's */

static const struct php_layout *layout_of(uint16_t version)
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(layouts); i++)
		if (layouts[i].version == version)
			return &layouts[i];
	return NULL;
}

/* By what it tells of itself to browsers. 0: nothing. */
static uint16_t version_of(const struct image *image)
{
	char text[8], *end;
	unsigned long major, minor = 0;

	if (!image_has_text(image, "X-Powered-By: PHP/", text, sizeof(text)))
		return 0;
	major = strtoul(text, &end, 10);
	if (*end == '.')
		minor = strtoul(end + 1, &end, 10);
	return major < 100 && minor < 100 ? major << 8 | minor : 0;
}

int php_layout_find(const struct image *image, uint64_t bias, const struct python_symbols *symbols,
		    struct python_layout *layout)
{
	const struct php_layout *php;

	layout->walk.kind = INTERPRETER_PHP;
	layout->version = version_of(image);
	php = layout_of(layout->version);
	if (!php || !symbols->php_globals)
		return -ENOTSUP;
	layout->walk = php->walk;
	layout->walk.runtime = symbols->php_globals + bias;
	return 0;
}

void php_code_peek(pid_t pid, const struct python_layout *layout, const uint64_t *addresses,
		   size_t count, struct python_code_key *keys)
{
	uint8_t functions[PYTHON_CODES_MAX][FUNCTION_BYTES];
	struct memory_range ranges[PYTHON_CODES_MAX];
	const struct php_layout *php = layout_of(layout->version);
	size_t i;

	for (i = 0; i < count; i++)
		ranges[i] = (struct memory_range){ addresses[i], functions[i],
						   php ? php->function_bytes : 0, false };
	if (!php || !count || target_memory_read_all(pid, ranges, count))
		return;
	for (i = 0; i < count; i++) {
		const uint8_t *function = functions[i];

		if (!ranges[i].read || !function[0] || function[0] & INTERNAL_FUNCTION)
			continue;
		keys[i] = (struct python_code_key){
			.type = function[0],
			.size = code_half(function, php->function_size),
			.file = code_word(function, php->function_file),
			.name = code_word(function, php->function_name),
			.first_line = code_half(function, php->function_first_line),
			.body = code_word(function, php->function_class),
			.start = code_word(function, php->function_start),
		};
	}
}

/* NULL: unreadable. */
static char *read_string(pid_t pid, const struct php_layout *php, uint64_t address)
{
	char text[PYTHON_TEXT_MAX];
	uint64_t length;

	if (!code_peek(pid, address + php->string_length, &length, sizeof(length)))
		return NULL;
	length = MIN(length, sizeof(text));
	if (length && !code_peek(pid, address + php->string_data, text, length))
		return NULL;
	return code_text(text, length);
}

void php_code_name(pid_t pid, const struct python_layout *layout, struct python_code *code)
{
	const struct php_layout *php = layout_of(layout->version);
	g_autofree char *class = NULL, *name = NULL;
	uint64_t class_name;

	/* What is in no function, as PHP itself calls it in traces. */
	name = code->key.name ? read_string(pid, php, code->key.name) : g_strdup("{main}");
	if (name && code->key.body &&
	    code_peek(pid, code->key.body + php->class_name, &class_name, sizeof(class_name)))
		class = read_string(pid, php, class_name);
	code->function = class ? g_strconcat(class, "::", name, NULL) : g_steal_pointer(&name);
	code->file = read_string(pid, php, code->key.file);
}

GArray *php_code_runs(pid_t pid, const struct python_layout *layout,
		      const struct python_code_key *key)
{
	const struct php_layout *php = layout_of(layout->version);
	g_autofree uint8_t *instructions = NULL;
	size_t size, at;
	GArray *runs;

	if (!key->size || key->size > PYTHON_LINES_MAX / php->instruction_bytes)
		return NULL;
	size = key->size * php->instruction_bytes;
	instructions = g_malloc(size);
	if (!code_peek(pid, key->start, instructions, size))
		return NULL;
	runs = g_array_new(FALSE, FALSE, sizeof(struct python_run));
	for (at = 0; at < size; at += php->instruction_bytes)
		code_run_add(runs, at, code_half(instructions + at, php->instruction_line));
	return runs;
}

bool php_code_has(const struct python_code_key *key, uint32_t byte)
{
	return byte < key->size * layouts[0].instruction_bytes;
}
