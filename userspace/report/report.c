// SPDX-License-Identifier: GPL-2.0
/*
 * report.c: the views over a recording, worked out once and handed on as JSON or folded stacks. The
 * text is report_text.c.
 */
#include "report/report.h"

#include <errno.h>
#include <glib.h>
#include <string.h>

#include "base/message.h"
#include "base/text.h"
#include "recording/recording_guard.h"
#include "recording/recording_schema.h"
#include "report/report_views.h"
#include "report_schema.h"

void report_complain(sqlite3 *database, const char *what)
{
	const char *path = sqlite3_db_filename(database, "main");

	/* recording_guard() */
	if (sqlite3_errcode(database) == SQLITE_INTERRUPT)
		what = "it asks for more work than a recording of its size can need";
	else if (sqlite3_errcode(database) == SQLITE_NOMEM)
		what = "it asks for more memory than there is, or than its size can need";
	message("%s cannot be read: %s", path && *path ? path : "the recording", what);
}

/*
 * What only the text, the short one or only the JSON is made of is named after it: work for each
 * site.
 */
static bool is_wanted(const char *name, const char *last)
{
	static const char *const suffixes[] = { "_page", "_short", "_json" };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(suffixes); i++)
		if (g_str_has_suffix(name, suffixes[i]) && !g_str_has_suffix(last, suffixes[i]))
			return false;
	return true;
}

static int run(sqlite3 *database, const char *sql)
{
	if (sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK)
		return 0;
	report_complain(database, sqlite3_errmsg(database));
	return -EIO;
}

/* Freed by sqlite3_free(); NULL: no memory. */
static char *view_sql(const struct recording_view *view, bool as_table)
{
	char *sql = sqlite3_mprintf("CREATE TEMP %s \"%w\" AS %s\n;\n", as_table ? "TABLE" : "VIEW",
				    view->name, view->query);

	if (!sql || !as_table || !view->index)
		return sql;
	return sqlite3_mprintf("%zCREATE INDEX temp.\"%w_index\" ON \"%w\" (%s);\n", sql,
			       view->name, view->name, view->index);
}

/*
 * Unqualified names are looked up in temp first: each view sees what was made before it, never what
 * the file has of that name.
 */
static int make_view(sqlite3 *database, const struct recording_view *view, bool as_table)
{
	char *drop, *create;
	int err = -ENOMEM;

	/* Of an earlier call. */
	drop = sqlite3_mprintf("DROP %s IF EXISTS temp.\"%w\"", as_table ? "TABLE" : "VIEW",
			       view->name);
	create = view_sql(view, as_table);
	if (drop && create)
		err = run(database, drop);
	if (!err)
		err = run(database, create);
	sqlite3_free(create);
	sqlite3_free(drop);
	return err;
}

int report_view_make(sqlite3 *database, const char *name, bool as_table)
{
	const GPtrArray *views = recording_schema_views();
	guint i;

	for (i = 0; i < views->len; i++) {
		const struct recording_view *view = g_ptr_array_index(views, i);

		if (!strcmp(view->name, name))
			return make_view(database, view, as_table);
	}
	g_assert_not_reached();
}

static int trim_sites(sqlite3 *database, unsigned int sites)
{
	char *sql;
	int err;

	if (!sites)
		return 0;
	sql = sqlite3_mprintf("DELETE FROM temp.site_row_json WHERE rank > %u", sites);
	if (!sql)
		return -ENOMEM;
	err = run(database, sql);
	sqlite3_free(sql);
	return err;
}

int report_views_make(sqlite3 *database, const char *last, unsigned int sites)
{
	const GPtrArray *views = recording_schema_views();
	const struct recording_view *view;
	int err = 0;
	guint i = 0;

	/* One snapshot for all of them, though the writer may go on. */
	if (run(database, "SAVEPOINT report"))
		return -EIO;
	do {
		view = g_ptr_array_index(views, i);
		if (!is_wanted(view->name, last))
			continue;
		/* Of those that are not printed no JSON is made. */
		if (!strcmp(view->name, "site_json"))
			err = trim_sites(database, sites);
		recording_guard_length(database, g_str_has_suffix(view->name, "_json"));
		if (!err)
			err = make_view(database, view, !view->kept);
	} while (!err && strcmp(view->name, last) && ++i < views->len);
	/* What was ended for its work, or ran out of memory, has taken the savepoint with it. */
	if (!sqlite3_get_autocommit(database) && run(database, "RELEASE report") && !err)
		err = -EIO;
	return err;
}

int report_flush(FILE *out)
{
	if (!fflush(out) && !ferror(out))
		return 0;
	message("the report cannot be written: %s", g_strerror(errno));
	return -EIO;
}

int report_json(sqlite3 *database, const struct report_options *options, FILE *out)
{
	sqlite3_stmt *statement = NULL;
	const char *json;
	char *valid;
	int err;

	err = report_views_make(database, "report_json", options->sites);
	if (err)
		return err;
	err = -EIO;
	if (sqlite3_prepare_v2(database, "SELECT json FROM temp.report_json", -1, &statement,
			       NULL) != SQLITE_OK ||
	    sqlite3_step(statement) != SQLITE_ROW) {
		report_complain(database, sqlite3_errmsg(database));
		goto out;
	}
	json = (const char *)sqlite3_column_text(statement, 0);
	if (!json) {
		report_complain(database, "the report is empty");
		goto out;
	}
	/* recording.c writes UTF-8 only; what a damaged file holds must not break a JSON reader. */
	valid = text_json(json);
	fprintf(out, "%s\n", valid);
	g_free(valid);
	err = report_flush(out);
out:
	sqlite3_finalize(statement);
	return err;
}

int report_print_schema(FILE *out)
{
	fputs(report_schema, out);
	return report_flush(out);
}

int report_print_views(FILE *out)
{
	const GPtrArray *views = recording_schema_views();
	guint i;

	for (i = 0; i < views->len; i++) {
		const struct recording_view *view = g_ptr_array_index(views, i);
		/* What is made of each site for printing is made when it is asked for. */
		char *sql = view_sql(view, !view->kept && is_wanted(view->name, ""));

		if (!sql)
			return -ENOMEM;
		fputs(sql, out);
		sqlite3_free(sql);
	}
	return report_flush(out);
}

int report_folded(sqlite3 *database, const char *toll, FILE *out)
{
	sqlite3_stmt *statement = NULL;
	int err;

	err = report_views_make(database, "folded", 0);
	if (err)
		return err;
	err = -EIO;
	if (sqlite3_prepare_v2(database,
			       "SELECT stack, weight FROM temp.folded WHERE toll = ?"
			       " ORDER BY weight DESC, stack",
			       -1, &statement, NULL) != SQLITE_OK ||
	    sqlite3_bind_text(statement, 1, toll, -1, SQLITE_STATIC) != SQLITE_OK) {
		report_complain(database, sqlite3_errmsg(database));
		goto out;
	}
	while (sqlite3_step(statement) == SQLITE_ROW) {
		char *stack = text_printable((const char *)sqlite3_column_text(statement, 0));

		fprintf(out, "%s %lld\n", stack, (long long)sqlite3_column_int64(statement, 1));
		g_free(stack);
	}
	err = report_flush(out);
out:
	sqlite3_finalize(statement);
	return err;
}

bool report_losses_exceed(sqlite3 *database, char **which)
{
	g_autofree char *losses = recording_schema_query("losses");
	g_autofree char *query =
		g_strconcat("SELECT group_concat(printf('%s %d (%s)', name, count, remedy), ', ')"
			    " FROM (",
			    losses, ") WHERE exceeds", NULL);
	sqlite3_stmt *statement = NULL;
	bool exceed = true; /* what cannot be read cannot be trusted */

	*which = NULL;
	if (sqlite3_prepare_v2(database, query, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW) {
		*which = g_strdup((const char *)sqlite3_column_text(statement, 0));
		exceed = *which != NULL;
	}
	sqlite3_finalize(statement);
	return exceed;
}
