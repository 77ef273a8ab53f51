// SPDX-License-Identifier: GPL-2.0
#include "python/v8.h"

#include <errno.h>
#include <glib.h>
#include <string.h>

#include "host/target_memory.h"
#include "python/code_bytes.h"

enum constant {
	FRAME_FUNCTION,
	FRAME_CONTEXT,
	FRAME_ENTRY,
	FRAME_CONSTRUCT_ENTRY,
	FUNCTION_SHARED,
	SHARED_NAME,
	SHARED_SCRIPT,
	OBJECT_MAP,
	MAP_TYPE,
	SCRIPT_NAME,
	SCRIPT_SOURCE,
	STRING_LENGTH,
	ONE_BYTE_CHARS,
	TWO_BYTE_CHARS,
	CONS_FIRST,
	CONS_SECOND,
	THIN_ACTUAL,
	EXTERNAL_RESOURCE,
	ENCODING_MASK,
	ENCODING_ONE_BYTE,
	STORE_MASK,
	STORE_CONS,
	STORE_EXTERNAL,
	STORE_SLICED,
	STORE_THIN,
	FIRST_NO_STRING,
	TYPE_SHARED,
	TYPE_SCRIPT,
	TYPE_SCOPE,
	SCOPE_LOCALS,
	SCOPE_FIRST,
	NUMBER_SHIFT,
};

/*
 * What follows the second "__" of a field is its type in V8's source, which has other words for it from
 * release to release.
 */
static const struct {
	enum constant constant;
	const char *name;
} names[] = {
	{ FRAME_FUNCTION, "off_fp_function" },
	{ FRAME_CONTEXT, "off_fp_context_or_frame_type" },
	{ FRAME_ENTRY, "frametype_EntryFrame" },
	{ FRAME_CONSTRUCT_ENTRY, "frametype_ConstructEntryFrame" },
	{ FUNCTION_SHARED, "class_JSFunction__shared__" },
	{ SHARED_NAME, "class_SharedFunctionInfo__name_or_scope_info__" },
	{ SHARED_SCRIPT, "class_SharedFunctionInfo__script_or_debug_info__" },
	{ SHARED_SCRIPT, "class_SharedFunctionInfo__script__" }, /* from V8 12 on */
	{ OBJECT_MAP, "class_HeapObject__map__" },
	{ MAP_TYPE, "class_Map__instance_type__" },
	{ SCRIPT_NAME, "class_Script__name__" },
	{ SCRIPT_SOURCE, "class_Script__source__" },
	{ STRING_LENGTH, "class_String__length__" },
	{ ONE_BYTE_CHARS, "class_SeqOneByteString__chars__" },
	{ TWO_BYTE_CHARS, "class_SeqTwoByteString__chars__" },
	{ CONS_FIRST, "class_ConsString__first__" },
	{ CONS_SECOND, "class_ConsString__second__" },
	{ THIN_ACTUAL, "class_ThinString__actual__" },
	{ EXTERNAL_RESOURCE, "class_ExternalString__resource__" },
	{ ENCODING_MASK, "StringEncodingMask" },
	{ ENCODING_ONE_BYTE, "OneByteStringTag" },
	{ STORE_MASK, "StringRepresentationMask" },
	{ STORE_CONS, "ConsStringTag" },
	{ STORE_EXTERNAL, "ExternalStringTag" },
	{ STORE_SLICED, "SlicedStringTag" },
	{ STORE_THIN, "ThinStringTag" },
	{ FIRST_NO_STRING, "FirstNonstringType" },
	{ TYPE_SHARED, "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE" },
	{ TYPE_SCRIPT, "type_Script__SCRIPT_TYPE" },
	{ TYPE_SCOPE, "type_ScopeInfo__SCOPE_INFO_TYPE" },
	{ SCOPE_LOCALS, "scopeinfo_idx_ncontextlocals" },
	{ SCOPE_FIRST, "scopeinfo_idx_first_vars" },
	{ NUMBER_SHIFT, "SmiShiftSize" },
};

_Static_assert(NUMBER_SHIFT + 1 == V8_CONSTANTS, "python_offsets.h has their number");

/* Where frames of x86-64 have these, as BPF reads them. */
#define EXPECTED_FUNCTION (-16)
#define EXPECTED_CONTEXT (-8)

#define OBJECT_BYTES_MAX 256 /* of an object, as far as it is read */
#define STRINGS_DEEP 5	     /* that refer to one another */
#define SOURCE_MAX (4U << 20)
#define NAMELESS "(anonymous)"

/*
 * A function's scope (ScopeInfo, V8's objects/scope-info.tq): flags, numbers, names and kinds of its
 * variables that closures use, then, as the flags say, a class's variable, the function's own variable
 * and the name it is known by. From where to where its source goes comes after that; in V8 13 before the
 * variables, where the flags are a plain number. Bits of flags, which v8dbg does not have, as of V8 10
 * to 13.
 */
#define SCOPE_SLOTS 6 /* that are looked at: no more than may be there */
#define LOCALS_MAX 75 /* more of them are in a table of their own */
#define NUMBERS 3     /* the index of what follows them */
#define HAS_CLASS_VARIABLE(flags) ((flags) >> 10 & 1)
#define HAS_OWN_VARIABLE(flags) ((flags) >> 12 & 3)
#define HAS_INFERRED_NAME(flags) ((flags) >> 14 & 1)

void v8_note_symbol(const struct symbol *symbol, struct python_symbols *found)
{
	const char *name = symbol->name + strlen("v8dbg_");
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(names); i++)
		if (g_str_has_suffix(names[i].name, "__") ? g_str_has_prefix(name, names[i].name) :
							    g_str_equal(name, names[i].name))
			found->v8[names[i].constant] = symbol->raw.st_value;
}

bool v8_is_there(const struct python_symbols *symbols)
{
	return symbols->v8[FRAME_FUNCTION];
}

int v8_layout_find(pid_t pid, uint64_t bias, const struct python_symbols *symbols,
		   struct python_layout *layout)
{
	struct memory_range ranges[V8_CONSTANTS];
	const int32_t *v8 = layout->v8;
	size_t i;
	int err;

	layout->walk.kind = INTERPRETER_V8;
	for (i = 0; i < V8_CONSTANTS; i++) {
		if (!symbols->v8[i])
			return -ENOTSUP;
		ranges[i] = (struct memory_range){ symbols->v8[i] + bias, &layout->v8[i],
						   sizeof(layout->v8[i]), false };
	}
	err = target_memory_read_all(pid, ranges, V8_CONSTANTS);
	if (err)
		return err;
	for (i = 0; i < V8_CONSTANTS; i++)
		if (!ranges[i].read)
			return -EFAULT;
	/* Pointers of 32 bits, as browsers have them, are none that BPF follows. */
	if (v8[FRAME_FUNCTION] != EXPECTED_FUNCTION || v8[FRAME_CONTEXT] != EXPECTED_CONTEXT ||
	    v8[NUMBER_SHIFT] != 31)
		return -ENOTSUP;
	for (i = FUNCTION_SHARED; i <= EXTERNAL_RESOURCE; i++)
		if (v8[i] < 0 || v8[i] > OBJECT_BYTES_MAX - 8)
			return -ENOTSUP;
	if (v8[SCOPE_LOCALS] < 0 || v8[SCOPE_LOCALS] > 8 || v8[SCOPE_FIRST] < 0 ||
	    v8[SCOPE_FIRST] > 8)
		return -ENOTSUP;
	layout->walk.code_start = v8[FUNCTION_SHARED];
	layout->walk.frame_owner = v8[FRAME_ENTRY];
	layout->walk.frame_previous = v8[FRAME_CONSTRUCT_ENTRY];
	return 0;
}

static bool is_object(uint64_t value)
{
	return (value & 3) == 1;
}

static bool is_number(uint64_t value)
{
	return !(value & 0xffffffff);
}

/*
 * The collector moves what is looked at, and gives back the memory where it was: what is read in
 * between is not there, or is no object, and is there again the next time.
 */
struct reader {
	pid_t pid;
	const int32_t *v8;
	bool missed;
};

static bool peek(struct reader *reader, uint64_t address, void *to, size_t size)
{
	bool read = code_peek(reader->pid, address, to, size);

	reader->missed |= !read;
	return read;
}

/* A field of an object whose address is tagged; 0: unreadable, no object, or the number 0. */
static uint64_t field(struct reader *reader, uint64_t object, int32_t offset)
{
	uint64_t value = 0;

	return is_object(object) && peek(reader, object - 1 + offset, &value, sizeof(value)) ?
		       value :
		       0;
}

/* By its map; -1: it is none. */
static int32_t type_of(struct reader *reader, uint64_t object)
{
	uint64_t map = field(reader, object, reader->v8[OBJECT_MAP]);
	uint16_t type;

	if (!is_object(object))
		return -1;
	reader->missed |= !is_object(map);
	if (!is_object(map) || !peek(reader, map - 1 + reader->v8[MAP_TYPE], &type, sizeof(type)))
		return -1;
	return type;
}

/*
 * Where an object is now: one that the collector has moved leaves its new address behind in place of
 * its map, without the tag (MapWord in V8's objects/map-word.h). What refers to it is a copy from
 * before, as is all that is looked at while its thread goes on.
 */
static uint64_t moved_to(struct reader *reader, uint64_t object)
{
	uint64_t map = field(reader, object, reader->v8[OBJECT_MAP]);

	return map && !(map & 3) ? map + 1 : object;
}

/* Two reads for all: a stack's functions are mostly known. */
void v8_code_peek(pid_t pid, const struct python_layout *layout, const uint64_t *addresses,
		  size_t count, struct python_code_key *keys)
{
	uint8_t objects[PYTHON_CODES_MAX][OBJECT_BYTES_MAX];
	struct memory_range ranges[PYTHON_CODES_MAX];
	uint16_t types[PYTHON_CODES_MAX] = {};
	const int32_t *v8 = layout->v8;
	size_t bytes = MAX(MAX(v8[SHARED_NAME], v8[SHARED_SCRIPT]), v8[OBJECT_MAP]) + 8, i;

	for (i = 0; i < count; i++)
		ranges[i] = (struct memory_range){ addresses[i] - 1, objects[i], bytes, false };
	if (!count || target_memory_read_all(pid, ranges, count))
		return;
	for (i = 0; i < count; i++)
		ranges[i] = (struct memory_range){
			.address = ranges[i].read ? code_word(objects[i], v8[OBJECT_MAP]) - 1 +
							    v8[MAP_TYPE] :
						    0,
			.to = &types[i],
			.size = sizeof(types[i]),
		};
	if (target_memory_read_all(pid, ranges, count))
		return;
	for (i = 0; i < count; i++) {
		if (!ranges[i].read || types[i] != v8[TYPE_SHARED])
			continue;
		keys[i].type = types[i];
		keys[i].name = code_word(objects[i], v8[SHARED_NAME]);
		keys[i].file = code_word(objects[i], v8[SHARED_SCRIPT]);
	}
}

/* ---- strings ---- */

struct text {
	uint64_t length; /* in characters */
	uint64_t data;	 /* address of the first */
	bool one_byte;
};

/* Of those whose characters lie together, or that refer to one. */
static bool find_text(struct reader *reader, uint64_t string, struct text *text)
{
	const int32_t *v8 = reader->v8;
	unsigned int deep;
	uint32_t length;
	int32_t type;

	for (deep = 0; deep < STRINGS_DEEP; deep++) {
		string = moved_to(reader, string);
		type = type_of(reader, string);
		if (type < 0 || type >= v8[FIRST_NO_STRING] ||
		    !peek(reader, string - 1 + v8[STRING_LENGTH], &length, sizeof(length)))
			return false;
		text->length = length;
		text->one_byte = (type & v8[ENCODING_MASK]) == v8[ENCODING_ONE_BYTE];
		type &= v8[STORE_MASK];
		if (type == v8[STORE_THIN]) {
			string = field(reader, string, v8[THIN_ACTUAL]);
		} else if (type == v8[STORE_CONS]) {
			/* Once it was read as a whole it is all in its first part. */
			if (field(reader, field(reader, string, v8[CONS_SECOND]),
				  v8[STRING_LENGTH]) >>
			    32)
				return false;
			string = field(reader, string, v8[CONS_FIRST]);
		} else if (type == v8[STORE_EXTERNAL]) {
			/* Behind the resource V8 keeps where its characters are. */
			text->data = field(reader, string, v8[EXTERNAL_RESOURCE] + 8);
			return text->data;
		} else if (type == v8[STORE_SLICED]) {
			return false;
		} else {
			text->data =
				string - 1 + v8[text->one_byte ? ONE_BYTE_CHARS : TWO_BYTE_CHARS];
			return true;
		}
	}
	return false;
}

/* NULL: no string, or unreadable. One byte each is Latin-1. */
static char *read_string(struct reader *reader, uint64_t string)
{
	uint16_t wide[PYTHON_TEXT_MAX];
	uint8_t bytes[PYTHON_TEXT_MAX];
	struct text text;
	GString *read;
	uint64_t i;

	if (!find_text(reader, string, &text))
		return NULL;
	text.length = MIN(text.length, PYTHON_TEXT_MAX);
	if (text.length && !(text.one_byte ? peek(reader, text.data, bytes, text.length) :
					     peek(reader, text.data, wide, 2 * text.length)))
		return NULL;
	if (!text.one_byte) {
		g_autofree char *utf8 = g_utf16_to_utf8(wide, (glong)text.length, NULL, NULL, NULL);

		return code_text(utf8 ? utf8 : "", utf8 ? strlen(utf8) : 0);
	}
	read = g_string_sized_new(text.length);
	for (i = 0; i < text.length; i++)
		g_string_append_unichar(read, code_printable(bytes[i]));
	return g_string_free(read, FALSE);
}

/* Lines end with a line feed, or with a carriage return that none follows. */
static uint32_t count_lines(const uint8_t *bytes, size_t length, size_t step)
{
	uint32_t lines = 1;
	size_t i;

	for (i = 0; i < length; i++) {
		const uint8_t *at = bytes + i * step, *next = at + step;
		bool plain = step == 1 || !at[1];

		lines += plain &&
			 (at[0] == '\n' || (at[0] == '\r' && i + 1 < length && next[0] != '\n'));
	}
	return lines;
}

/* The line of a place in a script's source; 0: unknown. */
static uint32_t line_at(struct reader *reader, uint64_t source, uint64_t place)
{
	g_autofree uint8_t *bytes = NULL;
	struct text text;
	size_t step;

	if (!find_text(reader, source, &text) || place > text.length || place > SOURCE_MAX)
		return 0;
	step = text.one_byte ? 1 : 2;
	bytes = g_malloc(place * step + 1);
	if (place && !peek(reader, text.data, bytes, place * step))
		return 0;
	return count_lines(bytes, place, step);
}

/* ---- functions ---- */

struct scope {
	uint64_t name; /* of the function, a string; 0: none */
	uint64_t start;
	bool has_start;
};

static void read_place(const uint64_t *slots, struct scope *scope)
{
	scope->has_start = is_number(slots[0]) && is_number(slots[1]) && slots[0] <= slots[1];
	scope->start = slots[0] >> 32;
}

static void read_scope(struct reader *reader, uint64_t object, struct scope *scope)
{
	const int32_t *v8 = reader->v8;
	uint64_t slots[SCOPE_SLOTS], flags = field(reader, object, 8), locals;
	bool place_first = v8[SCOPE_FIRST] >= NUMBERS + 2;
	uint64_t first = v8[SCOPE_FIRST];
	size_t at = 0;

	if (is_number(flags))
		flags >>= 32;
	locals = field(reader, object, 8 + 8 * v8[SCOPE_LOCALS]) >> 32;
	if (locals > SOURCE_MAX)
		return;
	if (place_first && peek(reader, object - 1 + 8 + 8 * NUMBERS, slots, 2 * sizeof(*slots)))
		read_place(slots, scope);
	first += locals < LOCALS_MAX ? 2 * locals : 1 + locals;
	if (!peek(reader, object - 1 + 8 + 8 * first, slots, sizeof(slots)))
		return;
	at += HAS_CLASS_VARIABLE(flags);
	if (HAS_OWN_VARIABLE(flags)) {
		if (is_object(slots[at]))
			scope->name = slots[at];
		at += 2;
	}
	if (HAS_INFERRED_NAME(flags)) {
		if (!scope->name && is_object(slots[at]))
			scope->name = slots[at];
		at++;
	}
	if (!place_first)
		read_place(slots + at, scope);
}

static void read_function(struct reader *reader, struct python_code *code)
{
	uint64_t script = moved_to(reader, code->key.file);
	uint64_t name = moved_to(reader, code->key.name);
	const int32_t *v8 = reader->v8;
	struct scope scope = {};

	if (type_of(reader, script) != v8[TYPE_SCRIPT])
		return;
	if (type_of(reader, name) == v8[TYPE_SCOPE])
		read_scope(reader, name, &scope);
	else
		scope.name = name;
	code->file = read_string(reader, field(reader, script, v8[SCRIPT_NAME]));
	code->function = read_string(reader, scope.name);
	if (!code->function || !*code->function) {
		g_free(code->function);
		code->function = g_strdup(NAMELESS);
	}
	if (scope.has_start)
		code->first_line =
			line_at(reader, field(reader, script, v8[SCRIPT_SOURCE]), scope.start);
}

void v8_code_name(pid_t pid, const struct python_layout *layout, struct python_code *code)
{
	struct reader reader = { .pid = pid, .v8 = layout->v8 };

	read_function(&reader, code);
	code->partial = reader.missed;
}

bool v8_code_completes(const struct python_code *code, const struct python_code *partial)
{
	return !strcmp(code->file, partial->file) &&
	       (!strcmp(code->function, partial->function) || !strcmp(partial->function, NAMELESS));
}
