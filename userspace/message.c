// SPDX-License-Identifier: GPL-2.0
#include "message.h"

#include <stdarg.h>
#include <stdio.h>

void message(const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	/* One write: lines of a traced command do not come in between. */
	fprintf(stderr, "memtoll: %s\n", text);
}
