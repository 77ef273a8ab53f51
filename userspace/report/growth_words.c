// SPDX-License-Identifier: GPL-2.0
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "report/growth_internal.h"

/* Less than this part more is as much. */
#define ALIKE 0.05

static bool is_toll(const struct site_growth *site, const char *toll)
{
	return !strcmp(site->toll, toll);
}

bool growth_by_bytes(const struct site_growth *site)
{
	return !is_toll(site, "alloc") && !is_toll(site, "map") && !is_toll(site, "file.fault") &&
	       !is_toll(site, "reclaim") && (site->bytes[BEFORE] > 0 || site->bytes[AFTER] > 0);
}

const char *growth_title(const struct site_growth *site)
{
	static const char *const titles[][2] = {
		{ "zero.kernel", "the kernel clears more pages" },
		{ "zero.libc", "calloc clears more memory" },
		{ "zero.app", "the program clears more memory" },
		{ "swap.in", "more pages come back from swap" },
		{ "swap.out", "more pages are pushed out to swap" },
		{ "reclaim", "more waits for memory to be reclaimed" },
		{ "cow", "more pages are copied on a write" },
		{ "file.fault", "more faults on files and shared memory" },
		{ "file.read", "more is read from files" },
		{ "fault.user", "more faults wait for a handler" },
		{ "fault.other", "more faults of other kinds" },
		{ "alloc", "more calls of the allocator" },
		{ "map", "more mapping calls" },
		{ "copy.app", "the program copies more memory" },
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(titles); i++)
		if (is_toll(site, titles[i][0]))
			return titles[i][1];
	return "more memory work";
}

/* Of so many as are printed. */
static const char *unit_of(const struct site_growth *site, const char *count)
{
	bool one = !strcmp(count, "1");

	if (site->sampled)
		return one ? "sample" : "samples";
	if (is_toll(site, "alloc") || is_toll(site, "map") || is_toll(site, "file.read"))
		return one ? "call" : "calls";
	if (is_toll(site, "zero.libc") || is_toll(site, "swap.out"))
		return one ? "time" : "times";
	if (is_toll(site, "reclaim"))
		return one ? "stall" : "stalls";
	return one ? "fault" : "faults";
}

char *growth_figure(const struct site_growth *site, int side, bool per_second)
{
	const char *about = site->sampled || site->estimated ? "~" : "";
	const char *per = per_second ? " a second" : "";
	char count[32], bytes[32];

	if (site->count[side] <= 0 && site->bytes[side] <= 0)
		return g_strdup(*about ? "none seen" : "none");
	if (site->count[side] < 10 && per_second)
		snprintf(count, sizeof(count), "%.1f", site->count[side]);
	else
		format_count(count, sizeof(count), (int64_t)llround(MIN(site->count[side], 9e18)));
	if (!growth_by_bytes(site))
		return g_strdup_printf("%s%s %s%s", about, count, unit_of(site, count), per);
	format_bytes(bytes, sizeof(bytes), site->bytes[side]);
	return g_strdup_printf("%s%s%s%s (%s%s %s)", site->at_least ? "at least " : "", about,
			       bytes, per, about, count, unit_of(site, count));
}

/* "parse_row" of "rows.c:16 (parse_row)", where that is the line which is given beside it. */
static void leave_line(GString *said, const struct site_growth *site)
{
	g_autofree char *base = *site->file ? g_path_get_basename(site->file) : NULL;
	g_autofree char *line =
		base ? g_strdup_printf("%s:%" G_GINT64_FORMAT " (", base, site->line) : NULL;

	if (!line || !g_str_has_prefix(said->str, line) || !g_str_has_suffix(said->str, ")"))
		return;
	g_string_truncate(said, said->len - 1);
	g_string_erase(said, 0, (gssize)strlen(line));
}

char *growth_site(const struct site_growth *site)
{
	GString *text = g_string_new(*site->allocated ? site->allocated :
				     *site->touched   ? site->touched :
							site->area);

	if (!text->len)
		g_string_append(text, "code that is not known");
	leave_line(text, site);
	if (*site->call)
		g_string_append_printf(text, ", by %s", site->call);
	if (*site->allocated && *site->touched && strcmp(site->allocated, site->touched) != 0)
		g_string_append_printf(text, ", touched at %s", site->touched);
	else if (!*site->allocated && *site->touched && *site->area)
		g_string_append_printf(text, ", in %s", site->area);
	return g_string_free(text, FALSE);
}

/* "2.1 times as large", "12 times as"; of estimates "about 12 times as" */
static char *times(double ratio, const char *what, bool about)
{
	g_autofree char *number = g_strdup_printf(ratio < 9.95 ? "%.2g" : "%.0f", ratio);

	return g_strconcat(about ? "about " : "", number, " times ", what, NULL);
}

/* 1: it grew, -1: it shrank, 0: as much. */
static int change_of(const double figure[GROWTH_SIDES])
{
	if (figure[AFTER] > (1 + ALIKE) * figure[BEFORE])
		return 1;
	return figure[BEFORE] > (1 + ALIKE) * figure[AFTER] ? -1 : 0;
}

/* By the calls of the allocator at the place, which both sides have. NULL: they tell nothing. */
static char *reason_of_calls(const struct site_growth *site, const char *call)
{
	const double each[GROWTH_SIDES] = {
		site->asked[BEFORE] / site->calls[BEFORE],
		site->asked[AFTER] / site->calls[AFTER],
	};
	int often = change_of(site->calls), large = each[BEFORE] > 0 ? change_of(each) : 0;
	g_autofree char *more = NULL, *larger = NULL;

	if (often <= 0 && large <= 0)
		return NULL;
	more = often > 0 ? times(site->calls[AFTER] / site->calls[BEFORE], "as",
				 site->calls_estimated) :
			   g_strdup(often < 0 ? "less" : "as");
	/* free() asks for nothing. */
	if (!(each[BEFORE] > 0))
		return g_strdup_printf("%s is called %s often here.", call, more);
	larger = times(each[AFTER] / each[BEFORE], "as large", site->calls_estimated);
	return g_strdup_printf("%s is called %s often here, for %sblocks%s%s%s.", call, more,
			       large < 0 ? "smaller " : "", large ? "" : " of much the same size",
			       large > 0 ? " " : "", large > 0 ? larger : "");
}

/* As many calls for as much memory: what became of the blocks has changed. NULL: it is not so. */
static char *reason_of_blocks(const struct site_growth *site)
{
	if (change_of(site->calls) || change_of(site->asked))
		return NULL;
	if (is_toll(site, "zero.libc"))
		return g_strdup(
			"As many calls for as much memory, but more of the blocks were in use before, so that "
			"calloc has to clear them itself: they come from the heap, not fresh from the kernel.");
	if (is_toll(site, "zero.kernel"))
		return g_strdup(
			"As many calls for as much memory, but more of it comes fresh from the kernel: blocks that "
			"were used again go back to the kernel between uses, or more of each block is used.");
	return NULL;
}

/* Of what was not seen before. */
static char *reason_of_new(const struct site_growth *site, const char *call)
{
	if (site->sampled || site->estimated)
		return g_strdup(
			"Nothing of the kind was seen at this place before, when not all was watched: "
			"the code is new, or ran when nobody looked.");
	if (site->calls[AFTER] > 0 && !(site->calls[BEFORE] > 0) && !site->calls_estimated)
		return g_strdup_printf("This call of %s is new.", call);
	return g_strdup("Nothing of the kind was seen at this place before: the code is new, or is "
			"called for the first time.");
}

char *growth_reason(const struct site_growth *site)
{
	const double *figure = growth_by_bytes(site) ? site->bytes : site->count;
	const char *call = *site->call ? site->call : "the allocator";
	bool is_about = site->sampled || site->estimated;
	g_autofree char *more = NULL;
	char *reason = NULL;

	if (site->calls[BEFORE] > 0 && site->calls[AFTER] > 0) {
		reason = reason_of_calls(site, call);
		if (!reason)
			reason = reason_of_blocks(site);
		if (reason)
			return reason;
	}
	if (!(figure[BEFORE] > 0))
		return reason_of_new(site, call);
	more = times(figure[AFTER] / figure[BEFORE], "as", is_about);
	if (is_toll(site, "cow"))
		return g_strdup_printf(
			"%s many bytes are copied: there are more forks, or more is written "
			"to after one.",
			more);
	if (is_toll(site, "swap.in") || is_toll(site, "swap.out") || is_toll(site, "reclaim"))
		return g_strdup_printf(
			"%s much: the program uses more memory than it may keep, or others "
			"take more of it.",
			more);
	if (is_toll(site, "file.read") && !change_of(site->count))
		return g_strdup_printf("As many reads, of %s much.", more);
	if (is_toll(site, "map"))
		return g_strdup_printf("%s is called %s often here.",
				       *site->call ? site->call : "It", more);
	return g_strdup_printf("It happens %s much at this place.", more);
}
