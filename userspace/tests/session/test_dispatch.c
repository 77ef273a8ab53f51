// SPDX-License-Identifier: GPL-2.0
/* Records that are cut short or of no known kind are dropped and counted; whole ones are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <glib.h>
#include <linux/types.h>

#include "bpf/wire/records.h"
#include "memtoll.skel.h"
#include "session/consumers.h"
#include "session/dispatch.h"
#include "session/kernel_stacks.h"
#include "symbols/symbolize.h"
#include "targets/observers.h"
#include "targets/targets.h"

#define PID 1234

/* Nothing is loaded: maps have no descriptors, and no process is followed. */
struct parts {
	struct memtoll_bpf *bpf;
	struct symbolizer *symbolizer;
	struct observers *observers;
	struct consumers *consumers;
	struct targets *targets;
	struct dispatch dispatch;
};

static int set_up(void **state)
{
	struct parts *parts = g_new0(struct parts, 1);

	parts->bpf = memtoll_bpf__open();
	assert_non_null(parts->bpf);
	parts->symbolizer = symbolizer__new();
	parts->observers = observers_new();
	parts->consumers = consumers_new(&(struct consumers_config){
		.bpf = parts->bpf,
		.symbolizer = parts->symbolizer,
		.observers = parts->observers,
		.min_size = 1 << 16,
	});
	parts->targets = targets_new(&(struct targets_config){
		.bpf = parts->bpf,
		.observers = parts->observers,
	});
	parts->dispatch = (struct dispatch){
		.consumers = parts->consumers,
		.targets = parts->targets,
		.observers = parts->observers,
		.launched = true,
	};
	*state = parts;
	return 0;
}

static int tear_down(void **state)
{
	struct parts *parts = *state;

	targets_free(parts->targets);
	consumers_free(parts->consumers);
	observers_free(parts->observers);
	symbolizer__free(parts->symbolizer);
	memtoll_bpf__destroy(parts->bpf);
	g_free(parts);
	return 0;
}

static uint64_t lost(const struct parts *parts)
{
	return parts->consumers->lost[LOST_RECORDS_UNREADABLE];
}

/* In memory of just its size, so that the sanitizer sees who reads beyond it. */
static void give(struct parts *parts, const void *record, size_t size)
{
	void *copy = g_memdup2(record, size);

	assert_int_equal(dispatch_event(&parts->dispatch, copy, size), 0);
	g_free(copy);
}

static void test_short_records_are_counted(void **state)
{
	static const struct {
		uint32_t kind;
		size_t size;
	} kinds[] = {
		{ EVENT_BLOCK, sizeof(struct memtoll_block) },
		{ EVENT_RUN, sizeof(struct memtoll_run) },
		{ EVENT_MAPPING, sizeof(struct memtoll_mapping) },
		{ EVENT_SAMPLE, sizeof(struct memtoll_sample) },
		{ EVENT_PROCESS, sizeof(struct memtoll_process) },
		{ EVENT_FILE, sizeof(struct memtoll_file) },
		{ EVENT_READ, sizeof(struct memtoll_read) },
		{ EVENT_PATH, sizeof(struct memtoll_path) },
		{ EVENT_OUTLIER, sizeof(struct memtoll_outlier) },
		{ EVENT_STACK, sizeof(struct memtoll_new_stack) },
		{ EVENT_FILL, sizeof(struct memtoll_fill) },
	};
	struct parts *parts = *state;
	uint32_t record[1024] = {};
	uint64_t expected = 0;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(kinds); i++) {
		record[0] = kinds[i].kind;
		record[1] = PID;
		assert_true(kinds[i].size <= sizeof(record));
		give(parts, record, kinds[i].size);
		assert_int_equal(lost(parts), expected);
		give(parts, record, kinds[i].size - 1);
		give(parts, record, 2 * sizeof(uint32_t));
		assert_int_equal(lost(parts), expected += 2);
	}
	/* Not even a kind and a process. */
	give(parts, record, sizeof(uint32_t));
	assert_int_equal(lost(parts), expected + 1);
}

static void test_unknown_kinds_are_counted(void **state)
{
	static const uint32_t kinds[] = { 0, EVENT_FILL + 1, 1000, UINT32_MAX };
	struct parts *parts = *state;
	uint32_t record[64] = { [1] = PID };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(kinds); i++) {
		record[0] = kinds[i];
		give(parts, record, sizeof(record));
		assert_int_equal(lost(parts), i + 1);
	}
}

/* Only the runs that a series has are sent. */
static void test_a_series_has_its_runs(void **state)
{
	struct memtoll_series series = { .kind = EVENT_SERIES, .tgid = PID, .count = 3 };
	const size_t none = offsetof(struct memtoll_series, runs);
	struct parts *parts = *state;

	give(parts, &series, none + 3 * sizeof(series.runs[0]));
	series.count = 0;
	give(parts, &series, none);
	series.count = SERIES_RUNS;
	give(parts, &series, sizeof(series));
	assert_int_equal(lost(parts), 0);
	give(parts, &series, sizeof(series) - 1);
	series.count = 3;
	give(parts, &series, none + 3 * sizeof(series.runs[0]) - 1);
	series.count = SERIES_RUNS + 1;
	give(parts, &series, sizeof(series));
	series.count = UINT32_MAX;
	give(parts, &series, sizeof(series));
	assert_int_equal(lost(parts), 4);
}

static void count_id(void *context, uint64_t id)
{
	*(uint64_t *)context += id;
}

/* What is whole is taken: a stack, whoever's it is. */
static void test_whole_records_are_taken(void **state)
{
	const struct memtoll_new_stack stack = { .kind = EVENT_STACK, .tgid = PID, .id = 77 };
	struct parts *parts = *state;
	uint64_t sum = 0;

	give(parts, &stack, sizeof(stack) - 1);
	kernel_stacks_each(parts->consumers->kernel_stacks, PID, count_id, &sum);
	assert_int_equal(sum, 0);
	give(parts, &stack, sizeof(stack));
	kernel_stacks_each(parts->consumers->kernel_stacks, PID, count_id, &sum);
	assert_int_equal(sum, 77);
	assert_int_equal(kernel_stacks_dead(parts->consumers->kernel_stacks), 0);
	kernel_stacks_exited(parts->consumers->kernel_stacks, PID + 1);
	assert_int_equal(kernel_stacks_dead(parts->consumers->kernel_stacks), 0);
	kernel_stacks_exited(parts->consumers->kernel_stacks, PID);
	assert_int_equal(kernel_stacks_dead(parts->consumers->kernel_stacks), 1);
	assert_int_equal(lost(parts), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_short_records_are_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unknown_kinds_are_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_series_has_its_runs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_whole_records_are_taken, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
