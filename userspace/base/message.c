// SPDX-License-Identifier: GPL-2.0
#include "base/message.h"

#include <glib.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

#define CLEAR_LINE "\r\033[K"

static bool has_status; /* the cursor is behind one */

static struct {
	GMutex lock;
	void (*taker)(void *context, const char *line);
	void *context;
} diverted;

void message_divert(void (*taker)(void *context, const char *line), void *context)
{
	g_mutex_lock(&diverted.lock);
	diverted.taker = taker;
	diverted.context = context;
	g_mutex_unlock(&diverted.lock);
}

static struct {
	void (*on_last)(void *context);
	void *context;
} last;

void message_before_last(void (*on_last)(void *context), void *context)
{
	last.context = context;
	g_atomic_pointer_set(&last.on_last, on_last);
}

void message_at_once(const char *text)
{
	ssize_t written = 0;

	/* Over what a terminal's last line says. */
	if (isatty(STDERR_FILENO))
		written = write(STDERR_FILENO, CLEAR_LINE, strlen(CLEAR_LINE));
	written += write(STDERR_FILENO, text, strlen(text));
	(void)written;
}

void message_last(const char *text)
{
	void (*on_last)(void *context) = g_atomic_pointer_get(&last.on_last);

	if (on_last)
		on_last(last.context);
	message_at_once(text);
}

static bool is_diverted(const char *line)
{
	bool taken;

	g_mutex_lock(&diverted.lock);
	taken = diverted.taker;
	if (taken && line)
		diverted.taker(diverted.context, line);
	g_mutex_unlock(&diverted.lock);
	return taken;
}

/* In the background the terminal is another's; not our session's own, it is nobody's. */
bool status_line_shows(void)
{
	const char *term = getenv("TERM");
	pid_t front = tcgetpgrp(STDERR_FILENO);

	return !is_diverted(NULL) && isatty(STDERR_FILENO) && (front < 0 || front == getpgrp()) &&
	       term && strcmp(term, "dumb") != 0;
}

void status_line(const char *format, ...)
{
	struct winsize size = { 0 };
	g_autofree char *line = NULL;
	char text[256];
	va_list arguments;

	if (!format) {
		if (has_status)
			fputs(CLEAR_LINE, stderr);
		has_status = false;
		return;
	}
	if (!status_line_shows())
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	line = text_printable(text);
	ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
	/* A line that is broken could not be taken back; the name before it is as long as this. */
	text_cut(line, (size.ws_col ? size.ws_col : TEXT_WIDTH) - (long)strlen("memtoll: ") - 1);
	fprintf(stderr, CLEAR_LINE "memtoll: %s", line);
	has_status = true;
}

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
	if (is_diverted(line))
		return;
	/* In one write, so that output of a traced command cannot split the line. */
	fprintf(stderr, "%smemtoll: %s\n", has_status ? CLEAR_LINE : "", line);
	has_status = false;
}
