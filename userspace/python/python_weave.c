// SPDX-License-Identifier: GPL-2.0
/* Merges Python frames into the native ones (python.h). */
#include "python/python.h"

#include <string.h>

/*
 * _PyEval_EvalFrameDefault, also parts that compilers split off (.cold, .part.0, .constprop.0), and
 * the functions of single instructions that replace it (3.14, built with clang). Ruby's and PHP's.
 */
bool python_is_loop(const char *function)
{
	static const char *const loops[] = { "_PyEval_EvalFrameDefault", "rb_vm_exec",
					     "execute_ex" };
	static const char instruction[] = "_TAIL_CALL_";
	size_t i;

	if (!strncmp(function, instruction, sizeof(instruction) - 1))
		return true;
	for (i = 0; i < sizeof(loops) / sizeof(loops[0]); i++) {
		size_t length = strlen(loops[i]);

		if (!strncmp(function, loops[i], length) &&
		    (!function[length] || function[length] == '.'))
			return true;
	}
	return false;
}

struct shape {
	size_t first; /* the innermost native frame that may be a loop */
	size_t loops;
	size_t runs;  /* of the eval loop, according to the Python frames */
	size_t parts; /* Python frames that count */
};

/* Number of runs of the eval loop among the first parts. */
static size_t count_runs(const struct python_weave *weave, size_t parts)
{
	size_t runs = 0, i;

	for (i = 0; i < parts; i++)
		runs += weave->parts[i] != PYTHON_PART_INNER;
	/* The rest of a run whose outermost frame is missing. */
	return runs + (parts && weave->parts[parts - 1] == PYTHON_PART_INNER);
}

static void measure(const struct python_weave *weave, struct shape *shape)
{
	size_t i;

	shape->first = 0;
	shape->loops = 0;
	for (i = 0; i < weave->natives; i++)
		shape->loops += weave->is_loop[i];
	shape->parts = weave->parts_count;
	shape->runs = count_runs(weave, shape->parts);
	/* A sentinel below the outermost frame looks like one more loop. */
	if (shape->parts && weave->parts[shape->parts - 1] == PYTHON_PART_EMPTY &&
	    shape->runs == shape->loops + 1) {
		shape->parts--;
		shape->runs--;
	}
	/*
	 * Interrupted in its first or last instructions, the innermost loop has not linked its
	 * frame yet, or not any more: it stays a native frame.
	 */
	if (weave->natives && weave->is_loop[0] && weave->python_whole &&
	    shape->loops == shape->runs + 1) {
		shape->first = 1;
		shape->loops--;
	}
}

/* Whether loops and runs agree, as far as both are known. */
static bool matches(const struct python_weave *weave, const struct shape *shape)
{
	if (shape->loops == shape->runs || !shape->runs)
		return true;
	if (shape->loops > shape->runs)
		return !weave->python_whole;
	return !weave->native_whole;
}

static size_t add(struct python_strand *order, size_t count, bool is_python, size_t index)
{
	order[count].is_python = is_python;
	order[count].index = index;
	return count + 1;
}

size_t python_weave(const struct python_weave *weave, struct python_strand *order, bool *placed)
{
	size_t count = 0, next = 0, i;
	struct shape shape;
	bool together;

	measure(weave, &shape);
	*placed = matches(weave, &shape);
	together = !*placed;
	for (i = 0; i < weave->natives; i++) {
		if (i < shape.first || !weave->is_loop[i] || next == shape.parts) {
			count = add(order, count, false, i);
			continue;
		}
		if (weave->parts[next] == PYTHON_PART_EMPTY && !together)
			count = add(order, count, false, i);
		while (next < shape.parts) {
			enum python_part part = weave->parts[next];

			if (part != PYTHON_PART_EMPTY)
				count = add(order, count, true, next);
			next++;
			if (part != PYTHON_PART_INNER && !together)
				break;
		}
	}
	for (; next < shape.parts; next++)
		if (weave->parts[next] != PYTHON_PART_EMPTY)
			count = add(order, count, true, next);
	return count;
}
