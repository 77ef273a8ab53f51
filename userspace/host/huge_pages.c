// SPDX-License-Identifier: GPL-2.0
#include "host/huge_pages.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

bool huge_pages_chosen(const char *control, const char *word)
{
	char text[128] = "", chosen[32];
	FILE *file = fopen(control, "re");

	if (!file)
		return false;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	snprintf(chosen, sizeof(chosen), "[%s]", word);
	return strstr(text, chosen) != NULL;
}

const char *huge_pages_setting(void)
{
	static const char *const words[] = { "always", "madvise", "never" };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(words); i++)
		if (huge_pages_chosen(HUGE_PAGES_CONTROL, words[i]))
			return words[i];
	return NULL;
}
