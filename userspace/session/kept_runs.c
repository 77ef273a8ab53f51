// SPDX-License-Identifier: GPL-2.0
#include "session/kept_runs.h"

#include <glib.h>

#define PER_SLICE 20000
#define AT_FIRST 1000000
#define PER_LATER_SLICE 100

struct kept_runs {
	GArray *kept;	  /* of struct kept_run, at most PER_SLICE */
	guint seen;	  /* in this slice; the kept ones are a sample of them */
	uint64_t drained; /* so far */
};

struct kept_runs *kept_runs_new(void)
{
	struct kept_runs *runs = g_new0(struct kept_runs, 1);

	runs->kept = g_array_new(FALSE, FALSE, sizeof(struct kept_run));
	return runs;
}

void kept_runs_free(struct kept_runs *runs)
{
	g_array_unref(runs->kept);
	g_free(runs);
}

/* A reservoir sample where there are too many: no gap in pictures at the end of each slice. */
bool kept_runs_add(struct kept_runs *runs, const struct kept_run *run)
{
	guint most = runs->drained < AT_FIRST ? PER_SLICE : PER_LATER_SLICE;
	guint at = runs->seen++;

	if (runs->kept->len < most) {
		g_array_append_vals(runs->kept, run, 1);
		return true;
	}
	at = g_random_int_range(0, at + 1);
	if (at < most)
		g_array_index(runs->kept, struct kept_run, at) = *run;
	return false;
}

void kept_runs_drain(struct kept_runs *runs,
		     void (*each)(void *context, const struct kept_run *run), void *context)
{
	guint i;

	for (i = 0; i < runs->kept->len; i++)
		each(context, &g_array_index(runs->kept, struct kept_run, i));
	runs->drained += runs->kept->len;
	runs->seen = 0;
	g_array_set_size(runs->kept, 0);
}
