// SPDX-License-Identifier: GPL-2.0
#include "session/watchdog.h"

#include <glib.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "host/privileges.h"

#define NEVER UINT64_MAX

struct watchdog {
	GThread *thread;
	int signal_fd;
	GMutex lock;
	GCond changed;
	bool over;
	uint64_t due_ns;
	uint64_t attach_by_ns;
	unsigned int alive;
	bool finishing;
};

static bool signal_waits(const struct watchdog *watchdog)
{
	struct pollfd fd = { .fd = watchdog->signal_fd, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

bool watchdog_tick(struct watchdog_patience *patience, const struct watchdog_state *state)
{
	const unsigned int usual = WATCHDOG_PATIENCE_MS / WATCHDOG_TICK_MS;
	bool due = state->signal_waits || state->due;

	patience->waiting = state->signal_waits ? patience->waiting + 1 : 0;
	patience->ticks = due && patience->alive == state->alive ? patience->ticks + 1 : 0;
	patience->alive = state->alive;
	if (state->late)
		return true;
	if (!state->finishing)
		return patience->ticks >= usual;
	return patience->waiting >= usual ||
	       patience->ticks >= WATCHDOG_FINISHING_MS / WATCHDOG_TICK_MS;
}

static void end_process(const struct watchdog_state *state)
{
	static const char attaching[] =
		"memtoll: attaching took longer than -d, and than 60 s: given up, nothing was recorded; name "
		"fewer processes, or leave -d out\n";
	static const char probed[] =
		"memtoll: its end was asked for, and it did not get on for 5 s: ended as it was. All probes are "
		"gone; the recording has what was written by then\n";
	static const char writing[] =
		"memtoll: ended while the last of the recording was being written: it has what was written by "
		"then\n";
	message_last(state->late ? attaching : state->finishing ? writing : probed);
	_exit(STATUS_FAILED);
}

/* Who asks again is answered. */
static void say_ending(void)
{
	static const char text[] =
		"memtoll: ending: nothing is probed any more, and what was recorded is being written\n";

	message_at_once(text);
}

static gpointer watch(gpointer given)
{
	struct watchdog *watchdog = given;
	struct watchdog_patience patience = {};
	struct watchdog_state state;

	privileges_keep(PRIVILEGES_NONE);
	g_mutex_lock(&watchdog->lock);
	while (!watchdog->over) {
		if (g_cond_wait_until(&watchdog->changed, &watchdog->lock,
				      g_get_monotonic_time() + WATCHDOG_TICK_MS * 1000))
			continue;
		state = (struct watchdog_state){
			.alive = watchdog->alive,
			.signal_waits = signal_waits(watchdog),
			.due = now_ns() >= watchdog->due_ns,
			.finishing = watchdog->finishing,
			.late = now_ns() >= watchdog->attach_by_ns,
		};
		if (watchdog_tick(&patience, &state))
			end_process(&state);
		if (state.finishing && patience.waiting == 1)
			say_ending();
	}
	g_mutex_unlock(&watchdog->lock);
	return NULL;
}

struct watchdog *watchdog_start(const sigset_t *signals)
{
	struct watchdog *watchdog = g_new0(struct watchdog, 1);

	g_mutex_init(&watchdog->lock);
	g_cond_init(&watchdog->changed);
	watchdog->due_ns = NEVER;
	watchdog->attach_by_ns = NEVER;
	watchdog->signal_fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (watchdog->signal_fd >= 0)
		watchdog->thread = g_thread_try_new("watchdog", watch, watchdog, NULL);
	if (watchdog->thread)
		return watchdog;
	if (watchdog->signal_fd >= 0)
		close(watchdog->signal_fd);
	g_free(watchdog);
	return NULL;
}

void watchdog_stop(struct watchdog *watchdog)
{
	if (!watchdog)
		return;
	g_mutex_lock(&watchdog->lock);
	watchdog->over = true;
	g_cond_signal(&watchdog->changed);
	g_mutex_unlock(&watchdog->lock);
	g_thread_join(watchdog->thread);
	close(watchdog->signal_fd);
	g_mutex_clear(&watchdog->lock);
	g_cond_clear(&watchdog->changed);
	g_free(watchdog);
}

void watchdog_alive(struct watchdog *watchdog)
{
	if (!watchdog)
		return;
	g_mutex_lock(&watchdog->lock);
	watchdog->alive++;
	g_mutex_unlock(&watchdog->lock);
}

void watchdog_attach_by(struct watchdog *watchdog, uint64_t at_ns)
{
	if (!watchdog)
		return;
	g_mutex_lock(&watchdog->lock);
	watchdog->attach_by_ns = at_ns;
	g_mutex_unlock(&watchdog->lock);
}

void watchdog_due(struct watchdog *watchdog, uint64_t at_ns)
{
	if (!watchdog)
		return;
	g_mutex_lock(&watchdog->lock);
	watchdog->due_ns = MIN(watchdog->due_ns, at_ns);
	watchdog->attach_by_ns = NEVER;
	watchdog->alive++;
	g_mutex_unlock(&watchdog->lock);
}

void watchdog_finishing(struct watchdog *watchdog)
{
	if (!watchdog)
		return;
	g_mutex_lock(&watchdog->lock);
	watchdog->finishing = true;
	watchdog->attach_by_ns = NEVER;
	watchdog->alive++;
	g_mutex_unlock(&watchdog->lock);
}
