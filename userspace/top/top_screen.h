/* SPDX-License-Identifier: GPL-2.0 */
/* top_screen.h: a canvas on a terminal, and its keys, by ncurses. Of one thread. */
#ifndef MEMTOLL_TOP_SCREEN_H
#define MEMTOLL_TOP_SCREEN_H

#include <stdbool.h>

#include "top/top_canvas.h"

struct top_screen;

/*
 * Takes the terminal over: standard input, output and error, as far as they are that terminal, are
 * /dev/null until the screen is closed, for whoever else writes or reads there. NULL, after a
 * message, where there is no terminal that can do it.
 */
struct top_screen *top_screen_open(void);
/* All is as before. */
void top_screen_close(struct top_screen *screen);

/* It shows ASCII only. */
bool top_screen_is_ascii(const struct top_screen *screen);
int top_screen_descriptor(const struct top_screen *screen);
/* A canvas of its size now. */
struct top_canvas *top_screen_canvas(struct top_screen *screen);
void top_screen_show(struct top_screen *screen, const struct top_canvas *canvas);
/* Everything again, whatever was there. */
void top_screen_redraw(struct top_screen *screen);

/* The next key that was pressed: Unicode, or enum top_key; TOP_KEY_NONE: none is waiting. */
unsigned int top_screen_key(struct top_screen *screen);

#endif /* MEMTOLL_TOP_SCREEN_H */
