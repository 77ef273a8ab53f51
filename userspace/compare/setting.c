// SPDX-License-Identifier: GPL-2.0
#include "compare/setting.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Variables that are lists: how a name ends, what parts settings, and a setting's name from value.
 */
static const struct list {
	const char *suffix;
	const char *separator;
	const char *assign; /* "": the whole setting is its name */
	bool first;	    /* what stands first counts, not what stands last */
} lists[] = {
	{ "GLIBC_TUNABLES", ":", "=", false },
	{ "MALLOC_CONF", ",", ":", false }, /* jemalloc; with a prefix JE_MALLOC_CONF */
	{ "GODEBUG", ",", "=", false },
	{ "LD_PRELOAD", ":", "", true },
};

static const struct list *list_of(const char *name)
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(lists); i++)
		if (g_str_has_suffix(name, lists[i].suffix))
			return &lists[i];
	return NULL;
}

static bool same_name(const struct list *list, const char *a, const char *b)
{
	size_t length = *list->assign ? strcspn(a, list->assign) : strlen(a);

	return !strncmp(a, b, length) &&
	       (*list->assign ? strcspn(b, list->assign) : strlen(b)) == length;
}

char *setting_merge(const char *name, const char *before, const char *value)
{
	const struct list *list = list_of(name);
	g_auto(GStrv) old = NULL, new = NULL;
	GString *kept;
	size_t i, j;

	if (!list || !before || !*value)
		return g_strdup(value);
	old = g_strsplit(before, list->separator, -1);
	new = g_strsplit(value, list->separator, -1);
	kept = g_string_new(NULL);
	for (i = 0; old[i]; i++) {
		for (j = 0; new[j] && !same_name(list, new[j], old[i]); j++)
			;
		if (!new[j] && *old[i])
			g_string_append_printf(kept, "%s%s", kept->len ? list->separator : "",
					       old[i]);
	}
	if (kept->len)
		g_string_insert(kept, list->first ? 0 : -1, list->separator);
	g_string_insert(kept, list->first ? 0 : -1, value);
	return g_string_free(kept, FALSE);
}

static char *name_of(const char *assignment)
{
	return g_strndup(assignment, strcspn(assignment, "="));
}

void setting_enter(const GPtrArray *changes)
{
	guint i;

	for (i = 0; i < changes->len; i++) {
		const char *change = g_ptr_array_index(changes, i);
		g_autofree char *name = name_of(change), *value = NULL;

		value = setting_merge(name, getenv(name), change + strlen(name) + 1);
		setenv(name, value, 1);
	}
}

/* What env(1) makes of the environment. */
struct level {
	size_t program; /* index of the word that it runs; 0: none, or not known */
	char **environment;
	bool touched; /* it has been changed */
};

static bool is_env(const char *word)
{
	const char *slash = strrchr(word, '/');

	return !strcmp(slash ? slash + 1 : word, "env");
}

static void clear(struct level *level)
{
	g_strfreev(level->environment);
	level->environment = g_new0(char *, 1);
	level->touched = true;
}

/* One word of short options of env(1). The words it takes; 0: what follows is not known. */
static size_t short_options(struct level *level, char *const *words)
{
	const char *at = *words + 1;

	for (; *at; at++) {
		const char *value = at[1] ? at + 1 : words[1];

		switch (*at) {
		case 'i':
			clear(level);
			break;
		case '0':
		case 'v':
			break;
		case 'u':
			if (!value)
				return 0;
			level->environment = g_environ_unsetenv(level->environment, value);
			level->touched = true;
			return value == words[1] ? 2 : 1;
		case 'C':
			return !value ? 0 : value == words[1] ? 2 : 1;
		default:
			return 0;
		}
	}
	return 1;
}

/* The same of any option. Coreutils takes an argument of these long ones, if by the next word. */
static size_t option(struct level *level, char *const *words)
{
	const char *word = *words;

	if (!strcmp(word, "-") || !strcmp(word, "--ignore-environment")) {
		clear(level);
		return 1;
	}
	if (word[1] != '-')
		return short_options(level, words);
	if (g_str_has_prefix(word, "--split-string"))
		return 0;
	if (g_str_has_prefix(word, "--unset=") || (!strcmp(word, "--unset") && words[1])) {
		const char *name = word[7] ? word + 8 : words[1];

		level->environment = g_environ_unsetenv(level->environment, name);
		level->touched = true;
	}
	return !strcmp(word, "--unset") || !strcmp(word, "--chdir") ? (words[1] ? 2 : 0) : 1;
}

/* What env(1) at index `at` of the command does. */
static void enter_env(struct level *level, char *const *command, size_t at)
{
	size_t taken;

	level->program = 0;
	for (at++; command[at] && *command[at] == '-'; at += taken) {
		if (!strcmp(command[at], "--")) {
			at++;
			break;
		}
		taken = option(level, command + at);
		if (!taken)
			return;
	}
	for (; command[at] && strchr(command[at], '='); at++) {
		g_autofree char *name = name_of(command[at]);

		level->environment = g_environ_setenv(level->environment, name,
						      command[at] + strlen(name) + 1, TRUE);
		level->touched = true;
	}
	if (command[at])
		level->program = at;
}

/* The word that is run at last, after as many env(1) as there are. */
static void enter_all(struct level *level, char *const *command)
{
	size_t at = 0;

	do {
		enter_env(level, command, at);
		at = level->program;
	} while (at && is_env(command[at]));
}

char **setting_command(char *const *command, const GPtrArray *changes, char **environment)
{
	struct level level = { .environment = g_strdupv(environment) };
	GPtrArray *words = g_ptr_array_new();
	guint i;

	if (is_env(command[0]))
		enter_all(&level, command);
	for (i = 0; command[i]; i++) {
		guint j;

		for (j = 0; i && i == level.program && level.touched && j < changes->len; j++) {
			const char *change = g_ptr_array_index(changes, j);
			g_autofree char *name = name_of(change), *value = NULL;

			value = setting_merge(name, g_environ_getenv(level.environment, name),
					      change + strlen(name) + 1);
			level.environment = g_environ_setenv(level.environment, name, value, TRUE);
			g_ptr_array_add(words, g_strdup_printf("%s=%s", name, value));
		}
		g_ptr_array_add(words, g_strdup(command[i]));
	}
	g_ptr_array_add(words, NULL);
	g_strfreev(level.environment);
	return (char **)g_ptr_array_free(words, FALSE);
}

const char *setting_out_of_reach(char *const *command, const GPtrArray *changes)
{
	struct level level = { .environment = g_new0(char *, 1) };
	const char *found = NULL;
	size_t at;
	guint i;

	if (is_env(command[0]))
		enter_all(&level, command);
	g_strfreev(level.environment);
	for (at = MAX(level.program, 1); !found && command[at]; at++)
		for (i = 0; i < changes->len; i++) {
			g_autofree char *name = name_of(g_ptr_array_index(changes, i));
			g_autofree char *set = g_strconcat(name, "=", NULL);

			if (strstr(command[at], set))
				found = command[at];
		}
	return found;
}
