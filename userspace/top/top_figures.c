// SPDX-License-Identifier: GPL-2.0
#include "top/top_figures.h"

#include <string.h>

static void scaled(char text[TOP_FIGURE], double value, double step, const char *letters)
{
	size_t i = 0;

	while (value >= 999.5 && letters[i + 1]) {
		value /= step;
		i++;
	}
	if (!i)
		g_snprintf(text, TOP_FIGURE, "%.0f%s", value, letters[0] == ' ' ? "" : "B");
	else
		g_snprintf(text, TOP_FIGURE, "%.*f%c",
			   value < 9.95 ? 2 :
			   value < 99.5 ? 1 :
					  0,
			   value, letters[i]);
}

static void duration(char text[TOP_FIGURE], double ns)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } };
	size_t i = 0;

	while (i < G_N_ELEMENTS(units) - 1 && ns < units[i].ns)
		i++;
	ns /= units[i].ns;
	g_snprintf(text, TOP_FIGURE, "%.*f%s", ns < 9.95 ? 1 : 0, ns, units[i].name);
}

void top_figure(char text[TOP_FIGURE], enum top_unit unit, double value, uint64_t time_ns)
{
	if (value <= 0) {
		g_strlcpy(text, "-", TOP_FIGURE);
		return;
	}
	switch (unit) {
	case TOP_COUNT:
		if (value < 99999.5)
			g_snprintf(text, TOP_FIGURE, "%.0f", value);
		else
			scaled(text, value, 1000, " kMGT");
		break;
	case TOP_BYTES:
		scaled(text, value, 1024, "BKMGT");
		break;
	case TOP_TIME:
		duration(text, value);
		break;
	case TOP_PART:
		g_snprintf(text, TOP_FIGURE, "%.*f%%", value < 0.0995 * time_ns ? 1 : 0,
			   time_ns ? 100 * value / time_ns : 0);
		break;
	}
}

void top_measure_figure(char text[TOP_FIGURE], const struct top_measure *measure)
{
	char amount[TOP_FIGURE];

	if (measure->is_share) {
		g_snprintf(text, TOP_FIGURE, "%.0f %%", 100 * measure->value);
		return;
	}
	top_figure(amount, TOP_COUNT, measure->value, 0);
	g_snprintf(text, TOP_FIGURE, "%.12s/s", strcmp(amount, "-") ? amount : "0");
}

char *top_sparkline(const double *values, size_t count, double most, bool ascii)
{
	static const char *const bars[2][8] = {
		{ "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" },
		{ "_", ".", ":", "-", "=", "+", "*", "#" },
	};
	GString *text = g_string_new(NULL);
	size_t i;

	for (i = 0; i < count; i++) {
		double part = most > 0 ? CLAMP(values[i] / most, 0, 1) : 0;

		g_string_append(text, bars[ascii][MIN(7, (int)(part * 8))]);
	}
	return g_string_free(text, FALSE);
}
