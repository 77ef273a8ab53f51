// SPDX-License-Identifier: GPL-2.0
#include "symbols/jit_name.h"

#include <stdbool.h>
#include <string.h>

/* V8's kinds of code that come from a script; others are its own. */
static const char *const script_kinds[] = { "JS:", "LazyCompile:", "Function:", "Eval:",
					    "Script:" };

/* The number behind the last colon of a text that ends at `end`; end: before that colon, then. */
static bool take_number(const char *text, const char **end, uint32_t *number)
{
	const char *at = *end;
	uint64_t value = 0;

	while (at > text && g_ascii_isdigit(at[-1]))
		at--;
	if (at == *end || *end - at > 9 || at == text || at[-1] != ':')
		return false;
	for (; at < *end; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	*number = (uint32_t)value;
	for (at = *end; at[-1] != ':'; at--)
		;
	*end = at - 1;
	return true;
}

static bool split_script(const char *name, struct jit_name *into)
{
	const char *end = name + strlen(name), *file;
	uint32_t column;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(script_kinds); i++)
		if (g_str_has_prefix(name, script_kinds[i]))
			break;
	if (i == G_N_ELEMENTS(script_kinds))
		return false;
	name += strlen(script_kinds[i]);
	name += strspn(name, "*~^+='");
	/* A script's path may have blanks, a function's name has none. */
	file = strchr(name, ' ');
	if (!file || !take_number(file + 1, &end, &column) ||
	    !take_number(file + 1, &end, &into->line))
		return false;
	if (file == name)
		g_string_assign(into->function, "(anonymous)");
	else
		g_string_append_len(into->function, name, file - name);
	file++;
	if (g_str_has_prefix(file, "file://") && end > file + strlen("file://"))
		file += strlen("file://");
	g_string_append_len(into->file, file, end - file);
	return true;
}

/* Without the type that it returns. */
static bool split_method(const char *name, struct jit_name *into)
{
	const char *method = strchr(name, ' '), *arguments = strchr(name, '(');

	if (!method || !arguments || method > arguments || name[strlen(name) - 1] != ')' ||
	    !memchr(method, '.', (size_t)(arguments - method)) ||
	    memchr(method + 1, ' ', (size_t)(arguments - method - 1)))
		return false;
	g_string_assign(into->function, method + 1);
	return true;
}

void jit_name_split(const char *name, struct jit_name *into)
{
	g_string_truncate(into->function, 0);
	g_string_truncate(into->file, 0);
	into->line = 0;
	if (split_script(name, into) || split_method(name, into))
		return;
	into->line = 0;
	g_string_assign(into->function, name);
}
