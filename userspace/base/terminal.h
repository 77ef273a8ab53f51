/* SPDX-License-Identifier: GPL-2.0 */
/* terminal.h: what standard output can show. */
#ifndef MEMTOLL_TERMINAL_H
#define MEMTOLL_TERMINAL_H

#include <stdbool.h>

/* A terminal that is not dumb, and nobody has asked for none (https://no-color.org). */
bool wants_color(void);

#endif /* MEMTOLL_TERMINAL_H */
