// SPDX-License-Identifier: GPL-2.0
#include "base/shell.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

char *shell_words(char *const *argv)
{
	g_autoptr(GString) line = g_string_new(NULL);

	for (; *argv; argv++) {
		g_autofree char *quoted = g_shell_quote(*argv);
		bool plain = **argv && !strpbrk(*argv, " \t\n!\"#$&'()*;<>?[\\]^`{|}~");

		g_string_append_printf(line, "%s%s", line->len ? " " : "", plain ? *argv : quoted);
	}
	return g_strdup(line->str);
}

int shell_exit_status(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}
