// SPDX-License-Identifier: GPL-2.0
#include "session/hold_looks.h"

#include <errno.h>
#include <glib.h>
#include <glib-unix.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "recording/recording.h"
#include "session/consumers.h"
#include "session/hold_pins.h"
#include "session/hold_reuse.h"
#include "targets/targets.h"

/* A look that takes longer is given up: 40 GB of heaps take so long. */
#define HOLD_LOOK_SECONDS 20
/* At the end somebody waits. */
#define HOLD_END_SECONDS 5
/* What it says of a process is a few KiB. */
#define SAID_MAX (16U << 20)
/* The words of a command line are bounded; what is beyond is missing in the look. */
#define PROCESSES_MAX 512
/* It gives way to what is recorded. */
#define NICE 10

struct look {
	uint64_t start_ns;
	uint64_t took_ns;
	char *json; /* "": nothing usable */
};

struct hold_looks {
	uint64_t every_ns;
	uint64_t due_ns; /* 0: at once */
	int fd;		 /* of the look that goes on; -1: none does */
	uint64_t start_ns;
	bool cut; /* not all processes are in it, or it said too much */
	GString *said;
	GArray *ended; /* of struct look, not written yet */
	uint64_t written;
};

static void free_look(gpointer look)
{
	g_free(((struct look *)look)->json);
}

struct hold_looks *hold_looks_new(uint64_t every_ns)
{
	struct hold_looks *looks = g_new0(struct hold_looks, 1);

	looks->every_ns = every_ns;
	looks->fd = -1;
	looks->said = g_string_new("");
	looks->ended = g_array_new(FALSE, FALSE, sizeof(struct look));
	g_array_set_clear_func(looks->ended, free_look);
	return looks;
}

void hold_looks_free(struct hold_looks *looks)
{
	if (!looks)
		return;
	if (looks->fd >= 0)
		close(looks->fd);
	g_string_free(looks->said, TRUE);
	g_array_unref(looks->ended);
	g_free(looks);
}

struct pids {
	GString *list;
	unsigned int count;
	bool cut;
};

static void add_pid(void *context, struct target *target)
{
	struct pids *pids = context;

	if (target->exited)
		return;
	if (pids->count >= PROCESSES_MAX) {
		pids->cut = true;
		return;
	}
	g_string_append_printf(pids->list, "%s%d", pids->count++ ? "," : "", target->pid);
}

/* In the child: nobody waits for it for ever, and signals that we read ourselves reach it. */
static void set_up(gpointer unused)
{
	sigset_t none;

	(void)unused;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	alarm(HOLD_LOOK_SECONDS);
	if (nice(NICE) < 0)
		return; /* then it does not give way */
}

/* It is no child of ours: who launches a command waits for all of its children. */
static void begin_look(struct hold_looks *looks, uint64_t now_ns, struct targets *targets)
{
	struct pids pids = { .list = g_string_new("") };
	char *command[] = { "/proc/self/exe", "hold", "--json", "--pinning", "-p", NULL, NULL };

	targets_each(targets, add_pid, &pids);
	command[5] = pids.list->str;
	looks->start_ns = now_ns;
	looks->due_ns = now_ns + looks->every_ns;
	looks->cut = pids.cut;
	g_string_truncate(looks->said, 0);
	if (pids.count &&
	    g_spawn_async_with_pipes("/", command, NULL, G_SPAWN_STDERR_TO_DEV_NULL, set_up, NULL,
				     NULL, NULL, &looks->fd, NULL, NULL))
		g_unix_set_fd_nonblocking(looks->fd, TRUE, NULL);
	else
		looks->fd = -1;
	g_string_free(pids.list, TRUE);
}

static void end_look(struct hold_looks *looks)
{
	struct look look = {
		.start_ns = looks->start_ns,
		.took_ns = now_ns() - looks->start_ns,
		.json = g_strndup(looks->said->str, looks->cut ? 0 : looks->said->len),
	};

	close(looks->fd);
	looks->fd = -1;
	g_array_append_val(looks->ended, look);
}

/* What there is to read; false: it goes on. */
static bool take(struct hold_looks *looks)
{
	char some[16384];
	ssize_t length;

	while ((length = read(looks->fd, some, sizeof(some))) > 0) {
		looks->cut |= looks->said->len + length > SAID_MAX;
		if (!looks->cut)
			g_string_append_len(looks->said, some, length);
	}
	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	end_look(looks);
	return true;
}

void hold_looks_step(struct hold_looks *looks, uint64_t now_ns, struct targets *targets)
{
	if (looks->fd >= 0 && !take(looks))
		return;
	if (now_ns >= looks->due_ns)
		begin_look(looks, now_ns, targets);
}

static void await(struct hold_looks *looks)
{
	struct pollfd fd = { .fd = looks->fd, .events = POLLIN };
	uint64_t now = now_ns(), until = now + HOLD_END_SECONDS * 1000000000ULL;

	while (looks->fd >= 0 && now < until) {
		poll(&fd, 1, (int)((until - now) / 1000000) + 1);
		take(looks);
		now = now_ns();
	}
	if (looks->fd >= 0) {
		looks->cut = true;
		end_look(looks);
	}
}

void hold_looks_end(struct hold_looks *looks, struct targets *targets)
{
	if (looks->fd < 0)
		begin_look(looks, now_ns(), targets);
	await(looks);
}

int hold_looks_write(struct hold_looks *looks, struct recording *recording,
		     const struct consumers *consumers)
{
	int err = 0;
	guint i;

	for (i = 0; i < looks->ended->len && !err; i++) {
		const struct look *look = &g_array_index(looks->ended, struct look, i);

		err = recording_hold_look(recording, ++looks->written, look->start_ns,
					  look->took_ns, look->json);
		if (!err)
			err = hold_pins_write(recording, looks->written, look->json,
					      consumers->ledger, consumers->sampled);
		if (!err)
			err = hold_reuse_write(recording, looks->written, look->json,
					       consumers->trim_reuse, now_ns());
	}
	g_array_set_size(looks->ended, 0);
	return err;
}
