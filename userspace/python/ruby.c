// SPDX-License-Identifier: GPL-2.0
#include "python/ruby.h"

#include <errno.h>
#include <glib.h>
#include <string.h>

#include "host/target_memory.h"
#include "python/code_bytes.h"

/* Offsets in bytes: of an instruction sequence, its body, a string, an array. */
struct ruby_layout {
	uint16_t version; /* 0x0301: 3.1 */
	struct memtoll_python_offsets walk;
	uint16_t iseq_body;
	uint16_t body_size, body_start, body_path, body_label, body_first_line;
	uint16_t body_lines, body_lines_count, body_positions;
	uint16_t line_bytes; /* of an entry, which begins with the line */
	uint16_t string_length, string_pointer, string_embedded;
	uint16_t array_pointer, array_embedded;
};

/* Computed by offsetof() with the headers that the release installs for its own compiler. */
static const struct ruby_layout layouts[] = {
	{
		.version = 0x0301,
		.walk = {
			.kind = INTERPRETER_RUBY, .state_bytes = 56, .state_stack = 0,
			.state_stack_words = 8, .state_frame = 16, .frame_bytes = 64,
			.frame_instruction = 0, .frame_code = 16, .frame_owner = 32,
		},
		.iseq_body = 16,
		.body_size = 4, .body_start = 8, .body_path = 64, .body_label = 80,
		.body_first_line = 88, .body_lines = 120, .body_lines_count = 136,
		.body_positions = 144, .line_bytes = 12,
		.string_length = 16, .string_pointer = 24, .string_embedded = 16,
		.array_pointer = 32, .array_embedded = 16,
	},
};

#define OBJECT_BYTES 40 /* struct RVALUE */
#define BODY_BYTES 152
#define WORD_BYTES 8 /* of an instruction, or of an operand of it */

/* RBasic.flags (ruby/internal/fl_type.h, value_type.h, imemo.h) */
#define TYPE(flags) ((flags)&0x1f)
#define TYPE_STRING 0x05
#define TYPE_ARRAY 0x07
#define TYPE_INTERNAL 0x1a
#define INTERNAL_KIND(flags) ((flags) >> 12 & 0xf)
#define INTERNAL_CODE 7 /* imemo_iseq */
#define STRING_OUTSIDE (1U << 13)
#define STRING_LENGTH(flags) ((flags) >> 14 & 0x1f)
#define ARRAY_EMBEDDED (1U << 13)

static const struct ruby_layout *layout_of(uint16_t version)
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(layouts); i++)
		if (layouts[i].version == version)
			return &layouts[i];
	return NULL;
}

/* ---- where it is ---- */

/* "3.1.2" as 0x0301; 0: no version. */
static uint16_t read_version(pid_t pid, uint64_t address)
{
	char text[8] = {}, *end;
	unsigned long major, minor = 0;

	if (!code_peek(pid, address, text, sizeof(text) - 1))
		return 0;
	major = strtoul(text, &end, 10);
	if (*end == '.')
		minor = strtoul(end + 1, &end, 10);
	return end > text && *end == '.' && major < 100 && minor < 100 ? major << 8 | minor : 0;
}

/* The relocations by which a library finds its variable in each thread. */
struct thread_variable {
	size_t section;
	size_t symbol;
	uint64_t module_at; /* where the loader has put the number of its module ... */
	uint64_t offset_at; /* ... and the place in that module's block; 0: not there */
	uint64_t fixed_at;  /* or the place from the thread's own pointer */
};

static bool on_relocation(const GElf_Rela *rela, size_t symbol_section, void *argument)
{
	struct thread_variable *variable = argument;

	if (symbol_section != variable->section || GELF_R_SYM(rela->r_info) != variable->symbol)
		return true;
	switch (GELF_R_TYPE(rela->r_info)) {
	case R_X86_64_DTPMOD64:
		variable->module_at = rela->r_offset;
		break;
	case R_X86_64_DTPOFF64:
		variable->offset_at = rela->r_offset;
		break;
	case R_X86_64_TPOFF64:
		variable->fixed_at = rela->r_offset;
		break;
	}
	return true;
}

/* A program's own block lies right below the thread's pointer (ELF Handling For TLS, variant II). */
static int find_in_program(const struct image *image, uint64_t value,
			   struct memtoll_python_offsets *walk)
{
	size_t i;

	for (i = 0; i < image->segment_count; i++) {
		const GElf_Phdr *segment = &image->segments[i];
		uint64_t align = MAX(segment->p_align, 1);

		if (segment->p_type != PT_TLS || segment->p_memsz > UINT32_MAX || align > 4096)
			continue;
		walk->runtime = value - (segment->p_memsz + align - 1) / align * align;
		return 0;
	}
	return -ENOTSUP;
}

static int find_variable(pid_t pid, const struct image *image, uint64_t bias,
			 const struct python_symbols *symbols, struct memtoll_python_offsets *walk)
{
	struct thread_variable variable = {
		.section = symbols->ruby_section,
		.symbol = symbols->ruby_context_index,
	};
	uint64_t module;
	int err;

	image_each_rela(image, on_relocation, &variable);
	if (variable.fixed_at)
		return target_memory_read(pid, bias + variable.fixed_at, &walk->runtime,
					  sizeof(walk->runtime));
	if (!variable.module_at || !variable.offset_at)
		return image->is_main ? find_in_program(image, symbols->ruby_context, walk) :
					-ENOTSUP;
	err = target_memory_read(pid, bias + variable.module_at, &module, sizeof(module));
	if (!err)
		err = target_memory_read(pid, bias + variable.offset_at, &walk->runtime,
					 sizeof(walk->runtime));
	if (err)
		return err;
	walk->block_module = module;
	return module && module <= UINT16_MAX ? 0 : -ENOTSUP;
}

int ruby_layout_find(pid_t pid, const struct image *image, uint64_t bias,
		     const struct python_symbols *symbols, struct python_layout *layout)
{
	const struct ruby_layout *ruby;

	layout->walk.kind = INTERPRETER_RUBY;
	layout->version = read_version(pid, symbols->ruby_version + bias);
	ruby = layout_of(layout->version);
	if (!ruby || !symbols->has_ruby_context)
		return -ENOTSUP;
	layout->walk = ruby->walk;
	return find_variable(pid, image, bias, symbols, &layout->walk);
}

/* ---- code ---- */

static void key_of(const struct ruby_layout *ruby, uint64_t address, const uint8_t *body,
		   struct python_code_key *key)
{
	key->type = INTERNAL_CODE;
	key->body = address;
	key->size = code_half(body, ruby->body_size);
	key->start = code_word(body, ruby->body_start);
	key->file = code_word(body, ruby->body_path);
	key->name = code_word(body, ruby->body_label);
	key->lines = code_word(body, ruby->body_lines);
	/* A small integer of the language's: shifted, with the lowest bit set. */
	key->first_line = code_word(body, ruby->body_first_line) >> 1;
}

void ruby_code_peek(pid_t pid, const struct python_layout *layout, const uint64_t *addresses,
		    size_t count, struct python_code_key *keys)
{
	uint8_t objects[PYTHON_CODES_MAX][OBJECT_BYTES], bodies[PYTHON_CODES_MAX][BODY_BYTES];
	struct memory_range ranges[PYTHON_CODES_MAX];
	const struct ruby_layout *ruby = layout_of(layout->version);
	size_t from[PYTHON_CODES_MAX], wanted = 0, i;

	for (i = 0; i < count; i++)
		ranges[i] = (struct memory_range){ addresses[i], objects[i], OBJECT_BYTES, false };
	if (!ruby || !count || target_memory_read_all(pid, ranges, count))
		return;
	for (i = 0; i < count; i++) {
		uint64_t flags = code_word(objects[i], 0);
		bool is_code =
			TYPE(flags) == TYPE_INTERNAL && INTERNAL_KIND(flags) == INTERNAL_CODE;

		if (!ranges[i].read || !is_code)
			continue;
		from[wanted] = i;
		ranges[wanted] = (struct memory_range){ code_word(objects[i], ruby->iseq_body),
							bodies[wanted], BODY_BYTES, false };
		wanted++;
	}
	if (!wanted || target_memory_read_all(pid, ranges, wanted))
		return;
	for (i = 0; i < wanted; i++)
		if (ranges[i].read)
			key_of(ruby, ranges[i].address, bodies[i], &keys[from[i]]);
}

/* NULL: not a string. */
static char *read_string(pid_t pid, const struct ruby_layout *ruby, uint64_t address)
{
	char text[PYTHON_TEXT_MAX];
	uint8_t object[OBJECT_BYTES];
	uint64_t flags, length;

	if (!code_peek(pid, address, object, sizeof(object)))
		return NULL;
	flags = code_word(object, 0);
	if (TYPE(flags) != TYPE_STRING)
		return NULL;
	if (!(flags & STRING_OUTSIDE))
		return code_text((const char *)object + ruby->string_embedded,
				 MIN(STRING_LENGTH(flags),
				     (uint64_t)OBJECT_BYTES - ruby->string_embedded));
	length = MIN(code_word(object, ruby->string_length), sizeof(text));
	if (length && !code_peek(pid, code_word(object, ruby->string_pointer), text, length))
		return NULL;
	return code_text(text, length);
}

/* The path as it was given, alone or in an array before the real one. */
static char *read_path(pid_t pid, const struct ruby_layout *ruby, uint64_t address)
{
	uint8_t object[OBJECT_BYTES];
	uint64_t flags, first;

	if (!code_peek(pid, address, object, sizeof(object)))
		return NULL;
	flags = code_word(object, 0);
	if (TYPE(flags) != TYPE_ARRAY)
		return read_string(pid, ruby, address);
	first = code_word(object, ruby->array_embedded);
	if (!(flags & ARRAY_EMBEDDED) &&
	    !code_peek(pid, code_word(object, ruby->array_pointer), &first, sizeof(first)))
		return NULL;
	return read_string(pid, ruby, first);
}

void ruby_code_name(pid_t pid, const struct python_layout *layout, struct python_code *code)
{
	const struct ruby_layout *ruby = layout_of(layout->version);

	code->function = read_string(pid, ruby, code->key.name);
	code->file = read_path(pid, ruby, code->key.file);
}

/*
 * Which entry of the line table an instruction has: for the first 54 words their numbers, 7 bits of
 * each, nine in a word of the table; then a bit for each that begins an entry, in blocks of 512 with
 * the number before each (iseq.c, struct succ_index_table).
 */
#define PLAIN_WORDS 54
#define PLAIN_PER_WORD 9
#define BLOCK_WORDS 512
#define BLOCK_BYTES 80
#define BLOCK_BITS 16 /* in a block: its bits */

static uint32_t plain_entry(const uint8_t *table, uint32_t place)
{
	return code_word(table, place / PLAIN_PER_WORD * 8) >> 7 * (place % PLAIN_PER_WORD) & 0x7f;
}

static bool begins_entry(const uint8_t *table, uint32_t place)
{
	const uint8_t *block = table + (PLAIN_WORDS / PLAIN_PER_WORD) * 8 +
			       (size_t)(place - PLAIN_WORDS) / BLOCK_WORDS * BLOCK_BYTES;
	uint32_t bit = (place - PLAIN_WORDS) % BLOCK_WORDS;

	return code_word(block, BLOCK_BITS + bit / 64 * 8) >> bit % 64 & 1;
}

static size_t table_bytes(uint32_t words)
{
	if (words < PLAIN_WORDS)
		return (words + 8) / PLAIN_PER_WORD * 8;
	return PLAIN_WORDS / PLAIN_PER_WORD * 8 +
	       (size_t)(words - PLAIN_WORDS + BLOCK_WORDS - 1) / BLOCK_WORDS * BLOCK_BYTES;
}

static GArray *make_runs(const struct ruby_layout *ruby, const uint8_t *table, uint32_t words,
			 const uint8_t *lines, uint32_t count)
{
	GArray *runs = g_array_new(FALSE, FALSE, sizeof(struct python_run));
	uint32_t entry = 0, place;

	for (place = 0; place < words; place++) {
		if (place < PLAIN_WORDS)
			entry = plain_entry(table, place);
		else
			entry += begins_entry(table, place);
		if (entry && entry <= count)
			code_run_add(runs, place * WORD_BYTES,
				     code_half(lines + (size_t)(entry - 1) * ruby->line_bytes, 0));
	}
	return runs;
}

GArray *ruby_code_runs(pid_t pid, const struct python_layout *layout,
		       const struct python_code_key *key)
{
	const struct ruby_layout *ruby = layout_of(layout->version);
	g_autofree uint8_t *lines = NULL, *table = NULL;
	uint8_t body[BODY_BYTES];
	uint32_t count;

	if (!code_peek(pid, key->body, body, sizeof(body)))
		return NULL;
	count = code_half(body, ruby->body_lines_count);
	if (!count || count > PYTHON_LINES_MAX / ruby->line_bytes || !key->size ||
	    key->size > PYTHON_LINES_MAX)
		return NULL;
	lines = g_malloc((size_t)count * ruby->line_bytes);
	table = g_malloc0(table_bytes(key->size) + 8);
	if (!code_peek(pid, key->lines, lines, (size_t)count * ruby->line_bytes) ||
	    !code_peek(pid, code_word(body, ruby->body_positions), table, table_bytes(key->size)))
		return NULL;
	return make_runs(ruby, table, key->size, lines, count);
}

bool ruby_code_has(const struct python_code_key *key, uint32_t byte)
{
	return byte <= key->size * WORD_BYTES;
}

uint32_t ruby_code_at(uint32_t next)
{
	return next ? next - WORD_BYTES : 0;
}
