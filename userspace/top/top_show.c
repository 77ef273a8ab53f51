// SPDX-License-Identifier: GPL-2.0
#include "top/top_show.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/message.h"
#include "top/top_draw.h"
#include "top/top_keys.h"
#include "top/top_lines.h"
#include "top/top_screen.h"

#define SIZE_MS 250 /* how often the terminal is asked for its size */

struct top_show {
	enum top_mode mode;
	unsigned int count; /* snapshots that are yet to come; 0: any number */
	GMutex lock;	    /* of all that follows */
	struct top_model *model;
	GPtrArray *said; /* messages: char * */
	bool closing;	 /* the screen is to be left now */
	bool asked;	 /* for the end */
	bool full;	 /* all snapshots that were wanted are printed */
	int error;	 /* of the lines: 0, or errno */
	struct top_screen *screen;
	GThread *thread;
	int event;   /* something is new */
	int signals; /* those that ask for the end, once nothing else reads them */
};

static void ask_for_end(struct top_show *show)
{
	if (!show->asked)
		kill(getpid(), SIGTERM);
	show->asked = true;
}

static void wake(struct top_show *show)
{
	uint64_t one = 1;

	if (show->event >= 0 && write(show->event, &one, sizeof(one)) < 0)
		return; /* it is awake, and much behind */
}

/* On the screen, and again when that is gone. */
static void take_message(void *context, const char *line)
{
	struct top_show *show = context;

	g_mutex_lock(&show->lock);
	g_ptr_array_add(show->said, g_strdup(line));
	top_model_say(show->model, line);
	g_mutex_unlock(&show->lock);
	wake(show);
}

static void draw(struct top_show *show)
{
	struct top_canvas *canvas = top_screen_canvas(show->screen);

	g_mutex_lock(&show->lock);
	top_draw(canvas, show->model, top_screen_is_ascii(show->screen));
	g_mutex_unlock(&show->lock);
	/* Without the lock: the terminal may be slow. */
	top_screen_show(show->screen, canvas);
	top_canvas_free(canvas);
}

static void take_keys(struct top_show *show)
{
	unsigned int key;

	while ((key = top_screen_key(show->screen)) != TOP_KEY_NONE) {
		if (key == TOP_KEY_REDRAW)
			top_screen_redraw(show->screen);
		g_mutex_lock(&show->lock);
		top_key(show->model, key);
		g_mutex_unlock(&show->lock);
	}
}

static gpointer run_screen(gpointer data)
{
	struct top_show *show = data;
	bool over = false, ended = false;

	while (!over) {
		struct pollfd fds[] = {
			{ .fd = top_screen_descriptor(show->screen), .events = POLLIN },
			{ .fd = show->event, .events = POLLIN },
			{ .fd = ended ? show->signals : -1, .events = POLLIN },
		};
		uint64_t events;

		draw(show);
		poll(fds, G_N_ELEMENTS(fds), SIZE_MS);
		if (fds[1].revents & POLLIN && read(show->event, &events, sizeof(events)) < 0)
			continue;
		take_keys(show);
		g_mutex_lock(&show->lock);
		/* A terminal that is gone, or a signal. */
		if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL) || fds[2].revents & POLLIN)
			show->model->quit = true;
		ended = show->model->ended;
		over = show->closing || show->model->quit;
		g_mutex_unlock(&show->lock);
	}
	/* Before the end is asked for: should it come at once, the terminal is as it was. */
	top_screen_close(show->screen);
	show->screen = NULL;
	message_divert(NULL, NULL);
	g_mutex_lock(&show->lock);
	if (show->model->quit && !show->model->ended)
		ask_for_end(show);
	g_mutex_unlock(&show->lock);
	return NULL;
}

struct top_show *top_show_open(enum top_mode mode, unsigned int count)
{
	struct top_show *show = g_new0(struct top_show, 1);
	sigset_t signals, blocked;

	show->mode = mode;
	show->count = count;
	show->event = show->signals = -1;
	show->model = top_model_new();
	show->said = g_ptr_array_new_with_free_func(g_free);
	g_mutex_init(&show->lock);
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	blocked = signals;
	/* Of whoever reads the lines: an error of the write, and the recording is finished. */
	sigaddset(&blocked, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	if (mode != TOP_SCREEN)
		return show;
	show->screen = top_screen_open();
	show->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	show->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (show->screen && show->event >= 0) {
		message_divert(take_message, show);
		show->thread = g_thread_try_new("screen", run_screen, show, NULL);
	}
	if (show->thread)
		return show;
	top_screen_close(show->screen);
	show->screen = NULL;
	message_divert(NULL, NULL);
	top_show_close(show, false);
	return NULL;
}

static void print_lines(struct top_show *show)
{
	if (show->mode == TOP_BATCH)
		top_lines_text(stdout, show->model);
	else
		top_lines_json(stdout, show->model);
	if (!ferror(stdout) || show->error)
		return;
	show->error = errno;
	/* Nobody who reads them any more is no failure. */
	if (show->error != EPIPE)
		message("standard output cannot be written: %s", strerror(show->error));
	ask_for_end(show);
}

void top_show_snapshot(struct top_show *show, struct top_snapshot *snapshot)
{
	g_mutex_lock(&show->lock);
	top_model_take(show->model, snapshot);
	if (show->mode != TOP_SCREEN && !show->full)
		print_lines(show);
	if (show->count && !--show->count) {
		show->full = true;
		ask_for_end(show);
	}
	g_mutex_unlock(&show->lock);
	wake(show);
}

char *top_show_mark(struct top_show *show)
{
	char *note = NULL;

	g_mutex_lock(&show->lock);
	if (show->model->marks->len)
		note = g_ptr_array_steal_index(show->model->marks, 0);
	g_mutex_unlock(&show->lock);
	return note;
}

static void say_rest(struct top_show *show)
{
	guint i;

	for (i = 0; i < show->said->len; i++)
		message("%s", (const char *)g_ptr_array_index(show->said, i));
	if (show->mode == TOP_SCREEN && show->model->last) {
		g_autofree char *verdict = top_model_verdict(show->model);

		message("%s, %.0f s: %s", show->model->last->target,
			show->model->last->elapsed_ns / 1e9, verdict);
	}
}

bool top_show_close(struct top_show *show, bool wait)
{
	bool written = !show->error || show->error == EPIPE;

	if (show->thread) {
		g_mutex_lock(&show->lock);
		show->model->ended = true;
		if (!wait || show->asked)
			show->closing = true;
		g_mutex_unlock(&show->lock);
		wake(show);
		g_thread_join(show->thread);
	}
	say_rest(show);
	if (show->event >= 0)
		close(show->event);
	if (show->signals >= 0)
		close(show->signals);
	g_ptr_array_free(show->said, TRUE);
	top_model_free(show->model);
	g_mutex_clear(&show->lock);
	g_free(show);
	return written;
}
