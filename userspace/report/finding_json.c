// SPDX-License-Identifier: GPL-2.0
/*
 * finding_json.c: findings for programs. GitLab: "Code Quality report format", docs.gitlab.com. JSON is
 * made by SQLite, as everywhere.
 */
#include <errno.h>
#include <math.h>
#include <sqlite3.h>

#include "base/message.h"
#include "base/text.h"
#include "report/finding.h"

/* Beyond, not every whole number is a double. */
#define WHOLE_NUMBERS 9007199254740992.0

/* A statement of a database of its own; NULL after a message. */
static sqlite3_stmt *json_open(const char *sql)
{
	sqlite3 *database = NULL;
	sqlite3_stmt *row = NULL;

	if (sqlite3_open(":memory:", &database) == SQLITE_OK &&
	    sqlite3_prepare_v2(database, sql, -1, &row, NULL) == SQLITE_OK)
		return row;
	message("cannot make JSON: %s", sqlite3_errmsg(database));
	sqlite3_close(database);
	return NULL;
}

static void json_close(sqlite3_stmt *row)
{
	sqlite3 *database = row ? sqlite3_db_handle(row) : NULL;

	sqlite3_finalize(row);
	sqlite3_close(database);
}

/* What the statement gives for what is bound to it. 0 or -errno after a message. */
static int put_json(sqlite3_stmt *row, FILE *out)
{
	int err = -ENOMEM;

	if (sqlite3_step(row) == SQLITE_ROW) {
		g_autofree char *valid = text_json((const char *)sqlite3_column_text(row, 0));

		fputs(valid, out);
		err = 0;
	} else {
		message("cannot make JSON: %s", sqlite3_errmsg(sqlite3_db_handle(row)));
	}
	sqlite3_reset(row);
	sqlite3_clear_bindings(row);
	return err;
}

static void bind(sqlite3_stmt *row, int at, const char *text)
{
	sqlite3_bind_text(row, at, text, -1, SQLITE_STATIC);
}

/* A fingerprint knows a finding again: no figures and no line, which move. */
static int put_quality(sqlite3_stmt *row, const struct finding *finding, FILE *out)
{
	g_autofree char *path = finding->file ? finding_path(finding->file) : NULL;
	g_autofree char *said = finding_sentence(finding);
	g_autofree char *text = g_strdup_printf("%s. %s", finding->title, said);
	g_autofree char *print = g_compute_checksum_for_string(G_CHECKSUM_SHA256, finding->key, -1);

	bind(row, 1, text);
	bind(row, 2, print);
	bind(row, 3, finding->failed ? "major" : "minor");
	bind(row, 4, path ? path : finding->site ? finding->site : finding->title);
	sqlite3_bind_int64(row, 5, finding->line ? finding->line : 1);
	return put_json(row, out);
}

int finding_print_gitlab(const struct finding_list *list, FILE *out)
{
	sqlite3_stmt *row = json_open(
		"SELECT json_object('description', ?1, 'check_name', 'memtoll', 'fingerprint', ?2,"
		" 'severity', ?3, 'location', json_object('path', COALESCE(?4, ''),"
		" 'lines', json_object('begin', ?5)))");
	int err = row ? 0 : -ENOMEM;
	guint i;

	if (row)
		fputc('[', out);
	for (i = 0; !err && i < list->findings->len; i++) {
		fputs(i ? ",\n" : "", out);
		err = put_quality(row, g_ptr_array_index(list->findings, i), out);
	}
	/* What is not whole must not pass for it. */
	if (!err)
		fputs("]\n", out);
	json_close(row);
	return err;
}

static void bind_number(sqlite3_stmt *row, int at, double number)
{
	if (fabs(number) < WHOLE_NUMBERS && number == floor(number))
		sqlite3_bind_int64(row, at, (sqlite3_int64)number);
	else if (isfinite(number))
		sqlite3_bind_double(row, at, number);
}

static int put_finding(sqlite3_stmt *row, const struct finding *finding, FILE *out)
{
	g_autofree char *path = finding->file ? finding_path(finding->file) : NULL;

	bind(row, 1, finding->key);
	bind(row, 2, finding->title);
	bind(row, 3, finding->site);
	bind(row, 4, path);
	if (finding->line)
		sqlite3_bind_int64(row, 5, finding->line);
	bind(row, 6, finding->before);
	bind(row, 7, finding->after);
	bind(row, 8, finding->unit);
	if (finding->unit) {
		bind_number(row, 9, finding->number[0]);
		bind_number(row, 10, finding->number[1]);
	}
	bind(row, 11, finding->accuracy);
	bind(row, 12, finding->reason);
	sqlite3_bind_int(row, 13, finding->failed);
	return put_json(row, out);
}

static int put_texts(const GPtrArray *texts, const char *name, FILE *out)
{
	sqlite3_stmt *row = json_open("SELECT json_quote(?1)");
	int err = row ? 0 : -ENOMEM;
	guint i;

	fprintf(out, ",\"%s\":[", name);
	for (i = 0; !err && i < texts->len; i++) {
		fputs(i ? "," : "", out);
		bind(row, 1, g_ptr_array_index(texts, i));
		err = put_json(row, out);
	}
	fputc(']', out);
	json_close(row);
	return err;
}

/* The object without its end, and the list that it ends with. */
static int put_head(const struct finding_list *list, FILE *out)
{
	sqlite3_stmt *row = json_open("SELECT RTRIM(json_object('format', 1, 'title', ?1,"
				      " 'summary', ?2, 'checked', ?3), '}')");
	int err = -ENOMEM;

	if (row) {
		bind(row, 1, list->title);
		bind(row, 2, list->summary);
		sqlite3_bind_int64(row, 3, list->checked);
		err = put_json(row, out);
	}
	json_close(row);
	return err;
}

int finding_print_json(const struct finding_list *list, FILE *out)
{
	sqlite3_stmt *row = json_open(
		"SELECT json_object('key', ?1, 'title', ?2, 'site', ?3, 'file', ?4, 'line', ?5,"
		" 'before', ?6, 'after', ?7, 'unit', ?8, 'number_before', ?9, 'number_after', ?10,"
		" 'accuracy', ?11, 'reason', ?12, 'failed', json(iif(?13, 'true', 'false')))");
	int err = row ? put_head(list, out) : -ENOMEM;
	guint i;

	if (!err)
		fputs(",\"findings\":[", out);
	for (i = 0; !err && i < list->findings->len; i++) {
		fputs(i ? ",\n" : "", out);
		err = put_finding(row, g_ptr_array_index(list->findings, i), out);
	}
	if (!err)
		fputc(']', out);
	if (!err)
		err = put_texts(list->notes, "notes", out);
	if (!err)
		err = put_texts(list->reproduce, "reproduce", out);
	if (!err)
		fputs("}\n", out);
	json_close(row);
	return err;
}
