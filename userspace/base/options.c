// SPDX-License-Identifier: GPL-2.0
#include "base/options.h"

#include <ctype.h>
#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *suffix;
	double factor;
};

/* The unit that follows a number; NULL: unknown. */
static const struct unit *find_unit(const struct unit *units, const char *suffix)
{
	for (; units->suffix; units++)
		if (!strcasecmp(units->suffix, suffix))
			return units;
	return NULL;
}

static bool parse(const char *text, const struct unit *units, double minimum, uint64_t *value)
{
	const struct unit *unit;
	double number;
	char *end;

	/* strtod() would accept signs, blanks, "inf", "nan" and hexadecimal. */
	if (!isdigit((unsigned char)*text) || strpbrk(text, "xXpP"))
		return false;
	errno = 0;
	number = strtod(text, &end);
	unit = find_unit(units, end);
	if (errno || !unit)
		return false;
	number *= unit->factor;
	if (number < minimum || number > (double)INT64_MAX)
		return false;
	*value = number;
	return true;
}

bool parse_duration(const char *text, uint64_t *ns)
{
	static const struct unit units[] = {
		{ "", 1e9 },	 { "s", 1e9 },	  { "ms", 1e6 },    { "us", 1e3 }, { "m", 60e9 },
		{ "min", 60e9 }, { "h", 3600e9 }, { "d", 86400e9 }, { NULL, 0 },
	};

	return parse(text, units, 1, ns);
}

bool parse_size(const char *text, uint64_t *bytes)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "B", 1 },
		{ "K", 1024 },
		{ "KB", 1024 },
		{ "KiB", 1024 },
		{ "M", 1048576 },
		{ "MB", 1048576 },
		{ "MiB", 1048576 },
		{ "G", 1073741824 },
		{ "GB", 1073741824 },
		{ "GiB", 1073741824 },
		{ NULL, 0 },
	};

	return parse(text, units, 0, bytes);
}

bool parse_count(const char *text, unsigned int *count)
{
	guint64 number;

	if (!g_ascii_string_to_unsigned(text, 10, 0, UINT_MAX, &number, NULL))
		return false;
	*count = number;
	return true;
}
