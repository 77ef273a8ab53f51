/* SPDX-License-Identifier: GPL-2.0 */
/* top_keys.h: what keys do to the model. */
#ifndef MEMTOLL_TOP_KEYS_H
#define MEMTOLL_TOP_KEYS_H

#include "top/top_model.h"

/* Keys that are no letter; others are Unicode. */
enum top_key {
	TOP_KEY_NONE = 0x110000, /* beyond Unicode */
	TOP_KEY_CURSOR_UP,
	TOP_KEY_CURSOR_DOWN,
	TOP_KEY_CURSOR_LEFT,
	TOP_KEY_CURSOR_RIGHT,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_RUBOUT,
	TOP_KEY_REDRAW,
	TOP_KEY_OTHER,
};

void top_key(struct top_model *model, unsigned int key);

#endif /* MEMTOLL_TOP_KEYS_H */
