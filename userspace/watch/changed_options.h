/* SPDX-License-Identifier: GPL-2.0 */
/* changed_options.h: what of new options can be taken over while the watch goes on. */
#ifndef MEMTOLL_CHANGED_OPTIONS_H
#define MEMTOLL_CHANGED_OPTIONS_H

#include <glib.h>

#include "watch/watch.h"

struct changed_options {
	GString *taken; /* "-I, --when": names, or "" */
	GString *restart;
};

/*
 * Takes over from fresh what can be, and names it. Triggers that stay go on counting how long they
 * have held. Texts are fresh's.
 */
struct changed_options changed_options_take(struct watch_config *now, struct watch_config *fresh);
void changed_options_clear(struct changed_options *changed);

#endif /* MEMTOLL_CHANGED_OPTIONS_H */
