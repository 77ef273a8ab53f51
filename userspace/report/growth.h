/* SPDX-License-Identifier: GPL-2.0 */
/*
 * growth.h: two recordings of a program side by side: which sites do more memory work in the second.
 * By counts and bytes, which do not depend on the machine's mood; time only ranks them.
 */
#ifndef MEMTOLL_GROWTH_H
#define MEMTOLL_GROWTH_H

#include <sqlite3.h>
#include <stdbool.h>

#include "report/finding.h"

struct growth_side {
	sqlite3 *database;
	const char *path; /* as the user named it */
};

/*
 * The findings, the dearest first; freed by finding_list_free(). NULL after a line on stderr: a
 * recording cannot be read, is not finished, or they do not measure the same. *lossy: losses of one
 * are beyond the limit.
 */
struct finding_list *growth_find(const struct growth_side *before, const struct growth_side *after,
				 bool *lossy);

#endif /* MEMTOLL_GROWTH_H */
