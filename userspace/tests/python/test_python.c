// SPDX-License-Identifier: GPL-2.0
/*
 * Python frames. Line tables are compared with what interpreters themselves say of code that they
 * compiled: Debian's python3 and those that MEMTOLL_PYTHONS names (paths, colons between) now,
 * others by tables kept here. Code objects are read from a running interpreter that says which.
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
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <glib.h>

#include "host/proc.h"
#include "host/timed_call.h"
#include "python/python.h"
#include "python/python_code.h"
#include "python/python_offsets.h"

#define DEBIAN "/usr/bin/python3"

/* ---- line tables ---- */

/* A code object as an interpreter prints it: see lines_program. The line 0 stands for none. */
struct printed {
	uint16_t version;
	const char *text;
};

/*
 * Two functions: a comprehension over several lines in try and with; a call whose arguments are
 * 300 lines apart, so that the tables step back and by more than a byte holds.
 */
static const struct printed printed[] = {
	/* 3.9.18 */
	{ 0x0309, "2 00ff0a7f001b 1 1 1 1 1 155 155 155 155 155 155" },
	{ 0x0309, "1 000202010a0402fc0807060120ff0601 3 4 4 4 4 4 8 4 4 4 4 11 11 11 12 12 12 12 "
		  "12 12 12 12 12 12 12 12 12 12 12 12 11 11 11 12 12 12 12 12 12 12 12 12 12 12 "
		  "12 12 12 12 12 12 12" },
	{ 0x0309, "4 060402fd0201020102ff02ff 4 4 4 8 5 6 7 6 5 5 5 5" },
	{ 0x0309, "155 0001027f007f002f0280008000d3027f007f00300280008000d2047f007f0031080106ff "
		  "156 457 156 458 156 156 459 459 459 459 460 460 460 459" },
	/* 3.10.13 */
	{ 0x030a, "1 02010aff007f0c1b 2 1 1 1 1 1 155 155 155 155 155 155" },
	{ 0x030a, "1 02020a01020408fc0607020128ff02011eff 3 4 4 4 4 4 8 4 4 4 4 11 11 11 12 11 11 "
		  "11 11 11 11 11 11 11 11 11 11 11 11 11 11 11 11 11 11 12 11 11 11 11 11 11 11 "
		  "11 11 11 11 11 11 11 11" },
	{ 0x030a, "4 0600020402fd0201020102ff02ff06ff 4 4 4 8 5 6 7 6 5 4 4 4" },
	{ 0x030a, "155 0201007f007f022f0081008102d1007f007f02300081008104d0007f007f08310401020102fe"
		  " 156 457 156 458 156 156 459 459 459 459 460 460 461 459" },
	/* 3.11.7 */
	{ 0x030b, "4 f88000f000050d0af000050d0af000050d0af008001112f007000e0fd80d0e8851d81112f10301"
		  "0e14f400010e14f003020d15f003050d0af000050d0af000050d0a 0 4 4 4 4 8 5 6 6 7 6 6 "
		  "6 6 6 6 6 5 4 4 4" },
	{ 0x030b, "155 8000d8090a8811f05a0900090af15b096d040a0bf4006d040a0bf05c0900090af15d096e040a"
		  "0a8041f05e09001112f000020c0c88318831d808098c03dc090af00502050c 155 156 156 457 "
		  "156 156 156 156 156 156 156 458 156 156 156 459 459 459 459 460 460 460 460 460 "
		  "460 461 461 461 461 461 459" },
	/* 3.12.1 */
	{ 0x030c, "1 8000f004090511f00a001617f609050d0af008001112f007000e0fd90d0ed81112f303010e14f2"
		  "03020d15f003050d0a8801f000050d0af00e000e0ff0000109119021d80c10f703010911f0000109"
		  "11f9f20f050d0af70e010911f000010911fb8851f0000109119021d80c10f703010911f700010911"
		  "f100010911fd 1 3 8 4 4 4 4 4 4 4 8 5 6 6 7 6 6 6 6 5 5 5 4 4 4 11 11 11 12 11 "
		  "11 11 11 11 11 11 11 11 0 0 4 4 4 11 11 11 11 11 11 11 11 11 0 0 0 0 11 11 11 "
		  "12 11 11 11 11 11 11 11 11 11 11 11 11 11 11 11 11 11 11 0 0 0 0 0 0" },
	{ 0x030c, "155 8000d9090af05a0900090af35b096d040a0bf05c0900090af15d096e040a0a8041f15e090011"
		  "128831f00002050cd808098f038903df090a8911f00502050c 155 156 156 457 156 156 156 "
		  "156 458 156 156 156 459 459 459 459 460 460 460 460 460 460 460 460 460 460 460 "
		  "461 461 461 461 461 461 461 461 461 461 459" },
	/* 3.13.0 */
	{ 0x030d, "155 8000d9090af05a0900090af35b096d040a0bf05c0900090af15d096e040a0a8041f65e090011"
		  "128831f00002050cd808098f038903df090a8911f00502050c 155 156 156 457 156 156 156 "
		  "156 458 156 156 156 459 459 459 459 459 459 459 459 459 460 460 460 460 460 460 "
		  "460 460 460 460 460 461 461 461 461 461 461 461 461 461 461 459" },
	/* 3.14.3 */
	{ 0x030e, "155 8000d9090af05a0900090af35b096d040a0bf05c0900090af55d096e040a0a8041f75e090011"
		  "128831f00002050cd808098f038903df090a8911f00502050c 155 156 156 457 156 156 156 "
		  "156 458 156 156 156 156 156 156 156 459 459 459 459 459 459 459 459 459 459 460 "
		  "460 460 460 460 460 460 460 460 460 460 461 461 461 461 461 461 461 461 461 461 "
		  "459" },
};

/* Prints a line like those above for every code object of some modules of the library. */
static const char lines_program[] =
	"import sys, dis, importlib.util\n"
	"def lines(code):\n"
	"    count = len(code.co_code) // 2\n"
	"    if sys.version_info >= (3, 11):\n"
	"        return [place[0] for place in code.co_positions()]\n"
	"    out = [None] * count\n"
	"    if sys.version_info >= (3, 10):\n"
	"        for start, end, line in code.co_lines():\n"
	"            out[start // 2 : end // 2] = [line] * ((end - start) // 2)\n"
	"        return out\n"
	"    line, starts = code.co_firstlineno, dict(dis.findlinestarts(code))\n"
	"    for at in range(count):\n"
	"        out[at] = line = starts.get(2 * at, line)\n"
	"    return out\n"
	"def walk(code):\n"
	"    table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab\n"
	"    print(code.co_firstlineno, table.hex() or '-', *(line or 0 for line in lines(code)))\n"
	"    for constant in code.co_consts:\n"
	"        if hasattr(constant, 'co_code'):\n"
	"            walk(constant)\n"
	"print(sys.version_info[0] << 8 | sys.version_info[1])\n"
	"for name in 'argparse', 'typing', 'difflib', 'textwrap', 'pickle', 'inspect', 'turtle':\n"
	"    with open(importlib.util.find_spec(name).origin, encoding='utf-8') as source:\n"
	"        walk(compile(source.read(), name, 'exec'))\n";

static uint8_t *from_hex(const char *hex, size_t *size)
{
	size_t length = strcspn(hex, " "), i;
	uint8_t *bytes = g_malloc(length / 2 + 1);

	*size = *hex == '-' ? 0 : length / 2;
	for (i = 0; i < *size; i++) {
		char digits[3] = { hex[2 * i], hex[2 * i + 1] };

		bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return bytes;
}

/* Check the line of every instruction. Number of instructions. */
static unsigned int check_printed(uint16_t version, const char *text)
{
	struct python_code code = { .version = version };
	unsigned int instruction = 0;
	const char *at;
	char *end;

	code.first_line = strtoul(text, &end, 10);
	code.lines = from_hex(end + 1, &code.line_bytes);
	at = strchr(end + 1, ' ');
	while (at && *at == ' ') {
		uint32_t want = strtoul(at, &end, 10), got;

		got = python_code_line(&code, (int32_t)instruction * 2);
		if (got != (want ? want : code.first_line))
			fail_msg("%.60s...: instruction %u: line %u, not %u", text, instruction,
				 got, want);
		instruction++;
		at = end;
	}
	assert_int_equal(python_code_line(&code, -1), code.first_line);
	g_free(code.lines);
	return instruction;
}

static void test_lines_of_all_formats(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(printed); i++)
		assert_true(check_printed(printed[i].version, printed[i].text) >= 11);
}

static void check_library(const char *python)
{
	char *argv[] = { (char *)python, "-c", (char *)lines_program, NULL };
	g_autofree char *output = NULL;
	g_auto(GStrv) lines = NULL;
	unsigned int codes = 0, instructions = 0;
	uint16_t version;
	int status = -1;

	assert_true(g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &output, NULL,
				 &status, NULL));
	assert_int_equal(status, 0);
	lines = g_strsplit(output, "\n", -1);
	version = atoi(lines[0]);
	for (char **line = lines + 1; *line && **line; line++) {
		instructions += check_printed(version, *line);
		codes++;
	}
	assert_true(codes > 1000 && instructions > 20000);
}

static void test_lines_of_the_library(void **state)
{
	const char *more = getenv("MEMTOLL_PYTHONS");
	g_auto(GStrv) pythons = g_strsplit(more ? more : "", ":", -1);

	(void)state;
	check_library(DEBIAN);
	for (char **python = pythons; *python; python++)
		if (**python)
			check_library(*python);
}

/* Anything may stand where a table was: a line comes of it, and an end. */
static void test_hostile_line_tables(void **state)
{
	uint8_t bytes[997];
	struct python_code code = { .first_line = 7, .lines = bytes };
	g_autoptr(GRand) rand = g_rand_new_with_seed(20011);
	unsigned int round, i;

	(void)state;
	for (round = 0; round < 2003; round++) {
		code.version = 0x0309 + g_rand_int_range(rand, 0, 6);
		code.line_bytes = g_rand_int_range(rand, 0, sizeof(bytes) + 1);
		code.first_line = g_rand_int(rand);
		for (i = 0; i < code.line_bytes; i++)
			bytes[i] = g_rand_int(rand);
		python_code_line(&code, (int32_t)g_rand_int(rand));
		python_code_line(&code, g_rand_int_range(rand, 0, 4096));
	}
	/* A number that never ends, and one that would overflow. */
	memset(bytes, 0xff, sizeof(bytes));
	code.version = 0x030b;
	code.line_bytes = sizeof(bytes);
	python_code_line(&code, 1 << 30);
	memset(bytes, 0x7f, sizeof(bytes));
	bytes[0] = 0xf0;
	assert_int_equal(python_code_line(&code, 0), python_code_line(&code, 0));
}

/* ---- offsets ---- */

static void test_table_of_313_and_314(void **state)
{
	/* The parts of both tables that are used, by the number of the word; as 3.13.0 has them. */
	static const uint16_t words_313[][2] = {
		{ 5, 632 },  { 8, 7264 }, { 9, 7344 }, { 20, 0 },   { 21, 8 },	 { 22, 16 },
		{ 23, 72 },  { 24, 152 }, { 27, 32 },  { 29, 8 },   { 30, 0 },	 { 31, 56 },
		{ 33, 70 },  { 35, 112 }, { 36, 120 }, { 37, 128 }, { 38, 136 }, { 39, 68 },
		{ 43, 200 }, { 44, 16 },  { 45, 8 },   { 47, 24 },  { 65, 16 },	 { 66, 32 },
		{ 67, 64 },  { 68, 32 },  { 69, 16 },  { 70, 40 },
	};
	uint64_t words[PYTHON_DEBUG_WORDS] = { 0x7970677562656478ULL, 0x030d00f0 };
	struct python_layout layout;
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(words_313); i++)
		words[words_313[i][0]] = words_313[i][1];
	assert_int_equal(python_offsets_described(words, &layout), 0);
	assert_int_equal(layout.version, 0x030d);
	assert_int_equal(layout.walk.kind, PYTHON_SHIMS);
	assert_int_equal(layout.walk.threads, 7344);
	assert_int_equal(layout.walk.state_id, 152);
	assert_int_equal(layout.walk.state_bytes, 160);
	assert_int_equal(layout.walk.frame_bytes, 71);
	assert_int_equal(layout.walk.code_start, 200);
	assert_int_equal(layout.code_name, 128);
	assert_int_equal(layout.text_other, 56);
	/* Every used word that would lead out of what is read is refused. */
	for (i = 0; i < G_N_ELEMENTS(words_313); i++) {
		uint64_t kept = words[words_313[i][0]];

		words[words_313[i][0]] = UINT64_MAX - 6;
		assert_int_equal(python_offsets_described(words, &layout), -ENOTSUP);
		words[words_313[i][0]] = kept;
	}
	words[1] = 0x030f00a1;
	assert_int_equal(python_offsets_described(words, &layout), -ENOTSUP);
	words[1] = 0x030d00f0;
	words[0]++;
	assert_int_equal(python_offsets_described(words, &layout), -ENOTSUP);
}

/* ---- code objects of a running interpreter ---- */

struct interpreter {
	pid_t pid;
	int to;
	FILE *from;
	struct python_layout layout;
};

static struct maps maps_of(pid_t pid)
{
	struct maps maps = {};

	assert_int_equal(maps_read(pid, &maps), 0);
	return maps;
}

static int show(struct python *python, pid_t pid, struct memtoll_python_offsets *offsets)
{
	struct maps maps = {};
	int found;

	/* Of a process that is gone there are none. */
	maps_read(pid, &maps);
	found = python_show(python, pid, &maps, offsets);
	maps_free(&maps);
	return found;
}

static bool find_interpreter(pid_t pid, struct python_layout *layout)
{
	struct maps maps = maps_of(pid);
	bool found = false;
	size_t i;

	for (i = 0; i < maps.count && !found; i++)
		found = maps.entries[i].exec && maps.entries[i].inode &&
			!python_offsets_find(pid, &maps.entries[i], layout);
	maps_free(&maps);
	return found;
}

/* Run a program that prints what it has to say, and then waits for its input to end. */
static void start(struct interpreter *interpreter, const char *program)
{
	int to[2], from[2];

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	interpreter->pid = fork();
	assert_true(interpreter->pid >= 0);
	if (!interpreter->pid) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		execl(DEBIAN, DEBIAN, "-X", "utf8", "-c", program, NULL);
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

static void read_line(struct interpreter *interpreter, char *line, size_t size)
{
	assert_non_null(fgets(line, size, interpreter->from));
	line[strcspn(line, "\n")] = '\0';
}

/* Names of one, two and four bytes a character, a file likewise; what is no code object. */
static const char objects_program[] =
	"import sys\n"
	"def plain(): pass\n"
	"class Größe:\n"
	"    def länge(self):\n"
	"        def 数(): pass\n"
	"        return 数\n"
	"made = {}\n"
	"exec(compile('\\n' * 16 + 'def 𐐨(): pass', 'путь/файл.py', 'exec'), made)\n"
	"exec(compile('def control(): pass', 'a\\x07\\x1b[31mb\\udc80', 'exec'), made)\n"
	"for f in plain, Größe.länge, Größe().länge(), made['𐐨'], made['control']:\n"
	"    c = f.__code__\n"
	"    print(id(c), c.co_firstlineno, c.co_qualname)\n"
	"    print(c.co_filename.encode('utf-8', 'replace').decode())\n"
	"print(id('text' * 3), id({}), id(sys), id(type(plain.__code__)), id(plain), 8, 2**63)\n"
	"sys.stdout.flush()\n"
	"sys.stdin.read()\n";

static void test_code_objects(void **state)
{
	struct python_code_key key[1];
	struct interpreter python;
	uint64_t type = 0, address[1];
	char line[512], file[512];
	char *at;
	int i;

	(void)state;
	start(&python, objects_program);
	for (i = 0; i < 5; i++) {
		struct python_code *code;
		uint32_t first;

		read_line(&python, line, sizeof(line));
		read_line(&python, file, sizeof(file));
		if (!i)
			assert_true(find_interpreter(python.pid, &python.layout));
		address[0] = strtoull(line, &at, 10);
		first = strtoul(at, &at, 10);
		python_code_peek(python.pid, &python.layout, &type, address, 1, key);
		assert_true(key[0].type && key[0].type == type);
		code = python_code_read(python.pid, &python.layout, key, NULL);
		assert_non_null(code);
		assert_string_equal(code->function, at + 1);
		assert_int_equal(code->first_line, first);
		assert_int_equal(python_code_line(code, 0), first);
		assert_false(python_code_is_internal(code));
		if (i < 4)
			assert_string_equal(code->file, file);
		else /* neither an escape nor half a character */
			assert_string_equal(code->file, "a??[31mb\xef\xbf\xbd");
		python_code_unref(code);
	}
	read_line(&python, line, sizeof(line));
	for (at = line; *at;) {
		address[0] = strtoull(at, &at, 10);
		python_code_peek(python.pid, &python.layout, &type, address, 1, key);
		assert_int_equal(key[0].type, 0);
	}
	stop(&python);
}

/* One that cannot be read does not take the others with it. */
static void test_code_objects_at_once(void **state)
{
	uint64_t addresses[PYTHON_CODES_MAX] = {}, type = 0;
	struct python_code_key keys[PYTHON_CODES_MAX];
	struct interpreter python;
	char line[512];
	size_t i;

	(void)state;
	start(&python, "import sys\n"
		       "kept = [compile('pass', 'x', 'exec') for _ in range(48)]\n"
		       "for code in kept: print(id(code))\n"
		       "sys.stdout.flush()\n"
		       "sys.stdin.read()\n");
	for (i = 0; i < PYTHON_CODES_MAX; i++) {
		read_line(&python, line, sizeof(line));
		addresses[i] = strtoull(line, NULL, 10);
	}
	assert_true(find_interpreter(python.pid, &python.layout));
	addresses[0] = 4096;
	addresses[13] = 0;
	addresses[14] = UINT64_MAX - 7;
	addresses[47] = 1ULL << 47;
	python_code_peek(python.pid, &python.layout, &type, addresses, PYTHON_CODES_MAX, keys);
	for (i = 0; i < PYTHON_CODES_MAX; i++)
		assert_int_equal(!keys[i].type, i == 0 || i == 13 || i == 14 || i == 47);
	stop(&python);
}

/* What was a code object is none when it was freed, whoever has the memory now. */
static void test_freed_code_object(void **state)
{
	struct python_code_key key[1];
	struct interpreter python;
	uint64_t type = 0, address[1];
	char line[512];

	(void)state;
	start(&python, "import sys\n"
		       "code = compile('pass', 'x', 'exec')\n"
		       "print(id(code), flush=True)\n"
		       "sys.stdin.readline()\n"
		       "del code\n"
		       "print('gone', flush=True)\n"
		       "sys.stdin.read()\n");
	read_line(&python, line, sizeof(line));
	address[0] = strtoull(line, NULL, 10);
	assert_true(find_interpreter(python.pid, &python.layout));
	python_code_peek(python.pid, &python.layout, &type, address, 1, key);
	assert_true(key[0].type);
	assert_int_equal(write(python.to, "\n", 1), 1);
	read_line(&python, line, sizeof(line));
	python_code_peek(python.pid, &python.layout, &type, address, 1, key);
	assert_int_equal(key[0].type, 0);
	stop(&python);
}

static void test_interpreter_is_found_once(void **state)
{
	struct memtoll_python_offsets offsets;
	struct python *python = python_new();
	struct interpreter interpreter;
	char line[64];

	(void)state;
	start(&interpreter, "import sys; print('here', flush=True); sys.stdin.read()");
	read_line(&interpreter, line, sizeof(line));
	assert_int_equal(show(python, interpreter.pid, &offsets), 1);
	assert_int_equal(offsets.kind, PYTHON_ENTRIES);
	assert_true(offsets.runtime > 4096);
	assert_int_equal(show(python, interpreter.pid, &offsets), 0);
	python_exec(python, interpreter.pid);
	assert_int_equal(show(python, interpreter.pid, &offsets), 1);
	/* This program is none, and one that is gone is none either. */
	assert_int_equal(show(python, getpid(), &offsets), 0);
	stop(&interpreter);
	python_exec(python, interpreter.pid);
	assert_int_equal(show(python, interpreter.pid, &offsets), 0);
	assert_int_equal(python_unsupported(python), 0);
	python_free(python);
}

/* Stacks of a process without interpreter, and of one with nonsense for frames. */
static void test_hostile_stacks(void **state)
{
	g_autoptr(GRand) rand = g_rand_new_with_seed(20021);
	struct python *python = python_new();
	struct memtoll_python_offsets offsets;
	struct interpreter interpreter;
	const struct python_stack *stack;
	struct memtoll_python walked;
	uint64_t unreadable = 0;
	char line[64];
	unsigned int i, k;

	(void)state;
	start(&interpreter, "import sys; print('here', flush=True); sys.stdin.read()");
	read_line(&interpreter, line, sizeof(line));
	assert_int_equal(show(python, interpreter.pid, &offsets), 1);
	for (i = 1; i <= 211; i++) {
		memset(&walked, 0, sizeof(walked));
		walked.stack_id = i;
		walked.tgid = i % 2 ? interpreter.pid : getpid();
		walked.depth = g_rand_int_range(rand, 0, 2 * MEMTOLL_PYTHON_DEPTH);
		for (k = 0; k < MEMTOLL_PYTHON_DEPTH; k++) {
			walked.frames[k].code = (uint64_t)g_rand_int(rand) << 32 | g_rand_int(rand);
			walked.frames[k].instruction = g_rand_int(rand);
			walked.frames[k].flags = g_rand_int(rand);
		}
		python_resolve(python, &walked);
		stack = python_stack(python, i);
		assert_non_null(stack);
		assert_int_equal(stack->count, MIN(walked.depth, MEMTOLL_PYTHON_DEPTH));
		for (k = 0; k < stack->count; k++)
			assert_null(stack->frames[k].code);
		unreadable += stack->count;
	}
	assert_int_equal(python_unreadable(python), unreadable);
	assert_int_equal(python_unreadable(python), 0);
	python_forget(python, 1);
	assert_null(python_stack(python, 1));
	stop(&interpreter);
	python_free(python);
}

static void wait_for_end(void *pipe)
{
	char byte;

	assert_int_equal(read(*(int *)pipe, &byte, 1), 0);
}

static void nothing(void *job)
{
	(void)job;
}

static void wait_until_readable(pid_t pid)
{
	int i;

	for (i = 0; i < 1000 && !timed_call(pid, TIMED_CALL_MEMORY_MS, nothing, NULL, nothing); i++)
		usleep(10000);
	assert_true(i < 1000);
}

/* Its memory was not to be had when the stack came, and is when that is written. */
static void test_process_that_is_read_late(void **state)
{
	struct memtoll_python walked = { .stack_id = 1, .depth = 1 };
	struct python *python = python_new();
	struct memtoll_python_offsets offsets;
	struct interpreter interpreter;
	const struct python_stack *stack;
	char line[64];
	int ends[2];

	(void)state;
	start(&interpreter, "import sys\n"
			    "def late(): pass\n"
			    "print(id(late.__code__), flush=True)\n"
			    "sys.stdin.read()\n");
	read_line(&interpreter, line, sizeof(line));
	assert_int_equal(show(python, interpreter.pid, &offsets), 1);
	walked.tgid = interpreter.pid;
	walked.frames[0].code = strtoull(line, NULL, 10);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_false(timed_call(interpreter.pid, 1, wait_for_end, &ends[0], nothing));
	for (walked.stack_id = 1; walked.stack_id <= 2; walked.stack_id++)
		python_resolve(python, &walked);
	/* Written while it cannot be read: a loss, counted once. */
	stack = python_stack(python, 1);
	assert_null(stack->frames[0].code);
	assert_int_equal(python_unreadable(python), 1);
	close(ends[1]);
	wait_until_readable(interpreter.pid);
	stack = python_stack(python, 2);
	assert_non_null(stack->frames[0].code);
	assert_string_equal(stack->frames[0].code->function, "late");
	stack = python_stack(python, 1);
	assert_null(stack->frames[0].code);
	assert_int_equal(python_unreadable(python), 0);
	close(ends[0]);
	stop(&interpreter);
	python_free(python);
}

/* ---- weaving ---- */

/*
 * natives: 'n' a native frame, 'L' an eval loop, leaf first; a final '.' says that they reach the
 * thread's start. parts: 'i' called by Python code, 'e' called from C, '0' a loop without a frame;
 * a final '.' says that none is missing. want: the order, native frames by their number from 'a'
 * on, Python frames from '1' on; a final '!' if they could not be placed.
 */
static void check_weave(const char *natives, const char *parts, const char *want)
{
	bool is_loop[32] = {}, placed;
	enum python_part kinds[32] = {};
	struct python_strand order[64];
	struct python_weave weave = { .is_loop = is_loop, .parts = kinds };
	char got[65] = "";
	size_t count, i;

	for (; natives[weave.natives] && natives[weave.natives] != '.'; weave.natives++)
		is_loop[weave.natives] = natives[weave.natives] == 'L';
	weave.native_whole = natives[weave.natives] == '.';
	for (i = 0; parts[i] && parts[i] != '.'; i++)
		kinds[i] = parts[i] == 'i' ? PYTHON_PART_INNER :
			   parts[i] == 'e' ? PYTHON_PART_ENTRY :
					     PYTHON_PART_EMPTY;
	weave.parts_count = i;
	weave.python_whole = parts[i] == '.';
	count = python_weave(&weave, order, &placed);
	for (i = 0; i < count; i++)
		got[i] = (order[i].is_python ? '1' : 'a') + order[i].index;
	if (!placed)
		got[count] = '!';
	if (strcmp(got, want))
		fail_msg("%s with %s: %s, not %s", natives, parts, got, want);
}

static void test_weave(void **state)
{
	(void)state;
	/* No interpreter; nothing native. */
	check_weave("nnn.", ".", "abc");
	check_weave(".", ".", "");
	check_weave("", "ie.", "12");
	/* One loop of three functions; two loops with C between. */
	check_weave("nnLnn.", "iie.", "ab123de");
	check_weave("nLnnLn.", "ieiie.", "a12cd345f");
	/* 3.9: each frame a loop. */
	check_weave("nLnLnLn.", "eee.", "a1c2e3g");
	/* A loop that has returned its last frame, innermost and further out: it stays native. */
	check_weave("nLnLn.", "0ie.", "abc23e");
	check_weave("nLnLnLn.", "ie0e.", "a12cde4g");
	/* A sentinel below the outermost frame is no loop. */
	check_weave("nLn.", "ie0.", "a12c");
	check_weave("nLn.", "0.", "abc");
	/* Native frames that do not reach the start: the rest follows. */
	check_weave("nn", "iee.", "ab123");
	check_weave("nLn", "ieie.", "a12c34");
	/* Python frames left out at the outer end: the loops beyond stay. */
	check_weave("nLnLnLn.", "ieii", "a12c34efg");
	check_weave("nLnLn.", "ie", "a12cde");
	/* Interrupted before a loop has linked its frame, or after. */
	check_weave("LnLn.", "ie.", "ab12d");
	check_weave("Ln.", ".", "ab");
	check_weave("LnLn.", "eie.", "1b23d");
	check_weave("LnLnLn.", "ie.", "12bcdef!");
	check_weave("LnLn", "ie.", "ab12d");
	check_weave("LnLn", "ieie.", "12b34d");
	/* No match: all at the innermost loop, and it is said. */
	check_weave("nLnLn.", "ie.", "a12cde!");
	check_weave("nLn.", "ieie.", "a1234c!");
	check_weave("nnn.", "ie.", "abc12!");
	/* Loops but not one frame: the thread has none, or its state was not found. */
	check_weave("nLn.", ".", "abc");
}

static void test_loops_by_name(void **state)
{
	(void)state;
	assert_true(python_is_loop("_PyEval_EvalFrameDefault"));
	assert_true(python_is_loop("_PyEval_EvalFrameDefault.cold"));
	assert_true(python_is_loop("_PyEval_EvalFrameDefault.constprop.0"));
	assert_true(python_is_loop("_TAIL_CALL_CALL_KW"));
	assert_true(python_is_loop("rb_vm_exec"));
	assert_true(python_is_loop("execute_ex"));
	assert_false(python_is_loop("execute_example"));
	assert_false(python_is_loop("_PyEval_EvalFrame"));
	assert_false(python_is_loop("_PyEval_EvalFrameDefaultish"));
	assert_false(python_is_loop("PyEval_EvalCode"));
	assert_false(python_is_loop(""));
}

/* A storm of processes leaves nothing behind: there is room for so many stacks and no more. */
static void test_stacks_of_exited_processes(void **state)
{
	const pid_t dead = 4194301, living = 4194302; /* need not exist */
	struct python *python = python_new();
	struct memtoll_python walked = { .depth = 1 };

	(void)state;
	for (walked.stack_id = 1; walked.stack_id <= 211; walked.stack_id++) {
		walked.tgid = walked.stack_id % 2 ? dead : living;
		walked.frames[0].code = 0x1000;
		python_resolve(python, &walked);
	}
	python_forget_process(python, dead);
	for (walked.stack_id = 1; walked.stack_id <= 211; walked.stack_id++)
		assert_int_equal(python_stack(python, walked.stack_id) != NULL,
				 walked.stack_id % 2 == 0);
	python_free(python);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks_of_exited_processes),
		cmocka_unit_test(test_lines_of_all_formats),
		cmocka_unit_test(test_lines_of_the_library),
		cmocka_unit_test(test_hostile_line_tables),
		cmocka_unit_test(test_table_of_313_and_314),
		cmocka_unit_test(test_code_objects),
		cmocka_unit_test(test_code_objects_at_once),
		cmocka_unit_test(test_freed_code_object),
		cmocka_unit_test(test_interpreter_is_found_once),
		cmocka_unit_test(test_hostile_stacks),
		cmocka_unit_test(test_process_that_is_read_late),
		cmocka_unit_test(test_weave),
		cmocka_unit_test(test_loops_by_name),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
