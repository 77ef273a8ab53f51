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
	/* Paths, and SQLite's errors about a damaged file, may hold anything. */
	line = text_printable(text);
	/* In one write, so that output of a traced command cannot split the line. */
	fprintf(stderr, "memtoll: %s\n", line);
}
