// SPDX-License-Identifier: GPL-2.0
#include "python/java.h"

#include <errno.h>
#include <glib.h>
#include <string.h>

#include "host/target_memory.h"
#include "python/code_bytes.h"

#define OLDEST 17

/* ---- what HotSpot says of itself ---- */

static const char *const symbol_names[JAVA_SYMBOLS] = {
	[JAVA_STRUCTS] = "gHotSpotVMStructs",
	[JAVA_STRUCT_BYTES] = "gHotSpotVMStructEntryArrayStride",
	[JAVA_STRUCT_TYPE] = "gHotSpotVMStructEntryTypeNameOffset",
	[JAVA_STRUCT_FIELD] = "gHotSpotVMStructEntryFieldNameOffset",
	[JAVA_STRUCT_OFFSET] = "gHotSpotVMStructEntryOffsetOffset",
	[JAVA_STRUCT_ADDRESS] = "gHotSpotVMStructEntryAddressOffset",
	[JAVA_TYPES] = "gHotSpotVMTypes",
	[JAVA_TYPE_BYTES] = "gHotSpotVMTypeEntryArrayStride",
	[JAVA_TYPE_NAME] = "gHotSpotVMTypeEntryTypeNameOffset",
	[JAVA_TYPE_SIZE] = "gHotSpotVMTypeEntrySizeOffset",
};

/* Fields of objects: offsets; and of the virtual machine itself: addresses. */
static const struct {
	const char *type;
	const char *field;
	enum java_place place;
} fields[] = {
	{ "Abstract_VM_Version", "_vm_major_version", JAVA_VERSION },
	{ "AbstractInterpreter", "_code", JAVA_CODE },
	{ "StubQueue", "_stub_buffer", JAVA_QUEUE_START },
	{ "StubQueue", "_buffer_limit", JAVA_QUEUE_BYTES },
	{ "Method", "_constMethod", JAVA_METHOD_CONSTANT },
	{ "ConstMethod", "_constants", JAVA_CONSTANT_POOL },
	{ "ConstMethod", "_constMethod_size", JAVA_CONSTANT_WORDS },
	{ "ConstMethod", "_flags", JAVA_CONSTANT_FLAGS },
	{ "ConstMethod", "_flags._flags", JAVA_CONSTANT_FLAGS }, /* from 21 on */
	{ "ConstMethod", "_code_size", JAVA_CONSTANT_CODE },
	{ "ConstMethod", "_name_index", JAVA_CONSTANT_NAME },
	{ "ConstMethod", "_signature_index", JAVA_CONSTANT_SIGNATURE },
	{ "ConstantPool", "_pool_holder", JAVA_POOL_HOLDER },
	{ "ConstantPool", "_length", JAVA_POOL_LENGTH },
	{ "ConstantPool", "_source_file_name_index", JAVA_POOL_FILE },
	{ "Klass", "_name", JAVA_CLASS_NAME },
	{ "Symbol", "_length", JAVA_TEXT_LENGTH },
	{ "Symbol", "_body", JAVA_TEXT },
};

static const struct {
	const char *type;
	enum java_place place;
} sizes[] = {
	{ "ConstMethod", JAVA_CONSTANT_BYTES },
	{ "ConstantPool", JAVA_POOL_BYTES },
};

#define HAS_LINES 1 /* of flags */

#define OBJECT_BYTES_MAX 256 /* of an object, as far as it is read */
#define METHOD_BYTES_MAX (256U << 10)
#define ENTRIES_MAX 8192 /* of a table; there are some 800 */
#define BATCH 64
#define ENTRY_BYTES_MAX 128
#define NAME_BYTES 32 /* longer than those that are looked for */

void java_note_symbol(const struct symbol *symbol, struct python_symbols *found)
{
	size_t i;

	for (i = 0; i < JAVA_SYMBOLS; i++)
		if (g_str_equal(symbol->name, symbol_names[i]))
			found->java[i] = symbol->raw.st_value;
}

bool java_is_there(const struct python_symbols *symbols)
{
	return symbols->java[JAVA_STRUCTS];
}

/* A table of entries that have pointers to names, up to one that has none. */
struct table {
	pid_t pid;
	uint64_t start;
	uint64_t entry_bytes;
	uint64_t name_at;
	uint64_t second_at; /* of another name; the same where there is none */
	uint64_t values[2]; /* offsets of what the entry says */
};

typedef void entry_fn(const char *name, const char *second, const uint64_t values[2],
		      uint64_t *places);

/* One batch. False: the table has ended. */
static bool read_batch(const struct table *table, size_t first, entry_fn *on_entry,
		       uint64_t *places, int *err)
{
	uint8_t entries[BATCH * ENTRY_BYTES_MAX];
	char names[2 * BATCH][NAME_BYTES] = {};
	struct memory_range ranges[2 * BATCH];
	uint64_t values[2];
	size_t i, count;

	*err = target_memory_read(table->pid, table->start + first * table->entry_bytes, entries,
				  BATCH * table->entry_bytes);
	if (*err)
		return false;
	for (count = 0; count < BATCH; count++) {
		const uint8_t *entry = entries + count * table->entry_bytes;

		if (!code_word(entry, table->name_at))
			break;
		ranges[2 * count] = (struct memory_range){ code_word(entry, table->name_at),
							   names[2 * count], NAME_BYTES, false };
		ranges[2 * count + 1] =
			(struct memory_range){ code_word(entry, table->second_at),
					       names[2 * count + 1], NAME_BYTES, false };
	}
	if (!count)
		return false;
	*err = target_memory_read_all(table->pid, ranges, 2 * count);
	for (i = 0; i < count && !*err; i++) {
		const uint8_t *entry = entries + i * table->entry_bytes;

		names[2 * i][NAME_BYTES - 1] = '\0';
		names[2 * i + 1][NAME_BYTES - 1] = '\0';
		values[0] = code_word(entry, table->values[0]);
		values[1] = code_word(entry, table->values[1]);
		on_entry(names[2 * i], names[2 * i + 1], values, places);
	}
	return !*err && count == BATCH;
}

static int read_table(const struct table *table, entry_fn *on_entry, uint64_t *places)
{
	uint64_t last =
		MAX(MAX(table->name_at, table->second_at), MAX(table->values[0], table->values[1]));
	size_t first;
	int err = 0;

	if (table->entry_bytes > ENTRY_BYTES_MAX || table->entry_bytes < 16 ||
	    last > table->entry_bytes - 8)
		return -ENOTSUP;
	for (first = 0; first < ENTRIES_MAX; first += BATCH)
		if (!read_batch(table, first, on_entry, places, &err))
			break;
	return err;
}

/* Of a field of an object its offset, of one of the virtual machine's own where that is. */
static void on_field(const char *type, const char *field, const uint64_t values[2],
		     uint64_t *places)
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(fields); i++)
		if (g_str_equal(type, fields[i].type) && g_str_equal(field, fields[i].field))
			places[fields[i].place] = values[1] ? values[1] : values[0];
}

static void on_type(const char *type, const char *same, const uint64_t values[2], uint64_t *places)
{
	size_t i;

	(void)same;
	for (i = 0; i < G_N_ELEMENTS(sizes); i++)
		if (g_str_equal(type, sizes[i].type))
			places[sizes[i].place] = values[0];
}

static int read_places(pid_t pid, const uint64_t *said, uint64_t *places)
{
	const struct table structs = {
		.pid = pid,
		.start = said[JAVA_STRUCTS],
		.entry_bytes = said[JAVA_STRUCT_BYTES],
		.name_at = said[JAVA_STRUCT_TYPE],
		.second_at = said[JAVA_STRUCT_FIELD],
		.values = { said[JAVA_STRUCT_OFFSET], said[JAVA_STRUCT_ADDRESS] },
	};
	const struct table types = {
		.pid = pid,
		.start = said[JAVA_TYPES],
		.entry_bytes = said[JAVA_TYPE_BYTES],
		.name_at = said[JAVA_TYPE_NAME],
		.second_at = said[JAVA_TYPE_NAME],
		.values = { said[JAVA_TYPE_SIZE], said[JAVA_TYPE_SIZE] },
	};
	int err = read_table(&structs, on_field, places);

	return err ? err : read_table(&types, on_type, places);
}

int java_layout_find(pid_t pid, uint64_t bias, const struct python_symbols *symbols,
		     struct python_layout *layout)
{
	uint64_t said[JAVA_SYMBOLS] = {}, places[JAVA_PLACES];
	struct memory_range ranges[JAVA_SYMBOLS];
	uint32_t version;
	size_t i;
	int err;

	layout->walk.kind = INTERPRETER_JAVA;
	for (i = 0; i < JAVA_SYMBOLS; i++) {
		if (!symbols->java[i])
			return -ENOTSUP;
		ranges[i] = (struct memory_range){ symbols->java[i] + bias, &said[i],
						   sizeof(said[i]), false };
	}
	err = target_memory_read_all(pid, ranges, JAVA_SYMBOLS);
	for (i = 0; i < JAVA_PLACES; i++)
		places[i] = UINT64_MAX;
	if (!err)
		err = read_places(pid, said, places);
	if (err)
		return err;
	if (places[JAVA_VERSION] == UINT64_MAX ||
	    !code_peek(pid, places[JAVA_VERSION], &version, sizeof(version)) || version > 99)
		return -ENOTSUP;
	layout->version = version << 8;
	for (i = 0; i < JAVA_PLACES; i++)
		if (places[i] > OBJECT_BYTES_MAX - 8 && i != JAVA_VERSION && i != JAVA_CODE)
			return -ENOTSUP;
	if (version < OLDEST || places[JAVA_CODE] == UINT64_MAX)
		return -ENOTSUP;
	for (i = 0; i < JAVA_OFFSETS; i++)
		layout->java[i] = places[i];
	layout->walk.runtime = places[JAVA_CODE];
	layout->walk.interpreters = places[JAVA_QUEUE_START];
	layout->walk.threads = places[JAVA_QUEUE_BYTES];
	layout->walk.frame_code = places[JAVA_METHOD_CONSTANT];
	layout->walk.code_start = places[JAVA_CONSTANT_BYTES];
	return 0;
}

/* ---- methods ---- */

static uint16_t quarter(const uint8_t *bytes, uint16_t offset)
{
	uint16_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

/* Two reads for all: what of a method never changes is in a part of its own (ConstMethod). */
void java_code_peek(pid_t pid, const struct python_layout *layout, const uint64_t *addresses,
		    size_t count, struct python_code_key *keys)
{
	uint8_t constants[PYTHON_CODES_MAX][OBJECT_BYTES_MAX] = {};
	struct memory_range ranges[PYTHON_CODES_MAX];
	uint64_t parts[PYTHON_CODES_MAX] = {};
	const uint16_t *java = layout->java;
	size_t i;

	for (i = 0; i < count; i++)
		ranges[i] = (struct memory_range){
			.address = addresses[i] ? addresses[i] + java[JAVA_METHOD_CONSTANT] : 0,
			.to = &parts[i],
			.size = sizeof(parts[i]),
		};
	if (!count || !java[JAVA_CONSTANT_BYTES] || target_memory_read_all(pid, ranges, count))
		return;
	for (i = 0; i < count; i++)
		ranges[i] = (struct memory_range){ ranges[i].read ? parts[i] : 0, constants[i],
						   java[JAVA_CONSTANT_BYTES], false };
	if (target_memory_read_all(pid, ranges, count))
		return;
	for (i = 0; i < count; i++) {
		const uint8_t *constant = constants[i];
		uint32_t words = code_half(constant, java[JAVA_CONSTANT_WORDS]);

		if (!ranges[i].read || !quarter(constant, java[JAVA_CONSTANT_NAME]) || !words ||
		    words > METHOD_BYTES_MAX / 8)
			continue;
		keys[i] = (struct python_code_key){
			.type = 1,
			.size = quarter(constant, java[JAVA_CONSTANT_CODE]),
			.file = code_word(constant, java[JAVA_CONSTANT_POOL]),
			.name = quarter(constant, java[JAVA_CONSTANT_NAME]) |
				(uint64_t)quarter(constant, java[JAVA_CONSTANT_SIGNATURE]) << 16,
			.lines = quarter(constant, java[JAVA_CONSTANT_FLAGS]) & HAS_LINES,
			.body = words,
			.start = parts[i] + java[JAVA_CONSTANT_BYTES],
		};
	}
}

/* A Symbol's text; NULL: unreadable. */
static char *read_text(pid_t pid, const uint16_t *java, uint64_t symbol)
{
	char text[PYTHON_TEXT_MAX];
	uint16_t length;

	if (!symbol || !code_peek(pid, symbol + java[JAVA_TEXT_LENGTH], &length, sizeof(length)))
		return NULL;
	length = MIN(length, sizeof(text));
	if (length && !code_peek(pid, symbol + java[JAVA_TEXT], text, length))
		return NULL;
	return code_text(text, length);
}

/* What the constant pool has at an index, a text; NULL: unreadable, or nothing. */
static char *read_constant(pid_t pid, const uint16_t *java, uint64_t pool, uint32_t length,
			   uint32_t index)
{
	uint64_t symbol;

	if (!index || index >= length ||
	    !code_peek(pid, pool + java[JAVA_POOL_BYTES] + 8ULL * index, &symbol, sizeof(symbol)))
		return NULL;
	return read_text(pid, java, symbol);
}

/* As the language writes it. Of a hidden class the number comes behind a slash. */
static char *class_name(const char *text)
{
	char *name = g_strdelimit(g_strdup(text), "/", '.'), *number = strstr(name, "+0x");

	if (number)
		*number = '/';
	return name;
}

static const char *primitive(char kind)
{
	switch (kind) {
	case 'B':
		return "byte";
	case 'C':
		return "char";
	case 'D':
		return "double";
	case 'F':
		return "float";
	case 'I':
		return "int";
	case 'J':
		return "long";
	case 'S':
		return "short";
	case 'Z':
		return "boolean";
	default:
		return NULL;
	}
}

/* A type of a descriptor (JVM specification, 4.3). Behind it; NULL: it is none. */
static const char *append_type(GString *to, const char *at)
{
	const char *plain, *end = at;
	size_t dimensions = 0;

	for (; *at == '['; at++)
		dimensions++;
	plain = primitive(*at);
	if (plain) {
		g_string_append(to, plain);
		end = at + 1;
	} else {
		g_autofree char *text = NULL, *name = NULL;

		end = *at == 'L' ? strchr(at, ';') : NULL;
		if (!end)
			return NULL;
		text = g_strndup(at + 1, end - at - 1);
		name = class_name(text);
		g_string_append(to, name);
		end++;
	}
	while (dimensions--)
		g_string_append(to, "[]");
	return end;
}

/* "Class.method(int, byte[])", as HotSpot itself names what it compiles. */
static char *method_name(const char *class, const char *method, const char *descriptor)
{
	g_autofree char *name = class_name(class);
	GString *said = g_string_new(name);
	const char *at = descriptor + 1;

	g_string_append_printf(said, ".%s(", method);
	while (*descriptor == '(' && at && *at && *at != ')') {
		if (at > descriptor + 1)
			g_string_append(said, ", ");
		at = append_type(said, at);
	}
	g_string_append_c(said, ')');
	return g_string_free(said, FALSE);
}

/* ---- lines ---- */

struct lines {
	const uint8_t *bytes;
	size_t size;
	size_t at;
	uint8_t bias; /* from 20 on no byte of a number is 0 (utilities/unsigned5.hpp) */
};

/* Six bits a byte but for the first, of which any below 192 is the last. */
static uint32_t read_number(struct lines *lines)
{
	uint32_t sum = 0;
	unsigned int i;

	for (i = 0; i < 5 && lines->at < lines->size; i++) {
		uint8_t byte = lines->bytes[lines->at++];

		sum += (uint32_t)(byte - lines->bias) << 6 * i;
		if (byte < 192)
			break;
	}
	return sum;
}

static int32_t read_signed(struct lines *lines)
{
	uint32_t number = read_number(lines);

	return (int32_t)(number >> 1) ^ -(int32_t)(number & 1);
}

/*
 * Behind the code: for each place that begins a line a byte, of both increments, or one that says that
 * two numbers follow, up to a 0 (CompressedLineNumberReadStream, code/compressedStream.hpp).
 */
static GArray *read_lines(struct lines *lines)
{
	GArray *runs = g_array_new(FALSE, FALSE, sizeof(struct python_run));
	int64_t at = 0, line = 0;

	while (lines->at < lines->size && lines->bytes[lines->at]) {
		uint8_t both = lines->bytes[lines->at++];

		if (both == 0xff) {
			at += read_signed(lines);
			line += read_signed(lines);
		} else {
			at += both >> 3;
			line += both & 7;
		}
		if (at < 0 || at > UINT16_MAX || line < 0 || line > UINT16_MAX)
			break;
		code_run_add(runs, (uint32_t)at, (uint32_t)line);
	}
	return runs;
}

static void find_lines(pid_t pid, const struct python_layout *layout, struct python_code *code)
{
	uint64_t begun = layout->java[JAVA_CONSTANT_BYTES] + code->key.size;
	uint64_t bytes = 8 * code->key.body;
	g_autofree uint8_t *behind = NULL;
	struct lines lines = { .bias = layout->version >= 20 << 8 };

	if (!code->key.lines || bytes <= begun || bytes > METHOD_BYTES_MAX)
		return;
	behind = g_malloc(bytes - begun);
	if (!code_peek(pid, code->key.start + code->key.size, behind, bytes - begun))
		return;
	lines.bytes = behind;
	lines.size = bytes - begun;
	code->runs = read_lines(&lines);
	if (code->runs->len)
		code->first_line = g_array_index(code->runs, struct python_run, 0).line;
}

void java_code_name(pid_t pid, const struct python_layout *layout, struct python_code *code)
{
	g_autofree char *class = NULL, *method = NULL, *descriptor = NULL;
	const uint16_t *java = layout->java;
	uint64_t holder, name, pool = code->key.file;
	uint8_t head[OBJECT_BYTES_MAX] = {};
	uint32_t length;

	if (!code_peek(pid, pool, head, java[JAVA_POOL_BYTES]))
		return;
	holder = code_word(head, java[JAVA_POOL_HOLDER]);
	length = code_half(head, java[JAVA_POOL_LENGTH]);
	if (!code_peek(pid, holder + java[JAVA_CLASS_NAME], &name, sizeof(name)))
		return;
	class = read_text(pid, java, name);
	method = read_constant(pid, java, pool, length, code->key.name & 0xffff);
	descriptor = read_constant(pid, java, pool, length, code->key.name >> 16 & 0xffff);
	if (!class || !method || !descriptor)
		return;
	code->function = method_name(class, method, descriptor);
	code->file = read_constant(pid, java, pool, length, quarter(head, java[JAVA_POOL_FILE]));
	/* A class need not say where it is from. */
	if (!code->file)
		code->file = g_strdup("");
	find_lines(pid, layout, code);
}
