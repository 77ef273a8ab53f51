// SPDX-License-Identifier: GPL-2.0
#include "watch/json_lines.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "host/memory_files.h"
#include "watch/metrics.h"

#define S 1e9

static void put_string(FILE *out, const char *value)
{
	g_autofree char *shown = text_printable(value);
	const char *at;

	fputc('"', out);
	for (at = shown; *at; at++) {
		if (*at == '\\' || *at == '"')
			fputc('\\', out);
		fputc(*at, out);
	}
	fputc('"', out);
}

/* A moment of CLOCK_MONOTONIC as UTC, which is as far ahead of that. */
static void put_time(FILE *out, uint64_t ns, int64_t ahead_ns)
{
	int64_t since_1970_ms = ((int64_t)ns + ahead_ns) / 1000000;
	time_t seconds = since_1970_ms / 1000;
	char text[64];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	fprintf(out, "\"%s.%03dZ\"", text, (int)(since_1970_ms % 1000));
}

/* Of a cgroup that is there. */
static void put_memory(FILE *out, const struct memory_figures *memory)
{
	bool any = false;
	guint i;

	for (i = 0; i < MEMORY_FIGURES; i++) {
		if (memory->values[i] < 0)
			continue;
		fprintf(out, "%s\"%s%s\":%lld", any ? "," : ",\"cgroup\":{", memory_figure_name(i),
			i < MEMORY_GAUGES ? "_bytes" : "", (long long)memory->values[i]);
		any = true;
	}
	if (any)
		fputs("}", out);
}

static void put_target(FILE *out, const struct metrics_target *target)
{
	double all_ns = target->last_observed_ns + target->last_overhead_ns;
	guint i;

	put_string(out, target->label);
	fprintf(out,
		":{\"processes\":%u,\"rss_bytes\":%lld,\"swap_bytes\":%lld,\"observed_s\":%.9f,"
		"\"overhead_pct\":%.4f,\"toll\":{",
		target->processes, (long long)target->rss_bytes, (long long)target->swap_bytes,
		target->last_observed_ns / S,
		all_ns > 0 ? 100 * target->last_overhead_ns / all_ns : 0.0);
	for (i = 0; i < WORKER_TOLLS && target->tolls[i].name[0]; i++)
		fprintf(out, "%s\"%s\":{\"time_s\":%.9f,\"share\":%.6f}", i ? "," : "",
			target->tolls[i].name, target->tolls[i].last_ns / S,
			target->last_observed_ns > 0 ?
				MIN(1, target->tolls[i].last_ns / target->last_observed_ns) :
				0.0);
	fputs("}", out);
	put_memory(out, &target->memory);
	fputs("}", out);
}

int json_line(FILE *out, const struct metrics *metrics, const char *recording)
{
	/* Read once: a clock that is set between two moments would make the interval last hours. */
	int64_t ahead_ns = g_get_real_time() * 1000 - (int64_t)now_ns();
	const char *separator = "";
	guint i;

	fprintf(out, "{\"format\":1,\"interval\":%llu,\"start\":",
		(unsigned long long)metrics->intervals);
	put_time(out, metrics->start_ns, ahead_ns);
	fputs(",\"end\":", out);
	put_time(out, metrics->end_ns, ahead_ns);
	fputs(",\"recording\":", out);
	put_string(out, recording);
	fprintf(out, ",\"detailed\":%s,\"targets\":{", metrics->detailed ? "true" : "false");
	for (i = 0; i < metrics->targets->len; i++) {
		fputs(i ? "," : "", out);
		put_target(out, &g_array_index(metrics->targets, struct metrics_target, i));
	}
	fputs("},\"losses\":{", out);
	for (i = 0; i < metrics->loss_count; i++) {
		if (!metrics->losses[i].last_count)
			continue;
		fprintf(out, "%s\"%s\":%llu", separator, metrics->losses[i].name,
			(unsigned long long)metrics->losses[i].last_count);
		separator = ",";
	}
	fputs("}}\n", out);
	return fflush(out) ? -errno : 0;
}
