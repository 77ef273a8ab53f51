// SPDX-License-Identifier: GPL-2.0
#include "report/resymbolize.h"

#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/debugfile.h"
#include "symbols/object.h"

/* Frames of a stack, inlined ones among them: more than any walk keeps. */
#define FRAMES_MAX 4096

/* A row of stack_frame joined with its frame. */
struct row {
	int64_t address;
	int64_t frame_id;
	bool inlined;
	bool native;
	char *module;
	char *build_id;
	int64_t module_offset;
	bool has_function;
	bool has_line;
};

struct resymbolizer {
	sqlite3 *database;
	char *const *directories;
	GHashTable *objects; /* build-id -> struct object or NULL */
	GHashTable *frames;  /* text of all columns of a frame -> its id */
	GHashTable *places;  /* build-id:offset, seen already */
	sqlite3_stmt *read_stack;
	sqlite3_stmt *clear_stack;
	sqlite3_stmt *add_stack_frame;
	sqlite3_stmt *add_frame;
	struct resymbolize_result *result;
};

static int sqlite_errno(sqlite3 *database)
{
	switch (sqlite3_errcode(database)) {
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_NOMEM:
		return -ENOMEM;
	default:
		return -EIO;
	}
}

static void row_clear(gpointer data)
{
	struct row *row = data;

	g_free(row->module);
	g_free(row->build_id);
}

static void object_unref(gpointer object)
{
	object_free(object);
}

/* The object of a build-id, NULL where no file with it was found. */
static struct object *object_of(struct resymbolizer *names, const struct row *row)
{
	struct object *object = NULL;
	char *path = NULL;
	gpointer known;
	int fd;

	if (g_hash_table_lookup_extended(names->objects, row->build_id, NULL, &known))
		return known;
	names->result->modules++;
	fd = debugfile_find(row->build_id, row->module, names->directories, &path);
	if (fd >= 0) {
		names->result->found++;
		object = object_new(fd, path, -1, NULL);
	}
	g_free(path);
	g_hash_table_insert(names->objects, g_strdup(row->build_id), object);
	return object;
}

static int64_t frame_find(struct resymbolizer *names, const struct row *row,
			  const struct object_frame *frame)
{
	g_autofree char *key =
		g_strdup_printf("%s\n%s\n%s\n%u\n%s\n%" PRId64, frame->function, row->module,
				frame->file, frame->line, row->build_id, row->module_offset);
	sqlite3_stmt *add = names->add_frame;
	int64_t *known = g_hash_table_lookup(names->frames, key);

	if (known)
		return *known;
	sqlite3_bind_text(add, 1, frame->function, -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(add, 2, row->module, -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(add, 3, frame->file, -1, SQLITE_TRANSIENT);
	sqlite3_bind_int64(add, 4, frame->line);
	sqlite3_bind_text(add, 5, row->build_id, -1, SQLITE_TRANSIENT);
	sqlite3_bind_int64(add, 6, row->module_offset);
	if (sqlite3_step(add) != SQLITE_DONE)
		return sqlite_errno(names->database);
	sqlite3_reset(add);
	known = g_new(int64_t, 1);
	*known = sqlite3_last_insert_rowid(names->database);
	g_hash_table_insert(names->frames, g_steal_pointer(&key), known);
	return *known;
}

static int add_stack_frame(struct resymbolizer *names, int64_t stack, int64_t depth,
			   const struct row *row, int64_t frame, bool inlined)
{
	sqlite3_stmt *add = names->add_stack_frame;

	sqlite3_bind_int64(add, 1, stack);
	sqlite3_bind_int64(add, 2, depth);
	sqlite3_bind_int64(add, 3, row->address);
	sqlite3_bind_int64(add, 4, frame);
	sqlite3_bind_int64(add, 5, inlined);
	if (sqlite3_step(add) != SQLITE_DONE)
		return sqlite_errno(names->database);
	sqlite3_reset(add);
	return 0;
}

/* Of the frames of an address the outermost is the function that the address lies in. */
static bool is_better(const struct row *row, const struct object_frame *frames, size_t count)
{
	return count && (*frames[count - 1].function || !row->has_function) &&
	       (frames[count - 1].line || !row->has_line);
}

static void count_place(struct resymbolizer *names, const struct row *row,
			const struct object_frame *frames, size_t count)
{
	char *place = g_strdup_printf("%s:%" PRId64, row->build_id, row->module_offset);

	if (!g_hash_table_add(names->places, place))
		return;
	names->result->addresses++;
	names->result->functions += count ? *frames[count - 1].function != 0 : row->has_function;
	names->result->lines += count ? frames[count - 1].line != 0 : row->has_line;
}

/*
 * One address: rows [first, last] of the stack, the innermost inlined function first. The leaf
 * stopped at its instruction; the others are return addresses, whose call lies before them.
 */
static int write_place(struct resymbolizer *names, int64_t stack, GArray *rows, guint first,
		       guint last, int64_t *depth)
{
	const struct row *row = &g_array_index(rows, struct row, last);
	struct object *object = row->native && *row->build_id ? object_of(names, row) : NULL;
	struct object_frame frames[OBJECT_FRAMES_MAX];
	size_t found = 0, count, i;
	int64_t frame;
	int err = 0;
	guint at;

	if (object)
		found = object_find(object, (uint64_t)row->module_offset - (first > 0), frames);
	/* Names without lines are no gain over those that the recording's machine had. */
	count = is_better(row, frames, found) ? found : 0;
	if (row->native && *row->build_id)
		count_place(names, row, frames, count);
	for (at = first; !count && at <= last && !err; at++) {
		const struct row *kept = &g_array_index(rows, struct row, at);

		err = add_stack_frame(names, stack, (*depth)++, kept, kept->frame_id,
				      kept->inlined);
	}
	for (i = 0; i < count && !err; i++) {
		frame = frame_find(names, row, &frames[i]);
		err = frame < 0 ?
			      (int)frame :
			      add_stack_frame(names, stack, (*depth)++, row, frame, i + 1 < count);
	}
	object_frames_free(frames, found);
	return err;
}

static int read_rows(struct resymbolizer *names, int64_t stack, GArray *rows)
{
	sqlite3_stmt *read = names->read_stack;
	int status;

	sqlite3_bind_int64(read, 1, stack);
	while ((status = sqlite3_step(read)) == SQLITE_ROW && rows->len < FRAMES_MAX) {
		struct row row = {
			.address = sqlite3_column_int64(read, 0),
			.frame_id = sqlite3_column_int64(read, 1),
			.inlined = sqlite3_column_int64(read, 2),
			.native = sqlite3_column_int64(read, 3),
			.module = g_strdup((const char *)sqlite3_column_text(read, 4)),
			.build_id = g_strdup((const char *)sqlite3_column_text(read, 5)),
			.module_offset = sqlite3_column_int64(read, 6),
			.has_function = sqlite3_column_int64(read, 7),
			.has_line = sqlite3_column_int64(read, 8),
		};

		g_array_append_val(rows, row);
	}
	sqlite3_reset(read);
	return status == SQLITE_DONE ? 0 :
	       status == SQLITE_ROW  ? -E2BIG :
				       sqlite_errno(names->database);
}

static int write_stack(struct resymbolizer *names, int64_t stack)
{
	GArray *rows = g_array_new(FALSE, FALSE, sizeof(struct row));
	int64_t depth = 0;
	guint first, last;
	int err;

	g_array_set_clear_func(rows, row_clear);
	err = read_rows(names, stack, rows);
	if (err)
		goto out;
	sqlite3_bind_int64(names->clear_stack, 1, stack);
	if (sqlite3_step(names->clear_stack) != SQLITE_DONE)
		err = sqlite_errno(names->database);
	sqlite3_reset(names->clear_stack);
	for (first = 0; first < rows->len && !err; first = last + 1) {
		last = first;
		while (last + 1 < rows->len && g_array_index(rows, struct row, last).inlined)
			last++;
		err = write_place(names, stack, rows, first, last, &depth);
	}
out:
	g_array_free(rows, TRUE);
	return err;
}

static int prepare(struct resymbolizer *names)
{
	const struct {
		sqlite3_stmt **statement;
		const char *sql;
	} wanted[] = {
		{ &names->read_stack,
		  "SELECT s.address, s.frame_id, s.inlined, f.kind = 'native', f.module,"
		  " f.build_id, f.module_offset, f.function <> '', f.line > 0 FROM stack_frame s JOIN frame f USING (frame_id)"
		  " WHERE s.stack_id = ? ORDER BY s.depth" },
		{ &names->clear_stack, "DELETE FROM stack_frame WHERE stack_id = ?" },
		{ &names->add_stack_frame, "INSERT INTO stack_frame VALUES (?, ?, ?, ?, ?)" },
		{ &names->add_frame,
		  "INSERT INTO frame (function, module, file, line, kind, build_id,"
		  " module_offset) VALUES (?, ?, ?, ?, 'native', ?, ?)" },
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(wanted); i++)
		if (sqlite3_prepare_v2(names->database, wanted[i].sql, -1, wanted[i].statement,
				       NULL) != SQLITE_OK)
			return sqlite_errno(names->database);
	return 0;
}

static int stack_ids(sqlite3 *database, GArray *ids)
{
	sqlite3_stmt *statement = NULL;
	int status = sqlite3_prepare_v2(database, "SELECT DISTINCT stack_id FROM stack_frame", -1,
					&statement, NULL);

	while (status == SQLITE_OK && (status = sqlite3_step(statement)) == SQLITE_ROW) {
		int64_t id = sqlite3_column_int64(statement, 0);

		g_array_append_val(ids, id);
		status = SQLITE_OK;
	}
	sqlite3_finalize(statement);
	return status == SQLITE_DONE ? 0 : sqlite_errno(database);
}

static int execute(sqlite3 *database, const char *sql)
{
	return sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 :
									    sqlite_errno(database);
}

int resymbolize(sqlite3 *database, char *const *directories, struct resymbolize_result *result)
{
	struct resymbolizer names = {
		.database = database,
		.directories = directories,
		.result = result,
		.objects = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, object_unref),
		.frames = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
		.places = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
	};
	GArray *ids = g_array_new(FALSE, FALSE, sizeof(int64_t));
	int err;
	guint i;

	memset(result, 0, sizeof(*result));
	object_guard_install();
	err = prepare(&names);
	if (!err)
		err = stack_ids(database, ids);
	for (i = 0; i < ids->len && !err; i++)
		err = write_stack(&names, g_array_index(ids, int64_t, i));
	if (!err)
		err = execute(database, "DELETE FROM frame WHERE frame_id NOT IN"
					" (SELECT frame_id FROM stack_frame)");
	sqlite3_finalize(names.read_stack);
	sqlite3_finalize(names.clear_stack);
	sqlite3_finalize(names.add_stack_frame);
	sqlite3_finalize(names.add_frame);
	if (!err)
		err = execute(database, "COMMIT");
	if (err)
		sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL);
	object_guard_remove();
	g_array_free(ids, TRUE);
	g_hash_table_destroy(names.objects);
	g_hash_table_destroy(names.frames);
	g_hash_table_destroy(names.places);
	return err;
}
