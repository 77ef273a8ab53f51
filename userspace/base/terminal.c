// SPDX-License-Identifier: GPL-2.0
#include "base/terminal.h"

#include <glib.h>
#include <stdlib.h>
#include <unistd.h>

bool wants_color(void)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(no_color && *no_color) && g_strcmp0(term, "dumb");
}
