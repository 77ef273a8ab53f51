/* SPDX-License-Identifier: GPL-2.0 */
/* top_canvas.h: lines of characters and how each is shown; what a screen is made of, or a test. */
#ifndef MEMTOLL_TOP_CANVAS_H
#define MEMTOLL_TOP_CANVAS_H

#include <glib.h>

enum top_ink {
	INK_PLAIN,
	INK_BOLD,
	INK_TITLE,  /* of a table: reversed */
	INK_CHOSEN, /* a row */
	INK_ALERT,
	INK_QUIET,
	INK_ZEROING,
	INK_SWAP,
	INK_FILE,
	INK_MEMORY, /* other tolls */
	INK_COUNT,
};

struct top_canvas {
	unsigned int columns, lines;
	gunichar *cells;
	unsigned char *inks;
};

struct top_canvas *top_canvas_new(unsigned int columns, unsigned int lines);
void top_canvas_free(struct top_canvas *canvas);

/* What does not fit is cut off. The column after the last character. */
int top_canvas_put(struct top_canvas *canvas, int line, int column, enum top_ink ink,
		   const char *text);
/* Right-aligned in so many columns. */
int top_canvas_right(struct top_canvas *canvas, int line, int column, int width, enum top_ink ink,
		     const char *text);
/* From the column to the end of the line. */
void top_canvas_ink(struct top_canvas *canvas, int line, int column, enum top_ink ink);

/* A line without the blanks at its end. Freed by the caller. */
char *top_canvas_line(const struct top_canvas *canvas, unsigned int line);

#endif /* MEMTOLL_TOP_CANVAS_H */
