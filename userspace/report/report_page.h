/* SPDX-License-Identifier: GPL-2.0 */
/* report_page.h: what a report in text is printed with: queries that fail once, and emphasis. */
#ifndef MEMTOLL_REPORT_PAGE_H
#define MEMTOLL_REPORT_PAGE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>

struct page {
	sqlite3 *database;
	FILE *out;
	bool color;
	unsigned int columns; /* 0: TEXT_WIDTH */
	int err;	      /* of the first query that failed */
};

/* What switches emphasis on and off; empty where the page has no colours. */
const char *page_bold(const struct page *page);
const char *page_red(const struct page *page);
const char *page_plain(const struct page *page);

/* Letters of a colour "#rrggbb", the nearest of the 216 that terminals have; "" without colours. */
#define PAGE_INK_SIZE 16
const char *page_ink(const struct page *page, const char *colour, char ink[PAGE_INK_SIZE]);

long page_width(const struct page *page);

/* NULL when it failed, after a message, or when an earlier one had. */
sqlite3_stmt *page_query(struct page *page, const char *sql);

/* The next row; false at the end, where the statement is done with. */
bool page_next(struct page *page, sqlite3_stmt *statement);

/* Without what a terminal would obey; g_free() it. */
char *page_column(sqlite3_stmt *statement, int column);

/* Lines of at most page_width() columns, the first after the prefix, the others indented. */
void page_wrap(struct page *page, const char *prefix, int indent, const char *text);

void page_heading(struct page *page, const char *title);

/* The texts that sql selects, each after the prefix, below a heading; nothing where there are none. */
void page_list(struct page *page, const char *title, const char *prefix, const char *sql);

#endif /* MEMTOLL_REPORT_PAGE_H */
