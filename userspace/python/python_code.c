// SPDX-License-Identifier: GPL-2.0
#include "python/python_code.h"

#include <glib.h>
#include <string.h>

#include "host/target_memory.h"
#include "python/code_bytes.h"
#include "python/java.h"
#include "python/php.h"
#include "python/ruby.h"
#include "python/v8.h"

/* str's state (cpython/unicodeobject.h): 2 bits of interning, then kind, compact, ascii. */
#define TEXT_KIND(state) ((state) >> 2 & 7)
#define TEXT_COMPACT (1U << 5)
#define TEXT_ASCII (1U << 6)

#define INSTRUCTION_BYTES 2 /* since 3.6 */

/* Of interpreters other than CPython. runs: NULL where name reads the lines as well, or there are none. */
static const struct {
	void (*peek)(pid_t pid, const struct python_layout *layout, const uint64_t *addresses,
		     size_t count, struct python_code_key *keys);
	void (*name)(pid_t pid, const struct python_layout *layout, struct python_code *code);
	GArray *(*runs)(pid_t pid, const struct python_layout *layout,
			const struct python_code_key *key);
} readers[] = {
	[INTERPRETER_RUBY] = { ruby_code_peek, ruby_code_name, ruby_code_runs },
	[INTERPRETER_PHP] = { php_code_peek, php_code_name, php_code_runs },
	[INTERPRETER_V8] = { v8_code_peek, v8_code_name, NULL },
	[INTERPRETER_JAVA] = { java_code_peek, java_code_name, NULL },
};

/* By the type's name in C, "code"; checked once, then by address. */
static bool is_code_type(pid_t pid, const struct python_layout *layout, uint64_t type)
{
	uint64_t name;
	char text[5];

	return code_peek(pid, type + layout->type_name, &name, sizeof(name)) &&
	       code_peek(pid, name, text, sizeof(text)) && !memcmp(text, "code", sizeof(text));
}

/*
 * Whether this is the reference count of a living object: not 0, and not a pointer, as allocators
 * leave in freed ones. Since 3.14 the highest 16 bits are flags. Without the GIL the count has two
 * parts.
 */
static bool is_alive(const struct python_layout *layout, uint64_t references)
{
	return layout->free_threaded ||
	       ((uint32_t)references && !(references & 0x0000ffff00000000ULL));
}

/* The key of a code object, from its first bytes. */
static void key_of(pid_t pid, const struct python_layout *layout, uint64_t *type,
		   const uint8_t *bytes, struct python_code_key *key)
{
	uint64_t found = code_word(bytes, layout->object_type);

	if (!is_alive(layout, code_word(bytes, 0)))
		return;
	if (!*type && is_code_type(pid, layout, found))
		*type = found;
	if (!*type || found != *type)
		return;
	key->type = found;
	key->size = layout->code_size ? code_word(bytes, layout->code_size) : 0;
	key->file = code_word(bytes, layout->code_file);
	key->name = code_word(bytes, layout->code_name);
	key->lines = code_word(bytes, layout->code_lines);
	key->first_line = code_half(bytes, layout->code_first_line);
}

void python_code_peek(pid_t pid, const struct python_layout *layout, uint64_t *type,
		      const uint64_t *addresses, size_t count, struct python_code_key *keys)
{
	uint8_t bytes[PYTHON_CODES_MAX][PYTHON_CODE_BYTES + 8];
	struct memory_range ranges[PYTHON_CODES_MAX];
	size_t wanted = 0, from[PYTHON_CODES_MAX], i;

	count = MIN(count, PYTHON_CODES_MAX);
	memset(keys, 0, count * sizeof(*keys));
	if (readers[layout->walk.kind].peek) {
		readers[layout->walk.kind].peek(pid, layout, addresses, count, keys);
		return;
	}
	for (i = 0; i < count; i++) {
		if (!addresses[i])
			continue;
		ranges[wanted] = (struct memory_range){
			.address = addresses[i],
			.to = bytes[wanted],
			.size = layout->code_bytes,
		};
		from[wanted++] = i;
	}
	if (!wanted || target_memory_read_all(pid, ranges, wanted))
		return;
	for (i = 0; i < wanted; i++)
		if (ranges[i].read)
			key_of(pid, layout, type, bytes[i], &keys[from[i]]);
}

/* A str of the process as UTF-8. NULL: not a str. */
static char *read_text(pid_t pid, const struct python_layout *layout, uint64_t address)
{
	uint8_t head[PYTHON_CODE_BYTES + 8], text[PYTHON_TEXT_MAX * 4];
	uint64_t length, i;
	uint32_t state;
	unsigned int kind;
	GString *string;

	if (!code_peek(pid, address, head, MAX(layout->text_state, layout->text_length) + 8))
		return NULL;
	length = code_word(head, layout->text_length);
	state = code_half(head, layout->text_state) >> layout->text_state_shift;
	kind = TEXT_KIND(state);
	if (!(state & TEXT_COMPACT) || (kind != 1 && kind != 2 && kind != 4) || length > G_MAXINT32)
		return NULL;
	length = MIN(length, PYTHON_TEXT_MAX);
	address += state & TEXT_ASCII ? layout->text_ascii : layout->text_other;
	if (length && !code_peek(pid, address, text, length * kind))
		return NULL;
	string = g_string_sized_new(length);
	for (i = 0; i < length; i++) {
		gunichar character = text[i];

		if (kind == 2)
			character = text[2 * i] | (gunichar)text[2 * i + 1] << 8;
		else if (kind == 4)
			character = code_half(text, 4 * i);
		g_string_append_unichar(string, code_printable(character));
	}
	return g_string_free(string, FALSE);
}

/* Contents of a bytes object. NULL: not one, or empty, or too long. */
static uint8_t *read_bytes(pid_t pid, const struct python_layout *layout, uint64_t address,
			   size_t *size)
{
	uint64_t length;
	uint8_t *bytes;

	*size = 0;
	if (!code_peek(pid, address + layout->bytes_size, &length, sizeof(length)) || !length ||
	    length > PYTHON_LINES_MAX)
		return NULL;
	bytes = g_malloc(length);
	if (!code_peek(pid, address + layout->bytes_data, bytes, length)) {
		g_free(bytes);
		return NULL;
	}
	*size = length;
	return bytes;
}

struct python_code *python_code_read(pid_t pid, const struct python_layout *layout,
				     const struct python_code_key *key, bool *partial)
{
	struct python_code *code = g_new0(struct python_code, 1);

	code->references = 1;
	code->key = *key;
	code->kind = layout->walk.kind;
	code->version = layout->version;
	code->free_threaded = layout->free_threaded;
	code->first_line = key->first_line;
	if (readers[code->kind].name) {
		readers[code->kind].name(pid, layout, code);
	} else {
		code->function = read_text(pid, layout, key->name);
		code->file = read_text(pid, layout, key->file);
		if (code->function && code->file)
			code->lines = read_bytes(pid, layout, key->lines, &code->line_bytes);
	}
	if (partial)
		*partial = code->partial;
	if (!code->function || !code->file) {
		python_code_unref(code);
		return NULL;
	}
	if (readers[code->kind].runs)
		code->runs = readers[code->kind].runs(pid, layout, key);
	return code;
}

struct python_code *python_code_ref(struct python_code *code)
{
	code->references++;
	return code;
}

void python_code_unref(struct python_code *code)
{
	if (!code || --code->references)
		return;
	g_free(code->function);
	g_free(code->file);
	g_free(code->lines);
	if (code->runs)
		g_array_free(code->runs, TRUE);
	g_free(code);
}

bool python_code_is_internal(const struct python_code *code)
{
	return code->kind < INTERPRETER_RUBY && !code->first_line &&
	       code->key.file == code->key.name;
}

/* Bytes from the first instruction, of which the lower half of the address is known. */
static uint32_t bytes_in(const struct python_code *code, int32_t instruction)
{
	return (uint32_t)instruction - (uint32_t)code->key.start;
}

bool python_code_has(const struct python_code *code, int32_t instruction)
{
	if (code->kind == INTERPRETER_RUBY)
		return ruby_code_has(&code->key, bytes_in(code, instruction));
	if (code->kind == INTERPRETER_PHP)
		return php_code_has(&code->key, bytes_in(code, instruction));
	if (code->kind == INTERPRETER_V8)
		return true;
	if (code->kind == INTERPRETER_JAVA)
		return instruction < (int64_t)MAX(code->key.size, 1); /* native methods have none */
	/* Before 3.11 the size of the code is not known; without the GIL threads have copies. */
	return !code->key.size || instruction < 0 || code->free_threaded ||
	       (uint64_t)instruction < code->key.size * INSTRUCTION_BYTES;
}

/* 3.9: pairs of bytes: increments of the code offset and of the line (signed). */
static int64_t line_of_pairs(const struct python_code *code, int32_t instruction)
{
	int64_t line = code->first_line, at = 0;
	size_t i;

	for (i = 0; i + 1 < code->line_bytes; i += 2) {
		at += code->lines[i];
		if (at > instruction)
			break;
		line += (int8_t)code->lines[i + 1];
	}
	return line;
}

/* 3.10: pairs of bytes: length of a piece of code, increment of its line; -128: no line. */
static int64_t line_of_pieces(const struct python_code *code, int32_t instruction)
{
	int64_t line = code->first_line, end = 0;
	size_t i;

	for (i = 0; i + 1 < code->line_bytes; i += 2) {
		int8_t delta = (int8_t)code->lines[i + 1];

		end += code->lines[i];
		if (delta != -128)
			line += delta;
		if (end > instruction)
			return delta == -128 ? -1 : line;
	}
	return -1;
}

/* Six bits in a byte, the lowest first; bit 6: another byte follows. */
static uint64_t read_varint(const struct python_code *code, size_t *at)
{
	unsigned int shift = 0;
	uint64_t value = 0;
	uint8_t byte;

	do {
		if (*at >= code->line_bytes)
			return value;
		byte = code->lines[(*at)++];
		if (shift < 60)
			value |= (uint64_t)(byte & 63) << shift;
		shift += 6;
	} while (byte & 64);
	return value;
}

/* The sign is the lowest bit. */
static int64_t read_signed(const struct python_code *code, size_t *at)
{
	uint64_t value = read_varint(code, at);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/*
 * 3.11 and later: an entry begins with a byte whose highest bit is set, 4 bits of kind and 3 bits
 * of length (instructions - 1). Columns are skipped; their bytes never have the highest bit.
 */
static int64_t line_of_entries(const struct python_code *code, int32_t instruction)
{
	int64_t line = code->first_line, end = 0;
	size_t at = 0;

	while (at < code->line_bytes) {
		uint8_t first = code->lines[at++];
		unsigned int kind = first >> 3 & 15;

		if (!(first & 128))
			continue;
		end += ((first & 7) + 1) * INSTRUCTION_BYTES;
		if (kind >= 10 && kind <= 12) /* one line, 0 to 2 further */
			line += kind - 10;
		else if (kind == 13 || kind == 14) /* one line without columns; all in full */
			line += read_signed(code, &at);
		if (end > instruction)
			return kind == 15 ? -1 : line;
	}
	return -1;
}

/* The line of the last run that begins at this byte or before. */
static int64_t line_of_runs(const struct python_code *code, uint32_t byte)
{
	guint low = 0, high = code->runs ? code->runs->len : 0;

	while (low < high) {
		guint middle = low + (high - low) / 2;

		if (g_array_index(code->runs, struct python_run, middle).from <= byte)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? g_array_index(code->runs, struct python_run, low - 1).line : 0;
}

uint32_t python_code_line(const struct python_code *code, int32_t instruction)
{
	int64_t line;

	if (code->kind == INTERPRETER_RUBY)
		line = line_of_runs(code, ruby_code_at(bytes_in(code, instruction)));
	else if (code->kind == INTERPRETER_PHP)
		line = line_of_runs(code, bytes_in(code, instruction));
	else if (instruction < 0 || code->kind == INTERPRETER_V8)
		return code->first_line;
	else if (code->kind == INTERPRETER_JAVA)
		line = line_of_runs(code, instruction);
	else if (code->version < 0x030a)
		line = line_of_pairs(code, instruction);
	else if (code->version < 0x030b)
		line = line_of_pieces(code, instruction);
	else
		line = line_of_entries(code, instruction);
	return line > 0 && line <= UINT32_MAX ? (uint32_t)line : code->first_line;
}
