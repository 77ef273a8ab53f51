// SPDX-License-Identifier: GPL-2.0
#include "host/kallsyms.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

/*
 * No kernel function is as long as this. An address farther behind a symbol lies in a gap, or in
 * a module that was loaded after the table was read.
 */
#define FUNCTION_MAX (256 * 1024ULL)

/* KSYM_NAME_LEN is 512 since Linux 6.1; address, type and module come on top. */
#define LINE_MAX_BYTES 1024

#define KERNEL 0	/* the first of the modules */

/* Some hundred thousand: small, and no index by name, which is asked for a few times only. */
struct entry {
	uint64_t address;
	uint32_t name;		/* where it begins in names; no function's: of no interest, 0 */
	uint16_t module;	/* index into modules; 0: the kernel itself */
	char type;
	bool underscored;
};

struct kallsyms {
	char *names;		/* each with its end; "" first */
	GPtrArray *modules;	/* names, owned */
	struct entry *entries;	/* ascending by address, best name first */
	gsize count;
};

static bool is_text(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

/* Among names of one address: functions, then exported ones, then names without underscores. */
static int rank(const struct entry *entry)
{
	int points = 0;

	if (!is_text(entry->type))
		points += 8;
	if (entry->type != 'T')
		points += 4;
	if (entry->underscored)
		points += 2;
	return points;
}

/* Among equals the sort keeps the file's order. */
static int compare(const void *left, const void *right)
{
	const struct entry *a = left;
	const struct entry *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return rank(a) - rank(b);
}

/* The table goes module by module: it is nearly always the last one. */
static uint16_t module_index(struct kallsyms *table, const char *name)
{
	guint i;

	for (i = table->modules->len; i-- > 0;)
		if (!strcmp(g_ptr_array_index(table->modules, i), name))
			return i;
	/* More modules than the index can tell: their functions are named all the same. */
	if (table->modules->len == UINT16_MAX)
		return UINT16_MAX - 1;
	g_ptr_array_add(table->modules, g_strdup(name));
	return table->modules->len - 1;
}

static void parse_line(struct kallsyms *table, GArray *entries, GByteArray *names, char *line)
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
	entry.type = end[1];
	name = end + 3;
	name[strcspn(name, "\n")] = '\0';
	module = strchr(name, '\t');
	if (module)
		*module++ = '\0';
	if (!*name)
		return;
	entry.underscored = *name == '_';
	if (is_text(entry.type)) {
		entry.name = names->len;
		g_byte_array_append(names, (const guint8 *)name, strlen(name) + 1);
	}
	entry.module = module && *module ? module_index(table, module) : KERNEL;
	g_array_append_val(entries, entry);
}

struct kallsyms *kallsyms_read(const char *path)
{
	struct kallsyms *table;
	GByteArray *names;
	GArray *entries;
	char line[LINE_MAX_BYTES];
	gsize size;
	FILE *file;

	file = fopen(path ? path : "/proc/kallsyms", "re");
	if (!file)
		return NULL;
	table = g_new0(struct kallsyms, 1);
	table->modules = g_ptr_array_new_with_free_func(g_free);
	g_ptr_array_add(table->modules, g_strdup("[kernel]"));
	names = g_byte_array_new();
	g_byte_array_append(names, (const guint8 *)"", 1);
	entries = g_array_new(FALSE, FALSE, sizeof(struct entry));
	while (fgets(line, sizeof(line), file))
		parse_line(table, entries, names, line);
	fclose(file);
	g_array_sort(entries, compare);
	/* What grows has up to twice the room. */
	table->count = entries->len;
	table->entries = g_array_steal(entries, NULL);
	table->entries = g_renew(struct entry, table->entries, table->count);
	g_array_free(entries, TRUE);
	size = names->len;
	table->names = g_realloc(g_byte_array_free(names, FALSE), size);
	return table;
}

void kallsyms_free(struct kallsyms *table)
{
	if (!table)
		return;
	g_free(table->entries);
	g_ptr_array_free(table->modules, TRUE);
	g_free(table->names);
	g_free(table);
}

/* Index of the first entry above address. */
static guint first_above(const struct kallsyms *table, uint64_t address)
{
	guint low = 0;
	guint high = table->count;

	while (low < high) {
		guint middle = low + (high - low) / 2;

		if (table->entries[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t end_of(const struct kallsyms *table, uint64_t start)
{
	guint next = first_above(table, start);
	uint64_t limit = start > UINT64_MAX - FUNCTION_MAX ? UINT64_MAX : start + FUNCTION_MAX;
	uint64_t end;

	if (next == table->count)
		return limit;
	end = table->entries[next].address;
	return end < limit ? end : limit;
}

static void fill(const struct kallsyms *table, const struct entry *entry,
		 struct kernel_symbol *symbol)
{
	symbol->name = &table->names[entry->name];
	symbol->module = g_ptr_array_index(table->modules, entry->module);
	symbol->start = entry->address;
	symbol->end = end_of(table, entry->address);
}

bool kallsyms_find(const struct kallsyms *table, uint64_t address, struct kernel_symbol *symbol)
{
	const struct entry *entry;
	guint above = first_above(table, address);

	if (above == 0)
		return false;
	entry = &table->entries[above - 1];
	/* The first of its address is the best name: compare() put it there. */
	while (entry > &table->entries[0] &&
	       entry[-1].address == entry->address)
		entry--;
	if (!is_text(entry->type))
		return false;
	fill(table, entry, symbol);
	return address < symbol->end;
}

bool kallsyms_named(const struct kallsyms *table, const char *name, struct kernel_symbol *symbol)
{
	const struct entry *best = NULL;
	guint i;

	for (i = 0; i < table->count && (!best || best->module != KERNEL); i++) {
		const struct entry *entry = &table->entries[i];

		if (is_text(entry->type) && !strcmp(&table->names[entry->name], name) &&
		    (!best || entry->module == KERNEL))
			best = entry;
	}
	if (!best)
		return false;
	fill(table, best, symbol);
	return true;
}
