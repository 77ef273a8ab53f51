// SPDX-License-Identifier: GPL-2.0
#include "watch/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "recording/recording.h"
#include "watch/changed_options.h"
#include "watch/endpoint.h"
#include "watch/json_lines.h"
#include "watch/json_out.h"
#include "watch/keep.h"
#include "watch/log.h"
#include "watch/metrics.h"
#include "watch/notify.h"
#include "watch/openmetrics.h"
#include "watch/psi.h"
#include "watch/rotation.h"
#include "watch/trigger.h"

#define S 1000000000ULL
#define TICK_NS S
/* Of the bound each recording has at most a part, so that all that are written fit at once. */
#define KEEP_PARTS 8
/* And the bound is looked at once a tick: what comes in between has room. */
#define SLACK_PARTS 16
#define PSI "psi."
#define OLD_INTERVALS 4
#define SWITCH_NS (30 * S) /* from one recording to the next, on a busy machine */

struct watch {
	struct watch_config *config;
	struct metrics *metrics;
	struct rotation *rotation;
	struct keep *keep;
	struct endpoint *endpoint;
	struct json_out *json;
	int lock_fd;
	int signal_fd;
	sigset_t old_signals;
	uint64_t started_ns;
	uint64_t tick_ns;  /* the next one is due */
	uint64_t heard_ns; /* when the service manager last heard of us */
	bool detailing;
	uint64_t detail_until_ns; /* 0: it has not begun */
	uint64_t detail_from_ns;  /* not before */
	bool ready;
	bool ending;
	bool complained; /* of the file of metrics */
	bool json_slow;	 /* lines were left out */
};

/* ---- what workers say ---- */

static void show(struct watch *watch)
{
	g_autoptr(GString) text = openmetrics_text(watch->metrics);
	const char *path = watch->config->metrics_path;
	int err;

	endpoint_show(watch->endpoint, text);
	if (!path)
		return;
	err = openmetrics_file(path, text);
	if (err && !watch->complained)
		watch_log(LOG_WARNING, "%s: %s", path, strerror(-err));
	watch->complained = err;
}

/* Who read them is gone: the recordings go on. */
static void end_json(struct watch *watch, int err)
{
	watch_log(LOG_WARNING, "--json: %s; no more lines", strerror(-err));
	json_out_free(watch->json);
	watch->json = NULL;
}

static void show_line(struct watch *watch, const char *recording)
{
	char *line = NULL;
	size_t length = 0;
	FILE *memory = open_memstream(&line, &length);
	int err = memory ? json_line(memory, watch->metrics, recording) : -errno;

	if (memory)
		fclose(memory);
	if (!err)
		err = json_out_add(watch->json, line, length);
	free(line);
	if (err == -ENOBUFS) {
		if (!watch->json_slow)
			watch_log(
				LOG_WARNING,
				"--json: its reader is slow, or its disk full; lines are left out");
		watch->json_slow = true;
		return;
	}
	watch->json_slow = false;
	if (err)
		end_json(watch, err);
}

static void show_interval(struct watch *watch, const char *recording)
{
	show(watch);
	if (watch->json)
		show_line(watch, recording);
}

static void on_message(void *context, const struct worker_message *message, const char *name,
		       bool detailed)
{
	struct watch *watch = context;

	metrics_add(watch->metrics, message);
	if (message->event == WORKER_INTERVAL)
		show_interval(watch, name);
	if (message->event != WORKER_DONE)
		return;
	watch->metrics->recordings[detailed] += message->done.kept;
	show(watch);
}

static void on_switched(void *context, int64_t overlap_ns)
{
	struct watch *watch = context;

	if (overlap_ns < 0)
		watch->metrics->unwatched_ns -= overlap_ns;
	else
		watch->metrics->twice_ns += overlap_ns;
}

static void on_begun(void *context, const char *name, bool detailed)
{
	struct watch *watch = context;

	watch->metrics->detailed = detailed;
	if (detailed && watch->detailing && !watch->detail_until_ns)
		watch->detail_until_ns = now_ns() + watch->config->detail_most_ns;
	if (!watch->ready) {
		notify_send("READY=1");
		watch_log(LOG_INFO, "watching, first into %s", name);
	}
	watch->ready = true;
	notify_send("STATUS=%s", name);
}

static void on_failure(void *context)
{
	struct watch *watch = context;

	watch->metrics->failed++;
}

/* ---- triggers ---- */

struct asked {
	const struct metrics *metrics;
	uint64_t old_ns;
	guint target;
};

static bool value_of(void *context, const char *name, double *value)
{
	const struct asked *asked = context;

	if (g_str_has_prefix(name, PSI))
		return psi_read(name + strlen(PSI), value);
	/* What nobody has told since is not known any more. */
	if (now_ns() - asked->metrics->end_ns > asked->old_ns)
		return false;
	return metrics_value(asked->metrics, asked->target, name, value);
}

/* Of any target. */
static bool holds(const struct watch *watch, const struct trigger *trigger)
{
	struct asked asked = { .metrics = watch->metrics,
			       .old_ns = OLD_INTERVALS * watch->config->interval_ns + SWITCH_NS };

	for (; asked.target < watch->metrics->targets->len; asked.target++)
		if (trigger_holds(trigger, value_of, &asked))
			return true;
	return false;
}

static void end_detail(struct watch *watch, uint64_t now, const char *why)
{
	watch->detailing = false;
	watch->detail_until_ns = 0;
	watch->detail_from_ns = now + watch->config->detail_pause_ns;
	watch_log(LOG_NOTICE, "the detailed recording ends: %s", why);
	rotation_want_detailed(watch->rotation, false, now);
}

static void step_triggers(struct watch *watch, uint64_t now)
{
	const struct trigger *fired = NULL;
	guint i;

	for (i = 0; i < watch->config->triggers->len; i++) {
		struct trigger *trigger = g_ptr_array_index(watch->config->triggers, i);

		if (trigger_step(trigger, now, holds(watch, trigger)))
			fired = trigger;
	}
	if (watch->detailing && !fired)
		end_detail(watch, now, "its condition holds no more");
	else if (watch->detail_until_ns && now >= watch->detail_until_ns)
		end_detail(watch, now, "it has taken as long as it may");
	if (!fired || watch->detailing || now < watch->detail_from_ns)
		return;
	watch_log(LOG_NOTICE, "a detailed recording begins: %s", trigger_text(fired));
	watch->metrics->triggered++;
	watch->detailing = true;
	rotation_want_detailed(watch->rotation, true, now);
}

/* ---- each second ---- */

static void keep_bound(struct watch *watch)
{
	const uint64_t most = watch->config->keep_bytes;
	const struct kept kept =
		keep_within(watch->keep, watch->config->directory, most - most / SLACK_PARTS);

	watch->metrics->kept_bytes = kept.bytes;
	watch->metrics->kept_files = kept.files;
	watch->metrics->removed += kept.removed;
}

static void tick(struct watch *watch, uint64_t now)
{
	const uint64_t hear_ns = notify_watchdog_ns();
	int err = watch->json ? json_out_flush(watch->json) : 0;

	watch->tick_ns = now + TICK_NS;
	if (err)
		end_json(watch, err);
	keep_bound(watch);
	if (!watch->ending)
		step_triggers(watch, now);
	if (hear_ns && now - watch->heard_ns >= MIN(hear_ns, TICK_NS)) {
		notify_send("WATCHDOG=1");
		watch->heard_ns = now;
	}
}

static void end(struct watch *watch, const char *why)
{
	if (watch->ending)
		return;
	watch_log(LOG_INFO, "ending: %s", why);
	notify_send("STOPPING=1");
	watch->ending = true;
}

static struct rotation_options rotation_options(const struct watch_config *config)
{
	const uint64_t most = config->keep_bytes / KEEP_PARTS;
	struct rotation_options options = {
		.ordinary = config->session,
		.detailed = config->detailed,
		.rotate_ns = config->rotate_ns,
		.file_bytes = most * 3 / 4,
	};

	options.ordinary.duration_ns = options.detailed.duration_ns = 0;
	options.ordinary.interval_ns = options.detailed.interval_ns = config->interval_ns;
	options.ordinary.max_bytes = options.detailed.max_bytes = most;
	return options;
}

/* Options that can change do with the next recording, which begins while this one still counts. */
static void change_options(struct watch *watch)
{
	struct watch_config *config = watch->config, fresh;
	struct rotation_options options;
	struct changed_options changed;

	if (!config->reread || !config->reread(config->reread_context, &fresh))
		return;
	changed = changed_options_take(config, &fresh);
	watch_config_clear(&fresh);
	if (changed.taken->len)
		watch_log(LOG_NOTICE, "options: %s changed%s%s", changed.taken->str,
			  changed.restart->len ? "; after a restart: " : "", changed.restart->str);
	else if (changed.restart->len)
		watch_log(LOG_NOTICE, "options: none changed; after a restart: %s",
			  changed.restart->str);
	if (changed.taken->len) {
		metrics_set_targets(watch->metrics, config->targets);
		options = rotation_options(config);
		rotation_change(watch->rotation, &options);
	}
	changed_options_clear(&changed);
}

/* Whoever rotates logs has renamed it; standard output stays. */
static void open_json_again(struct watch *watch, const char *before)
{
	const char *path = watch->config->json_path;

	if (g_strcmp0(path, before) == 0 && g_strcmp0(path, "-") == 0)
		return;
	json_out_free(watch->json);
	watch->json = path ? json_out_open(path) : NULL;
	if (path && !watch->json)
		watch_log(LOG_WARNING, "%s: %s", path, strerror(errno));
}

static void reload(struct watch *watch, uint64_t now)
{
	const char *json = watch->config->json_path;

	notify_send("RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(now / 1000));
	change_options(watch);
	open_json_again(watch, json);
	rotation_switch(watch->rotation, now);
	notify_send("READY=1");
}

static void read_signals(struct watch *watch, uint64_t now)
{
	struct signalfd_siginfo info;

	while (read(watch->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			reload(watch, now);
		else
			end(watch, "asked to");
	}
}

/* ---- from start to end ---- */

static int open_signals(struct watch *watch)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &signals, &watch->old_signals))
		return -errno;
	watch->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	/* A pipe whose reader is gone is an error of write(2). */
	signal(SIGPIPE, SIG_IGN);
	return watch->signal_fd < 0 ? -errno : 0;
}

static bool open_json(struct watch *watch)
{
	const char *path = watch->config->json_path;

	if (!path)
		return true;
	watch->json = json_out_open(path);
	if (!watch->json)
		watch_log(LOG_ERR, "%s: %s", path, strerror(errno));
	return watch->json;
}

static int open_all(struct watch *watch)
{
	const struct watch_config *config = watch->config;
	const struct rotation_options options = rotation_options(config);
	struct rotation_config rotation = {
		.targets = config->targets,
		.directory = config->directory,
		.places = config->places,
		.on_message = on_message,
		.on_begun = on_begun,
		.on_switched = on_switched,
		.on_failure = on_failure,
		.context = watch,
	};
	int err = open_signals(watch);

	if (err) {
		watch_log(LOG_ERR, "cannot wait for signals: %s", strerror(-err));
		return STATUS_FAILED;
	}
	watch->lock_fd = keep_lock(config->directory);
	if (watch->lock_fd < 0)
		return STATUS_FAILED;
	keep_remove_unfinished(config->directory);
	if (config->listens) {
		watch->endpoint = endpoint_start(&config->listen);
		if (!watch->endpoint)
			return STATUS_FAILED;
	}
	if (!open_json(watch))
		return STATUS_FAILED;
	watch->keep = keep_new();
	rotation.keep = watch->keep;
	rotation.lock_fd = watch->lock_fd;
	watch->metrics = metrics_new(config->targets, config->places);
	watch->rotation = rotation_new(&rotation, &options);
	return STATUS_DONE;
}

static void run(struct watch *watch)
{
	const uint64_t duration_ns = watch->config->session.duration_ns;
	struct pollfd fds[1 + ROTATION_WORKERS];
	uint64_t now = now_ns();

	watch->started_ns = now;
	show(watch);
	while (!watch->ending || !rotation_end(watch->rotation)) {
		unsigned int count = 1;

		rotation_step(watch->rotation, now);
		if (now >= watch->tick_ns)
			tick(watch, now);
		/* So long from when there is something to see; where that fails, from now on. */
		if (!watch->ready && !watch->metrics->failed)
			watch->started_ns = now;
		if (duration_ns && now - watch->started_ns >= duration_ns)
			end(watch, "its time is over");
		fds[0] = (struct pollfd){ .fd = watch->signal_fd, .events = POLLIN };
		count += rotation_fds(watch->rotation, fds + 1);
		poll(fds, count, 1 + (int)((MAX(watch->tick_ns, now) - now) / 1000000));
		now = now_ns();
		read_signals(watch, now);
	}
	keep_bound(watch);
	show(watch);
}

static void close_all(struct watch *watch)
{
	rotation_free(watch->rotation);
	keep_free(watch->keep);
	endpoint_stop(watch->endpoint);
	metrics_free(watch->metrics);
	json_out_free(watch->json);
	if (watch->lock_fd >= 0)
		close(watch->lock_fd);
	if (watch->signal_fd >= 0)
		close(watch->signal_fd);
	sigprocmask(SIG_SETMASK, &watch->old_signals, NULL);
}

void watch_config_clear(struct watch_config *config)
{
	g_ptr_array_free(config->triggers, TRUE);
	target_set_free(config->targets);
}

int watch_run(struct watch_config *config)
{
	struct watch watch = { .config = config, .lock_fd = -1, .signal_fd = -1 };
	int status;

	sigprocmask(SIG_BLOCK, NULL, &watch.old_signals);
	status = open_all(&watch);
	if (!status) {
		run(&watch);
		if (!watch.metrics->recordings[0] && !watch.metrics->recordings[1] &&
		    watch.metrics->failed)
			status = STATUS_FAILED;
	}
	close_all(&watch);
	return status;
}
