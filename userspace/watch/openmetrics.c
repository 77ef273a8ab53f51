// SPDX-License-Identifier: GPL-2.0
#include "watch/openmetrics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/version.h"
#include "host/memory_files.h"
#include "host/output_file.h"
#include "watch/metrics.h"

#define S 1e9
#define OTHER "other"

/* A family: all its samples follow. unit: "" where it has none; it is the name's last part. */
static void family(GString *text, const char *name, const char *type, const char *unit,
		   const char *help)
{
	g_string_append_printf(text, "# TYPE memtoll_%s %s\n", name, type);
	if (*unit)
		g_string_append_printf(text, "# UNIT memtoll_%s %s\n", name, unit);
	g_string_append_printf(text, "# HELP memtoll_%s %s\n", name, help);
}

static void label(GString *text, const char *separator, const char *name, const char *value)
{
	g_autofree char *shown = text_printable(value);
	const char *at;

	g_string_append_printf(text, "%s%s=\"", separator, name);
	for (at = shown; *at; at++) {
		if (*at == '\\' || *at == '"')
			g_string_append_c(text, '\\');
		g_string_append_c(text, *at);
	}
	g_string_append_c(text, '"');
}

static void number(GString *text, double value)
{
	char shown[G_ASCII_DTOSTR_BUF_SIZE];

	g_string_append_printf(text, " %s\n",
			       g_ascii_formatd(shown, sizeof(shown), "%.15g", value));
}

static void single(GString *text, const char *name, double value)
{
	g_string_append_printf(text, "memtoll_%s", name);
	number(text, value);
}

/* ---- targets ---- */

enum of_toll { TOLL_SECONDS, TOLL_EVENTS, TOLL_BYTES };

static void toll_samples(GString *text, const struct metrics *metrics, const char *name,
			 enum of_toll what)
{
	guint i, k;

	for (i = 0; i < metrics->targets->len; i++) {
		const struct metrics_target *target =
			&g_array_index(metrics->targets, struct metrics_target, i);

		for (k = 0; k < WORKER_TOLLS && target->tolls[k].name[0]; k++) {
			const struct metrics_toll *toll = &target->tolls[k];

			g_string_append_printf(text, "memtoll_%s_total", name);
			label(text, "{", "target", target->label);
			label(text, ",", "toll", toll->name);
			g_string_append_c(text, '}');
			number(text, what == TOLL_SECONDS ? toll->time_ns / S :
				     what == TOLL_EVENTS  ? toll->count :
							    toll->bytes);
		}
	}
}

static void tolls(GString *text, const struct metrics *metrics)
{
	family(text, "toll_seconds", "counter", "seconds",
	       "Time that memory has cost the target, by toll; compute is all the rest.");
	toll_samples(text, metrics, "toll_seconds", TOLL_SECONDS);
	family(text, "toll_events", "counter", "",
	       "Faults, calls or samples that the toll was paid in.");
	toll_samples(text, metrics, "toll_events", TOLL_EVENTS);
	family(text, "toll_bytes", "counter", "bytes",
	       "Bytes that were cleared, copied, brought in or mapped.");
	toll_samples(text, metrics, "toll_bytes", TOLL_BYTES);
}

enum of_target { OBSERVED, OVERHEAD, PROCESSES, RESIDENT, SWAPPED };

static double target_value(const struct metrics_target *target, enum of_target what)
{
	switch (what) {
	case OBSERVED:
		return target->observed_ns / S;
	case OVERHEAD:
		return target->overhead_ns / S;
	case PROCESSES:
		return target->processes;
	case RESIDENT:
		return target->rss_bytes;
	case SWAPPED:
		return target->swap_bytes;
	}
	return 0;
}

static void targets(GString *text, const struct metrics *metrics)
{
	static const struct {
		const char *name, *type, *unit, *help;
	} families[] = {
		[OBSERVED] = { "observed_seconds", "counter", "seconds",
			       "Time of the target on processors, and asleep for memory." },
		[OVERHEAD] = { "overhead_seconds", "counter", "seconds",
			       "Processor time that tracing has added to the target." },
		[PROCESSES] = { "processes", "gauge", "", "Processes of the target now." },
		[RESIDENT] = { "resident_bytes", "gauge", "bytes",
			       "Memory of the target's processes now, what they share each time." },
		[SWAPPED] = { "swapped_bytes", "gauge", "bytes",
			      "Memory of the target's processes that is in swap now." },
	};
	size_t k;
	guint i;

	for (k = 0; k < G_N_ELEMENTS(families); k++) {
		family(text, families[k].name, families[k].type, families[k].unit,
		       families[k].help);
		for (i = 0; i < metrics->targets->len; i++) {
			const struct metrics_target *target =
				&g_array_index(metrics->targets, struct metrics_target, i);

			g_string_append_printf(text, "memtoll_%s%s", families[k].name,
					       families[k].type[0] == 'c' ? "_total" : "");
			label(text, "{", "target", target->label);
			g_string_append_c(text, '}');
			number(text, target_value(target, k));
		}
	}
}

static void memory_samples(GString *text, const struct metrics *metrics, const char *name,
			   const char *key, enum memory_figure first, enum memory_figure end)
{
	guint i, k;

	for (i = 0; i < metrics->targets->len; i++) {
		const struct metrics_target *target =
			&g_array_index(metrics->targets, struct metrics_target, i);

		for (k = first; k < end; k++) {
			if (target->memory.values[k] < 0)
				continue;
			g_string_append_printf(text, "memtoll_%s", name);
			label(text, "{", "target", target->label);
			label(text, ",", key, memory_figure_name(k));
			g_string_append_c(text, '}');
			number(text, (double)target->memory.values[k]);
		}
	}
}

static void cgroups(GString *text, const struct metrics *metrics)
{
	family(text, "cgroup_memory_bytes", "gauge", "bytes",
	       "Memory of the target's cgroup now: all of it (usage), and parts by kind.");
	memory_samples(text, metrics, "cgroup_memory_bytes", "kind", 0, MEMORY_GAUGES);
	family(text, "cgroup_memory_events", "counter", "",
	       "Events of the target's cgroup since it was made, by their names in memory.stat and "
	       "memory.events.");
	memory_samples(text, metrics, "cgroup_memory_events_total", "event", MEMORY_GAUGES,
		       MEMORY_FIGURES);
}

/* ---- places ---- */

static void place_sample(GString *text, const char *name, const struct metrics_place *place,
			 bool is_other, double value)
{
	g_string_append_printf(text, "memtoll_%s_total", name);
	label(text, "{", "toll", place->toll);
	label(text, ",", "call", is_other ? OTHER : place->call);
	label(text, ",", "allocated", is_other ? OTHER : place->allocated);
	label(text, ",", "touched", is_other ? OTHER : place->touched);
	g_string_append_c(text, '}');
	number(text, value);
}

static void place_samples(GString *text, const struct metrics *metrics, const char *name,
			  bool seconds)
{
	g_autoptr(GList) other = g_hash_table_get_values(metrics->other);
	const GList *each;
	guint i;

	for (i = 0; i < metrics->places->len; i++) {
		const struct metrics_place *place =
			&g_array_index(metrics->places, struct metrics_place, i);

		place_sample(text, name, place, false, seconds ? place->time_ns / S : place->bytes);
	}
	for (each = other; each; each = each->next) {
		const struct metrics_place *place = each->data;

		place_sample(text, name, place, true, seconds ? place->time_ns / S : place->bytes);
	}
}

static void places(GString *text, const struct metrics *metrics)
{
	family(text, "place_seconds", "counter", "seconds",
	       "Tolls by the code that allocated and that touched, as recordings end; the heaviest "
	       "places, and the rest.");
	place_samples(text, metrics, "place_seconds", true);
	family(text, "place_bytes", "counter", "bytes", "The same in bytes.");
	place_samples(text, metrics, "place_bytes", false);
}

/* ---- the watch itself ---- */

static void recordings(GString *text, const struct metrics *metrics)
{
	family(text, "recordings", "counter", "", "Recordings that are whole.");
	single(text, "recordings_total{kind=\"ordinary\"}", metrics->recordings[0]);
	single(text, "recordings_total{kind=\"detailed\"}", metrics->recordings[1]);
	family(text, "recording_failures", "counter", "", "Recordings that could not be made.");
	single(text, "recording_failures_total", metrics->failed);
	family(text, "recordings_removed", "counter", "",
	       "Recordings that were removed for the bound on the disk.");
	single(text, "recordings_removed_total", metrics->removed);
	family(text, "recordings_kept", "gauge", "", "Recordings that are there now.");
	single(text, "recordings_kept", metrics->kept_files);
	family(text, "kept_bytes", "gauge", "bytes",
	       "What recordings take on the disk now, with those that are being written.");
	single(text, "kept_bytes", metrics->kept_bytes);
	family(text, "unwatched_seconds", "counter", "seconds",
	       "Time between two recordings, in neither of them.");
	single(text, "unwatched_seconds_total", metrics->unwatched_ns / S);
	family(text, "watched_twice_seconds", "counter", "seconds",
	       "Time that is in two recordings, as one took over from the other.");
	single(text, "watched_twice_seconds_total", metrics->twice_ns / S);
	family(text, "triggers", "counter", "", "Detailed recordings that a condition has begun.");
	single(text, "triggers_total", metrics->triggered);
	family(text, "detailed", "gauge", "",
	       "Whether the recording that is being made is detailed.");
	single(text, "detailed", metrics->detailed);
}

static void itself(GString *text, const struct metrics *metrics)
{
	guint i;

	family(text, "losses", "counter", "", "What could not be recorded, by name.");
	for (i = 0; i < metrics->loss_count; i++) {
		g_string_append(text, "memtoll_losses_total");
		label(text, "{", "loss", metrics->losses[i].name);
		g_string_append_c(text, '}');
		number(text, metrics->losses[i].count);
	}
	family(text, "intervals", "counter", "", "Intervals that have been added up here.");
	single(text, "intervals_total", metrics->intervals);
	family(text, "last_interval_timestamp_seconds", "gauge", "seconds",
	       "When the last interval was added.");
	single(text, "last_interval_timestamp_seconds", metrics->last_interval_s);
	family(text, "start_time_seconds", "gauge", "seconds", "When the watch began.");
	single(text, "start_time_seconds", metrics->started_s);
	/* Type info would be right; node_exporter's parser refuses a file that has it. */
	family(text, "build_info", "gauge", "", "Which memtoll this is; always 1.");
	g_string_append(text, "memtoll_build_info");
	label(text, "{", "version", memtoll_version);
	g_string_append(text, "} 1\n");
}

GString *openmetrics_text(const struct metrics *metrics)
{
	GString *text = g_string_new("");

	tolls(text, metrics);
	targets(text, metrics);
	cgroups(text, metrics);
	places(text, metrics);
	recordings(text, metrics);
	itself(text, metrics);
	g_string_append(text, "# EOF\n");
	return text;
}

/* The collector runs as a user of its own, and takes files that end in .prom only. */
int openmetrics_file(const char *path, const GString *text)
{
	g_autofree char *next = g_strdup_printf("%s.%d.tmp", path, (int)getpid());
	gsize written = 0;
	int err = -EIO, fd;

	unlink(next);
	fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	if (fchmod(fd, 0644)) {
		err = -errno;
		goto out;
	}
	give_to_invoker(fd);
	while (written < text->len) {
		ssize_t done = write(fd, text->str + written, text->len - written);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			err = done ? -errno : -EIO;
			goto out;
		}
		written += done;
	}
	err = rename(next, path) ? -errno : 0;
out:
	close(fd);
	if (err)
		unlink(next);
	return err;
}
