// SPDX-License-Identifier: GPL-2.0
#include "report/report_interval.h"

#include <glib.h>
#include <time.h>

#include "base/clock.h"
#include "interval_schema.h"
#include "report/report_views.h"

#define S 1e9
#define SHARE_LEAST 0.005 /* less is "0 %" */

/* A moment of CLOCK_MONOTONIC as UTC. */
static char *utc(const struct interval_lines *lines, uint64_t ns, const char *format)
{
	int64_t since_1970_ms = ((int64_t)ns + lines->clock_ns) / 1000000;
	time_t seconds = since_1970_ms / 1000;
	char text[64];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), format, &tm);
	return g_strdup_printf("%s.%03d", text, (int)(since_1970_ms % 1000));
}

static gint by_share(gconstpointer a, gconstpointer b)
{
	double left = (*(const struct interval_toll *const *)a)->share;
	double right = (*(const struct interval_toll *const *)b)->share;

	return (left < right) - (left > right);
}

/* "zero.kernel 61 %  compute 30 %": all that can be seen at this precision, the largest first. */
static char *shares(const struct interval *interval)
{
	g_autoptr(GPtrArray) tolls = g_ptr_array_new();
	GString *text = g_string_new("");
	guint i;

	for (i = 0; i < interval->tolls->len; i++) {
		struct interval_toll *toll =
			&g_array_index(interval->tolls, struct interval_toll, i);

		if (toll->captured && toll->share >= SHARE_LEAST)
			g_ptr_array_add(tolls, toll);
	}
	g_ptr_array_sort(tolls, by_share);
	for (i = 0; i < tolls->len; i++) {
		const struct interval_toll *toll = g_ptr_array_index(tolls, i);

		g_string_append_printf(text, "%s%s %.0f %%", i ? "  " : "", toll->name,
				       100 * toll->share);
	}
	return g_string_free(text, FALSE);
}

/* "none", "little", or those beyond the limit by name. */
static char *losses(const struct interval *interval)
{
	GString *text = g_string_new("");
	guint i;

	for (i = 0; i < interval->losses->len; i++) {
		const struct interval_loss *loss =
			&g_array_index(interval->losses, struct interval_loss, i);

		if (loss->exceeds)
			g_string_append_printf(text, "%s%s", text->len ? "," : "", loss->name);
	}
	if (!text->len)
		g_string_append(text, interval->losses->len ? "little" : "none");
	return g_string_free(text, FALSE);
}

static void print_text(struct interval_lines *lines, const struct interval *interval)
{
	g_autofree char *time = utc(lines, interval->end_ns, "%H:%M:%S");
	g_autofree char *tolls = shares(interval), *lost = losses(interval);

	if (lines->number == 1)
		fputs("UTC             length  overhead  losses  shares of what was observed\n",
		      lines->out);
	fprintf(lines->out, "%s  %6.2f s  %6.1f %%  %-6s  %s\n", time,
		(double)(interval->end_ns - interval->start_ns) / S, 100 * interval->overhead, lost,
		*tolls ? tolls : "-");
}

static void print_json_tolls(FILE *out, const struct interval *interval)
{
	guint i;

	for (i = 0; i < interval->tolls->len; i++) {
		const struct interval_toll *toll =
			&g_array_index(interval->tolls, struct interval_toll, i);

		fprintf(out, "%s\"%s\":", i ? "," : "", toll->name);
		if (toll->captured)
			fprintf(out, "{\"time_s\":%.9f,\"share\":%.6f,\"count\":%llu}",
				toll->time_ns / S, toll->share, (unsigned long long)toll->count);
		else
			fputs("{\"time_s\":null,\"share\":null,\"count\":null}", out);
	}
}

/* Names and numbers of our own: nothing here has to be escaped. */
static void print_json(struct interval_lines *lines, const struct interval *interval)
{
	g_autofree char *start = utc(lines, interval->start_ns, "%Y-%m-%dT%H:%M:%S");
	g_autofree char *end = utc(lines, interval->end_ns, "%Y-%m-%dT%H:%M:%S");
	bool exceed = false;
	guint i;

	fprintf(lines->out,
		"{\"format\":1,\"interval\":%llu,\"start\":\"%sZ\",\"end\":\"%sZ\","
		"\"start_s\":%.6f,\"end_s\":%.6f,\"observed_s\":%.9f,\"overhead_pct\":%.4f,\"toll\":{",
		(unsigned long long)lines->number, start, end,
		(double)(interval->start_ns - lines->start_ns) / S,
		(double)(interval->end_ns - lines->start_ns) / S, interval->observed_ns / S,
		100 * interval->overhead);
	print_json_tolls(lines->out, interval);
	fputs("},\"losses\":{", lines->out);
	for (i = 0; i < interval->losses->len; i++) {
		const struct interval_loss *loss =
			&g_array_index(interval->losses, struct interval_loss, i);

		exceed |= loss->exceeds;
		fprintf(lines->out, "%s\"%s\":%llu", i ? "," : "", loss->name,
			(unsigned long long)loss->count);
	}
	fprintf(lines->out, "},\"losses_exceed\":%s}\n", exceed ? "true" : "false");
}

void interval_line(void *context, const struct interval *interval)
{
	struct interval_lines *lines = context;

	if (!lines->number++) {
		lines->start_ns = interval->start_ns;
		lines->clock_ns = g_get_real_time() * 1000 - (int64_t)now_ns();
	}
	if (lines->json)
		print_json(lines, interval);
	else
		print_text(lines, interval);
	fflush(lines->out);
}

int interval_print_schema(FILE *out)
{
	fputs(interval_schema, out);
	return report_flush(out);
}
