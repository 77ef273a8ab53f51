// SPDX-License-Identifier: GPL-2.0
/*
 * test_rotation.c: which recording begins and ends when. The clock is the test's, and so are the
 * workers: they say what the test has them say. Files are real, as their sizes are looked at.
 */
#include <errno.h>
#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "watch/keep.h"
#include "watch/part_file.h"
#include "watch/rotation.h"

#define S 1000000000ULL
#define FULL 8192 /* what it takes on the disk counts: whole blocks */
#define WORKERS 8

struct worker {
	char *name;
	GQueue said; /* struct worker_message */
	bool detailed, going, asked_to_end, killed, gone, freed;
};

static struct worker workers[WORKERS];
static unsigned int started, named;
static char *directory;
static struct keep *keep;

struct worker *worker_start(const struct worker_config *config)
{
	struct worker *worker = &workers[started];

	assert_true(started < WORKERS);
	memset(worker, 0, sizeof(*worker));
	g_queue_init(&worker->said);
	/* Two of a millisecond would have one name, and so its file, also those of two tests. */
	worker->name = g_strdup_printf("%u-%s", named++, config->name);
	started++;
	worker->detailed = g_str_has_suffix(config->name, "-detail.memtoll");
	return worker;
}

int worker_fd(const struct worker *worker)
{
	(void)worker;
	return -1;
}

const char *worker_name(const struct worker *worker)
{
	return worker->name;
}

int worker_read(struct worker *worker, struct worker_message *message)
{
	struct worker_message *next = g_queue_pop_head(&worker->said);

	if (!next)
		return worker->gone ? -1 : 0;
	*message = *next;
	g_free(next);
	return 1;
}

void worker_go(struct worker *worker)
{
	worker->going = true;
}

void worker_end(struct worker *worker)
{
	worker->asked_to_end = true;
}

void worker_kill(struct worker *worker)
{
	worker->killed = true;
}

void worker_free(struct worker *worker)
{
	g_queue_clear_full(&worker->said, g_free);
	g_clear_pointer(&worker->name, g_free);
	worker->freed = true;
}

static void say(unsigned int index, const struct worker_message *message)
{
	g_queue_push_tail(&workers[index].said, g_memdup2(message, sizeof(*message)));
}

/* It counts from now on. */
static void begin(struct rotation *rotation, unsigned int index, uint64_t now)
{
	say(index, &(struct worker_message){ .event = WORKER_READY });
	rotation_step(rotation, now);
	assert_true(workers[index].going);
	say(index, &(struct worker_message){ .event = WORKER_BEGUN,
					     .begun = { .first_ns = now, .at_ns = now } });
	rotation_step(rotation, now);
}

/* Counting ended then, and the process is gone. */
static void finish(struct rotation *rotation, unsigned int index, uint64_t end_ns, bool full,
		   uint64_t now)
{
	say(index,
	    &(struct worker_message){
		    .event = WORKER_DONE,
		    .done = { .processes = 1, .end_ns = end_ns, .kept = true, .full = full } });
	workers[index].gone = true;
	rotation_step(rotation, now);
	assert_true(workers[index].freed);
}

static void grow(unsigned int index, size_t bytes)
{
	g_autofree char *path = part_file_path(directory, workers[index].name);
	g_autofree char *content = g_strnfill(bytes, 'x');

	assert_true(g_file_set_contents(path, content, -1, NULL));
}

struct seen {
	unsigned int begun, failed, done;
	int64_t overlap_ns; /* of all switches */
};

static void on_message(void *context, const struct worker_message *message, const char *name,
		       bool detailed)
{
	struct seen *seen = context;

	(void)name;
	(void)detailed;
	seen->done += message->event == WORKER_DONE;
}

static void on_begun(void *context, const char *name, bool detailed)
{
	struct seen *seen = context;

	(void)name;
	(void)detailed;
	seen->begun++;
}

static void on_switched(void *context, int64_t overlap_ns)
{
	((struct seen *)context)->overlap_ns += overlap_ns;
}

static void on_failure(void *context)
{
	((struct seen *)context)->failed++;
}

static struct rotation *make(struct seen *seen)
{
	const struct rotation_config config = {
		.directory = directory,
		.keep = keep,
		.on_message = on_message,
		.on_begun = on_begun,
		.on_switched = on_switched,
		.on_failure = on_failure,
		.context = seen,
	};
	const struct rotation_options options = { .rotate_ns = 3600 * S, .file_bytes = FULL };

	memset(seen, 0, sizeof(*seen));
	started = 0;
	return rotation_new(&config, &options);
}

/* It is large: the next one is prepared, and this one ends when that one counts. */
static void test_next_before_it_is_full(void **state)
{
	struct seen seen;
	struct rotation *rotation = make(&seen);
	uint64_t now = 100 * S;

	(void)state;
	rotation_step(rotation, now);
	begin(rotation, 0, now);
	grow(0, FULL);
	rotation_step(rotation, now += S);
	assert_int_equal(started, 1);
	grow(0, FULL + 1);
	rotation_step(rotation, now += S);
	assert_int_equal(started, 2);
	assert_false(workers[0].asked_to_end);
	rotation_step(rotation, now += S);
	assert_int_equal(started, 2);
	begin(rotation, 1, now += S);
	assert_true(workers[0].asked_to_end);
	assert_string_equal(rotation_name(rotation), workers[1].name);
	now += S;
	finish(rotation, 0, now - S + 3, false, now);
	assert_int_equal(seen.overlap_ns, 3);
	/* An hour from then on. */
	rotation_step(rotation, now + 600 * S);
	assert_int_equal(started, 2);
	assert_int_equal(seen.failed, 0);
	rotation_free(rotation);
}

/* A redacted one has no file until it ends: it says how large it is. */
static void test_next_of_one_in_memory(void **state)
{
	struct worker_message message = { .event = WORKER_INTERVAL, .interval.bytes = FULL };
	struct seen seen;
	struct rotation *rotation = make(&seen);
	uint64_t now = 100 * S;

	(void)state;
	rotation_step(rotation, now);
	begin(rotation, 0, now);
	say(0, &message);
	rotation_step(rotation, now += S);
	assert_int_equal(started, 1);
	message.interval.bytes = FULL + 1;
	say(0, &message);
	rotation_step(rotation, now + S);
	assert_int_equal(started, 2);
	rotation_free(rotation);
}

/* It ends by itself before anybody has seen that it is large: the next one is started at once. */
static void test_full_before_the_next_one(void **state)
{
	struct seen seen;
	struct rotation *rotation = make(&seen);
	uint64_t now = 100 * S, end;

	(void)state;
	rotation_step(rotation, now);
	begin(rotation, 0, now);
	end = now += S;
	finish(rotation, 0, end, true, now);
	assert_string_equal(rotation_name(rotation), "");
	assert_int_equal(started, 2);
	begin(rotation, 1, now += 2 * S);
	assert_string_equal(rotation_name(rotation), workers[1].name);
	/* The gap is told, and it is no failure. */
	assert_int_equal(seen.overlap_ns, -(int64_t)(now - end));
	assert_int_equal(seen.failed, 0);
	assert_int_equal(seen.done, 1);
	rotation_step(rotation, now + 600 * S);
	assert_int_equal(started, 2);
	rotation_free(rotation);
}

/* The next one is prepared, and has not begun: it begins, and no third one for the same reason. */
static void test_full_while_the_next_one_comes(void **state)
{
	struct seen seen;
	struct rotation *rotation = make(&seen);
	uint64_t now = 100 * S, end;

	(void)state;
	rotation_step(rotation, now);
	begin(rotation, 0, now);
	grow(0, FULL + 1);
	rotation_step(rotation, now += S);
	assert_int_equal(started, 2);
	end = now += S;
	finish(rotation, 0, end, true, now);
	assert_string_equal(rotation_name(rotation), "");
	rotation_step(rotation, now += S);
	assert_int_equal(started, 2);
	begin(rotation, 1, now += S);
	assert_int_equal(seen.overlap_ns, -(int64_t)(now - end));
	rotation_step(rotation, now += S);
	rotation_step(rotation, now + 600 * S);
	assert_int_equal(started, 2);
	assert_false(workers[1].asked_to_end);
	assert_int_equal(seen.failed, 0);
	assert_int_equal(seen.begun, 2);
	rotation_free(rotation);
}

/* Its successor cannot be made: it is tried again, after a second, and the gap grows. */
static void test_full_and_the_next_one_fails(void **state)
{
	struct seen seen;
	struct rotation *rotation = make(&seen);
	uint64_t now = g_get_monotonic_time() * 1000, end;

	(void)state;
	rotation_step(rotation, now);
	begin(rotation, 0, now);
	end = now;
	finish(rotation, 0, end, true, now);
	assert_int_equal(started, 2);
	workers[1].gone = true;
	rotation_step(rotation, now);
	assert_int_equal(seen.failed, 1);
	rotation_step(rotation, now);
	assert_int_equal(started, 2);
	/* It is tried by the machine's clock: some hundred seconds later at the latest. */
	rotation_step(rotation, now += 100 * S);
	assert_int_equal(started, 3);
	begin(rotation, 2, now);
	assert_int_equal(seen.overlap_ns, -(int64_t)(now - end));
	rotation_free(rotation);
}

/* A detailed one that was wanted while the full one ended is not forgotten. */
static void test_full_and_another_kind_is_wanted(void **state)
{
	struct seen seen;
	struct rotation *rotation = make(&seen);
	uint64_t now = 100 * S;

	(void)state;
	rotation_step(rotation, now);
	begin(rotation, 0, now);
	grow(0, FULL + 1);
	rotation_step(rotation, now += S);
	rotation_want_detailed(rotation, true, now);
	assert_true(workers[1].killed);
	finish(rotation, 0, now, true, now);
	workers[1].gone = true;
	rotation_step(rotation, now += S);
	assert_int_equal(started, 3);
	assert_true(workers[2].detailed);
	begin(rotation, 2, now);
	assert_int_equal(seen.failed, 0);
	/* Until it is told to. */
	rotation_step(rotation, now + 7200 * S);
	assert_int_equal(started, 3);
	rotation_free(rotation);
}

static int make_directory(void **state)
{
	(void)state;
	keep = keep_new();
	directory = g_dir_make_tmp("memtoll-rotation-XXXXXX", NULL);
	return directory ? 0 : -1;
}

static int remove_directory(void **state)
{
	g_autofree char *command = g_strdup_printf("rm -r %s", directory);

	(void)state;
	g_clear_pointer(&directory, g_free);
	g_clear_pointer(&keep, keep_free);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_next_before_it_is_full),
		cmocka_unit_test(test_next_of_one_in_memory),
		cmocka_unit_test(test_full_before_the_next_one),
		cmocka_unit_test(test_full_while_the_next_one_comes),
		cmocka_unit_test(test_full_and_the_next_one_fails),
		cmocka_unit_test(test_full_and_another_kind_is_wanted),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
