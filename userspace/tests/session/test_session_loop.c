// SPDX-License-Identifier: GPL-2.0
/* The end of a slice, of a session without targets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* What it calls is here, by other names. */
#define budget_end_slice no_budget_end_slice
#define budget_in_window no_budget_in_window
#define kernel_stacks_dead no_kernel_stacks_dead
#define fault_window_slice no_fault_window_slice
#define priority_step counted_priority_step
#define progress_recording no_progress_recording
#define rates_read no_rates_read
#define recording_database no_recording_database
#define ring_buffer__consume no_ring_buffer__consume
#define session_record_state no_session_record_state
#define slice_commit counted_slice_commit
#define targets_dead no_targets_dead
#define targets_read_counters no_targets_read_counters
#define targets_refresh no_targets_refresh
#include "session/session_loop.c" /* NOLINT(bugprone-suspicious-include) */

static unsigned int steps, commits, dead, dead_stacks;

void budget_end_slice(struct budget *budget)
{
	(void)budget;
}

bool budget_in_window(const struct budget *budget)
{
	(void)budget;
	return false;
}

void fault_window_slice(struct fault_window *window, uint64_t now, uint64_t faults)
{
	(void)window;
	(void)now;
	(void)faults;
}

void priority_step(struct priority *priority)
{
	(void)priority;
	steps++;
}

void progress_recording(struct progress *progress, sqlite3 *recording, uint64_t elapsed_ns)
{
	(void)progress;
	(void)recording;
	(void)elapsed_ns;
}

sqlite3 *recording_database(struct recording *recording)
{
	(void)recording;
	return NULL;
}

void rates_read(struct memtoll_bpf *bpf, struct memtoll_rates *rates)
{
	(void)bpf;
	*rates = (struct memtoll_rates){};
}

int ring_buffer__consume(struct ring_buffer *ring)
{
	(void)ring;
	return 0;
}

void session_record_state(struct session *session)
{
	(void)session;
}

int slice_commit(struct slice_writer *writer, uint64_t start_ns, uint64_t end_ns)
{
	(void)writer;
	assert_true(end_ns > start_ns);
	commits++;
	return 0;
}

unsigned int targets_dead(const struct targets *targets)
{
	(void)targets;
	return dead;
}

unsigned int kernel_stacks_dead(const struct kernel_stacks *stacks)
{
	(void)stacks;
	return dead_stacks;
}

void targets_read_counters(struct targets *targets)
{
	(void)targets;
}

void targets_refresh(struct targets *targets)
{
	(void)targets;
}

/* Once a slice memtoll looks whether it may come before others yet. */
static void test_priority_once_a_slice(void **state)
{
	struct memtoll_bpf__bss bss = {};
	struct memtoll_bpf bpf = { .bss = &bss };
	struct consumers consumers = {};
	struct session session = { .bpf = &bpf, .consumers = &consumers, .window.first = false };
	uint64_t now;

	(void)state;
	session.config.slice_ns = SLICE_NS;
	for (now = MS; now <= 11 * SLICE_NS; now += 100 * MS) {
		assert_int_equal(move_slice(&session, now), 0);
		assert_int_equal(steps, commits);
	}
	assert_in_range(steps, 8, 11);
	assert_in_range(bss.drain_epoch, steps, steps + 1);
}

/* Slices are half a second long for five seconds, then a second; or as long as was asked for. */
static void test_slices_are_short_at_first(void **state)
{
	struct session session = { 0 };

	(void)state;
	session.start_ns = session.slice_start_ns = SLICE_NS;
	assert_int_equal(slice_length(&session), EARLY_SLICE_NS);
	session.slice_start_ns = session.start_ns + EARLY_NS;
	assert_int_equal(slice_length(&session), SLICE_NS);
	session.config.slice_ns = 7 * SLICE_NS;
	assert_int_equal(slice_length(&session), 7 * SLICE_NS);
}

/*
 * Where many die slices are shorter; shortest where they leave many stacks, but never one in each
 * round of the loop.
 */
static void test_crowded_slices(void **state)
{
	struct consumers consumers = {};
	const struct session session = { .consumers = &consumers };

	(void)state;
	dead_stacks = 2 * STACKS_MANY;
	assert_false(is_crowded(&session, SHORT_SLICE_NS));
	dead = DEAD_MANY + 1;
	assert_false(is_crowded(&session, SHORTEST_SLICE_NS - 1));
	assert_true(is_crowded(&session, SHORTEST_SLICE_NS));
	dead_stacks = 0;
	assert_false(is_crowded(&session, SHORTEST_SLICE_NS));
	assert_true(is_crowded(&session, SHORT_SLICE_NS));
	dead = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_priority_once_a_slice),
		cmocka_unit_test(test_slices_are_short_at_first),
		cmocka_unit_test(test_crowded_slices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
