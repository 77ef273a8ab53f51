// SPDX-License-Identifier: GPL-2.0
/* recording_names.c: names of code that come when its stacks are written already. */
#include <errno.h>
#include <glib.h>

#include "recording/recording_store.h"

/* Of more the rest stays without names: stacks are bounded, this is for hostile ones. */
#define PLACES_MAX (1U << 20)

struct place {
	int64_t stack;
	int64_t depth;
	uint64_t address;
};

/* All of them first: rows are changed afterwards. */
static int read_places(struct recording *recording, pid_t pid, GArray *places)
{
	static const char sql[] =
		"SELECT f.stack_id, f.depth, f.address FROM stack JOIN stack_frame f USING (stack_id)"
		" WHERE stack.pid = ? AND f.frame_id IN (SELECT frame_id FROM frame"
		" WHERE function = '' AND (kind = 'jit' OR module = ''))";
	sqlite3_stmt *read = NULL;
	int status = sqlite3_prepare_v2(recording->database, sql, -1, &read, NULL);

	if (status == SQLITE_OK)
		sqlite3_bind_int64(read, 1, pid);
	while (status == SQLITE_OK && (status = sqlite3_step(read)) == SQLITE_ROW &&
	       places->len < PLACES_MAX) {
		struct place place = {
			.stack = sqlite3_column_int64(read, 0),
			.depth = sqlite3_column_int64(read, 1),
			.address = (uint64_t)sqlite3_column_int64(read, 2),
		};

		g_array_append_val(places, place);
		status = SQLITE_OK;
	}
	sqlite3_finalize(read);
	return status == SQLITE_DONE || status == SQLITE_ROW ? 0 : -EIO;
}

int recording_name_jit(struct recording *recording, pid_t pid, const struct jit_namer *namer)
{
	g_autoptr(GArray) places = g_array_new(FALSE, FALSE, sizeof(struct place));
	int err = recording->error ?: read_places(recording, pid, places);
	int64_t number;
	guint i;

	for (i = 0; i < places->len && !err; i++) {
		const struct place *place = &g_array_index(places, struct place, i);
		struct frame frame;

		if (!namer->name(namer->context, place->address, place->depth > 0, &frame))
			continue;
		err = recording_frame_number(recording, &frame, &number);
		if (!err)
			err = STORE(recording, STMT_RENAME, signed_int(number),
				    signed_int(place->stack), signed_int(place->depth));
	}
	return err;
}
