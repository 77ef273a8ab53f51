/* SPDX-License-Identifier: GPL-2.0 */
/* top_draw.h: the model as a screen. */
#ifndef MEMTOLL_TOP_DRAW_H
#define MEMTOLL_TOP_DRAW_H

#include "top/top_canvas.h"
#include "top/top_model.h"

#define TOP_COLUMNS_LEAST 40
#define TOP_LINES_LEAST 8

/* ascii: the terminal shows no other letters. */
void top_draw(struct top_canvas *canvas, const struct top_model *model, bool ascii);

/* "none", "little", or those beyond the limit by name. Freed by the caller. */
char *top_losses(const struct top_snapshot *snapshot);

#endif /* MEMTOLL_TOP_DRAW_H */
