// SPDX-License-Identifier: GPL-2.0
#include "base/message.h"

#include <glib.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

void message(const char *format, ...)
{
	g_autofree char *line = NULL;
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	/* Paths and what a damaged file made SQLite say are anybody's. */
	line = text_printable(text);
	/* One write: lines of a traced command do not come in between. */
	fprintf(stderr, "memtoll: %s\n", line);
}
