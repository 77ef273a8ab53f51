// SPDX-License-Identifier: GPL-2.0
/*
 * test_go_table.c: tables of Go programs, written here as its linker does (cmd/link/internal/ld/pcln.go):
 * main.main, with main.fill inlined into it, and main.other. That real programs' tables say what
 * their DWARF does is for test_e2e_go.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glib.h>
#include <string.h>

#include "symbols/go_table.h"

#define TEXT 0x401000
#define MAIN_BYTES 0x40
#define OTHER_BYTES 0x20
#define OTHER_CODE 0x18 /* and padding */
#define INLINED_FROM 0x10
#define INLINED_TO 0x20
/* The instruction in main.main that stands for the call. */
#define INLINED_AT 0xc

struct made {
	GByteArray *table, *inlined;
};

static void add_u32(GByteArray *array, uint32_t value)
{
	g_byte_array_append(array, (const guint8 *)&value, 4);
}

static void add_u64(GByteArray *array, uint64_t value)
{
	g_byte_array_append(array, (const guint8 *)&value, 8);
}

static void set_u64(GByteArray *array, guint at, uint64_t value)
{
	memcpy(array->data + at, &value, 8);
}

static uint32_t add_text(GByteArray *array, guint base, const char *text)
{
	uint32_t at = array->len - base;

	g_byte_array_append(array, (const guint8 *)text, strlen(text) + 1);
	return at;
}

static void add_varint(GByteArray *array, uint32_t value)
{
	guint8 byte;

	for (; value >= 0x80; value >>= 7) {
		byte = (value & 0x7f) | 0x80;
		g_byte_array_append(array, &byte, 1);
	}
	byte = value;
	g_byte_array_append(array, &byte, 1);
}

/* Pairs of a value and how many bytes of code have it, from the function's start; ends with -1 bytes. */
static uint32_t add_values(GByteArray *array, guint base, const int32_t *pairs)
{
	uint32_t at = array->len - base;
	int32_t before = -1;

	for (; pairs[1] >= 0; pairs += 2) {
		int32_t change = pairs[0] - before;

		add_varint(array, ((uint32_t)change << 1) ^ (uint32_t)(change >> 31));
		add_varint(array, (uint32_t)pairs[1]);
		before = pairs[0];
	}
	add_varint(array, 0);
	return at;
}

static void set_offset(GByteArray *table, int word)
{
	set_u64(table, 8 + 8 * word, table->len);
}

static void add_record(GByteArray *table, bool newer, uint32_t start, uint32_t name,
		       const uint32_t values[3], uint32_t inlined)
{
	const guint8 last[] = { 0, 0, 0, 4 }; /* funcID, flag, -, number of function data */

	add_u32(table, start);
	add_u32(table, name);
	add_u32(table, 0);	   /* args */
	add_u32(table, 0);	   /* deferreturn */
	add_u32(table, 0);	   /* pcsp */
	add_u32(table, values[0]); /* pcfile */
	add_u32(table, values[1]); /* pcln */
	add_u32(table, 3);	   /* number of values */
	add_u32(table, 1);	   /* the unit's first file is the second of all */
	if (newer)
		add_u32(table, 7);
	g_byte_array_append(table, last, sizeof(last));
	add_u32(table, 0);
	add_u32(table, 0);
	add_u32(table, values[2]);
	add_u32(table, UINT32_MAX);
	add_u32(table, UINT32_MAX);
	add_u32(table, UINT32_MAX);
	add_u32(table, inlined);
}

static void make(bool newer, struct made *made)
{
	static const guint8 start_1_18[] = { 0xf0, 0xff, 0xff, 0xff, 0, 0, 1, 8 };
	static const guint8 start_1_20[] = { 0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8 };
	GByteArray *table = made->table = g_byte_array_new();
	uint32_t main_name, fill_name, other_name, main_file, values[3], other[3];
	guint base, functions;
	int word;

	made->inlined = g_byte_array_new();
	g_byte_array_append(table, newer ? start_1_20 : start_1_18, 8);
	for (word = 0; word < 8; word++)
		add_u64(table, 0);
	set_u64(table, 8, 2);
	set_u64(table, 24, TEXT);
	base = table->len;
	set_offset(table, 3);
	add_text(table, base, "");
	main_name = add_text(table, base, "main.main");
	fill_name = add_text(table, base, "main.fill");
	other_name = add_text(table, base, "main.other");
	set_offset(table, 4);
	add_u32(table, UINT32_MAX);
	add_u32(table, 1);
	main_file = table->len;
	add_u32(table, 0);
	base = table->len;
	set_offset(table, 5);
	add_text(table, base, "");
	{
		uint32_t file = add_text(table, base, "/src/main.go");

		memcpy(table->data + main_file - 4, &file, 4);
		file = add_text(table, base, "/src/other.go");
		memcpy(table->data + main_file, &file, 4);
	}
	base = table->len;
	set_offset(table, 6);
	add_text(table, base, ""); /* at 0 there is none */
	values[0] = add_values(table, base, (int32_t[]){ 0, MAIN_BYTES, 0, -1 });
	values[1] =
		add_values(table, base, (int32_t[]){ 20, INLINED_FROM, 11, 0x10, 23, 0x20, 0, -1 });
	values[2] =
		add_values(table, base, (int32_t[]){ -1, INLINED_FROM, 0, 0x10, -1, 0x20, 0, -1 });
	other[0] = add_values(table, base, (int32_t[]){ 1, OTHER_CODE, 0, -1 });
	other[1] = add_values(table, base, (int32_t[]){ 301, OTHER_CODE, 0, -1 });
	other[2] = 0;
	functions = table->len;
	set_offset(table, 7);
	add_u32(table, 0);
	add_u32(table, 20);
	add_u32(table, MAIN_BYTES);
	add_u32(table, 20 + (newer ? 44 : 40) + 7 * 4);
	add_u32(table, MAIN_BYTES + OTHER_BYTES);
	assert_int_equal(table->len - functions, 20);
	add_record(table, newer, 0, main_name, values, 0);
	add_record(table, newer, MAIN_BYTES, other_name, other, UINT32_MAX);
	if (newer) {
		add_u32(made->inlined, 0);
		add_u32(made->inlined, fill_name);
		add_u32(made->inlined, INLINED_AT);
		add_u32(made->inlined, 10);
	} else {
		add_u32(made->inlined, 0xffff);
		add_u32(made->inlined, 0);
		add_u32(made->inlined, 20);
		add_u32(made->inlined, fill_name);
		add_u32(made->inlined, INLINED_AT);
	}
}

static void free_made(struct made *made)
{
	g_byte_array_unref(made->table);
	g_byte_array_unref(made->inlined);
}

static struct go_bytes bytes_of(const GByteArray *array)
{
	return (struct go_bytes){ array->data, array->len };
}

static void is_frame(const struct go_frame *frame, const char *function, const char *file,
		     uint32_t line, uint64_t start)
{
	assert_string_equal(frame->function, function);
	assert_string_equal(frame->file, file);
	assert_int_equal(frame->line, line);
	assert_int_equal(frame->start, start);
}

static void finds(bool newer)
{
	struct go_frame frames[4];
	struct go_table table;
	struct made made;

	make(newer, &made);
	assert_true(go_table_read(&table, bytes_of(made.table), &table.text));
	assert_int_equal(table.text, TEXT);
	table.inlined = bytes_of(made.inlined);
	assert_int_equal(go_table_find(&table, TEXT, frames, 4), 1);
	is_frame(frames, "main.main", "/src/main.go", 20, TEXT);
	assert_int_equal(go_table_find(&table, TEXT + INLINED_FROM, frames, 4), 2);
	is_frame(frames, "main.fill", "/src/main.go", 11, TEXT);
	is_frame(frames + 1, "main.main", "/src/main.go", 20, TEXT);
	assert_int_equal(go_table_find(&table, TEXT + INLINED_TO - 1, frames, 4), 2);
	assert_int_equal(go_table_find(&table, TEXT + INLINED_TO, frames, 4), 1);
	is_frame(frames, "main.main", "/src/main.go", 23, TEXT);
	assert_int_equal(go_table_find(&table, TEXT + MAIN_BYTES, frames, 4), 1);
	is_frame(frames, "main.other", "/src/other.go", 301, TEXT + MAIN_BYTES);
	/* One frame is the function that has the code. */
	assert_int_equal(go_table_find(&table, TEXT + INLINED_FROM, frames, 1), 1);
	is_frame(frames, "main.main", "/src/main.go", 11, TEXT);
	/* Padding is no code. */
	assert_int_equal(go_table_find(&table, TEXT + MAIN_BYTES + OTHER_CODE, frames, 4), 0);
	assert_int_equal(go_table_find(&table, TEXT - 1, frames, 4), 0);
	assert_int_equal(go_table_find(&table, TEXT + MAIN_BYTES + OTHER_BYTES, frames, 4), 0);
	/* Without what inlined calls are in there are none. */
	table.inlined = (struct go_bytes){ NULL, 0 };
	assert_int_equal(go_table_find(&table, TEXT + INLINED_FROM, frames, 4), 1);
	free_made(&made);
}

static void of_1_18(void **state)
{
	(void)state;
	finds(false);
}

static void of_1_20(void **state)
{
	(void)state;
	finds(true);
}

static void other_tables_are_refused(void **state)
{
	struct go_table table;
	struct made made;
	uint64_t text;
	guint i;

	(void)state;
	make(true, &made);
	/* 1.16's, another processor's instructions, 32 bits, and a number of functions that it has no room for. */
	for (i = 0; i < 4; i++) {
		static const guint at[] = { 0, 6, 7, 12 };
		static const guint8 changed[] = { 0xfa, 2, 4, 1 };
		const guint8 before = made.table->data[at[i]];

		made.table->data[at[i]] = changed[i];
		assert_false(go_table_read(&table, bytes_of(made.table), &text));
		made.table->data[at[i]] = before;
	}
	for (i = 0; i < 72; i++)
		assert_false(go_table_read(&table, (struct go_bytes){ made.table->data, i },
					   &text));
	free_made(&made);
}

/* Whatever is in it: what is read lies in it, strings end in it, and it comes to an end. */
static void look_everywhere(const struct made *made)
{
	struct go_frame frames[4];
	struct go_table table;
	uint64_t address;
	size_t count, i;
	/* As large as it is: the sanitizer knows where it ends. */
	g_autofree uint8_t *bytes = g_memdup2(made->table->data, made->table->len);
	g_autofree uint8_t *inlined = g_memdup2(made->inlined->data, made->inlined->len);

	if (!go_table_read(&table, (struct go_bytes){ bytes, made->table->len }, &table.text))
		return;
	table.text = TEXT;
	table.inlined = (struct go_bytes){ inlined, made->inlined->len };
	for (address = TEXT - 1; address < TEXT + 2 * MAIN_BYTES; address += 5) {
		count = go_table_find(&table, address, frames, 4);
		assert_in_range(count, 0, 4);
		for (i = 0; i < count; i++)
			assert_true(strlen(frames[i].function) < made->table->len &&
				    strlen(frames[i].file) < made->table->len);
	}
}

static void damaged(void **state)
{
	static const guint8 values[] = { 0, 1, 0x7f, 0x80, 0xff };
	guint i, k, length;
	bool newer = false;

	(void)state;
	do {
		struct made made;
		GByteArray *arrays[2];
		guint which;

		make(newer, &made);
		arrays[0] = made.table;
		arrays[1] = made.inlined;
		for (which = 0; which < 2; which++)
			for (i = 0; i < arrays[which]->len; i++) {
				const guint8 before = arrays[which]->data[i];

				for (k = 0; k < G_N_ELEMENTS(values); k++) {
					arrays[which]->data[i] = values[k];
					look_everywhere(&made);
				}
				arrays[which]->data[i] = before;
			}
		/* Cut off, at the end of what may be read. */
		for (length = made.table->len; length > 0; length--) {
			struct made part = { g_byte_array_new(), made.inlined };

			g_byte_array_append(part.table, made.table->data, length);
			look_everywhere(&part);
			g_byte_array_unref(part.table);
		}
		free_made(&made);
		newer = !newer;
	} while (newer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_1_18),
		cmocka_unit_test(of_1_20),
		cmocka_unit_test(other_tables_are_refused),
		cmocka_unit_test(damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
