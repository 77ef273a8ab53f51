// SPDX-License-Identifier: GPL-2.0
#include "session/jvm_names.h"

#include <glib.h>
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "host/jvm_attach.h"
#include "recording/recording.h"
#include "session/question_times.h"
#include "symbols/symbolize.h"
#include "targets/jvm_rows.h"
#include "targets/observers.h"

#define AWAIT_MS 20
/* At a time: each takes a process. */
#define ASKED_MOST 32U

struct jvm {
	pid_t pid;
	int fd; /* of the question that is asked; -1: none is */
	struct question_times times;
	unsigned int maps;
	bool ended;
	bool left_alone; /* not asked again */
	bool unnamed;	 /* stacks of before the last map may lack names */
	struct jvm_said said;
};

struct jvm_names {
	struct symbolizer *symbolizer;
	struct targets *targets; /* NULL: no stack is walked any more */
	GHashTable *jvms;	 /* pid -> struct jvm */
	unsigned int asked;
	uint64_t ends_ns; /* since when all are asked for the last time; 0: not yet */
};

static void jvm_free(gpointer data)
{
	struct jvm *jvm = data;

	if (jvm->fd >= 0)
		close(jvm->fd);
	g_free(jvm);
}

static struct jvm *find(struct jvm_names *names, pid_t pid)
{
	return g_hash_table_lookup(names->jvms, GINT_TO_POINTER(pid));
}

static void forget(struct jvm_names *names, pid_t pid)
{
	struct jvm *jvm = find(names, pid);

	if (!jvm)
		return;
	names->asked -= jvm->fd >= 0;
	g_hash_table_remove(names->jvms, GINT_TO_POINTER(pid));
}

static void mapped(void *state, pid_t pid, const struct maps *maps, bool new_image)
{
	struct jvm_names *names = state;
	struct jvm *jvm;

	if (new_image)
		forget(names, pid);
	if (find(names, pid) || !jvm_in_maps(maps))
		return;
	jvm = g_new0(struct jvm, 1);
	jvm->pid = pid;
	jvm->fd = -1;
	question_times_begin(&jvm->times, now_ns());
	g_hash_table_insert(names->jvms, GINT_TO_POINTER(pid), jvm);
}

/* Kept for what is said at the end. */
static void exited(void *state, pid_t pid)
{
	struct jvm *jvm = find(state, pid);

	if (jvm)
		jvm->ended = true;
}

struct jvm_names *jvm_names_new(struct symbolizer *symbolizer, struct observers *observers)
{
	struct jvm_names *names = g_new0(struct jvm_names, 1);
	const struct observer observer = {
		.moment = AT_ONCE,
		.state = names,
		.mapped = mapped,
		.exited = exited,
	};

	names->symbolizer = symbolizer;
	names->jvms = g_hash_table_new_full(NULL, NULL, NULL, jvm_free);
	observers_add(observers, &observer);
	return names;
}

void jvm_names_free(struct jvm_names *names)
{
	if (!names)
		return;
	g_hash_table_destroy(names->jvms);
	g_free(names);
}

/* Nothing but time changes these. */
static bool may_ask_again(enum jvm_answer answer)
{
	return answer == JVM_WROTE || answer == JVM_NOT_READY || answer == JVM_STOPPED;
}

static void take_map(struct jvm_names *names, struct jvm *jvm)
{
	/* Before it is removed. */
	if (symbolizer_take_perf_map(names->symbolizer, jvm->pid)) {
		jvm->unnamed = true;
		jvm->maps++;
		if (names->targets)
			jvm_rows_show(names->targets, names->symbolizer, jvm->pid);
	} else {
		jvm->said.answer = JVM_WITHOUT_MAP;
	}
	if (!jvm->said.was_there)
		jvm_remove_map(jvm->pid);
}

static void heard(struct jvm_names *names, struct jvm *jvm)
{
	jvm->left_alone = !may_ask_again(jvm->said.answer);
	if (jvm->said.answer == JVM_WROTE)
		take_map(names, jvm);
	/* Reading what it wrote is a part of what the question takes. */
	question_was_answered(&jvm->times, now_ns(), jvm->said.answer == JVM_WROTE);
}

static void ask(struct jvm_names *names, struct jvm *jvm, uint64_t now)
{
	question_was_asked(&jvm->times, now);
	jvm->fd = jvm_attach_begin(jvm->pid, &jvm->said);
	if (jvm->fd < 0)
		heard(names, jvm);
	else
		names->asked++;
}

static void take(struct jvm_names *names, struct jvm *jvm)
{
	if (!jvm_attach_take(jvm->fd, &jvm->said))
		return;
	jvm->fd = -1;
	names->asked--;
	heard(names, jvm);
}

static bool may_be_asked(const struct jvm *jvm)
{
	return jvm->fd < 0 && !jvm->left_alone && !jvm->ended;
}

/* Before the end: of the last code an answer to that says nothing. */
static bool was_asked_before(const struct jvm_names *names, const struct jvm *jvm)
{
	return jvm->times.asked_ns < names->ends_ns;
}

void jvm_names_want(struct jvm_names *names, pid_t pid)
{
	struct jvm *jvm = find(names, pid);

	if (jvm)
		jvm->times.wanted = true;
}

void jvm_names_step(struct jvm_names *names, uint64_t now, struct targets *targets)
{
	GHashTableIter iter;
	gpointer value;

	names->targets = targets;
	g_hash_table_iter_init(&iter, names->jvms);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct jvm *jvm = value;

		if (jvm->fd >= 0)
			take(names, jvm);
		else if (may_be_asked(jvm) && names->asked < ASKED_MOST &&
			 (was_asked_before(names, jvm) || question_is_due(&jvm->times, now)))
			ask(names, jvm, now);
	}
}

/* Those that are to be asked, or heard, at the end. */
static guint open_questions(struct jvm_names *names)
{
	GHashTableIter iter;
	gpointer value;
	guint count = 0;

	g_hash_table_iter_init(&iter, names->jvms);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		const struct jvm *jvm = value;

		count += jvm->fd >= 0 || (may_be_asked(jvm) && was_asked_before(names, jvm));
	}
	return count;
}

static void report(const struct jvm_names *names)
{
	const struct jvm *first = NULL;
	GHashTableIter iter;
	gpointer value;
	guint count = 0;

	if (!g_hash_table_size(names->jvms)) {
		message("--jvm-perfmap: no process that was recorded is a Java virtual machine; nobody "
			"was asked");
		return;
	}
	g_hash_table_iter_init(&iter, names->jvms);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		const struct jvm *jvm = value;

		if (jvm->maps)
			continue;
		count++;
		if (!first || jvm->pid < first->pid)
			first = jvm;
	}
	if (first)
		message("--jvm-perfmap: process %d %s; code that it made has no names%s",
			first->pid, jvm_answer_text(first->ended ? JVM_GONE : first->said.answer),
			count > 1 ? ", nor has that of others" : "");
}

void jvm_names_end(struct jvm_names *names, void (*service)(void *context), void *context)
{
	uint64_t until;

	names->ends_ns = now_ns();
	until = names->ends_ns + JVM_ATTACH_MS * 1000000ULL;
	while (open_questions(names) && now_ns() < until) {
		jvm_names_step(names, now_ns(), NULL);
		service(context);
		if (names->asked)
			poll(NULL, 0, AWAIT_MS);
	}
	report(names);
}

struct namer {
	struct symbolizer *symbolizer;
	pid_t pid;
};

static bool name(void *context, uint64_t address, bool is_return_address, struct frame *frame)
{
	const struct namer *namer = context;

	return symbolizer_user(namer->symbolizer, namer->pid, address, is_return_address, frame,
			       1) == 1 &&
	       *frame->function;
}

int jvm_names_write(struct jvm_names *names, struct recording *recording)
{
	GHashTableIter iter;
	gpointer value;
	int err = 0;

	g_hash_table_iter_init(&iter, names->jvms);
	while (!err && g_hash_table_iter_next(&iter, NULL, &value)) {
		struct jvm *jvm = value;
		struct namer namer = { names->symbolizer, jvm->pid };

		if (jvm->unnamed)
			err = recording_name_jit(recording, jvm->pid,
						 &(struct jit_namer){ &namer, name });
		jvm->unnamed = false;
	}
	return err;
}
