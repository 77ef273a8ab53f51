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
	if (is_toll(site, "zero.libc"))
		return one ? "time" : "times";
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
	return g_strdup_printf("%s%s%s (%s%s %s)", about, bytes, per, about, count,
			       unit_of(site, count));
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

/* "2.0 times", "12 times" */
static char *times(double ratio)
{
	return g_strdup_printf(ratio < 9.95 ? "%.2g times" : "%.0f times", ratio);
}

static bool grew(const double figure[GROWTH_SIDES])
{
	return figure[AFTER] > (1 + ALIKE) * figure[BEFORE];
}

/* By the calls of the allocator at the place. NULL: they tell nothing. */
static char *reason_of_calls(const struct site_growth *site, const char *call)
{
	double each[GROWTH_SIDES];
	g_autofree char *more = NULL, *larger = NULL;

	if (!(site->calls[AFTER] > 0))
		return NULL;
	if (!(site->calls[BEFORE] > 0))
		return g_strdup_printf("This call of %s is new.", call);
	each[BEFORE] = site->asked[BEFORE] / site->calls[BEFORE];
	each[AFTER] = site->asked[AFTER] / site->calls[AFTER];
	more = times(site->calls[AFTER] / site->calls[BEFORE]);
	larger = each[BEFORE] > 0 ? times(each[AFTER] / each[BEFORE]) : NULL;
	if (grew(site->calls) && grew(each) && larger)
		return g_strdup_printf("%s is called %s as often here, for blocks %s as large.",
				       call, more, larger);
	if (grew(site->calls))
		return g_strdup_printf(
			"%s is called %s as often here, for blocks of much the same size.", call,
			more);
	if (grew(each) && larger)
		return g_strdup_printf("%s is called as often here, for blocks %s as large.", call,
				       larger);
	return NULL;
}

/* As many calls for as much memory: what became of the blocks has changed. */
static char *reason_of_blocks(const struct site_growth *site)
{
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

char *growth_reason(const struct site_growth *site)
{
	const double *figure = growth_by_bytes(site) ? site->bytes : site->count;
	const char *call = *site->call ? site->call : "the allocator";
	g_autofree char *more = NULL;
	char *reason = NULL;

	if (site->calls[BEFORE] > 0 || site->calls[AFTER] > 0) {
		reason = reason_of_calls(site, call);
		if (!reason && site->calls[BEFORE] > 0)
			reason = reason_of_blocks(site);
		if (reason)
			return reason;
	}
	if (!(figure[BEFORE] > 0))
		return g_strdup(
			"Nothing of the kind was seen at this place before: the code is new, or is "
			"called for the first time.");
	more = times(figure[AFTER] / figure[BEFORE]);
	if (is_toll(site, "cow"))
		return g_strdup_printf(
			"%s as many bytes are copied: there are more forks, or more is written "
			"to after one.",
			more);
	if (is_toll(site, "swap.in") || is_toll(site, "swap.out") || is_toll(site, "reclaim"))
		return g_strdup_printf(
			"%s as much: the program uses more memory than it may keep, or others "
			"take more of it.",
			more);
	if (is_toll(site, "file.read") && !grew(site->count))
		return g_strdup_printf("As many reads, of %s as much.", more);
	if (is_toll(site, "map"))
		return g_strdup_printf("%s is called %s as often here.",
				       *site->call ? site->call : "It", more);
	return g_strdup_printf("It happens %s as much at this place.", more);
}
