// SPDX-License-Identifier: GPL-2.0
#include "watch/log.h"

#include <glib.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"
#include "base/text.h"

/* systemd.exec(5): "device:inode" of what stdout and stderr were connected to. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat status;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
	       !fstat(STDERR_FILENO, &status) && status.st_dev == device && status.st_ino == inode;
}

void watch_log(int priority, const char *format, ...)
{
	g_autofree char *text = NULL, *shown = NULL;
	va_list values;

	va_start(values, format);
	text = g_strdup_vprintf(format, values);
	va_end(values);
	shown = text_printable(text);
	if (is_journal())
		fprintf(stderr, "<%d>memtoll: %s\n", priority, shown);
	else
		fprintf(stderr, "memtoll: %s\n", shown);
}

static void take_message(void *context, const char *line)
{
	(void)context;
	watch_log(LOG_WARNING, "%s", line);
}

void watch_log_messages(void)
{
	if (is_journal())
		message_divert(take_message, NULL);
}
