/* SPDX-License-Identifier: GPL-2.0 */
/*
 * top_show.h: snapshots to whoever looks: a screen, which has a thread of its own, as a terminal may
 * take any time to be written to; or lines on standard output.
 */
#ifndef MEMTOLL_TOP_SHOW_H
#define MEMTOLL_TOP_SHOW_H

#include "top/top_snapshot.h"

enum top_mode { TOP_SCREEN, TOP_BATCH, TOP_JSON };

struct top_show;

/*
 * count: the end is asked for after so many snapshots; 0: never. The end is asked for by SIGTERM to
 * this process: SIGTERM, SIGINT, SIGHUP and SIGPIPE are blocked from here on. NULL after a message.
 */
struct top_show *top_show_open(enum top_mode mode, unsigned int count);

/* Takes the snapshot. */
void top_show_snapshot(struct top_show *show, struct top_snapshot *snapshot);

/* A note that is to be recorded, freed by the caller; NULL: none. */
char *top_show_mark(struct top_show *show);

/*
 * All is over: closes the screen, once the user has seen it, where it ended by itself. Then what was
 * said meanwhile, and the verdict. False: lines could not be written, which was said.
 */
bool top_show_close(struct top_show *show, bool wait);

#endif /* MEMTOLL_TOP_SHOW_H */
