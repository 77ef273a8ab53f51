// SPDX-License-Identifier: GPL-2.0
#include "top/top_canvas.h"

struct top_canvas *top_canvas_new(unsigned int columns, unsigned int lines)
{
	struct top_canvas *canvas = g_new0(struct top_canvas, 1);
	size_t i;

	canvas->columns = columns;
	canvas->lines = lines;
	canvas->cells = g_new(gunichar, (size_t)columns * lines + 1);
	canvas->inks = g_new0(unsigned char, (size_t)columns *lines + 1);
	for (i = 0; i < (size_t)columns * lines; i++)
		canvas->cells[i] = ' ';
	return canvas;
}

void top_canvas_free(struct top_canvas *canvas)
{
	if (!canvas)
		return;
	g_free(canvas->cells);
	g_free(canvas->inks);
	g_free(canvas);
}

int top_canvas_put(struct top_canvas *canvas, int line, int column, enum top_ink ink,
		   const char *text)
{
	for (; *text; text = g_utf8_next_char(text), column++) {
		size_t place = (size_t)line * canvas->columns + column;
		gunichar letter = g_utf8_get_char(text);

		if (line < 0 || line >= (int)canvas->lines || column < 0 ||
		    column >= (int)canvas->columns)
			continue;
		/* A wide letter would move all that follows it; a combining one has no column. */
		canvas->cells[place] =
			g_unichar_iswide(letter) || g_unichar_iszerowidth(letter) ? '?' : letter;
		canvas->inks[place] = ink;
	}
	return column;
}

int top_canvas_right(struct top_canvas *canvas, int line, int column, int width, enum top_ink ink,
		     const char *text)
{
	int length = (int)g_utf8_strlen(text, -1);

	top_canvas_put(canvas, line, column + MAX(0, width - length), ink, text);
	return column + width;
}

void top_canvas_ink(struct top_canvas *canvas, int line, int column, enum top_ink ink)
{
	if (line < 0 || line >= (int)canvas->lines)
		return;
	for (; column < (int)canvas->columns; column++)
		canvas->inks[(size_t)line * canvas->columns + column] = ink;
}

char *top_canvas_line(const struct top_canvas *canvas, unsigned int line)
{
	char *text = g_ucs4_to_utf8(canvas->cells + (size_t)line * canvas->columns, canvas->columns,
				    NULL, NULL, NULL);

	return g_strchomp(text);
}
