// SPDX-License-Identifier: GPL-2.0
#include "watch/psi.h"

#include <glib.h>
#include <string.h>

bool psi_has(const char *name)
{
	static const char *const names[] = { "memory.some", "memory.full", "io.some",
					     "io.full",	    "cpu.some",	   NULL };

	return g_strv_contains(names, name);
}

bool psi_read_below(const char *directory, const char *name, double *percent)
{
	g_auto(GStrv) words = g_strsplit(name, ".", 2);
	g_autofree char *path = NULL, *text = NULL, *wanted = NULL;
	const char *found;

	if (!psi_has(name))
		return false;
	path = g_build_filename(directory, words[0], NULL);
	if (!g_file_get_contents(path, &text, NULL, NULL))
		return false;
	/* "some avg10=0.22 avg60=0.17 avg300=1.11 total=58761459" */
	wanted = g_strdup_printf("%s avg10=", words[1]);
	found = strstr(text, wanted);
	if (!found || (found != text && found[-1] != '\n'))
		return false;
	*percent = g_ascii_strtod(found + strlen(wanted), NULL);
	return true;
}

bool psi_read(const char *name, double *percent)
{
	return psi_read_below("/proc/pressure", name, percent);
}
