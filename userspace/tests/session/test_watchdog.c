// SPDX-License-Identifier: GPL-2.0
/* When patience ends: with what asks for the end, and with no sign of life since. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/message.h"
#include "session/watchdog.h"

#define USUAL (WATCHDOG_PATIENCE_MS / WATCHDOG_TICK_MS)
#define FINISHING (WATCHDOG_FINISHING_MS / WATCHDOG_TICK_MS)

/* Ticks in this state until patience ends; 0: it does not within `most`. */
static unsigned int ticks(struct watchdog_patience *patience, const struct watchdog_state *state,
			  unsigned int most)
{
	unsigned int i;

	for (i = 1; i <= most; i++)
		if (watchdog_tick(patience, state))
			return i;
	return 0;
}

static void test_nobody_asks(void **state)
{
	struct watchdog_patience patience = {};

	(void)state;
	assert_int_equal(ticks(&patience, &(struct watchdog_state){}, 4 * USUAL), 0);
}

static void test_a_signal_is_not_read(void **state)
{
	struct watchdog_patience patience = {};

	(void)state;
	assert_int_equal(ticks(&patience, &(struct watchdog_state){ .signal_waits = true },
			       4 * USUAL),
			 USUAL);
}

static void test_over_time(void **state)
{
	struct watchdog_patience patience = {};

	(void)state;
	/* What went by before does not count. */
	assert_int_equal(ticks(&patience, &(struct watchdog_state){}, 3), 0);
	assert_int_equal(ticks(&patience, &(struct watchdog_state){ .due = true }, 4 * USUAL),
			 USUAL);
}

static void test_signs_of_life(void **state)
{
	struct watchdog_patience patience = {};
	struct watchdog_state found = { .due = true };
	unsigned int i;

	(void)state;
	/* One is enough each time, and from the last one on patience is whole again. */
	for (i = 0; i < 5; i++) {
		assert_int_equal(ticks(&patience, &found, USUAL - 1), 0);
		found.alive++;
	}
	assert_false(watchdog_tick(&patience, &found));
	assert_int_equal(ticks(&patience, &found, 4 * USUAL), USUAL);
}

static void test_finishing(void **state)
{
	struct watchdog_patience patience = {};
	struct watchdog_state found = { .due = true, .finishing = true };

	(void)state;
	assert_int_equal(ticks(&patience, &found, 2 * FINISHING), FINISHING);
}

/* Asked for once more, it ends even where it gets on. */
static void test_asked_again(void **state)
{
	struct watchdog_patience patience = {};
	struct watchdog_state found = { .due = true, .finishing = true, .signal_waits = true };
	unsigned int i;

	(void)state;
	for (i = 1; i < USUAL; i++, found.alive++)
		assert_false(watchdog_tick(&patience, &found));
	assert_true(watchdog_tick(&patience, &found));
}

/* However much of life there is, and whoever asks. */
static void test_attaching_takes_too_long(void **state)
{
	struct watchdog_patience patience = {};

	(void)state;
	assert_int_equal(ticks(&patience, &(struct watchdog_state){ .late = true }, 4), 1);
}

/* A process that is held up while it attaches ends, says why, and keeps its word on the status. */
static void test_what_is_held_up_attaching_ends(void **state)
{
	struct timespec now;
	char text[256] = "";
	int pipes[2], status;
	sigset_t none;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(pipes[1], STDERR_FILENO);
		sigemptyset(&none);
		clock_gettime(CLOCK_MONOTONIC, &now);
		watchdog_attach_by(watchdog_start(&none), now.tv_sec * 1000000000ULL + now.tv_nsec);
		for (;;)
			pause();
	}
	close(pipes[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), STATUS_FAILED);
	assert_true(read(pipes[0], text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, "attaching took longer"));
	close(pipes[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_asks),
		cmocka_unit_test(test_a_signal_is_not_read),
		cmocka_unit_test(test_over_time),
		cmocka_unit_test(test_signs_of_life),
		cmocka_unit_test(test_finishing),
		cmocka_unit_test(test_asked_again),
		cmocka_unit_test(test_attaching_takes_too_long),
		cmocka_unit_test(test_what_is_held_up_attaching_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
