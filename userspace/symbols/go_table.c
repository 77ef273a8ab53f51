// SPDX-License-Identifier: GPL-2.0
#include "symbols/go_table.h"

#include <string.h>

/* The first word of the table: 1.18 and 1.19; 1.20 and later. */
#define MAGIC_1_18 0xfffffff0U
#define MAGIC_1_20 0xfffffff1U
/* Fields of a function's record (struct _func). In 1.20 startLine came in before funcID. */
#define FUNCTION_NAME 4
#define FUNCTION_PCFILE 20
#define FUNCTION_PCLINE 24
#define FUNCTION_PCDATA_COUNT 28
#define FUNCTION_UNIT 32
#define FUNCTION_BYTES_1_18 40
#define FUNCTION_BYTES_1_20 44
#define PCDATA_INLINED 2
#define FUNCDATA_INLINED 3
/* A call that was inlined (struct inlinedCall): its size, and where the name and the parent are. */
#define INLINED_BYTES_1_18 20
#define INLINED_NAME_1_18 12
#define INLINED_PARENT_1_18 16
#define INLINED_BYTES_1_20 16
#define INLINED_NAME_1_20 4
#define INLINED_PARENT_1_20 8
/* The largest functions of real programs have some thousand: more is somebody's joke. */
#define STEPS_MAX 20000
/* Header: magic, two zeros, quantum, size of pointers, and words of that size. */
#define HEADER_WORDS 8
#define HEADER_BYTES (8 + HEADER_WORDS * 8)

enum header_word {
	HEADER_FUNCTIONS,
	HEADER_FILES,
	HEADER_TEXT,
	HEADER_NAMES,
	HEADER_UNITS,
	HEADER_FILE_NAMES,
	HEADER_VALUES,
	HEADER_RECORDS,
};

static bool u32_at(struct go_bytes bytes, uint64_t offset, uint32_t *value)
{
	if (bytes.size < 4 || offset > bytes.size - 4)
		return false;
	memcpy(value, bytes.data + offset, 4);
	return true;
}

static struct go_bytes from(struct go_bytes bytes, uint64_t offset)
{
	if (offset >= bytes.size)
		return (struct go_bytes){ NULL, 0 };
	return (struct go_bytes){ bytes.data + offset, bytes.size - offset };
}

static uint64_t header_word(struct go_bytes bytes, enum header_word word)
{
	uint64_t value;

	memcpy(&value, bytes.data + 8 + 8 * word, sizeof(value));
	return value;
}

static bool has_header(struct go_bytes bytes, uint32_t *magic)
{
	return bytes.size >= HEADER_BYTES && u32_at(bytes, 0, magic) &&
	       (*magic == MAGIC_1_18 || *magic == MAGIC_1_20) && !bytes.data[4] && !bytes.data[5] &&
	       (bytes.data[6] == 1 || bytes.data[6] == 4) && bytes.data[7] == 8;
}

bool go_table_read(struct go_table *table, struct go_bytes bytes, uint64_t *text)
{
	uint32_t magic, count;

	memset(table, 0, sizeof(*table));
	if (!has_header(bytes, &magic))
		return false;
	table->starts_lines = magic == MAGIC_1_20;
	table->quantum = bytes.data[6];
	table->names = from(bytes, header_word(bytes, HEADER_NAMES));
	table->units = from(bytes, header_word(bytes, HEADER_UNITS));
	table->files = from(bytes, header_word(bytes, HEADER_FILE_NAMES));
	table->values = from(bytes, header_word(bytes, HEADER_VALUES));
	table->functions = from(bytes, header_word(bytes, HEADER_RECORDS));
	if (header_word(bytes, HEADER_FUNCTIONS) > table->functions.size / 8)
		return false;
	count = (uint32_t)header_word(bytes, HEADER_FUNCTIONS);
	/* Each has where it begins and its record; behind the last one is where that ends. */
	if (!count || (uint64_t)count * 8 + 4 > table->functions.size)
		return false;
	table->count = count;
	*text = header_word(bytes, HEADER_TEXT);
	return true;
}

uint64_t go_table_names_offset(struct go_bytes bytes)
{
	uint32_t magic;

	return has_header(bytes, &magic) ? header_word(bytes, HEADER_NAMES) : 0;
}

/* "" where it does not end in the table. */
static const char *string_at(struct go_bytes bytes, uint64_t offset)
{
	struct go_bytes rest = from(bytes, offset);

	return rest.size && memchr(rest.data, 0, rest.size) ? (const char *)rest.data : "";
}

static bool take_varint(struct go_bytes *bytes, uint32_t *value)
{
	unsigned int shift;

	*value = 0;
	for (shift = 0; shift < 35 && bytes->size; shift += 7) {
		uint8_t byte = *bytes->data++;

		bytes->size--;
		*value |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Of a table of values by code address, that of the code so many bytes into its function; -1: none. */
static int64_t value_at(const struct go_table *table, uint32_t offset, uint64_t into)
{
	struct go_bytes bytes = from(table->values, offset);
	uint32_t change, length;
	uint64_t until = 0;
	uint32_t value = (uint32_t)-1;
	size_t step;

	if (!offset)
		return -1;
	for (step = 0; step < STEPS_MAX; step++) {
		if (!take_varint(&bytes, &change) || (!change && step) ||
		    !take_varint(&bytes, &length))
			return -1;
		/* zigzag: the sign is the lowest bit */
		value += change & 1 ? ~(change >> 1) : change >> 1;
		until += (uint64_t)length * table->quantum;
		if (into < until)
			return (int32_t)value;
	}
	return -1;
}

struct function {
	struct go_bytes record; /* and what follows it */
	uint64_t start, size;
	uint32_t unit;
};

static bool start_of(const struct go_table *table, uint32_t index, uint32_t *start)
{
	return u32_at(table->functions, (uint64_t)index * 8, start);
}

static bool find_function(const struct go_table *table, uint64_t address, struct function *function)
{
	uint32_t low = 0, high = table->count, start, end, record;
	uint64_t into = address - table->text;

	if (address < table->text)
		return false;
	/* The first one that begins behind it, or the end of the last. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (!start_of(table, middle, &start))
			return false;
		if (start <= into)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || !start_of(table, low - 1, &start) || !start_of(table, low, &end) ||
	    into < start || into >= end ||
	    !u32_at(table->functions, (uint64_t)(low - 1) * 8 + 4, &record))
		return false;
	function->record = from(table->functions, record);
	function->start = table->text + start;
	function->size = end - start;
	return u32_at(function->record, FUNCTION_UNIT, &function->unit);
}

/* Of the code so many bytes into the function. */
static void find_line(const struct go_table *table, const struct function *function, uint64_t into,
		      struct go_frame *frame)
{
	uint32_t offset, name;
	int64_t value = -1;

	frame->file = "";
	frame->line = 0;
	if (u32_at(function->record, FUNCTION_PCLINE, &offset))
		value = value_at(table, offset, into);
	if (value > 0)
		frame->line = (uint32_t)value;
	value = -1;
	if (u32_at(function->record, FUNCTION_PCFILE, &offset))
		value = value_at(table, offset, into);
	if (value >= 0 &&
	    u32_at(table->units, ((uint64_t)function->unit + (uint64_t)value) * 4, &name) &&
	    name != UINT32_MAX)
		frame->file = string_at(table->files, name);
}

struct inlined {
	struct go_bytes tree; /* size 0: nothing is inlined, or nobody knows where it is */
	uint32_t indexes;     /* a table of values: which call the code belongs to */
};

static struct inlined find_inlined(const struct go_table *table, const struct function *function)
{
	const uint64_t bytes = table->starts_lines ? FUNCTION_BYTES_1_20 : FUNCTION_BYTES_1_18;
	struct inlined inlined = { { NULL, 0 }, 0 };
	uint32_t values, offset;

	if (function->record.size < bytes ||
	    !u32_at(function->record, FUNCTION_PCDATA_COUNT, &values) || values <= PCDATA_INLINED ||
	    function->record.data[bytes - 1] <= FUNCDATA_INLINED ||
	    !u32_at(function->record, bytes + (uint64_t)PCDATA_INLINED * 4, &inlined.indexes) ||
	    !u32_at(function->record, bytes + ((uint64_t)values + FUNCDATA_INLINED) * 4, &offset) ||
	    offset == UINT32_MAX)
		return inlined;
	inlined.tree = from(table->inlined, offset);
	return inlined;
}

/* Its name, and where in the function it was inlined. */
static bool take_inlined(const struct go_table *table, const struct function *function,
			 const struct inlined *inlined, int64_t index, struct go_frame *frame,
			 uint64_t *into)
{
	const bool newer = table->starts_lines;
	const uint64_t at = (uint64_t)index * (newer ? INLINED_BYTES_1_20 : INLINED_BYTES_1_18);
	uint32_t name, parent;

	if (index < 0 ||
	    !u32_at(inlined->tree, at + (newer ? INLINED_NAME_1_20 : INLINED_NAME_1_18), &name) ||
	    !u32_at(inlined->tree, at + (newer ? INLINED_PARENT_1_20 : INLINED_PARENT_1_18),
		    &parent) ||
	    parent >= function->size)
		return false;
	frame->function = string_at(table->names, name);
	*into = parent;
	return *frame->function != '\0';
}

size_t go_table_find(const struct go_table *table, uint64_t address, struct go_frame *frames,
		     size_t capacity)
{
	struct function function;
	struct inlined inlined;
	uint32_t name = 0;
	uint64_t into;
	size_t count = 0;

	if (!find_function(table, address, &function) ||
	    !u32_at(function.record, FUNCTION_NAME, &name))
		return 0;
	inlined = find_inlined(table, &function);
	into = address - function.start;
	while (count < capacity) {
		struct go_frame *frame = &frames[count++];
		int64_t index = inlined.tree.size ? value_at(table, inlined.indexes, into) : -1;

		frame->start = function.start;
		find_line(table, &function, into, frame);
		/* What lies between two functions. */
		if (!frame->line && !*frame->file)
			return 0;
		/* The last one that fits is the function itself. */
		if (count == capacity ||
		    !take_inlined(table, &function, &inlined, index, frame, &into)) {
			frame->function = string_at(table->names, name);
			break;
		}
	}
	return count;
}
