// SPDX-License-Identifier: GPL-2.0
#include "host/kallsyms.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "host/boot_cache.h"

#define KIND "functions"

/* No kernel function is longer: after the last one of a module a gap follows, not its code. */
#define FUNCTION_MAX (256 * 1024ULL)

#define CHUNK_BYTES (64 * 1024)

/*
 * The table has more than a hundred thousand lines, and a few of them are wanted, at each start:
 * what is kept of the others is where they would end a function.
 */
struct search {
	struct kernel_function *functions;
	size_t count;
	GArray *addresses;
};

static bool is_text(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

/* 0 where the line does not begin with one. */
static uint64_t take_address(const char **at)
{
	uint64_t address = 0;
	int digit;

	while ((digit = g_ascii_xdigit_value(**at)) >= 0) {
		address = address << 4 | (uint64_t)digit;
		(*at)++;
	}
	return address;
}

static void take_function(struct search *search, uint64_t address, const char *name, bool in_module)
{
	size_t i;

	for (i = 0; i < search->count; i++) {
		struct kernel_function *function = &search->functions[i];
		bool better = !function->start || in_module < function->in_module ||
			      (in_module == function->in_module && address < function->start);

		if (name[0] != function->name[0] || strcmp(name, function->name) || !better)
			continue;
		function->start = address;
		function->in_module = in_module;
	}
}

/*
 * False where BPF's own symbols begin, which are not wanted: the kernel counts through all of them
 * for each of their lines (bpf_get_kallsym() in kernel/bpf/core.c), and tracers have hundreds.
 */
static bool take_line(struct search *search, char *line)
{
	const char *at = line;
	uint64_t address = take_address(&at);
	char *module;

	if (at[0] != ' ' || !at[1] || at[2] != ' ' || !at[3])
		return true;
	/* kptr_restrict prints zeros; per-CPU offsets near zero are no addresses either. */
	if (!address)
		return true;
	module = strchr(at + 3, '\t');
	if (module && !strcmp(module + 1, "[bpf]"))
		return false;
	g_array_append_val(search->addresses, address);
	if (!is_text(at[1]))
		return true;
	if (module)
		*module = '\0';
	take_function(search, address, at + 3, module && module[1]);
	return true;
}

/* False: the table could not be read to its end. */
static bool take_lines(struct search *search, int fd)
{
	g_autofree char *chunk = g_malloc(CHUNK_BYTES);
	size_t kept = 0;
	ssize_t got = -1;

	while (kept < CHUNK_BYTES - 1 &&
	       (got = read(fd, chunk + kept, CHUNK_BYTES - 1 - kept)) > 0) {
		char *line = chunk, *end = chunk + kept + got, *newline;

		while ((newline = memchr(line, '\n', end - line))) {
			*newline = '\0';
			if (!take_line(search, line))
				return true;
			line = newline + 1;
		}
		kept = end - line;
		memmove(chunk, line, kept);
	}
	chunk[kept] = '\0';
	take_line(search, chunk);
	return got == 0;
}

/* A function ends at the next symbol of another address. */
static void find_ends(const struct search *search)
{
	const uint64_t *addresses = (const uint64_t *)(void *)search->addresses->data;
	guint line;
	size_t i;

	for (i = 0; i < search->count; i++) {
		struct kernel_function *function = &search->functions[i];
		uint64_t start = function->start;
		uint64_t end =
			start > UINT64_MAX - FUNCTION_MAX ? UINT64_MAX : start + FUNCTION_MAX;

		for (line = 0; start && line < search->addresses->len; line++)
			if (addresses[line] > start && addresses[line] < end)
				end = addresses[line];
		function->end = start ? end : 0;
	}
}

/* Whether the table was read to its end. */
static bool find(const char *path, struct kernel_function *functions, size_t count)
{
	g_autoptr(GArray) addresses = g_array_new(FALSE, FALSE, sizeof(uint64_t));
	struct search search = {
		.functions = functions,
		.count = count,
		.addresses = addresses,
	};
	int fd = open(path ? path : "/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	bool whole;
	size_t i;

	for (i = 0; i < count; i++)
		functions[i] = (struct kernel_function){ .name = functions[i].name };
	if (fd < 0)
		return false;
	whole = take_lines(&search, fd);
	close(fd);
	find_ends(&search);
	return whole;
}

void kallsyms_find(const char *path, struct kernel_function *functions, size_t count)
{
	find(path, functions, count);
}

/* The table's name and all that is asked of it, on a line each. Freed by the caller. */
static char *question(const char *path, const struct kernel_function *functions, size_t count)
{
	GString *text = g_string_new(path ? path : "");
	size_t i;

	for (i = 0; i < count; i++)
		g_string_append_printf(text, "\n%s", functions[i].name);
	return g_string_free(text, FALSE);
}

void kallsyms_find_once(const char *path, struct kernel_function *functions, size_t count)
{
	g_autofree char *key = question(path, functions, count);
	struct range {
		uint64_t start, end;
	};
	g_autofree struct range *ranges = g_new0(struct range, count);
	bool is_hidden = true, is_moving = false, is_whole;
	size_t i;

	if (boot_cache_read(KIND, key, ranges, count * sizeof(*ranges))) {
		for (i = 0; i < count; i++)
			functions[i] = (struct kernel_function){
				.name = functions[i].name,
				.start = ranges[i].start,
				.end = ranges[i].end,
			};
		return;
	}
	is_whole = find(path, functions, count);
	for (i = 0; i < count; i++) {
		ranges[i] = (struct range){ functions[i].start, functions[i].end };
		is_hidden &= !functions[i].start;
		is_moving |= functions[i].in_module;
	}
	if (is_whole && !is_hidden && !is_moving)
		boot_cache_write(KIND, key, ranges, count * sizeof(*ranges));
}
