// SPDX-License-Identifier: GPL-2.0
/*
 * Not dwarf_getscopes(): it walks the whole unit for each address, recurses as deep as the file
 * wants, and dwarf_addrdie() needs .debug_aranges, which clang does not write. Instead units are
 * indexed by their ranges, the functions of a unit on first use, and only one function's tree is
 * walked for an address.
 */
#include "symbols/scopes.h"

#include <dwarf.h>
#include <string.h>

#include <glib.h>

/* Nesting of namespaces, classes and blocks; compilers stay below a hundred. */
#define DEPTH_MAX 256
/* Entries visited in one unit, or for one address: several times the largest unit seen. */
#define VISITS_MAX (8U * 1024 * 1024)
#define RANGES_MAX (8U * 1024 * 1024)
/* Functions nest (GNU C, Ada): how many starts before the address to try. */
#define OVERLAPS_MAX 64

struct range {
	uint64_t low;
	uint64_t high;
	guint owner; /* index of a unit or of a function */
};

struct unit {
	Dwarf_Die die;
	bool indexed;
	GArray *ranges;	   /* struct range, ascending by low */
	GArray *functions; /* Dwarf_Die */
};

struct scopes {
	uint64_t bias;
	GArray *units;	/* struct unit */
	GArray *ranges; /* struct range, ascending by low */
};

static int compare(const void *left, const void *right)
{
	const struct range *a = left;
	const struct range *b = right;

	if (a->low != b->low)
		return a->low < b->low ? -1 : 1;
	/* Of ranges with one start the narrowest comes last, so it is met first. */
	return a->high > b->high ? -1 : a->high < b->high;
}

static void add_ranges(GArray *ranges, Dwarf_Die *die, guint owner)
{
	Dwarf_Addr base;
	Dwarf_Addr low;
	Dwarf_Addr high;
	ptrdiff_t next = 0;

	while (ranges->len < RANGES_MAX &&
	       (next = dwarf_ranges(die, next, &base, &low, &high)) > 0) {
		struct range range = { .low = low, .high = high, .owner = owner };

		/* Linkers leave 0, lld -1 or -2, where they dropped a function (tombstones). */
		if (low > 0 && low < high && low < UINT64_MAX - 1)
			g_array_append_val(ranges, range);
	}
}

/* The narrowest range around an address. */
static const struct range *covering(const GArray *ranges, uint64_t address)
{
	const struct range *best = NULL;
	guint low = 0;
	guint high = ranges->len;
	guint i;

	while (low < high) {
		guint middle = low + (high - low) / 2;

		if (g_array_index(ranges, struct range, middle).low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (i = 0; i < OVERLAPS_MAX && low > 0; i++) {
		const struct range *range = &g_array_index(ranges, struct range, --low);

		if (address < range->high &&
		    (!best || range->high - range->low < best->high - best->low))
			best = range;
	}
	return best;
}

struct scopes *scopes_new(Dwarf *dwarf, uint64_t bias)
{
	struct scopes *scopes = g_new0(struct scopes, 1);
	Dwarf_CU *cu = NULL;
	struct unit unit = { 0 };
	uint8_t type;

	scopes->bias = bias;
	scopes->units = g_array_new(FALSE, FALSE, sizeof(struct unit));
	scopes->ranges = g_array_new(FALSE, FALSE, sizeof(struct range));
	/* Without the subdie argument: that would open the .dwo file of a skeleton. */
	while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &unit.die, NULL) == 0) {
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		add_ranges(scopes->ranges, &unit.die, scopes->units->len);
		g_array_append_val(scopes->units, unit);
	}
	g_array_sort(scopes->ranges, compare);
	return scopes;
}

void scopes_free(struct scopes *scopes)
{
	guint i;

	if (!scopes)
		return;
	for (i = 0; i < scopes->units->len; i++) {
		struct unit *unit = &g_array_index(scopes->units, struct unit, i);

		if (!unit->indexed)
			continue;
		g_array_free(unit->ranges, TRUE);
		g_array_free(unit->functions, TRUE);
	}
	g_array_free(scopes->units, TRUE);
	g_array_free(scopes->ranges, TRUE);
	g_free(scopes);
}

static bool holds_functions(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
		return true;
	default:
		return false;
	}
}

static void index_functions(struct unit *unit, Dwarf_Die *parent, unsigned int depth,
			    unsigned int *visits)
{
	Dwarf_Die child;

	if (depth > DEPTH_MAX || dwarf_child(parent, &child))
		return;
	do {
		int tag = dwarf_tag(&child);

		if (++*visits > VISITS_MAX)
			return;
		if (tag == DW_TAG_subprogram) {
			guint before = unit->ranges->len;

			add_ranges(unit->ranges, &child, unit->functions->len);
			if (unit->ranges->len > before)
				g_array_append_val(unit->functions, child);
		}
		if (holds_functions(tag))
			index_functions(unit, &child, depth + 1, visits);
	} while (dwarf_siblingof(&child, &child) == 0);
}

/* Find the inlined calls around address below a function or block, outermost first. */
static bool find_inlined(Dwarf_Die *parent, uint64_t address, Dwarf_Die *chain, size_t *count,
			 unsigned int depth, unsigned int *visits)
{
	Dwarf_Die child;

	if (depth > DEPTH_MAX || *count == SCOPES_MAX - 1 || dwarf_child(parent, &child))
		return false;
	do {
		int tag = dwarf_tag(&child);
		bool inlined = tag == DW_TAG_inlined_subroutine;
		int inside;

		if (++*visits > VISITS_MAX)
			return false;
		if (!inlined && tag != DW_TAG_lexical_block && tag != DW_TAG_try_block &&
		    tag != DW_TAG_catch_block && tag != DW_TAG_with_stmt)
			continue;
		inside = dwarf_haspc(&child, address);
		if (inside > 0) {
			if (inlined)
				chain[(*count)++] = child;
			find_inlined(&child, address, chain, count, depth + 1, visits);
			return true;
		}
		/* A block may have no ranges of its own where its children have some. */
		if (!inlined && !dwarf_hasattr(&child, DW_AT_low_pc) &&
		    !dwarf_hasattr(&child, DW_AT_ranges) &&
		    find_inlined(&child, address, chain, count, depth + 1, visits))
			return true;
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

static const char *name_of(Dwarf_Die *die)
{
	Dwarf_Attribute memory;
	Dwarf_Attribute *attribute;
	const char *name = NULL;

	attribute = dwarf_attr_integrate(die, DW_AT_linkage_name, &memory);
	if (!attribute)
		attribute = dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &memory);
	if (attribute)
		name = dwarf_formstring(attribute);
	return name ? name : dwarf_diename(die);
}

static uint32_t number_of(Dwarf_Die *die, unsigned int which)
{
	Dwarf_Attribute memory;
	Dwarf_Word value;

	if (!dwarf_attr(die, which, &memory) || dwarf_formudata(&memory, &value) ||
	    value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

static const char *directory_of(Dwarf_Die *unit)
{
	Dwarf_Attribute memory;

	if (!dwarf_attr(unit, DW_AT_comp_dir, &memory))
		return NULL;
	return dwarf_formstring(&memory);
}

static void place_of_address(Dwarf_Die *unit, uint64_t address, struct scope *scope)
{
	Dwarf_Line *row = dwarf_getsrc_die(unit, address);
	int line = 0;

	if (!row)
		return;
	scope->file = dwarf_linesrc(row, NULL, NULL);
	if (scope->file && dwarf_lineno(row, &line) == 0 && line > 0)
		scope->line = (uint32_t)line;
}

static void place_of_call(Dwarf_Die *unit, Dwarf_Die *inlined, struct scope *scope)
{
	Dwarf_Files *files;
	size_t count;
	uint32_t file = number_of(inlined, DW_AT_call_file);

	if (dwarf_getsrcfiles(unit, &files, &count) || file >= count)
		return;
	scope->file = dwarf_filesrc(files, file, NULL, NULL);
	if (scope->file)
		scope->line = number_of(inlined, DW_AT_call_line);
}

static struct unit *unit_at(struct scopes *scopes, uint64_t address)
{
	const struct range *range = covering(scopes->ranges, address);
	struct unit *unit;
	unsigned int visits = 0;

	if (!range)
		return NULL;
	unit = &g_array_index(scopes->units, struct unit, range->owner);
	if (!unit->indexed) {
		unit->ranges = g_array_new(FALSE, FALSE, sizeof(struct range));
		unit->functions = g_array_new(FALSE, FALSE, sizeof(Dwarf_Die));
		unit->indexed = true;
		index_functions(unit, &unit->die, 0, &visits);
		g_array_sort(unit->ranges, compare);
	}
	return unit;
}

size_t scopes_find(struct scopes *scopes, uint64_t address, struct scope *found)
{
	struct unit *unit;
	const struct range *range;
	Dwarf_Die chain[SCOPES_MAX]; /* the function, then what is inlined, outermost first */
	size_t inlined = 0;
	unsigned int visits = 0;
	Dwarf_Addr start;
	size_t i;

	address -= scopes->bias;
	unit = unit_at(scopes, address);
	if (!unit)
		return 0;
	range = covering(unit->ranges, address);
	if (range) {
		chain[0] = g_array_index(unit->functions, Dwarf_Die, range->owner);
		find_inlined(&chain[0], address, chain + 1, &inlined, 0, &visits);
	}
	for (i = 0; i <= inlined; i++) {
		struct scope *scope = &found[i];

		memset(scope, 0, sizeof(*scope));
		scope->directory = directory_of(&unit->die);
		if (range)
			scope->name = name_of(&chain[inlined - i]);
		if (i == 0)
			place_of_address(&unit->die, address, scope);
		else
			place_of_call(&unit->die, &chain[inlined - i + 1], scope);
	}
	found[inlined].physical = true;
	if (range && dwarf_entrypc(&chain[0], &start) == 0)
		found[inlined].start = start + scopes->bias;
	return inlined + 1;
}
