// SPDX-License-Identifier: GPL-2.0
#include "message.h"

#include <glib.h>
#include <stdarg.h>
#include <stdio.h>

void message(const char *format, ...)
{
	g_autofree char *valid = NULL;
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	/* What a damaged file made SQLite say need not be UTF-8. */
	valid = g_utf8_make_valid(text, -1);
	/* One write: lines of a traced command do not come in between. */
	fprintf(stderr, "memtoll: %s\n", valid);
}
