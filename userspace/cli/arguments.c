// SPDX-License-Identifier: GPL-2.0
#include "cli/arguments.h"

#include <glib.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/message.h"

struct input {
	const char *name;
	void *input;
	int failed_at; /* where parsing stopped: the word after the one in error */
};

static const struct argp_option help_options[] = {
	{ "help", 'h', NULL, 0, "print this help", -1 },
	{ 0 },
};

/* argp's own help stays silent together with its errors; so --help is an option like others. */
static error_t parse_help(int key, char *value, struct argp_state *state)
{
	struct input *input = state->input;

	(void)value;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = input->input;
		return 0;
	case ARGP_KEY_ERROR:
		input->failed_at = state->next;
		return 0;
	case 'h':
		argp_help(state->root_argp, stdout,
			  ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC,
			  (char *)input->name);
		exit(fflush(stdout) ? STATUS_FAILED : STATUS_DONE);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int parse_arguments(const struct argp *argp, int argc, char **argv, void *input)
{
	g_autofree char *name = g_strdup_printf("memtoll %s", argv[0]);
	struct input both = { .name = name, .input = input };
	/* Usage and text are printed once, by the root. */
	const struct argp bare = {
		.options = argp->options,
		.parser = argp->parser,
		.children = argp->children,
	};
	const struct argp_child children[] = { { &bare, 0, NULL, 0 }, { 0 } };
	const struct argp root = {
		.options = help_options,
		.parser = parse_help,
		.children = children,
		.args_doc = argp->args_doc,
		.doc = argp->doc,
	};

	if (!argp_parse(&root, argc, argv, ARGP_IN_ORDER | ARGP_NO_ERRS | ARGP_NO_HELP, NULL,
			&both))
		return STATUS_DONE;
	message("%s: unknown option, or its value is missing; try 'memtoll %s --help'",
		both.failed_at > 0 && both.failed_at <= argc ? argv[both.failed_at - 1] : "?",
		argv[0]);
	return STATUS_USAGE;
}

void refuse(const char *format, ...)
{
	va_list values;
	char *text;

	va_start(values, format);
	text = g_strdup_vprintf(format, values);
	va_end(values);
	message("%s", text);
	g_free(text); /* what is freed at the end of its scope is not freed by exit() */
	exit(STATUS_USAGE);
}

void take_recording(const char **file, const char *command, const char *value)
{
	if (*file)
		refuse("%s: %s: one file at a time (see memtoll %s --help)", command, value,
		       command);
	*file = value;
}

void want_recording(const char *file, const char *command)
{
	if (!file)
		refuse("%s: name the recording (see memtoll %s --help)", command, command);
}
