// SPDX-License-Identifier: GPL-2.0
/* What the last slices cost is of them alone, while the recording is open for writing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glib.h>
#include <string.h>

#include "recording/interval.h"
#include "recording/recording.h"
#include "recordings.h"

#define MS 1000000ULL

static void add_slice(struct recording *recording, unsigned int number, uint64_t faults)
{
	const struct fault_fact fault = { .pid = 42,
					  .fault_class = "zero",
					  .allocated_call = "",
					  .area = "heap",
					  .in_call = "",
					  .faults = faults,
					  .pages = faults,
					  .timed_faults = faults,
					  .timed_cpu_ns = 10 * MS };

	assert_int_equal(recording_slice_begin(recording, number * 1000 * MS), 0);
	assert_int_equal(recording_fault(recording, &fault), 0);
	assert_int_equal(add_counters(recording, 40 * MS, faults, 0), 0);
	assert_int_equal(recording_loss(recording, "ring_block", number == 2 ? 37 : 0), 0);
	assert_int_equal(recording_slice_commit(recording, (number + 1) * 1000 * MS), 0);
}

static const struct interval_toll *toll_of(const struct interval *interval, const char *name)
{
	guint i;

	for (i = 0; i < interval->tolls->len; i++) {
		const struct interval_toll *toll =
			&g_array_index(interval->tolls, struct interval_toll, i);

		if (!strcmp(toll->name, name))
			return toll;
	}
	fail();
	return NULL;
}

static void test_intervals(void **state)
{
	struct recording *recording = recording_create(NULL, false);
	struct interval_reader *reader = interval_reader_new();
	const struct interval_toll *toll;
	const struct interval *interval;

	(void)state;
	assert_non_null(recording);
	assert_non_null(reader);
	add_process(recording, 42, "x");
	interval = interval_read(reader, recording_database(recording));
	assert_non_null(interval);
	assert_int_equal(interval->end_ns, 0);
	add_slice(recording, 1, 7);
	interval = interval_read(reader, recording_database(recording));
	assert_non_null(interval);
	assert_int_equal(toll_of(interval, "zero.kernel")->count, 7);
	assert_int_equal(interval->losses->len, 0);
	/* Two slices in one: the first one's rows are gone. */
	add_slice(recording, 2, 11);
	add_slice(recording, 3, 13);
	interval = interval_read(reader, recording_database(recording));
	assert_non_null(interval);
	toll = toll_of(interval, "zero.kernel");
	assert_string_equal(toll->family, "zeroing");
	assert_true(toll->captured);
	assert_int_equal(toll->count, 24);
	assert_int_equal(interval->start_ns, 2000 * MS);
	assert_int_equal(interval->end_ns, 4000 * MS);
	assert_true(toll->share > 0.2 && toll->share < 0.3); /* 20 of 80 ms */
	assert_true(toll_of(interval, "compute")->share > 0.7);
	assert_int_equal(interval->losses->len, 1);
	assert_int_equal(g_array_index(interval->losses, struct interval_loss, 0).count, 37);
	interval = interval_read(reader, recording_database(recording));
	assert_non_null(interval);
	assert_int_equal(interval->end_ns, 0);
	interval_reader_free(reader);
	recording_close(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_intervals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
