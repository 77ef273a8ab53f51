/* SPDX-License-Identifier: GPL-2.0 */
/* terminal.h: what standard output can show, and the pager that shows more than that. */
#ifndef MEMTOLL_TERMINAL_H
#define MEMTOLL_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* A terminal that is not dumb, and nobody has asked for none (https://no-color.org). */
bool wants_color(void);

/* Its size; 0 and 0 where it is none, or does not tell. */
void terminal_size(unsigned int *columns, unsigned int *lines);

/*
 * Where a long text is written to: $MEMTOLL_PAGER, $PAGER or less, where standard output is a
 * terminal and such a program is wanted (neither empty nor "cat"); else standard output. less ends
 * by itself where the text fits the screen, and cannot start other programs. It is run after
 * leave(), which gives up what rights we have.
 */
FILE *pager_open(void (*leave)(void));

/* After the last line: waits for the pager. False: there is no such program, nothing was shown. */
bool pager_close(FILE *pager);

#endif /* MEMTOLL_TERMINAL_H */
