// SPDX-License-Identifier: GPL-2.0
#include "report/report_page.h"

#include <errno.h>
#include <glib.h>

#include "base/text.h"
#include "report/report_views.h"

const char *page_bold(const struct page *page)
{
	return page->color ? "\033[1m" : "";
}

const char *page_red(const struct page *page)
{
	return page->color ? "\033[1;31m" : "";
}

const char *page_plain(const struct page *page)
{
	return page->color ? "\033[0m" : "";
}

/* Of the cube's six steps, 0 95 135 175 215 255. */
static unsigned int cube_step(unsigned int part)
{
	return part < 48 ? 0 : part < 115 ? 1 : (part - 35) / 40;
}

const char *page_ink(const struct page *page, const char *colour, char ink[PAGE_INK_SIZE])
{
	unsigned int red, green, blue;

	ink[0] = '\0';
	if (page->color && colour && sscanf(colour, "#%2x%2x%2x", &red, &green, &blue) == 3)
		g_snprintf(ink, PAGE_INK_SIZE, "\033[38;5;%um",
			   16 + 36 * cube_step(red) + 6 * cube_step(green) + cube_step(blue));
	return ink;
}

long page_width(const struct page *page)
{
	return page->columns ? page->columns : TEXT_WIDTH;
}

sqlite3_stmt *page_query(struct page *page, const char *sql)
{
	sqlite3_stmt *statement = NULL;

	if (page->err)
		return NULL;
	if (sqlite3_prepare_v2(page->database, sql, -1, &statement, NULL) == SQLITE_OK)
		return statement;
	report_complain(page->database, sqlite3_errmsg(page->database));
	page->err = -EIO;
	return NULL;
}

bool page_next(struct page *page, sqlite3_stmt *statement)
{
	int status = statement ? sqlite3_step(statement) : SQLITE_DONE;

	if (status == SQLITE_ROW)
		return true;
	if (status != SQLITE_DONE) {
		report_complain(page->database, sqlite3_errmsg(page->database));
		page->err = -EIO;
	}
	sqlite3_finalize(statement);
	return false;
}

char *page_column(sqlite3_stmt *statement, int column)
{
	return text_printable((const char *)sqlite3_column_text(statement, column));
}

void page_wrap(struct page *page, const char *prefix, int indent, const char *text)
{
	text_wrap_to(page->out, page_width(page), prefix, indent, text);
}

void page_heading(struct page *page, const char *title)
{
	fprintf(page->out, "\n%s%s%s\n", page_bold(page), title, page_plain(page));
}

void page_list(struct page *page, const char *title, const char *prefix, const char *sql)
{
	sqlite3_stmt *row = page_query(page, sql);
	bool first = true;
	char *text;

	while (page_next(page, row)) {
		if (first)
			page_heading(page, title);
		first = false;
		text = page_column(row, 0);
		page_wrap(page, prefix, 4, text);
		g_free(text);
	}
}
