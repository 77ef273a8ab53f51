// SPDX-License-Identifier: GPL-2.0
#include "top/top_place.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "top/top_pseudonyms.h"

#define CALLERS 3
#define FRAMES "48"
#define KEPT_MOST 20000

struct top_places {
	struct top_pseudonyms *pseudonyms;
	GHashTable *names; /* int64_t -> char * */
};

struct frame {
	char *function;
	char *place; /* "main.c:12", or the module where no line is known */
	bool has_line;
	bool library;
};

struct top_places *top_places_new(struct top_pseudonyms *pseudonyms)
{
	struct top_places *places = g_new0(struct top_places, 1);

	places->pseudonyms = pseudonyms;
	places->names = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	return places;
}

void top_places_free(struct top_places *places)
{
	if (!places)
		return;
	g_hash_table_destroy(places->names);
	g_free(places);
}

/* Libraries that everybody calls, and whose names say little of why. */
static bool is_library(const char *base)
{
	static const char *const prefixes[] = { "libc.so",     "libc-2",      "ld-",
						"ld.so",       "libstdc++",   "libjemalloc",
						"libtcmalloc", "libmimalloc", "libpthread",
						"ld-musl" };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(prefixes); i++)
		if (g_str_has_prefix(base, prefixes[i]))
			return true;
	return false;
}

static void clear_frame(gpointer data)
{
	struct frame *frame = data;

	g_free(frame->function);
	g_free(frame->place);
}

static const char *text(sqlite3_stmt *row, int column)
{
	const char *value = (const char *)sqlite3_column_text(row, column);

	return value ? value : "";
}

/* Where no line is known the module; of code in no file its address. */
static char *place_of(struct top_pseudonyms *pseudonyms, sqlite3_stmt *row, bool has_line)
{
	const char *path = has_line ? text(row, 2) : text(row, 1);
	g_autofree char *base = g_path_get_basename(path);
	g_autofree char *said = NULL;

	if (!*path && pseudonyms)
		return g_strdup("code in no file");
	if (!*path)
		return g_strdup_printf("0x%llx", sqlite3_column_int64(row, 4));
	said = top_pseudonym_file(pseudonyms, base);
	if (has_line)
		return g_strdup_printf("%s:%d", said, sqlite3_column_int(row, 3));
	return g_steal_pointer(&said);
}

static GArray *frames_of(struct top_pseudonyms *pseudonyms, sqlite3 *recording, int64_t stack)
{
	GArray *frames = g_array_new(FALSE, TRUE, sizeof(struct frame));
	sqlite3_stmt *row = NULL;

	g_array_set_clear_func(frames, clear_frame);
	sqlite3_prepare_v2(recording,
			   "SELECT f.function, f.module, f.file, f.line, s.address"
			   " FROM main.stack_frame s JOIN main.frame f ON f.frame_id = s.frame_id"
			   " WHERE s.stack_id = ? ORDER BY s.depth LIMIT " FRAMES,
			   -1, &row, NULL);
	sqlite3_bind_int64(row, 1, stack);
	while (row && sqlite3_step(row) == SQLITE_ROW) {
		g_autofree char *module = g_path_get_basename(text(row, 1));
		const bool has_line = *text(row, 2) && sqlite3_column_int(row, 3) > 0;
		const struct frame frame = {
			.function = top_pseudonym_function(pseudonyms, text(row, 0)),
			.place = place_of(pseudonyms, row, has_line),
			.has_line = has_line,
			.library = is_library(module),
		};

		g_array_append_val(frames, frame);
	}
	sqlite3_finalize(row);
	return frames;
}

/* The first of the most usable: own code with a line, with a name; anything with a name. */
static guint most_usable(const GArray *frames)
{
	guint best = 0, i;
	int least = 9, usable;

	for (i = 0; i < frames->len; i++) {
		const struct frame *frame = &g_array_index(frames, struct frame, i);

		usable = !frame->library && frame->has_line  ? 0 :
			 !frame->library && *frame->function ? 1 :
			 *frame->function		     ? 2 :
							       3;
		if (usable < least) {
			least = usable;
			best = i;
		}
	}
	return best;
}

static char *describe(const GArray *frames)
{
	GString *said = g_string_new(NULL);
	guint first = most_usable(frames), i;
	int callers = 0;

	for (i = first; i < frames->len && callers <= CALLERS; i++) {
		const struct frame *frame = &g_array_index(frames, struct frame, i);

		if (i == first && *frame->function)
			g_string_append_printf(said, "%s (%s)", frame->place, frame->function);
		else if (i == first)
			g_string_append(said, frame->place);
		else if (*frame->function && !frame->library)
			g_string_append_printf(said, " < %s", frame->function);
		callers += i == first || (*frame->function && !frame->library);
	}
	return g_string_free(said, FALSE);
}

const char *top_place(struct top_places *places, sqlite3 *recording, int64_t stack)
{
	char *name = g_hash_table_lookup(places->names, &stack);
	int64_t *key;
	GArray *frames;

	if (name)
		return name;
	frames = frames_of(places->pseudonyms, recording, stack);
	if (frames->len) {
		if (g_hash_table_size(places->names) >= KEPT_MOST)
			g_hash_table_remove_all(places->names);
		name = describe(frames);
		key = g_new(int64_t, 1);
		*key = stack;
		g_hash_table_insert(places->names, key, name);
	}
	g_array_free(frames, TRUE);
	return name;
}
