// SPDX-License-Identifier: GPL-2.0
#include "watch/rotation.h"

#include <glib.h>

#include "base/message.h"
#include "watch/keep.h"
#include "watch/log.h"

#define S 1000000000ULL
/* A recording that does not come about is tried again after a second, then after two ... */
#define RETRY_NS S
#define RETRY_MOST_NS (60 * S)
/* What hangs is ended. */
#define PREPARE_NS (60 * S)
#define FINISH_NS (120 * S)

/* One process and its recording. */
struct run {
	struct worker *worker;
	bool detailed;
	bool begun, ending, killed;
	bool unwanted; /* it is killed, and has not failed */
	bool done;     /* its last message has come */
	uint64_t due_ns;
	uint64_t bytes;		    /* of the recording, at the end of an interval */
	uint64_t started_ns;	    /* then: since when it ends */
	uint64_t follower_first_ns; /* when the next one began to count; 0: not yet */
	uint64_t follower_ns;	    /* and did so for all */
};

struct rotation {
	struct rotation_config config;
	struct rotation_options options;
	GPtrArray *runs;       /* struct run, in the order of their beginning */
	uint64_t due_ns;       /* of the next one, when it is to count */
	uint64_t prepare_ns;   /* what the last one took until then */
	uint64_t blind_ns;     /* since when nobody counts; 0: somebody does, or nobody did yet */
	unsigned int failures; /* one after the other: no recording has ended well since */
	bool detailed;	       /* the next one */
	bool over;
};

static void run_free(gpointer data)
{
	struct run *run = data;

	worker_free(run->worker);
	g_free(run);
}

struct rotation *rotation_new(const struct rotation_config *config,
			      const struct rotation_options *options)
{
	struct rotation *rotation = g_new0(struct rotation, 1);

	rotation->config = *config;
	rotation->options = *options;
	rotation->runs = g_ptr_array_new_with_free_func(run_free);
	return rotation;
}

void rotation_free(struct rotation *rotation)
{
	guint i;

	if (!rotation)
		return;
	for (i = 0; i < rotation->runs->len; i++)
		worker_kill(((struct run *)g_ptr_array_index(rotation->runs, i))->worker);
	g_ptr_array_free(rotation->runs, TRUE);
	g_free(rotation);
}

/* The one that counts, and is not to end. */
static struct run *counting(const struct rotation *rotation)
{
	guint i;

	for (i = 0; i < rotation->runs->len; i++) {
		struct run *run = g_ptr_array_index(rotation->runs, i);

		if (run->begun && !run->ending && !run->done)
			return run;
	}
	return NULL;
}

static struct run *coming(const struct rotation *rotation)
{
	guint i;

	for (i = 0; i < rotation->runs->len; i++) {
		struct run *run = g_ptr_array_index(rotation->runs, i);

		if (!run->begun && !run->ending && !run->done)
			return run;
	}
	return NULL;
}

const char *rotation_name(const struct rotation *rotation)
{
	const struct run *run = counting(rotation);

	return run ? worker_name(run->worker) : "";
}

void rotation_switch(struct rotation *rotation, uint64_t now_ns)
{
	rotation->due_ns = now_ns;
}

/* What is prepared is of the other kind; nothing is in it yet. */
static void give_up_coming(struct rotation *rotation)
{
	struct run *run = coming(rotation);

	if (!run)
		return;
	run->ending = run->killed = run->unwanted = true;
	worker_kill(run->worker);
}

void rotation_change(struct rotation *rotation, const struct rotation_options *options)
{
	rotation->options = *options;
	give_up_coming(rotation);
}

void rotation_want_detailed(struct rotation *rotation, bool detailed, uint64_t now_ns)
{
	if (rotation->detailed == detailed)
		return;
	rotation->detailed = detailed;
	rotation->due_ns = now_ns;
	give_up_coming(rotation);
}

static void end_run(struct run *run, uint64_t now_ns)
{
	if (run->ending)
		return;
	run->ending = true;
	run->started_ns = now_ns;
	worker_end(run->worker);
}

bool rotation_end(struct rotation *rotation)
{
	guint i;

	rotation->over = true;
	for (i = 0; i < rotation->runs->len; i++) {
		struct run *run = g_ptr_array_index(rotation->runs, i);

		if (run->begun)
			end_run(run, g_get_monotonic_time() * 1000);
		else if (!run->killed)
			worker_kill(run->worker); /* there is nothing in it */
		run->killed |= !run->begun;
	}
	return !rotation->runs->len;
}

static uint64_t retry_ns(unsigned int failures)
{
	return MIN(RETRY_MOST_NS, RETRY_NS << MIN(failures, 6));
}

static void start(struct rotation *rotation, uint64_t now_ns)
{
	const struct rotation_config *config = &rotation->config;
	g_autofree char *name = keep_name(config->keep, rotation->detailed);
	struct worker *worker = worker_start(&(struct worker_config){
		.session = rotation->detailed ? &rotation->options.detailed :
						&rotation->options.ordinary,
		.targets = config->targets,
		.directory = config->directory,
		.lock_fd = config->lock_fd,
		.name = name,
		.places = config->places,
	});
	uint64_t due_ns = rotation->due_ns;
	struct run *run;

	/* Until it has begun; then again. */
	rotation->due_ns = now_ns + rotation->options.rotate_ns;
	if (!worker) {
		rotation->due_ns = now_ns + retry_ns(rotation->failures++);
		config->on_failure(config->context);
		return;
	}
	run = g_new0(struct run, 1);
	run->worker = worker;
	run->detailed = rotation->detailed;
	run->started_ns = now_ns;
	run->due_ns = MAX(due_ns, now_ns);
	g_ptr_array_add(rotation->runs, run);
}

static void on_begun(struct rotation *rotation, struct run *run,
		     const struct worker_message *message, uint64_t now_ns)
{
	uint64_t at_ns = message->begun.at_ns;
	struct run *before = counting(rotation);

	run->begun = true;
	rotation->prepare_ns = at_ns - MIN(at_ns, run->started_ns);
	/* One that was wanted meanwhile stays due; a detailed one ends when it is told to. */
	if (rotation->due_ns > now_ns)
		rotation->due_ns =
			run->detailed ? UINT64_MAX : run->due_ns + rotation->options.rotate_ns;
	if (rotation->detailed != run->detailed)
		rotation->due_ns = now_ns;
	if (before) {
		before->follower_first_ns = message->begun.first_ns;
		before->follower_ns = at_ns;
		end_run(before, now_ns);
	} else if (rotation->blind_ns) {
		rotation->config.on_switched(rotation->config.context,
					     (int64_t)(rotation->blind_ns - at_ns));
	}
	rotation->blind_ns = 0;
	rotation->config.on_begun(rotation->config.context, worker_name(run->worker),
				  run->detailed);
}

/* Where the next one counts already, or is about to, nothing is to be done. */
static void on_failed(struct rotation *rotation, struct run *run)
{
	if (run->begun && !run->ending)
		rotation->blind_ns = g_get_monotonic_time() * 1000;
	run->ending = true;
	if (!coming(rotation) && (!counting(rotation) || !run->begun))
		rotation->due_ns = g_get_monotonic_time() * 1000 + retry_ns(rotation->failures++);
	rotation->config.on_failure(rotation->config.context);
}

/* In both as soon as one target is, in none as long as one is not. */
static int64_t overlap_ns(const struct run *run, uint64_t end_ns)
{
	uint64_t since_ns = end_ns < run->follower_ns ? run->follower_ns : run->follower_first_ns;

	return (int64_t)(end_ns - since_ns);
}

static void on_done(struct rotation *rotation, struct run *run,
		    const struct worker_message *message)
{
	const struct rotation_config *config = &rotation->config;

	run->done = true;
	if (run->begun && !message->done.status) {
		rotation->failures = 0;
		if (run->follower_ns && message->done.end_ns)
			config->on_switched(config->context, overlap_ns(run, message->done.end_ns));
		if (message->done.kept)
			watch_log(LOG_INFO, "%s is whole", worker_name(run->worker));
		/* Ended by itself: it had become too large. */
		if (!run->ending) {
			/* The one that is prepared already is enough. */
			if (!coming(rotation))
				rotation->due_ns = 0;
			rotation->blind_ns = message->done.end_ns;
		}
		config->on_message(config->context, message, worker_name(run->worker),
				   run->detailed);
		return;
	}
	on_failed(rotation, run);
}

static void take(struct rotation *rotation, struct run *run, const struct worker_message *message,
		 uint64_t now_ns)
{
	switch (message->event) {
	case WORKER_READY:
		worker_go(run->worker);
		break;
	case WORKER_BEGUN:
		/* What is killed does not take over, though it may have begun just before. */
		if (!run->killed)
			on_begun(rotation, run, message, now_ns);
		break;
	case WORKER_DONE:
		on_done(rotation, run, message);
		break;
	case WORKER_INTERVAL:
		run->bytes = message->interval.bytes;
		/* fallthrough */
	case WORKER_TARGET:
	case WORKER_CORRECTION:
	case WORKER_LOSS:
	case WORKER_PLACE_TOLL:
		rotation->config.on_message(rotation->config.context, message,
					    worker_name(run->worker), run->detailed);
		break;
	}
}

/* It has ended: without a last message it has failed, unless we killed it. */
static void reap(struct rotation *rotation, struct run *run)
{
	if (!run->done && !run->unwanted && !rotation->over) {
		watch_log(LOG_ERR, "%s was not finished: what made it has ended",
			  worker_name(run->worker));
		on_failed(rotation, run);
	}
	g_ptr_array_remove(rotation->runs, run);
}

static void read_messages(struct rotation *rotation, uint64_t now_ns)
{
	struct worker_message message;
	guint i = 0;

	while (i < rotation->runs->len) {
		struct run *run = g_ptr_array_index(rotation->runs, i);
		int got;

		while ((got = worker_read(run->worker, &message)) > 0)
			take(rotation, run, &message, now_ns);
		if (got < 0)
			reap(rotation, run);
		else
			i++;
	}
}

static void end_hanging(struct rotation *rotation, uint64_t now_ns)
{
	guint i;

	for (i = 0; i < rotation->runs->len; i++) {
		struct run *run = g_ptr_array_index(rotation->runs, i);
		uint64_t patience_ns = run->ending ? FINISH_NS : PREPARE_NS;

		if (run->killed || (run->begun && !run->ending) ||
		    now_ns < run->started_ns + patience_ns)
			continue;
		watch_log(LOG_ERR, "%s does not %s, and is given up", worker_name(run->worker),
			  run->ending ? "end" : "begin");
		run->killed = true;
		worker_kill(run->worker);
	}
}

unsigned int rotation_fds(const struct rotation *rotation, struct pollfd *fds)
{
	guint i;

	for (i = 0; i < rotation->runs->len; i++) {
		const struct run *run = g_ptr_array_index(rotation->runs, i);

		fds[i] = (struct pollfd){ .fd = worker_fd(run->worker), .events = POLLIN };
	}
	return rotation->runs->len;
}

/*
 * The next one is begun before it is full: what ends by itself leaves a gap. A redacted one has no
 * file until it ends: what it said last counts.
 */
static bool is_nearly_full(const struct rotation *rotation)
{
	const struct run *run = counting(rotation);
	uint64_t bytes;

	if (!run)
		return false;
	bytes = keep_part_bytes(rotation->config.directory, worker_name(run->worker));
	return MAX(bytes, run->bytes) > rotation->options.file_bytes;
}

void rotation_step(struct rotation *rotation, uint64_t now_ns)
{
	read_messages(rotation, now_ns);
	end_hanging(rotation, now_ns);
	if (rotation->over || coming(rotation) || rotation->runs->len >= ROTATION_WORKERS)
		return;
	if (is_nearly_full(rotation))
		rotation->due_ns = MIN(rotation->due_ns, now_ns);
	if (now_ns + MIN(rotation->prepare_ns, rotation->options.rotate_ns / 2) >= rotation->due_ns)
		start(rotation, now_ns);
}
