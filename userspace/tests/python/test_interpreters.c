// SPDX-License-Identifier: GPL-2.0
/*
 * Code of Ruby, PHP and V8. Ruby's own idea of its line tables, names and files is printed by
 * a running one, in which they are read. Structures that nobody made well are in the test's memory.
 */
#define _GNU_SOURCE 1

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <glib.h>

#include "host/proc.h"
#include "python/python.h"
#include "python/python_code.h"
#include "python/python_offsets.h"

#define WORD_BYTES 8

struct interpreter {
	pid_t pid;
	int to;
	FILE *from;
};

/* Run a program that prints what it has to say, and then waits for its input to end. */
static void start(struct interpreter *interpreter, const char *const *command)
{
	int to[2], from[2];

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	interpreter->pid = fork();
	assert_true(interpreter->pid >= 0);
	if (!interpreter->pid) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		execvp(command[0], (char *const *)command);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	interpreter->to = to[1];
	interpreter->from = fdopen(from[0], "re");
	assert_non_null(interpreter->from);
}

static void stop(struct interpreter *interpreter)
{
	int status;

	close(interpreter->to);
	fclose(interpreter->from);
	assert_int_equal(waitpid(interpreter->pid, &status, 0), interpreter->pid);
	assert_int_equal(status, 0);
}

static bool find_layout(pid_t pid, struct python_layout *layout)
{
	struct maps maps = {};
	bool found = false;
	size_t i;

	assert_int_equal(maps_read(pid, &maps), 0);
	for (i = 0; i < maps.count && !found; i++)
		found = maps.entries[i].exec && maps.entries[i].inode &&
			!python_offsets_find(pid, &maps.entries[i], layout);
	maps_free(&maps);
	return found;
}

/* ---- Ruby's own words ---- */

/*
 * Of each piece of code of some of its library, and of a method of a thousand lines: address, first
 * line, where its instructions begin and their lines; name and file.
 */
static const char ruby_program[] =
	"require 'fiddle'\n"
	"def lines(code)\n"
	"  line = 0\n"
	"  code.disasm.split(\"\\n== disasm\")[0].lines.filter_map do |text|\n"
	"    at = text[/\\A(\\d{4,}) /, 1] or next\n"
	"    line = $1.to_i if text =~ /\\(\\s*(\\d+)\\)(\\[\\w+\\])?\\s*\\z/\n"
	"    \"#{at.to_i} #{line}\"\n"
	"  end\n"
	"end\n"
	"def show(code)\n"
	"  place = Fiddle::Pointer.new(Fiddle.dlwrap(code) + 32).ptr.to_i\n"
	"  puts place, code.first_lineno, lines(code).join(' '), code.label, code.path\n"
	"  $kept << code\n"
	"  code.each_child { |child| show(child) }\n"
	"end\n"
	"$kept = []\n"
	"%w[set optparse erb].each do |name|\n"
	"  path = $LOAD_PATH.map { |place| \"#{place}/#{name}.rb\" }.find { |path| File.exist?(path) }\n"
	"  show(RubyVM::InstructionSequence.compile_file(path))\n"
	"end\n"
	"long = (1..1009).map { |i| \"x = #{i}.to_s + x\\n\" + \"\\n\" * (i % 3) }.join\n"
	"show(RubyVM::InstructionSequence.compile(\"def größe(x)\\n#{long}end\", 'путь/файл.rb'))\n"
	"show(RubyVM::InstructionSequence.compile('1', \"a\\u0007\\e[31mb\"))\n"
	"puts 0\n"
	"$stdout.flush\n"
	"$stdin.read\n";

static char *next_line(struct interpreter *interpreter)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t length = getline(&line, &size, interpreter->from);

	assert_true(length > 0);
	line[length - 1] = '\0';
	return line;
}

/* While an instruction is executed the frame has the next one. Number of instructions. */
static unsigned int check_lines(const struct python_code *code, char *text)
{
	unsigned int count = 0;
	char *at = text;
	unsigned long line = 0, place;

	while (*at) {
		place = strtoul(at, &at, 10);
		if (count &&
		    python_code_line(code, (int32_t)(code->key.start + place * WORD_BYTES)) != line)
			fail_msg("%s of %s before word %lu: %u, not %lu", code->function,
				 code->file, place,
				 python_code_line(code,
						  (int32_t)(code->key.start + place * WORD_BYTES)),
				 line);
		line = strtoul(at, &at, 10);
		count++;
	}
	return count;
}

static unsigned int check_code(struct interpreter *ruby, const struct python_layout *layout,
			       uint64_t address)
{
	char *first = next_line(ruby), *lines = next_line(ruby), *label = next_line(ruby);
	char *path = next_line(ruby);
	struct python_code_key key;
	struct python_code *code;
	uint64_t type = 0;
	unsigned int count;

	python_code_peek(ruby->pid, layout, &type, &address, 1, &key);
	assert_true(key.type);
	assert_int_equal(key.first_line, strtoul(first, NULL, 10));
	code = python_code_read(ruby->pid, layout, &key, NULL);
	assert_non_null(code);
	assert_string_equal(code->function, label);
	/* What would do something to a terminal is not in the name. */
	if (!strstr(path, "[31m"))
		assert_string_equal(code->file, path);
	else
		assert_string_equal(code->file, "a??[31mb");
	count = check_lines(code, lines);
	python_code_unref(code);
	free(first);
	free(lines);
	free(label);
	free(path);
	return count;
}

static void test_code_of_the_library(void **state)
{
	const char *const command[] = { "ruby", "-e", ruby_program, NULL };
	unsigned int codes = 0, instructions = 0;
	struct python_layout layout;
	struct interpreter ruby;
	uint64_t address;

	(void)state;
	start(&ruby, command);
	for (;;) {
		char *line = next_line(&ruby);

		address = strtoull(line, NULL, 10);
		free(line);
		if (!address)
			break;
		if (!codes++) {
			assert_true(find_layout(ruby.pid, &layout));
			assert_int_equal(layout.walk.kind, INTERPRETER_RUBY);
			assert_int_equal(layout.version, 0x0301);
		}
		instructions += check_code(&ruby, &layout, address);
	}
	assert_true(codes > 100 && instructions > 10000);
	stop(&ruby);
}

static const char *const node[] = { "node", "-e",
				    "console.log(1); require('fs').readSync(0, Buffer.alloc(1))",
				    NULL };

static void start_node(struct interpreter *interpreter)
{
	start(interpreter, node);
	free(next_line(interpreter));
}

/* ---- found ---- */

static void check_found(const char *const *command, uint32_t kind)
{
	struct memtoll_python_offsets offsets = {};
	struct python *python = python_new();
	struct interpreter interpreter;
	struct maps maps = {};

	start(&interpreter, command);
	free(next_line(&interpreter));
	assert_int_equal(maps_read(interpreter.pid, &maps), 0);
	assert_int_equal(python_show(python, interpreter.pid, &maps, &offsets), 1);
	assert_int_equal(offsets.kind, kind);
	assert_true(kind == INTERPRETER_V8 ? offsets.code_start : offsets.runtime);
	assert_int_equal(python_show(python, interpreter.pid, &maps, &offsets), 0);
	python_exec(python, interpreter.pid);
	assert_int_equal(python_show(python, interpreter.pid, &maps, &offsets), 1);
	assert_int_equal(python_unsupported(python), 0);
	maps_free(&maps);
	stop(&interpreter);
	python_free(python);
}

static void test_interpreters_are_found(void **state)
{
	const char *const ruby[] = { "ruby", "-e", "puts 1; $stdout.flush; $stdin.read", NULL };
	const char *const php[] = { "php", "-r", "echo \"1\\n\"; fgets(STDIN);", NULL };

	(void)state;
	check_found(ruby, INTERPRETER_RUBY);
	check_found(php, INTERPRETER_PHP);
	check_found(node, INTERPRETER_V8);
}

/* ---- what nobody made ---- */

static const struct {
	uint32_t kind;
	uint16_t version;
} kinds[] = { { INTERPRETER_RUBY, 0x0301 },
	      { INTERPRETER_PHP, 0x0802 },
	      { INTERPRETER_V8, 0 },
	      { INTERPRETER_JAVA, 17 << 8 },
	      { INTERPRETER_JAVA, 25 << 8 } };

/* Of OpenJDK 17; its own words for where they are. */
static const uint16_t java[JAVA_OFFSETS] = {
	[JAVA_METHOD_CONSTANT] = 8,	[JAVA_CONSTANT_POOL] = 8,   [JAVA_CONSTANT_WORDS] = 24,
	[JAVA_CONSTANT_FLAGS] = 28,	[JAVA_CONSTANT_CODE] = 32,  [JAVA_CONSTANT_NAME] = 34,
	[JAVA_CONSTANT_SIGNATURE] = 36, [JAVA_CONSTANT_BYTES] = 48, [JAVA_POOL_HOLDER] = 24,
	[JAVA_POOL_LENGTH] = 60,	[JAVA_POOL_FILE] = 54,	    [JAVA_POOL_BYTES] = 72,
	[JAVA_CLASS_NAME] = 24,		[JAVA_TEXT_LENGTH] = 4,	    [JAVA_TEXT] = 6,
};

#define WORDS 4099

/* Places in python_layout.v8, as v8.c has them. */
enum {
	V8_SHARED_NAME = 5,
	V8_SHARED_SCRIPT = 6,
	V8_OBJECT_MAP = 7,
	V8_MAP_TYPE = 8,
	V8_SCRIPT_NAME = 9,
	V8_STRING_LENGTH = 11,
	V8_ONE_BYTE_CHARS = 12,
	V8_ENCODING_ONE_BYTE = 19,
	V8_FIRST_NO_STRING = 25,
	V8_TYPE_SHARED = 26,
	V8_TYPE_SCRIPT = 27,
	V8_TYPE_SCOPE = 28,
};

/* What an object of the interpreter begins with, so that it is looked at further. */
static uint64_t beginning(GRand *rand, uint32_t kind)
{
	static const uint64_t ruby[] = { 0x701a, 0x5, 0x2005, 0x7, 0x2007, 0x7c005 };
	static const uint64_t php[] = { 2, 4, 1 };

	/* A number of words, or of texts, and what a method's table of lines may be made of. */
	if (kind == INTERPRETER_JAVA)
		return (uint64_t)g_rand_int_range(rand, 1, 65) << 32 |
		       g_rand_int_range(rand, 0, 301);
	if (kind == INTERPRETER_V8)
		return (uint64_t)g_rand_int_range(rand, 0, 301) << 32;
	return kind == INTERPRETER_RUBY ? ruby[g_rand_int_range(rand, 0, G_N_ELEMENTS(ruby))] :
					  php[g_rand_int_range(rand, 0, G_N_ELEMENTS(php))];
}

/* Pointers into it, small and huge numbers, objects: cycles and overlaps. */
static void fill(GRand *rand, uint32_t kind, uint64_t *memory)
{
	size_t i;

	for (i = 0; i < WORDS; i++) {
		switch (g_rand_int_range(rand, 0, 8)) {
		case 0:
			memory[i] = g_rand_int(rand);
			break;
		case 1:
			memory[i] = (uint64_t)g_rand_int(rand) << 32 | g_rand_int(rand);
			break;
		case 2:
			memory[i] = g_rand_int_range(rand, 0, 3001);
			break;
		case 3:
			memory[i] = beginning(rand, kind);
			break;
		default:
			memory[i] = (uint64_t)(uintptr_t)&memory[g_rand_int_range(rand, 0, WORDS)] +
				    (kind == INTERPRETER_V8);
		}
	}
}

static void look_at(const struct python_layout *layout, const struct python_code_key *key)
{
	static const uint32_t places[] = { 0, 8, 32, 4096, 1U << 20, UINT32_MAX };
	struct python_code *code = python_code_read(getpid(), layout, key, NULL);
	size_t i;

	if (!code)
		return;
	assert_true(g_utf8_validate(code->function, -1, NULL));
	assert_true(g_utf8_validate(code->file, -1, NULL));
	assert_false(python_code_is_internal(code));
	for (i = 0; i < G_N_ELEMENTS(places); i++) {
		int32_t instruction = (int32_t)((uint32_t)key->start + places[i]);

		python_code_has(code, instruction);
		python_code_line(code, instruction);
	}
	python_code_unref(code);
}

/* Of a running one: the numbers are the program's own. */
static void layout_of_node(struct python_layout *layout)
{
	struct interpreter interpreter;

	memset(layout, 0, sizeof(*layout));
	start_node(&interpreter);
	assert_true(find_layout(interpreter.pid, layout));
	stop(&interpreter);
}

/* An object whose map, two words on, has a type: that of a function's shared part. The next likewise. */
static uint64_t shared_part(GRand *rand, const struct python_layout *layout, uint64_t *memory)
{
	static const size_t types[] = { V8_TYPE_SHARED, V8_TYPE_SCRIPT, V8_TYPE_SCOPE };
	size_t at = g_rand_int_range(rand, 0, WORDS - 64), i;

	for (i = 0; i < G_N_ELEMENTS(types); i++) {
		uint64_t *object = &memory[at + 16 * i], *map = object + 8;

		object[0] = (uint64_t)(uintptr_t)map + 1;
		map[1] = (uint64_t)layout->v8[types[i]] << 32;
	}
	memory[at + 2] = (uint64_t)(uintptr_t)&memory[at + 32] + 1;
	memory[at + 4] = (uint64_t)(uintptr_t)&memory[at + 16] + 1;
	return (uint64_t)(uintptr_t)&memory[at] + 1;
}

static void test_hostile_structures(void **state)
{
	g_autoptr(GRand) rand = g_rand_new_with_seed(7919);
	g_autofree uint64_t *memory = g_new(uint64_t, WORDS);
	struct python_code_key keys[PYTHON_CODES_MAX];
	uint64_t addresses[PYTHON_CODES_MAX], type;
	unsigned int round, found[G_N_ELEMENTS(kinds)] = {};
	struct python_layout v8;
	size_t i;

	(void)state;
	layout_of_node(&v8);
	for (round = 0; round < 509; round++) {
		size_t which = round % G_N_ELEMENTS(kinds);
		struct python_layout layout = { .version = kinds[which].version };

		layout.walk.kind = kinds[which].kind;
		memcpy(layout.java, java, sizeof(java));
		if (layout.walk.kind == INTERPRETER_V8)
			layout = v8;
		type = 0;
		fill(rand, layout.walk.kind, memory);
		for (i = 0; i < PYTHON_CODES_MAX; i++) {
			size_t at = g_rand_int_range(rand, 0, WORDS);

			memory[at] = beginning(rand, layout.walk.kind);
			addresses[i] = (uint64_t)(uintptr_t)&memory[at];
			if (layout.walk.kind == INTERPRETER_V8)
				addresses[i] = shared_part(rand, &layout, memory);
		}
		addresses[0] = 0;
		addresses[1] = 1;
		addresses[2] = UINT64_MAX;
		python_code_peek(getpid(), &layout, &type, addresses, PYTHON_CODES_MAX, keys);
		for (i = 0; i < 3; i++)
			assert_int_equal(keys[i].type, 0);
		for (; i < PYTHON_CODES_MAX; i++) {
			if (!keys[i].type)
				continue;
			found[which]++;
			look_at(&layout, &keys[i]);
		}
	}
	for (i = 0; i < G_N_ELEMENTS(kinds); i++)
		if (found[i] <= 300)
			fail_msg("%zu: %u", i, found[i]);
}

/* An object of a type, as what refers to it has its address. */
static uint64_t object_of(const struct python_layout *layout, uint8_t *at, int32_t type)
{
	uint64_t map = (uint64_t)(uintptr_t)(at + 192) + 1;
	uint16_t kept = type;

	memcpy(at + layout->v8[V8_OBJECT_MAP], &map, sizeof(map));
	memcpy(at + 192 + layout->v8[V8_MAP_TYPE], &kept, sizeof(kept));
	return (uint64_t)(uintptr_t)at + 1;
}

static uint64_t string_of(const struct python_layout *layout, uint8_t *at, const char *text)
{
	uint32_t length = strlen(text);

	memcpy(at + layout->v8[V8_STRING_LENGTH], &length, sizeof(length));
	memcpy(at + layout->v8[V8_ONE_BYTE_CHARS], text, length);
	return object_of(layout, at, layout->v8[V8_ENCODING_ONE_BYTE]);
}

/* What is left where an object was: the address without its tag, in place of its map. */
static uint64_t moved(const struct python_layout *layout, uint8_t *from, uint64_t object)
{
	uint64_t address = object - 1;

	memcpy(from + layout->v8[V8_OBJECT_MAP], &address, sizeof(address));
	return (uint64_t)(uintptr_t)from + 1;
}

/* The collector of V8 moves what a stack refers to, before somebody looks at it. */
static void test_objects_that_have_moved(void **state)
{
	static uint8_t memory[8][256] __attribute__((aligned(8)));
	struct python_code_key key = {};
	struct python_layout v8;
	struct python_code *code;
	uint64_t name, script;

	(void)state;
	layout_of_node(&v8);
	name = moved(&v8, memory[1], string_of(&v8, memory[0], "/srv/serve.js"));
	script = object_of(&v8, memory[2], v8.v8[V8_TYPE_SCRIPT]);
	memcpy(memory[2] + v8.v8[V8_SCRIPT_NAME], &name, sizeof(name));
	key.type = v8.v8[V8_TYPE_SHARED];
	key.file = moved(&v8, memory[3], script);
	key.name = moved(&v8, memory[5], string_of(&v8, memory[4], "serve"));
	code = python_code_read(getpid(), &v8, &key, NULL);
	assert_non_null(code);
	assert_string_equal(code->function, "serve");
	assert_string_equal(code->file, "/srv/serve.js");
	python_code_unref(code);
}

/* It gives back what it has moved them from: what cannot be read now is worth another look. */
static void test_objects_that_are_gone(void **state)
{
	static uint8_t memory[4][256] __attribute__((aligned(8)));
	struct python_code_key key = {};
	struct python_layout v8;
	struct python_code *code;
	uint64_t name;
	bool partial;

	(void)state;
	layout_of_node(&v8);
	key.type = v8.v8[V8_TYPE_SHARED];
	key.name = string_of(&v8, memory[0], "serve");
	/* The script's map is nowhere, then its name's. */
	key.file = (uint64_t)(uintptr_t)memory[1] + 1;
	memcpy(memory[1] + v8.v8[V8_OBJECT_MAP], &(uint64_t){ 0x7001 }, sizeof(uint64_t));
	assert_null(python_code_read(getpid(), &v8, &key, &partial));
	assert_true(partial);
	object_of(&v8, memory[1], v8.v8[V8_TYPE_SCRIPT]);
	name = (uint64_t)(uintptr_t)memory[2] + 1;
	memcpy(memory[1] + v8.v8[V8_SCRIPT_NAME], &name, sizeof(name));
	assert_null(python_code_read(getpid(), &v8, &key, &partial));
	assert_true(partial);
	string_of(&v8, memory[2], "/srv/serve.js");
	code = python_code_read(getpid(), &v8, &key, &partial);
	assert_non_null(code);
	assert_false(partial || code->partial);
	python_code_unref(code);
	/* Of eval's code the script has no name: that is not to be read the next time, either. */
	name = object_of(&v8, memory[2], v8.v8[V8_FIRST_NO_STRING] + 1);
	assert_null(python_code_read(getpid(), &v8, &key, &partial));
	assert_false(partial);
	/* A function of the engine has something else there. */
	key.file = object_of(&v8, memory[3], v8.v8[V8_TYPE_SCRIPT] + 1);
	assert_null(python_code_read(getpid(), &v8, &key, &partial));
	assert_false(partial);
}

/* The interpreter of a running node, as that of this process. */
static struct python *as_of_node(void)
{
	struct memtoll_python_offsets offsets;
	struct python *python = python_new();
	struct interpreter interpreter;
	struct maps maps = {};

	start_node(&interpreter);
	assert_int_equal(maps_read(interpreter.pid, &maps), 0);
	assert_int_equal(python_show(python, interpreter.pid, &maps, &offsets), 1);
	maps_free(&maps);
	python_fork(python, interpreter.pid, getpid());
	stop(&interpreter);
	return python;
}

static void set_field(uint8_t *object, int32_t offset, uint64_t value)
{
	memcpy(object + offset, &value, sizeof(value));
}

/* A stack of one function; what of it cannot be read when it is walked is looked at once more. */
static void test_second_look(void **state)
{
	static uint8_t memory[6][256] __attribute__((aligned(8)));
	struct memtoll_python walked = { .tgid = getpid(), .depth = 1 };
	struct python *python = as_of_node();
	const struct python_stack *stack;
	struct python_layout v8;

	(void)state;
	layout_of_node(&v8);
	walked.frames[0].code = object_of(&v8, memory[0], v8.v8[V8_TYPE_SHARED]);
	set_field(memory[0], v8.v8[V8_SHARED_NAME], string_of(&v8, memory[1], "serve"));
	set_field(memory[0], v8.v8[V8_SHARED_SCRIPT],
		  object_of(&v8, memory[2], v8.v8[V8_TYPE_SCRIPT]));
	set_field(memory[2], v8.v8[V8_SCRIPT_NAME], string_of(&v8, memory[3], "/srv/serve.js"));

	/* Its name is nowhere, and then there. */
	walked.stack_id = 1;
	set_field(memory[1], v8.v8[V8_OBJECT_MAP], 0x7001);
	python_resolve(python, &walked);
	string_of(&v8, memory[1], "serve");
	stack = python_stack(python, 1);
	assert_string_equal(stack->frames[0].code->function, "serve");
	assert_int_equal(python_unreadable(python), 0);

	/* Another function has the place by then. */
	walked.stack_id = 2;
	string_of(&v8, memory[1], "leave");
	set_field(memory[0], v8.v8[V8_SHARED_NAME], string_of(&v8, memory[4], "leave"));
	set_field(memory[4], v8.v8[V8_OBJECT_MAP], 0x7001);
	python_resolve(python, &walked);
	string_of(&v8, memory[4], "another");
	set_field(memory[2], v8.v8[V8_SCRIPT_NAME], string_of(&v8, memory[5], "/srv/other.js"));
	stack = python_stack(python, 2);
	assert_string_equal(stack->frames[0].code->function, "(anonymous)");
	assert_string_equal(stack->frames[0].code->file, "/srv/serve.js");
	assert_int_equal(python_unreadable(python), 0);

	/* Its script stays away: a loss, once. Where it is something else it is the engine's own. */
	walked.stack_id = 3;
	set_field(memory[0], v8.v8[V8_SHARED_NAME], string_of(&v8, memory[1], "leave"));
	set_field(memory[2], v8.v8[V8_OBJECT_MAP], 0x7001);
	python_resolve(python, &walked);
	assert_int_equal(python_unreadable(python), 0);
	assert_null(python_stack(python, 3)->frames[0].code);
	assert_int_equal(python_unreadable(python), 1);
	assert_null(python_stack(python, 3)->frames[0].code);
	assert_int_equal(python_unreadable(python), 0);
	walked.stack_id = 4;
	object_of(&v8, memory[2], v8.v8[V8_TYPE_SCRIPT] + 1);
	python_resolve(python, &walked);
	assert_null(python_stack(python, 4)->frames[0].code);
	assert_int_equal(python_unreadable(python), 0);

	/* Nothing is there: known at once. */
	walked.stack_id = 5;
	set_field(memory[0], v8.v8[V8_OBJECT_MAP], 0x7001);
	python_resolve(python, &walked);
	assert_int_equal(python_unreadable(python), 1);
	python_free(python);
}

/* Of a version that no table has: no code at all. */
static void test_unknown_version(void **state)
{
	uint64_t object[64] = { 0x701a }, address = (uint64_t)(uintptr_t)object, type = 0;
	struct python_code_key key;
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(kinds); i++) {
		struct python_layout layout = { .version = 0x6363 };

		layout.walk.kind = kinds[i].kind;
		python_code_peek(getpid(), &layout, &type, &address, 1, &key);
		assert_int_equal(key.type, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code_of_the_library),
		cmocka_unit_test(test_interpreters_are_found),
		cmocka_unit_test(test_hostile_structures),
		cmocka_unit_test(test_objects_that_have_moved),
		cmocka_unit_test(test_objects_that_are_gone),
		cmocka_unit_test(test_second_look),
		cmocka_unit_test(test_unknown_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
