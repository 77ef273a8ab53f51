// SPDX-License-Identifier: GPL-2.0
/*
 * report.c: a recording's views, worked out once and handed on as JSON or folded stacks. The text
 * is report_text.c.
 */
#include "report.h"

#include <errno.h>
#include <glib.h>
#include <string.h>

#include "message.h"
#include "report_views.h"
#include "text.h"

void report_complain(sqlite3 *database, const char *what)
{
	const char *path = sqlite3_db_filename(database, "main");

	/* recording_guard() */
	if (sqlite3_errcode(database) == SQLITE_INTERRUPT)
		what = "a view asks for more work than a recording of its size can need";
	message("%s cannot be read: %s", path && *path ? path : "the recording", what);
}

/*
 * Views that stay views: stack_line is looked up by stack, which the tables below it can do by
 * their keys; a table made of it could not.
 */
static bool stays_view(const char *name)
{
	return !strcmp(name, "stack_line");
}

static int run(sqlite3 *database, const char *sql)
{
	if (sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK)
		return 0;
	report_complain(database, sqlite3_errmsg(database));
	return -EIO;
}

/* "CREATE VIEW name AS\nSELECT ..." -> "SELECT ...", or NULL. */
static const char *view_body(const char *name, const char *sql)
{
	const char *body = strstr(sql, name);

	if (!body)
		return NULL;
	body += strlen(name);
	while (g_ascii_isspace(*body))
		body++;
	return !g_ascii_strncasecmp(body, "AS", 2) && g_ascii_isspace(body[2]) ? body + 3 : NULL;
}

/* Run text that comes from a recording: one statement, and nothing behind it. */
static int run_one(sqlite3 *database, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	const char *tail = NULL;
	int err = -EIO;

	if (sqlite3_prepare_v2(database, sql, -1, &statement, &tail) != SQLITE_OK) {
		report_complain(database, sqlite3_errmsg(database));
	} else if (tail[strspn(tail, " \t\r\n")]) {
		report_complain(database, "a view holds more than one statement");
		err = -EINVAL;
	} else if (sqlite3_step(statement) != SQLITE_DONE) {
		report_complain(database, sqlite3_errmsg(database));
	} else {
		err = 0;
	}
	sqlite3_finalize(statement);
	return err;
}

static int make_table(sqlite3 *database, const char *name, const char *sql)
{
	const char *body = view_body(name, sql);
	char *drop, *create;
	int err = -ENOMEM;

	if (!body) {
		report_complain(database, "a view is damaged");
		return -EINVAL;
	}
	drop = sqlite3_mprintf("DROP TABLE IF EXISTS temp.\"%w\"", name);
	/* Unqualified names are looked up in temp first: a view sees the tables made before it. */
	create = sqlite3_mprintf("CREATE TEMP TABLE \"%w\" AS %s", name, body);
	if (drop && create)
		err = run_one(database, drop);
	if (!err)
		err = run_one(database, create);
	sqlite3_free(create);
	sqlite3_free(drop);
	return err;
}

static int trim_sites(sqlite3 *database, unsigned int sites)
{
	char *sql;
	int err;

	if (!sites)
		return 0;
	sql = sqlite3_mprintf("DELETE FROM temp.sites WHERE rank > %u", sites);
	if (!sql)
		return -ENOMEM;
	err = run(database, sql);
	sqlite3_free(sql);
	return err;
}

/* Names and texts of the views by turns, in the order they were made in. */
static GPtrArray *list_views(sqlite3 *database)
{
	GPtrArray *views = g_ptr_array_new_with_free_func(g_free);
	sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v2(database,
			       "SELECT name, sql FROM main.sqlite_master"
			       " WHERE type = 'view' ORDER BY rowid",
			       -1, &statement, NULL) == SQLITE_OK)
		while (sqlite3_step(statement) == SQLITE_ROW) {
			g_ptr_array_add(views,
					g_strdup((const char *)sqlite3_column_text(statement, 0)));
			g_ptr_array_add(views,
					g_strdup((const char *)sqlite3_column_text(statement, 1)));
		}
	sqlite3_finalize(statement);
	return views;
}

int report_views_make(sqlite3 *database, const char *last, unsigned int sites)
{
	GPtrArray *views = NULL;
	const char *name = "";
	int err = -EIO;
	guint i;

	/* One snapshot for all of them, though the writer may go on. */
	if (run(database, "PRAGMA temp_store = MEMORY; SAVEPOINT report"))
		return -EIO;
	views = list_views(database);
	for (i = 0; i < views->len && strcmp(name, last); i += 2) {
		name = g_ptr_array_index(views, i);
		if (stays_view(name) ||
		    (strcmp(last, "report_json") && g_str_has_suffix(name, "_json")))
			continue;
		/* Findings have read all sites by now. */
		if (!strcmp(name, "site_json") && trim_sites(database, sites))
			goto out;
		err = make_table(database, name, g_ptr_array_index(views, i + 1));
		if (err)
			goto out;
		err = -EIO;
	}
	if (strcmp(name, last)) {
		report_complain(database, "views are missing");
		err = -EINVAL;
		goto out;
	}
	err = 0;
out:
	g_ptr_array_free(views, TRUE);
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

int report_folded(sqlite3 *database, const char *toll, FILE *out)
{
	sqlite3_stmt *statement = NULL;
	int err;

	err = report_views_make(database, "folded", 0);
	if (err)
		return err;
	err = -EIO;
	if (sqlite3_prepare_v2(database, "SELECT stack, weight FROM temp.folded WHERE toll = ?"
			       " ORDER BY weight DESC, stack", -1, &statement, NULL) != SQLITE_OK ||
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
	static const char query[] =
		"SELECT group_concat(printf('%s %d (%s)', name, count, remedy), ', ')"
		" FROM main.losses WHERE exceeds";
	sqlite3_stmt *statement = NULL;
	bool exceed = true;	/* what cannot be read cannot be trusted */

	*which = NULL;
	if (sqlite3_prepare_v2(database, query, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW) {
		*which = g_strdup((const char *)sqlite3_column_text(statement, 0));
		exceed = *which != NULL;
	}
	sqlite3_finalize(statement);
	return exceed;
}
