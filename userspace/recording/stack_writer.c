// SPDX-License-Identifier: GPL-2.0
#include "recording/stack_writer.h"

#include <glib.h>
#include <string.h>

/* Functions inlined into one another at one address, at most. */
#define INLINED_MAX 16

/* One address of the stack: its frames are names[first .. first + count), innermost first. */
struct native {
	uint64_t address;
	guint first;
	guint count;
};

/* What is known of a stack before it is written. */
struct draft {
	GArray *names;	 /* struct frame */
	GArray *natives; /* struct native */
	GArray *is_loop; /* bool, of each native */
	bool whole;
};

/*
 * Where a thread starts; the loader's own start has no call frame information. Go's: where a goroutine
 * returns to at its end, where a thread of the runtime's begins, and where its scheduler does, which
 * never returns (topofstack in runtime/traceback.go).
 */
static bool is_thread_start(const char *function)
{
	static const char *const starts[] = { "_start",
					      "_dl_start_user",
					      "__libc_start_main",
					      "start_thread",
					      "clone",
					      "clone3",
					      "__clone3",
					      "__clone",
					      "runtime.goexit",
					      "runtime.goexit.abi0",
					      "runtime.mstart",
					      "runtime.mstart.abi0",
					      "runtime.mcall",
					      "runtime.mcall.abi0" };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(starts); i++)
		if (!strcmp(function, starts[i]))
			return true;
	return false;
}

static const char *how_walked(const struct memtoll_stack *stack)
{
	if (stack->how != UNWIND_CFI)
		return "fp";
	return stack->flags & STACK_SOME_FP ? "cfi+fp" : "cfi";
}

/* Why the walk ended before the thread's start, as table stack has it. */
static const char *why_stopped(const struct memtoll_stack *stack)
{
	static const char *const reasons[] = {
		[UNWIND_STOP_NONE] = "frame pointers", [UNWIND_STOP_NO_MAPPING] = "mapping",
		[UNWIND_STOP_NO_ROW] = "row",	       [UNWIND_STOP_RULE] = "rule",
		[UNWIND_STOP_MEMORY] = "memory",       [UNWIND_STOP_PROBE] = "probe",
	};

	if (stack->flags & STACK_TRUNCATED)
		return "depth";
	if (stack->how != UNWIND_CFI || stack->stop >= G_N_ELEMENTS(reasons))
		return "frame pointers";
	return reasons[stack->stop];
}

/* Where each instruction of the eval loop is a function, the loop below only began it. */
static bool is_begun_loop(const struct draft *draft, const char *function)
{
	const struct native *last;

	if (!draft->natives->len || strcmp(function, "_PyEval_EvalFrameDefault"))
		return false;
	last = &g_array_index(draft->natives, struct native, draft->natives->len - 1);
	return last->count && g_str_has_prefix(g_array_index(draft->names, struct frame,
							     last->first + last->count - 1)
						       .function,
					       "_TAIL_CALL_");
}

static void name_natives(struct stack_writer *writer, const struct memtoll_stack *stack,
			 struct draft *draft)
{
	struct frame frames[INLINED_MAX];
	unsigned int i;

	for (i = 0; i < stack->depth && i < MEMTOLL_STACK_DEPTH; i++) {
		bool exact = stack->exact[i / 64] >> i % 64 & 1;
		size_t count = symbolizer_user(writer->symbolizer, stack->tgid, stack->frames[i],
					       !exact, frames, G_N_ELEMENTS(frames));
		const char *function = count ? frames[count - 1].function : "";
		struct native native = { stack->frames[i], draft->names->len, count };
		bool is_loop = python_is_loop(function);

		draft->whole = is_thread_start(function);
		if (is_begun_loop(draft, function))
			continue;
		g_array_append_vals(draft->names, frames, count);
		g_array_append_val(draft->natives, native);
		g_array_append_val(draft->is_loop, is_loop);
	}
}

static int write_native(struct stack_writer *writer, uint64_t id, const struct draft *draft,
			guint index, unsigned int *depth)
{
	const struct native *native = &g_array_index(draft->natives, struct native, index);
	int err = 0;
	guint i;

	for (i = 0; i < native->count && !err; i++)
		err = recording_stack_frame(writer->recording, id, (*depth)++, native->address,
					    &g_array_index(draft->names, struct frame,
							   native->first + i),
					    i + 1 < native->count);
	return err;
}

static enum frame_kind kind_of(const struct python_code *code)
{
	switch (code->kind) {
	case INTERPRETER_RUBY:
		return FRAME_RUBY;
	case INTERPRETER_PHP:
		return FRAME_PHP;
	case INTERPRETER_V8:
		return FRAME_JAVASCRIPT;
	case INTERPRETER_JAVA:
		return FRAME_JAVA;
	default:
		return FRAME_PYTHON;
	}
}

static int write_python(struct stack_writer *writer, uint64_t id, const struct python_frame *python,
			unsigned int *depth)
{
	struct frame frame = { .module = "", .build_id = "" };

	if (!python->code)
		return 0;
	frame.kind = kind_of(python->code);
	frame.function = python->code->function;
	frame.file = python->code->file;
	frame.line = python_code_line(python->code, python_frame_place(python, python->code->kind));
	return recording_stack_frame(writer->recording, id, (*depth)++, python->address, &frame,
				     false);
}

static enum python_part part_of(const struct python_frame *frame)
{
	if (!frame->address)
		return PYTHON_PART_EMPTY;
	return frame->flags & PYTHON_ENTRY ? PYTHON_PART_ENTRY : PYTHON_PART_INNER;
}

/*
 * By a perf map, which the program was asked for; of Java that has one name for all that the interpreter
 * runs.
 */
static bool has_own_name(const struct draft *draft, const struct native *native,
			 const struct python_frame *function)
{
	const struct frame *frame;

	if (!native->count || function->code->kind == INTERPRETER_JAVA)
		return false;
	frame = &g_array_index(draft->names, struct frame, native->first);
	return frame->kind == FRAME_JIT && *frame->function;
}

/* Frames of V8 and Java are native ones, too: each is where its instruction is. */
static int write_generated(struct stack_writer *writer, uint64_t id, const struct draft *draft,
			   const struct python_stack *functions)
{
	unsigned int depth = 0;
	size_t next = 0;
	int err = 0;
	guint i;

	for (i = 0; i < draft->natives->len && !err; i++) {
		const struct native *native = &g_array_index(draft->natives, struct native, i);
		const struct python_frame *function = &functions->frames[next];

		if (next >= functions->count ||
		    (uint32_t)native->address != (uint32_t)function->instruction) {
			err = write_native(writer, id, draft, i, &depth);
			continue;
		}
		next++;
		err = function->code && !has_own_name(draft, native, function) ?
			      write_python(writer, id, function, &depth) :
			      write_native(writer, id, draft, i, &depth);
	}
	writer->unwoven += next < functions->count && draft->whole;
	return err;
}

static int write_frames(struct stack_writer *writer, uint64_t id, const struct draft *draft)
{
	const struct python_stack *python = python_stack(writer->python, id);
	size_t parts_count = python ? python->count : 0, count, i;
	g_autofree enum python_part *parts = g_new(enum python_part, parts_count);
	g_autofree struct python_strand *order =
		g_new(struct python_strand, draft->natives->len + parts_count);
	unsigned int depth = 0;
	bool placed;
	int err = 0;

	if (python && python->kind >= INTERPRETER_V8)
		return write_generated(writer, id, draft, python);
	for (i = 0; i < parts_count; i++)
		parts[i] = part_of(&python->frames[i]);
	count = python_weave(
		&(struct python_weave){
			.is_loop = (const bool *)draft->is_loop->data,
			.natives = draft->natives->len,
			.native_whole = draft->whole,
			.parts = parts,
			.parts_count = parts_count,
			.python_whole = python && !python->truncated,
		},
		order, &placed);
	writer->unwoven += parts_count && !placed;
	for (i = 0; i < count && !err; i++)
		err = order[i].is_python ?
			      write_python(writer, id, &python->frames[order[i].index], &depth) :
			      write_native(writer, id, draft, order[i].index, &depth);
	return err;
}

/* Addresses in no known mapping are misread frame pointers: skipped, as in view ended_in_made. */
static bool ends_in_unknown(const struct draft *draft)
{
	guint i = draft->whole ? 0 : draft->natives->len;

	while (i--) {
		const struct native *native = &g_array_index(draft->natives, struct native, i);
		const struct frame *frame;

		if (!native->count)
			continue;
		frame = &g_array_index(draft->names, struct frame, native->first);
		if (frame->kind == FRAME_JIT || *frame->function || *frame->module)
			return frame->kind == FRAME_JIT && !*frame->function;
	}
	return false;
}

int stack_write(struct stack_writer *writer, uint64_t id, const struct memtoll_stack *stack)
{
	struct draft draft = {
		.names = g_array_new(FALSE, FALSE, sizeof(struct frame)),
		.natives = g_array_new(FALSE, FALSE, sizeof(struct native)),
		.is_loop = g_array_new(FALSE, FALSE, sizeof(bool)),
	};
	int err;

	name_natives(writer, stack, &draft);
	draft.whole |= (stack->flags & STACK_COMPLETE) != 0;
	writer->in_unknown = ends_in_unknown(&draft);
	err = write_frames(writer, id, &draft);
	if (!err)
		err = recording_stack(writer->recording, id, stack->tgid, how_walked(stack),
				      draft.whole, draft.whole ? "" : why_stopped(stack));
	python_forget(writer->python, id);
	g_array_free(draft.names, TRUE);
	g_array_free(draft.natives, TRUE);
	g_array_free(draft.is_loop, TRUE);
	return err;
}
