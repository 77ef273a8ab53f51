// SPDX-License-Identifier: GPL-2.0
#include "python/python_offsets.h"

#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/target_memory.h"
#include "python/java.h"
#include "python/php.h"
#include "python/ruby.h"
#include "python/v8.h"
#include "symbols/image.h"

/*
 * 3.9 to 3.12 on 64-bit machines, with the release and the headers they are from: computed by
 * offsetof() with the installed headers of that release, and tested with it.
 */
static const struct python_layout layouts[] = {
	{
		/*
		 * v3.9.18: pycore_runtime.h (_PyRuntimeState), pycore_interp.h (struct _is),
		 * cpython/pystate.h (struct _ts), cpython/frameobject.h (struct _frame),
		 * cpython/code.h (PyCodeObject), cpython/unicodeobject.h (PyASCIIObject).
		 */
		.version = 0x0309,
		.walk = {
			.kind = PYTHON_OBJECTS, .interpreters = 32, .current = 568,
			.next_interpreter = 0, .threads = 8,
			.state_bytes = 184, .state_previous = 0, .state_next = 8,
			.state_interpreter = 16, .state_id = 176, .state_frame = 24,
			.frame_bytes = 112, .frame_previous = 24, .frame_code = 32,
			.frame_instruction = 104, .instruction_unit = 1,
		},
		.object_type = 8, .type_name = 24,
		.code_bytes = 128, .code_file = 104, .code_name = 112, .code_lines = 120,
		.code_first_line = 40,
		.text_length = 16, .text_state = 32, .text_ascii = 48, .text_other = 72,
		.bytes_size = 16, .bytes_data = 32,
	},
	{
		/* v3.10.13: the same files. */
		.version = 0x030a,
		.walk = {
			.kind = PYTHON_OBJECTS, .interpreters = 32, .current = 568,
			.next_interpreter = 0, .threads = 8,
			.state_bytes = 184, .state_previous = 0, .state_next = 8,
			.state_interpreter = 16, .state_id = 176, .state_frame = 24,
			.frame_bytes = 104, .frame_previous = 24, .frame_code = 32,
			.frame_instruction = 96, .instruction_unit = 2,
		},
		.object_type = 8, .type_name = 24,
		.code_bytes = 128, .code_file = 104, .code_name = 112, .code_lines = 120,
		.code_first_line = 40,
		.text_length = 16, .text_state = 32, .text_ascii = 48, .text_other = 72,
		.bytes_size = 16, .bytes_data = 32,
	},
	{
		/*
		 * v3.11.2, v3.11.7: the same, but pycore_frame.h (_PyInterpreterFrame) for frames,
		 * and _PyCFrame of cpython/pystate.h between the thread state and them.
		 */
		.version = 0x030b,
		.walk = {
			.kind = PYTHON_ENTRIES, .interpreters = 40, .current = 576,
			.next_interpreter = 0, .threads = 16,
			.state_bytes = 160, .state_previous = 0, .state_next = 8,
			.state_interpreter = 16, .state_id = 152, .state_frame = 56,
			.indirect = 1, .indirect_offset = 8,
			.frame_bytes = 72, .frame_previous = 48, .frame_code = 32,
			.frame_instruction = 56, .frame_owner = 68, .code_start = 184,
		},
		.object_type = 8, .type_name = 24,
		.code_bytes = 144, .code_size = 16, .code_file = 112, .code_name = 128,
		.code_lines = 136, .code_first_line = 72,
		.text_length = 16, .text_state = 32, .text_ascii = 48, .text_other = 72,
		.bytes_size = 16, .bytes_data = 32,
	},
	{
		/* v3.12.1: as 3.11. The thread state's _status has taken tstate_current's place. */
		.version = 0x030c,
		.walk = {
			.kind = PYTHON_SHIMS, .interpreters = 40,
			.next_interpreter = 0, .threads = 72,
			.state_bytes = 144, .state_previous = 0, .state_next = 8,
			.state_interpreter = 16, .state_id = 136, .state_status = 24,
			.state_frame = 56, .indirect = 1, .indirect_offset = 0,
			.frame_bytes = 72, .frame_previous = 8, .frame_code = 0,
			.frame_instruction = 56, .frame_owner = 70, .code_start = 192,
		},
		.object_type = 8, .type_name = 24,
		.code_bytes = 144, .code_size = 16, .code_file = 112, .code_name = 128,
		.code_lines = 136, .code_first_line = 68,
		.text_length = 16, .text_state = 32, .text_ascii = 40, .text_other = 56,
		.bytes_size = 16, .bytes_data = 32,
	},
};

/* "xdebugpy" as a little-endian word: how 3.13 and later mark the table. */
#define DEBUG_COOKIE 0x7970677562656478ULL

/* Where the table's parts begin, in words. The first fields of each part have not moved. */
struct debug_parts {
	uint16_t version;
	unsigned int runtime, interpreter, thread, frame, code, object, type, bytes, text;
};

static const struct debug_parts debug_parts[] = {
	/* v3.13.0: Include/internal/pycore_runtime.h, struct _Py_DebugOffsets */
	{ 0x030d, 3, 6, 19, 28, 34, 44, 46, 64, 67 },
	/* v3.14.3: Include/internal/pycore_debug_offsets.h */
	{ 0x030e, 3, 6, 22, 31, 39, 50, 52, 74, 77 },
};

/* End of the field with the largest offset. */
static uint16_t reach(const uint64_t *offsets, size_t count, size_t size)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < count; i++)
		most = MAX(most, offsets[i]);
	return most + size;
}

/* Whether BPF programs can read all these offsets. */
static bool is_readable(const uint64_t *offsets, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (offsets[i] > MEMTOLL_PYTHON_CHUNK - 8 || offsets[i] % 8)
			return false;
	return true;
}

static int described_walk(const struct debug_parts *at, const uint64_t *words,
			  struct memtoll_python_offsets *walk)
{
	const uint64_t *interpreter = words + at->interpreter, *thread = words + at->thread;
	const uint64_t *frame = words + at->frame;
	const uint64_t state[] = {
		thread[1], thread[2], thread[3], thread[4], thread[5], thread[8]
	};
	const uint64_t frames[] = { frame[1], frame[2], frame[3] };

	if (!is_readable(state, G_N_ELEMENTS(state)) ||
	    !is_readable(frames, G_N_ELEMENTS(frames)) || frame[5] >= MEMTOLL_PYTHON_CHUNK ||
	    interpreter[2] > UINT32_MAX || interpreter[3] > UINT32_MAX ||
	    words[at->runtime + 2] > UINT32_MAX || words[at->code + 9] > UINT16_MAX)
		return -ENOTSUP;
	walk->kind = PYTHON_SHIMS;
	walk->interpreters = words[at->runtime + 2];
	walk->next_interpreter = interpreter[2];
	walk->threads = interpreter[3];
	walk->state_previous = thread[1];
	walk->state_next = thread[2];
	walk->state_interpreter = thread[3];
	walk->state_frame = thread[4];
	walk->state_id = thread[5];
	walk->state_status = thread[8];
	walk->state_bytes = reach(state, G_N_ELEMENTS(state), 8);
	walk->frame_previous = frame[1];
	walk->frame_code = frame[2];
	walk->frame_instruction = frame[3];
	walk->frame_owner = frame[5];
	walk->frame_bytes = MAX(reach(frames, G_N_ELEMENTS(frames), 8), frame[5] + 1);
	walk->code_start = words[at->code + 9];
	return 0;
}

int python_offsets_described(const uint64_t words[PYTHON_DEBUG_WORDS], struct python_layout *layout)
{
	const struct debug_parts *at = NULL;
	const uint64_t *code, *text, *bytes;
	size_t i;

	memset(layout, 0, sizeof(*layout));
	if (words[0] != DEBUG_COOKIE)
		return -ENOTSUP;
	layout->version = words[1] >> 16;
	for (i = 0; i < G_N_ELEMENTS(debug_parts); i++)
		if (debug_parts[i].version == layout->version)
			at = &debug_parts[i];
	if (!at)
		return -ENOTSUP;
	code = words + at->code;
	text = words + at->text;
	bytes = words + at->bytes;
	for (i = 1; i < 6; i++)
		if (code[i] > PYTHON_CODE_BYTES - 8)
			return -ENOTSUP;
	if (words[at->object] > 64 || words[at->object + 1] > 64 || words[at->type + 1] > 256 ||
	    text[0] > 256 || text[1] > 256 || text[2] > 256 || text[3] > 256 || bytes[1] > 256 ||
	    bytes[2] > 256)
		return -ENOTSUP;
	layout->free_threaded = words[2] != 0;
	layout->object_type = words[at->object + 1];
	layout->type_name = words[at->type + 1];
	layout->code_bytes = MAX(reach(code + 1, 5, 8), reach(words + at->object, 2, 8));
	layout->code_size = words[at->object];
	layout->code_file = code[1];
	layout->code_name = code[3];
	layout->code_lines = code[4];
	layout->code_first_line = code[5];
	layout->text_state = text[1];
	/* Interning has a byte of its own there (cpython/unicodeobject.h, Py_GIL_DISABLED). */
	layout->text_state_shift = layout->free_threaded && layout->version >= 0x030e ? 6 : 0;
	layout->text_length = text[2];
	layout->text_ascii = text[3];
	/* PyUnicodeObject is PyCompactUnicodeObject and a pointer. */
	layout->text_other = text[0] - 8;
	layout->bytes_size = bytes[1];
	layout->bytes_data = bytes[2];
	return described_walk(at, words, &layout->walk);
}

/* Note a symbol if it is an interpreter's. */
static void note_symbol(const struct symbol *symbol, size_t index, size_t section,
			struct python_symbols *found)
{
	if (strcmp(symbol->name, "_PyRuntime") == 0)
		found->runtime = symbol->raw.st_value;
	else if (strcmp(symbol->name, "Py_Version") == 0)
		found->version = symbol->raw.st_value;
	else if (strcmp(symbol->name, "ruby_version") == 0)
		found->ruby_version = symbol->raw.st_value;
	else if (strcmp(symbol->name, "executor_globals") == 0 && symbol->type == STT_OBJECT)
		found->php_globals = symbol->raw.st_value;
	else if (strcmp(symbol->name, "executor_globals_offset") == 0)
		found->php_threads = symbol->raw.st_value;
	else if (g_str_has_prefix(symbol->name, "v8dbg_"))
		v8_note_symbol(symbol, found);
	else if (g_str_has_prefix(symbol->name, "gHotSpotVM"))
		java_note_symbol(symbol, found);
	else if (strcmp(symbol->name, "ruby_current_ec") == 0 && symbol->type == STT_TLS) {
		found->has_ruby_context = true;
		found->ruby_context = symbol->raw.st_value;
		found->ruby_context_index = index;
		found->ruby_section = section;
	}
}

static bool is_any(const struct python_symbols *found)
{
	return found->runtime || found->ruby_version || found->php_globals || found->php_threads ||
	       v8_is_there(found) || java_is_there(found);
}

static void find_symbols(const struct image *image, uint32_t section, struct python_symbols *found)
{
	struct symbol_table table;
	struct symbol symbol;
	size_t i;

	if (!image_symbols(image, section, &table))
		return;
	for (i = 0; i < table.count; i++)
		if (symbol_table_get(&table, i, &symbol) && symbol.defined)
			note_symbol(&symbol, i, table.section, found);
}

/* The digits after "python3." give the version; 0 where there are none. */
static uint16_t version_of_text(const char *minor)
{
	char *end;
	unsigned long number = strtoul(minor, &end, 10);

	return end > minor && number < 100 ? 0x0300 | number : 0;
}

/* Before 3.11 memory has no version: by the file's name, or by its library's directory. */
static uint16_t version_of_file(const struct image *image, const char *path)
{
	const char *name = strrchr(path, '/');
	char tail[8];

	name = strstr(name ? name : path, "python3.");
	if (name)
		return version_of_text(name + strlen("python3."));
	if (image_has_text(image, "python3.", tail, sizeof(tail)))
		return version_of_text(tail);
	return 0;
}

static int find_python(pid_t pid, const struct mapping *mapping, const struct image *image,
		       uint64_t bias, const struct python_symbols *symbols,
		       struct python_layout *layout)
{
	uint64_t number, words[PYTHON_DEBUG_WORDS];
	uint16_t version;
	size_t i;
	int err;

	if (symbols->version) {
		err = target_memory_read(pid, symbols->version + bias, &number, sizeof(number));
		if (err)
			return err;
		version = number >> 16;
	} else {
		version = version_of_file(image, mapping->path);
	}
	layout->version = version;
	for (i = 0; i < G_N_ELEMENTS(layouts); i++) {
		if (layouts[i].version == version) {
			*layout = layouts[i];
			layout->walk.runtime = symbols->runtime + bias;
			return 0;
		}
	}
	if (version < 0x030d)
		return -ENOTSUP;
	err = target_memory_read(pid, symbols->runtime + bias, words, sizeof(words));
	if (!err)
		err = python_offsets_described(words, layout);
	if (!err && layout->version != version)
		err = -ENOTSUP;
	layout->version = version;
	layout->walk.runtime = symbols->runtime + bias;
	return err;
}

static int find_layout(pid_t pid, const struct mapping *mapping, const struct image *image,
		       struct python_layout *layout)
{
	struct python_symbols symbols = {};
	uint64_t bias;

	find_symbols(image, SHT_DYNSYM, &symbols);
	if (!is_any(&symbols))
		find_symbols(image, SHT_SYMTAB, &symbols);
	if (!is_any(&symbols) || !image_bias(image, mapping, &bias))
		return -ENODATA;
	if (symbols.runtime)
		return find_python(pid, mapping, image, bias, &symbols, layout);
	if (symbols.ruby_version)
		return ruby_layout_find(pid, image, bias, &symbols, layout);
	if (v8_is_there(&symbols))
		return v8_layout_find(pid, bias, &symbols, layout);
	if (java_is_there(&symbols))
		return java_layout_find(pid, bias, &symbols, layout);
	return php_layout_find(image, bias, &symbols, layout);
}

int python_offsets_find(pid_t pid, const struct mapping *mapping, struct python_layout *layout)
{
	struct image image;
	int err = image_open(pid, mapping, &image);

	memset(layout, 0, sizeof(*layout));
	if (!err)
		err = find_layout(pid, mapping, &image, layout);
	image_close(&image);
	return err;
}
