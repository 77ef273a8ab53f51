// SPDX-License-Identifier: GPL-2.0
#include "base/terminal.h"

#include <errno.h>
#include <fcntl.h>
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

static pid_t pager; /* the process */

/* $MEMTOLL_PAGER, $PAGER or less; NULL where none is wanted. Freed by g_free(). */
static char *pager_command(void)
{
	const char *command = getenv("MEMTOLL_PAGER");

	if (!command)
		command = getenv("PAGER");
	if (!command)
		return g_find_program_in_path("less");
	return *command && strcmp(command, "cat") != 0 ? g_strdup(command) : NULL;
}

static void run_pager(const char *command, const int ends[2], void (*leave)(void))
{
	if (dup2(ends[0], STDIN_FILENO) < 0)
		_exit(NOT_FOUND);
	setenv("LESS", "FRX", 0);
	setenv("LESSSECURE", "1", 1);
	leave();
	execl("/bin/sh", "sh", "-c", command, NULL);
	_exit(NOT_FOUND);
}

FILE *pager_open(void (*leave)(void))
{
	g_autofree char *command = is_able() ? pager_command() : NULL;
	int ends[2];
	FILE *out;

	if (!command || pipe2(ends, O_CLOEXEC))
		return stdout;
	fflush(stdout);
	out = fdopen(ends[1], "w");
	pager = out ? fork() : -1;
	if (!pager)
		run_pager(command, ends, leave);
	close(ends[0]);
	if (pager < 0) {
		if (out)
			fclose(out);
		else
			close(ends[1]);
		return stdout;
	}
	/* ^C is for the pager, which is waited for; one that ends early ends us, as a pipe does. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	return out;
}

bool pager_close(FILE *out)
{
	int status = 0;

	if (out == stdout)
		return true;
	fclose(out);
	while (waitpid(pager, &status, 0) < 0 && errno == EINTR)
		;
	return !WIFEXITED(status) || WEXITSTATUS(status) != NOT_FOUND;
}
