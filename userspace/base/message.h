/* SPDX-License-Identifier: GPL-2.0 */
/* message.h: messages to the user, on stderr, a line each, with the tool's name. */
#ifndef MEMTOLL_MESSAGE_H
#define MEMTOLL_MESSAGE_H

#include <stdbool.h>

/* Exit statuses (userspace/doc/commands.md). */
enum {
	STATUS_DONE = 0,
	STATUS_FAILED = 1,
	STATUS_USAGE = 2,
	STATUS_UNSUPPORTED = 3, /* this kernel or these privileges cannot do it */
	STATUS_LOSSES = 4,	/* finished, but losses exceed the limit */
	STATUS_OVER_BUDGET = 5, /* of memtoll gate */
};

/* "memtoll: " + text + newline. */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * What goes on now, on the last line of a terminal, until the next message or status; NULL: nothing
 * any more. Says nothing where stderr is no terminal. Of one thread only.
 */
void status_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Messages go to taker, without the tool's name, and there is no status line, until the next call;
 * NULL: to stderr again. For who has the terminal.
 */
void message_divert(void (*taker)(void *context, const char *line), void *context);

/* The text as it is, without stdio: a thread that hangs may hold its locks. */
void message_at_once(const char *text);

/*
 * The same, by a thread that ends the process then. on_last is called before, in that case alone: it
 * may take no lock either. NULL: nothing any more.
 */
void message_last(const char *text);
void message_before_last(void (*on_last)(void *context), void *context);

/* Whether it says anything just now. */
bool status_line_shows(void);

#endif /* MEMTOLL_MESSAGE_H */
