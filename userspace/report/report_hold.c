// SPDX-License-Identifier: GPL-2.0
#include "report/report_hold.h"

#include <glib.h>
#include <math.h>
#include <string.h>

#include "base/text.h"

/* Of what grew so much has to be of one call site to name it. */
#define SITE_PART 0.2

static void print_heading(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT looks, seconds, looks - seen, whole FROM temp.hold_span");

	while (page_next(page, row)) {
		g_autoptr(GString) title = g_string_new("HOLD");

		g_string_append_printf(title, " (%lld looks, the last %.0f s after the first",
				       (long long)sqlite3_column_int64(row, 0),
				       sqlite3_column_double(row, 1));
		if (sqlite3_column_int64(row, 2))
			g_string_append_printf(title, ", %lld in vain",
					       (long long)sqlite3_column_int64(row, 2));
		g_string_append(title, sqlite3_column_int(row, 3) ? ")" : "; not all was seen)");
		page_heading(page, title->str);
	}
}

static void print_parts(struct page *page)
{
	sqlite3_stmt *row = page_query(page, "SELECT said, first_bytes, last_bytes"
					     " FROM temp.hold_change ORDER BY position");

	while (page_next(page, row)) {
		double before = sqlite3_column_double(row, 1), now = sqlite3_column_double(row, 2);
		char first[32], last[32], difference[32];
		g_autofree char *said = page_column(row, 0);

		format_bytes(first, sizeof(first), before);
		format_bytes(last, sizeof(last), now);
		format_bytes(difference, sizeof(difference), fabs(now - before));
		fprintf(page->out, "  %-42s%11s ->%11s", said, first, last);
		if (now != before)
			fprintf(page->out, "  %s%s", now < before ? "-" : "+", difference);
		putc('\n', page->out);
	}
}

/* That live blocks grow, and which; a leak where nothing of them is ever freed. */
void report_hold_growth(struct page *page, const char *prefix)
{
	sqlite3_stmt *row =
		page_query(page,
			   "SELECT grown_bytes, bytes_per_s, site_part, call, place, made, freed,"
			   " site_bytes, in_part FROM temp.hold_growth WHERE grows");

	while (page_next(page, row)) {
		g_autofree char *call = page_column(row, 3), *place = page_column(row, 4);
		g_autoptr(GString) text = g_string_new("");
		char grown[32], rate[32], bytes[32], made[32], freed[32];

		format_bytes(grown, sizeof(grown), sqlite3_column_double(row, 0));
		format_bytes(rate, sizeof(rate), sqlite3_column_double(row, 1));
		format_bytes(bytes, sizeof(bytes), sqlite3_column_double(row, 7));
		format_count(made, sizeof(made), sqlite3_column_int64(row, 5));
		format_count(freed, sizeof(freed), sqlite3_column_int64(row, 6));
		g_string_append_printf(text,
				       "Live blocks grew by %s, %s a second, and hardly"
				       " shrank between two looks.",
				       grown, rate);
		if (sqlite3_column_double(row, 2) >= SITE_PART)
			g_string_append_printf(text,
					       " Most of those that were followed are of %s at %s:"
					       " %s made and %s freed, %s live%s.",
					       call, place, made, freed, bytes,
					       sqlite3_column_int(row, 8) ?
						       ", of the part of the time that the"
						       " overhead limit let it be watched" :
						       "");
		else
			g_string_append(text, " They are of no call site whose blocks were"
					      " followed: smaller than --min-size, or from before"
					      " the recording; --sample 512K follows small ones,"
					      " too.");
		page_wrap(page, prefix, (int)strlen(prefix), text->str);
	}
}

static void add_pinning_site(GString *text, sqlite3_stmt *row)
{
	g_autofree char *call = page_column(row, 2), *place = page_column(row, 3);
	g_autofree char *hint = page_column(row, 5);
	char bytes[32];

	format_bytes(bytes, sizeof(bytes), sqlite3_column_double(row, 1));
	if (*place) {
		g_string_append_printf(text, " %s because of %s at %s.", bytes, call, place);
		return;
	}
	g_string_append_printf(text, " %s because of blocks that were not seen made", bytes);
	if (sqlite3_column_int64(row, 4))
		g_string_append_printf(text, ", most of %lld bytes",
				       (long long)sqlite3_column_int64(row, 4));
	if (*hint)
		g_string_append_printf(text, " with a pointer to %s first", hint);
	g_string_append(text, " (from before the recording, or small: --sample 4K).");
}

/* Who made the live blocks because of which free memory was kept. */
void report_hold_pinned(struct page *page, const char *prefix)
{
	sqlite3_stmt *row = page_query(page, "SELECT at, bytes, call, place, size, hint"
					     " FROM temp.hold_pinned WHERE rank <= 3 AND matters"
					     " ORDER BY at DESC, rank");
	g_autoptr(GString) text = g_string_new("");
	g_autofree char *last = NULL;

	while (page_next(page, row)) {
		g_autofree char *at = page_column(row, 0);

		if (!last || strcmp(last, at)) {
			if (text->len)
				page_wrap(page, prefix, (int)strlen(prefix), text->str);
			g_string_assign(text,
					strcmp(at, "end") ?
						"Free, but kept on pages with live blocks:" :
						"Free below the last live block of a heap, and "
						"kept until malloc_trim(0) is called:");
		}
		g_free(last);
		last = g_steal_pointer(&at);
		add_pinning_site(text, row);
	}
	if (text->len)
		page_wrap(page, prefix, (int)strlen(prefix), text->str);
}

/* What a trim would give back, and its price. */
void report_hold_trim(struct page *page, const char *prefix)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT trim_bytes, seconds, used, refaults_per_s, in_part"
				 " FROM temp.hold_refault WHERE matters");

	while (page_next(page, row)) {
		const double used = sqlite3_column_double(row, 2);
		g_autoptr(GString) text = g_string_new("");
		char bytes[32], share[32], rate[32];

		format_bytes(bytes, sizeof(bytes), sqlite3_column_double(row, 0));
		format_share(share, sizeof(share), used);
		format_estimate(rate, sizeof(rate), llround(sqlite3_column_double(row, 3)));
		g_string_append_printf(text,
				       "malloc_trim(0) now would give back %s. Of what it would "
				       "have given back %.0f s before",
				       bytes, sqlite3_column_double(row, 1));
		if (used > 0)
			g_string_append_printf(text,
					       ", %s was used again: %s pages a second would be "
					       "faulted in again%s.",
					       share, rate,
					       sqlite3_column_int(row, 4) ?
						       ", or more, as malloc was watched a part of "
						       "the time" :
						       "");
		else
			g_string_append(text, ", nothing was used again by blocks that were "
					      "followed.");
		page_wrap(page, prefix, (int)strlen(prefix), text->str);
	}
}

void report_hold(struct page *page)
{
	print_heading(page);
	print_parts(page);
	report_hold_growth(page, "  ");
	report_hold_pinned(page, "  ");
	report_hold_trim(page, "  ");
}
