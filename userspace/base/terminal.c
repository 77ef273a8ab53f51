// SPDX-License-Identifier: GPL-2.0
#include "base/terminal.h"

#include <glib.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_FOUND 127 /* of a shell */

static bool is_able(void)
{
	return isatty(STDOUT_FILENO) && g_strcmp0(getenv("TERM"), "dumb");
}

bool wants_color(void)
{
	const char *no_color = getenv("NO_COLOR");

	return is_able() && !(no_color && *no_color);
}

void terminal_size(unsigned int *columns, unsigned int *lines)
{
	struct winsize size = { 0 };

	if (isatty(STDOUT_FILENO))
		ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*columns = size.ws_col;
	*lines = size.ws_row;
}

FILE *pager_open(void)
{
	const char *command = getenv("MEMTOLL_PAGER");
	g_autofree char *less = NULL;
	FILE *pager;

	if (!command)
		command = getenv("PAGER");
	if (!command) {
		less = g_find_program_in_path("less");
		command = less;
	}
	if (!command || !*command || !strcmp(command, "cat") || !is_able())
		return stdout;
	setenv("LESS", "FRX", 0);
	setenv("LESSSECURE", "1", 1);
	pager = popen(command, "we");
	if (!pager)
		return stdout;
	/* ^C is for the pager, which is waited for. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	return pager;
}

bool pager_close(FILE *pager)
{
	int status = pager == stdout ? 0 : pclose(pager);

	return !WIFEXITED(status) || WEXITSTATUS(status) != NOT_FOUND;
}
