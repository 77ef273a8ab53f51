// SPDX-License-Identifier: GPL-2.0
#include "budget/fault_window.h"

#include <glib.h>

#define MS 1000000ULL
#define FIRST_CPU_NS (100 * MS)
#define FIRST_NS (2000 * MS)
#define PERIOD_NS (250 * MS)
#define LONGEST_NS (25 * MS)
#define SHORTEST_NS MS
/*
 * Four windows of so many in a second: where single faults differ by their mean, that of a slice is
 * sure to 6 %, and a class with one fault in twenty still has fifty.
 */
#define FAULTS_WANTED 250
/*
 * Where faults are seen in windows only, these are all that is known of where they come from and of
 * what kind they are: four times as many, each a quarter as long.
 */
#define RESTING_WINDOWS 4

void fault_window_begin(struct fault_window *window, uint64_t now_ns, uint64_t faults)
{
	*window = (struct fault_window){
		.open = true,
		.first = true,
		.timed = true,
		.opened_ns = now_ns,
		.wanted_ns = LONGEST_NS,
		.slice_ns = now_ns,
		.slice_faults = faults,
	};
}

void fault_window_slice(struct fault_window *window, uint64_t now_ns, uint64_t faults)
{
	window->wanted_ns = LONGEST_NS;
	if (faults > window->slice_faults)
		window->wanted_ns = 1.0 * FAULTS_WANTED * (now_ns - window->slice_ns) /
				    (faults - window->slice_faults);
	window->slice_ns = now_ns;
	window->slice_faults = faults;
}

/* Of the one that opens. A rest begins at any time: it does not wait for the slice to end. */
static uint64_t length_ns(const struct fault_window *window)
{
	uint64_t parts = window->rests ? RESTING_WINDOWS : 1;
	uint64_t ns = CLAMP(window->wanted_ns / parts, SHORTEST_NS / parts, LONGEST_NS);

	/* What has just been attached has cold code: the first faults are no measure. */
	return window->rests && window->timed ? RESTING_WINDOWS * ns : ns;
}

/*
 * Each opens a period after the one before, up to half of one sooner or later. The first, and one
 * that the tracer closed late, says nothing of when the next is due.
 */
static void close_window(struct fault_window *window, uint64_t now_ns, double lot)
{
	uint64_t period_ns = window->rests ? PERIOD_NS / RESTING_WINDOWS : PERIOD_NS;
	bool due = window->first || now_ns > window->opened_ns + period_ns / 2;
	uint64_t from_ns = due ? now_ns : window->opened_ns;

	window->open = window->first = false;
	window->edge_ns = from_ns + period_ns / 2 + (uint64_t)(lot * period_ns);
}

void fault_window_step(struct fault_window *window, uint64_t now_ns, uint64_t cpu_ns, double lot)
{
	if (window->first) {
		if (cpu_ns >= FIRST_CPU_NS || now_ns >= window->opened_ns + FIRST_NS)
			close_window(window, now_ns, lot);
	} else if (window->open && now_ns >= window->edge_ns) {
		close_window(window, now_ns, lot);
	} else if (!window->open && now_ns >= window->edge_ns) {
		window->open = true;
		window->timed = !window->rests || ++window->resting % RESTING_WINDOWS == 0;
		window->opened_ns = now_ns;
		window->edge_ns = now_ns + length_ns(window);
	}
}
