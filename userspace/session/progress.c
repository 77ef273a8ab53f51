// SPDX-License-Identifier: GPL-2.0
#include "session/progress.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/message.h"
#include "recording/interval.h"
#include "session/session.h"

#define S 1000000000ULL
#define FAMILIES 16
/* What is told by the way takes at most this part of a processor. */
#define COST_PART 50
/* So short a recording is over before there is a second look at it. */
#define SHORT_NS (2 * S)

/* So far: the sums of the slices' figures. */
struct so_far {
	struct {
		const char *family; /* interned */
		double time_ns;
	} families[FAMILIES];
	size_t count;
	double observed_ns;
	double overhead_ns;
	bool has_losses;
	const char *exceeding; /* one that was over its limit, interned; NULL: none was */
};

struct progress {
	const struct session_config *config;
	struct interval_reader *reader; /* NULL: nobody is told figures */
	struct so_far so_far;
	uint64_t due_ns; /* since the start: of the next interval, or the next look */
};

static const char *target(const struct session_config *config, char *text, size_t size)
{
	if (config->cgroup)
		snprintf(text, size, "%s", config->container ? config->container : config->cgroup);
	else if (config->pid_count == 1)
		snprintf(text, size, "pid %d", config->pids[0]);
	else
		snprintf(text, size, "%zu processes", config->pid_count);
	return text;
}

/* Not where a command writes, nor between the lines of intervals. */
static bool has_line(const struct session_config *config)
{
	return !config->command && !config->watch && !config->on_interval;
}

struct progress *progress_new(const struct session_config *config)
{
	struct progress *progress = g_new0(struct progress, 1);
	bool is_short = config->duration_ns && config->duration_ns < SHORT_NS;

	progress->config = config;
	progress->due_ns = config->interval_live ? 0 : config->interval_ns;
	if (config->on_interval || (has_line(config) && status_line_shows() && !is_short))
		progress->reader = interval_reader_new();
	if (config->on_interval && !progress->reader)
		message("no intervals can be told: out of memory");
	return progress;
}

void progress_free(struct progress *progress)
{
	if (progress)
		interval_reader_free(progress->reader);
	g_free(progress);
}

void progress_attaching(const struct session_config *config, const char *step)
{
	char text[128];

	if (!config->command && !config->watch)
		status_line("attaching to %s: %s", target(config, text, sizeof(text)), step);
}

static void add_family(struct so_far *so_far, const char *family, double time_ns)
{
	size_t i = 0;

	while (i < so_far->count && so_far->families[i].family != family)
		i++;
	if (i == FAMILIES)
		return;
	so_far->families[i].family = family;
	so_far->families[i].time_ns += time_ns;
	so_far->count = MAX(so_far->count, i + 1);
}

static const struct interval *look(struct progress *progress, sqlite3 *recording)
{
	const struct interval *interval = interval_read(progress->reader, recording);

	if (interval)
		return interval;
	if (progress->config->on_interval)
		message("no more intervals can be told: %s",
			interval_reader_error(progress->reader));
	g_clear_pointer(&progress->reader, interval_reader_free);
	return NULL;
}

static void add_interval(struct so_far *so_far, const struct interval *interval)
{
	guint i;

	for (i = 0; i < interval->tolls->len; i++) {
		const struct interval_toll *toll =
			&g_array_index(interval->tolls, struct interval_toll, i);

		if (toll->captured)
			add_family(so_far, toll->family, toll->time_ns);
	}
	for (i = 0; i < interval->losses->len; i++) {
		const struct interval_loss *loss =
			&g_array_index(interval->losses, struct interval_loss, i);

		so_far->has_losses = true;
		if (loss->exceeds && !so_far->exceeding)
			so_far->exceeding = loss->name;
	}
	so_far->observed_ns += interval->observed_ns;
	so_far->overhead_ns += interval->overhead_ns;
}

/*
 * "  zeroing 96 %  overhead 1.2 %  losses none", computing with the largest of memory; or nothing yet.
 * What is lost comes first where it is much: a terminal may be too narrow for all of it.
 */
static void describe(const struct so_far *so_far, char *text, size_t size)
{
	double all_ns = so_far->observed_ns + so_far->overhead_ns, compute_ns = 0, most_ns = 0;
	const char *most = NULL;
	int length = 0;
	size_t i;

	text[0] = '\0';
	if (so_far->observed_ns <= 0)
		return;
	for (i = 0; i < so_far->count; i++) {
		double time_ns = so_far->families[i].time_ns;

		if (!strcmp(so_far->families[i].family, "compute")) {
			compute_ns = time_ns;
		} else if (time_ns > most_ns) {
			most_ns = time_ns;
			most = so_far->families[i].family;
		}
	}
	if (so_far->exceeding)
		length = snprintf(text, size, "  losses %s", so_far->exceeding);
	if (compute_ns >= most_ns)
		length += snprintf(text + length, size - length, "  compute %.0f %%",
				   MIN(100, 100 * compute_ns / so_far->observed_ns));
	if (most)
		length += snprintf(text + length, size - length, "  %s %.0f %%", most,
				   MIN(100, 100 * most_ns / so_far->observed_ns));
	length += snprintf(text + length, size - length, "  overhead %.1f %%",
			   100 * so_far->overhead_ns / all_ns);
	if (!so_far->exceeding)
		snprintf(text + length, size - length, "  losses %s",
			 so_far->has_losses ? "little" : "none");
}

static uint64_t own_cpu_ns(void)
{
	struct timespec spent;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
	return spent.tv_sec * S + spent.tv_nsec;
}

static void update_line(struct progress *progress, sqlite3 *recording, uint64_t elapsed_ns)
{
	const struct session_config *config = progress->config;
	const struct interval *interval;
	char text[128], figures[160];
	uint64_t before;

	if (progress->reader && elapsed_ns >= progress->due_ns) {
		before = own_cpu_ns();
		interval = look(progress, recording);
		if (interval)
			add_interval(&progress->so_far, interval);
		progress->due_ns =
			elapsed_ns + MAX(S * 9 / 10, COST_PART * (own_cpu_ns() - before));
	}
	describe(&progress->so_far, figures, sizeof(figures));
	target(config, text, sizeof(text));
	if (config->duration_ns)
		status_line("recording %s (^C ends)  %.0f/%.3g s%s", text, (double)elapsed_ns / S,
			    (double)config->duration_ns / S, figures);
	else
		status_line("recording %s (^C ends)  %.0f s%s", text, (double)elapsed_ns / S,
			    figures);
}

static void tell_interval(struct progress *progress, sqlite3 *recording)
{
	const struct interval *interval = look(progress, recording);

	if (interval && interval->end_ns)
		progress->config->on_interval(progress->config->interval_context, interval);
}

void progress_recording(struct progress *progress, sqlite3 *recording, uint64_t elapsed_ns)
{
	const struct session_config *config = progress->config;
	uint64_t before;

	if (has_line(config))
		update_line(progress, recording, elapsed_ns);
	if (!config->on_interval || !progress->reader || elapsed_ns < progress->due_ns)
		return;
	before = own_cpu_ns();
	tell_interval(progress, recording);
	progress->due_ns = (elapsed_ns / config->interval_ns + 1) * config->interval_ns;
	if (config->interval_live)
		progress->due_ns =
			MAX(progress->due_ns, elapsed_ns + COST_PART * (own_cpu_ns() - before));
}

void progress_recorded(struct progress *progress, sqlite3 *recording)
{
	if (progress->config->on_interval && progress->reader)
		tell_interval(progress, recording);
	g_clear_pointer(&progress->reader, interval_reader_free);
}

void progress_ending(const struct session_config *config, const char *step)
{
	if (config->command || config->watch)
		return;
	if (step)
		status_line("ending: %s", step);
	else
		status_line(NULL);
}
