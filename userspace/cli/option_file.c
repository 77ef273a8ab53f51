// SPDX-License-Identifier: GPL-2.0
#include "cli/option_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* More is no file of options. */
#define BYTES_MOST (1 << 16)

static void line_free(gpointer data)
{
	struct option_line *line = data;

	g_strfreev(line->words);
	g_free(line);
}

/* False: *error says why. */
static bool add_line(GPtrArray *lines, unsigned int number, char *text, char **error)
{
	struct option_line *line;
	char **words;

	g_strstrip(text);
	if (!*text || *text == '#')
		return true;
	if (!g_shell_parse_argv(text, NULL, &words, NULL)) {
		*error = g_strdup_printf("%u: a quotation mark is missing", number);
		return false;
	}
	line = g_new(struct option_line, 1);
	line->number = number;
	line->words = words;
	g_ptr_array_add(lines, line);
	return true;
}

/* Not for ever, as a pipe's would be waited for. NULL: *error says why. */
static char *read_text(const char *path, char **error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *text = NULL;
	struct stat status;
	ssize_t got = -1;

	if (fd >= 0 && !fstat(fd, &status) && S_ISREG(status.st_mode)) {
		text = g_malloc0(BYTES_MOST + 1);
		got = read(fd, text, BYTES_MOST);
	} else if (fd >= 0) {
		errno = EINVAL;
	}
	if (got < 0)
		*error = g_strdup_printf(" %s", g_strerror(errno));
	else if (got == BYTES_MOST || strlen(text) != (size_t)got)
		*error = g_strdup(" it is no file of options");
	if (*error)
		g_clear_pointer(&text, g_free);
	if (fd >= 0)
		close(fd);
	return text;
}

GPtrArray *option_file_read(const char *path, char **error)
{
	g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(line_free);
	g_autofree char *text = NULL;
	g_auto(GStrv) texts = NULL;
	guint i;

	*error = NULL;
	text = read_text(path, error);
	if (!text)
		return NULL;
	texts = g_strsplit(text, "\n", -1);
	for (i = 0; texts[i]; i++)
		if (!add_line(lines, i + 1, texts[i], error))
			return NULL;
	return g_steal_pointer(&lines);
}
