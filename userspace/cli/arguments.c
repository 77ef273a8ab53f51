// SPDX-License-Identifier: GPL-2.0
#include "cli/arguments.h"

#include <glib.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/options.h"
#include "base/text.h"
#include "cli/option_list.h"
#include "recording/recording.h"

#define SLIP_LETTERS 2

/* Around each message. */
static const char *before = "", *after = "";

struct input {
	const char *name;
	void *input;
	int failed_at; /* where parsing stopped: the word after the one in error */
};

enum option_key {
	OPTION_LIST = 0x10000, /* beyond the commands' own */
};

static const struct argp_option help_options[] = {
	{ "help", 'h', NULL, 0, "print this help", -1 },
	{ "list-options", OPTION_LIST, NULL, OPTION_HIDDEN, NULL, -1 },
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
	case OPTION_LIST:
		print_option_list(state->root_argp);
		exit(fflush(stdout) ? STATUS_FAILED : STATUS_DONE);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void arguments_are_of(const char *place, const char *consequence)
{
	before = place;
	after = consequence;
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	g_autofree char *text = NULL;
	va_list values;

	va_start(values, format);
	text = g_strdup_vprintf(format, values);
	va_end(values);
	message("%s%s%s", before, text, after);
}

/* What is looked for among options, and what was found. */
struct lookup {
	const char *word; /* without its value */
	bool is_long;
	bool exists;
	bool takes_value;
	const char *near;
	size_t distance; /* the most that is taken for a slip of the fingers */
};

static void look_at(struct lookup *lookup, const struct argp_option *option)
{
	const char *word = lookup->word;
	size_t distance;

	if (!lookup->is_long) {
		lookup->exists |= word[0] == '-' && word[1] == option->key && !word[2];
		lookup->takes_value |= lookup->exists && option->arg;
	} else if (option->name) {
		distance = text_distance(word + 2, option->name);
		lookup->exists |= !distance;
		lookup->takes_value |= !distance && option->arg;
		if (distance <= lookup->distance) {
			lookup->distance = distance;
			lookup->near = option->name;
		}
	}
}

static void look_through(struct lookup *lookup, const struct argp *argp)
{
	const struct argp_option *option;
	const struct argp_child *child;

	for (option = argp->options; option && (option->name || option->key || option->doc);
	     option++)
		look_at(lookup, option);
	for (child = argp->children; child && child->argp; child++)
		look_through(lookup, child->argp);
}

/*
 * One line on the word at which argp gave up: an option that exists lacks its value, of another the
 * nearest is named. Of several letters in one word ("-dp") it is not known which it was.
 */
static void complain(const struct argp *argp, const char *given, const char *command)
{
	g_autofree char *word = g_strndup(given, strcspn(given, "="));
	struct lookup lookup = { .word = word,
				 .is_long = g_str_has_prefix(word, "--"),
				 .distance = SLIP_LETTERS };

	look_through(&lookup, argp);
	if (lookup.exists && !lookup.takes_value)
		say("%s: it takes no value; try 'memtoll %s --help'", given, command);
	else if (lookup.exists)
		say("%s: its value is missing; try 'memtoll %s --help'", word, command);
	else if (lookup.near)
		say("%s: unknown option; did you mean --%s? Try 'memtoll %s --help'", word,
		    lookup.near, command);
	else
		say("%s: unknown option, or its value is missing; try 'memtoll %s --help'", word,
		    command);
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
	complain(argp,
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
	say("%s", text);
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

uint64_t take_max_size(const char *value)
{
	uint64_t bytes;

	if (!parse_size(value, &bytes) || bytes < RECORDING_LIMIT_MIN)
		refuse("--max-size '%s' is not a size of at least 1M; use 100M or 2G", value);
	return bytes;
}
