// SPDX-License-Identifier: GPL-2.0
#include "host/kallsyms.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

/* No kernel function is longer: after the last one of a module a gap follows, not its code. */
#define FUNCTION_MAX (256 * 1024ULL)

/* KSYM_NAME_LEN is 512 since Linux 6.1; address, type and module come on top. */
#define LINE_MAX_BYTES 1024

/* Some hundred thousand: small, and not indexed by name, since few names are looked up. */
struct entry {
	uint64_t address;
	uint32_t name; /* offset into names; 0 ("") for data, which only ends functions */
	bool in_module;
};

struct kallsyms {
	char *names;	       /* NUL-terminated, one after the other; "" first */
	struct entry *entries; /* ascending by address */
	gsize count;
};

static bool is_text(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

/* The sort is stable: entries of the same address stay in the file's order. */
static int compare(const void *left, const void *right)
{
	const struct entry *a = left;
	const struct entry *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

static void parse_line(GArray *entries, GByteArray *names, char *line)
{
	struct entry entry = {};
	char *end;
	char *name;
	char *module;

	errno = 0;
	entry.address = strtoull(line, &end, 16);
	if (errno || end == line || end[0] != ' ' || !end[1] || end[2] != ' ')
		return;
	/* kptr_restrict prints zeros; per-CPU offsets near zero are no addresses either. */
	if (entry.address == 0)
		return;
	name = end + 3;
	name[strcspn(name, "\n")] = '\0';
	module = strchr(name, '\t');
	if (module)
		*module++ = '\0';
	if (!*name)
		return;
	if (is_text(end[1])) {
		entry.name = names->len;
		g_byte_array_append(names, (const guint8 *)name, strlen(name) + 1);
	}
	entry.in_module = module && *module;
	g_array_append_val(entries, entry);
}

struct kallsyms *kallsyms_read(const char *path)
{
	struct kallsyms *table;
	GByteArray *names;
	GArray *entries;
	char line[LINE_MAX_BYTES];
	FILE *file;

	file = fopen(path ? path : "/proc/kallsyms", "re");
	if (!file)
		return NULL;
	names = g_byte_array_new();
	g_byte_array_append(names, (const guint8 *)"", 1);
	entries = g_array_new(FALSE, FALSE, sizeof(struct entry));
	while (fgets(line, sizeof(line), file))
		parse_line(entries, names, line);
	fclose(file);
	g_array_sort(entries, compare);
	table = g_new0(struct kallsyms, 1);
	table->count = entries->len;
	table->entries = (struct entry *)(void *)g_array_free(entries, FALSE);
	table->names = (char *)g_byte_array_free(names, FALSE);
	return table;
}

void kallsyms_free(struct kallsyms *table)
{
	if (!table)
		return;
	g_free(table->entries);
	g_free(table->names);
	g_free(table);
}

/* Where the function at entry ends: at the next symbol of another address. */
static uint64_t end_of(const struct kallsyms *table, const struct entry *entry)
{
	const struct entry *end = table->entries + table->count;
	uint64_t start = entry->address;
	uint64_t limit = start > UINT64_MAX - FUNCTION_MAX ? UINT64_MAX : start + FUNCTION_MAX;

	while (entry < end && entry->address == start)
		entry++;
	return entry < end && entry->address < limit ? entry->address : limit;
}

bool kallsyms_function(const struct kallsyms *table, const char *name, uint64_t *start,
		       uint64_t *end)
{
	const struct entry *best = NULL;
	gsize i;

	for (i = 0; i < table->count && (!best || best->in_module); i++) {
		const struct entry *entry = &table->entries[i];

		if (entry->name && !strcmp(&table->names[entry->name], name) &&
		    (!best || !entry->in_module))
			best = entry;
	}
	if (!best)
		return false;
	*start = best->address;
	*end = end_of(table, best);
	return true;
}
