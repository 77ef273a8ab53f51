// SPDX-License-Identifier: GPL-2.0
#include "python/python.h"

#include <errno.h>
#include <glib.h>
#include <string.h>

#include "base/message.h"
#include "host/proc.h"
#include "host/timed_call.h"
#include "python/python_code.h"
#include "python/v8.h"

/* Cached code objects of a process; the cache is emptied when it is full. */
#define CODES_MAX 65536U
/* Stacks named and not yet written. */
#define STACKS_MAX 65536U

/* An interpreter in a process. */
struct interpreter {
	struct python_layout layout;
	uint64_t code_type; /* address of the type `code`; 0: not known yet */
	GHashTable *codes;  /* address -> struct python_code */
};

struct python {
	/* Used only by the thread that calls python_show(), which reads files without the lock. */
	GHashTable *without;	  /* "major:minor:inode" of files without an interpreter */
	GHashTable *warned;	  /* unknown versions that the user was warned of */
	GMutex lock;		  /* of everything below */
	GHashTable *interpreters; /* pid -> struct interpreter */
	GHashTable *stacks;	  /* stack id -> struct python_stack */
	GHashTable *refused;	  /* pids with an interpreter of an unknown version */
	uint64_t unreadable;
	uint64_t unsupported;
};

static void free_interpreter(gpointer data)
{
	struct interpreter *interp = data;

	g_hash_table_destroy(interp->codes);
	g_free(interp);
}

static void free_code(gpointer data)
{
	python_code_unref(data);
}

static void free_stack(gpointer data)
{
	struct python_stack *stack = data;
	size_t i;

	for (i = 0; i < stack->count; i++)
		python_code_unref(stack->frames[i].code);
	g_free(stack);
}

struct python *python_new(void)
{
	struct python *python = g_new0(struct python, 1);

	g_mutex_init(&python->lock);
	python->interpreters = g_hash_table_new_full(NULL, NULL, NULL, free_interpreter);
	python->stacks = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, free_stack);
	python->without = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	python->refused = g_hash_table_new(NULL, NULL);
	python->warned = g_hash_table_new(NULL, NULL);
	return python;
}

void python_free(struct python *python)
{
	if (!python)
		return;
	g_hash_table_destroy(python->interpreters);
	g_hash_table_destroy(python->stacks);
	g_hash_table_destroy(python->without);
	g_hash_table_destroy(python->refused);
	g_hash_table_destroy(python->warned);
	g_mutex_clear(&python->lock);
	g_free(python);
}

static struct interpreter *interpreter_get(const struct python *python, pid_t pid)
{
	return g_hash_table_lookup(python->interpreters, GINT_TO_POINTER(pid));
}

static struct interpreter *interpreter_add(struct python *python, pid_t pid,
					   const struct python_layout *layout)
{
	struct interpreter *interp = g_new0(struct interpreter, 1);

	interp->layout = *layout;
	interp->codes = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, free_code);
	g_hash_table_replace(python->interpreters, GINT_TO_POINTER(pid), interp);
	return interp;
}

static bool has_interpreter(struct python *python, pid_t pid)
{
	g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&python->lock);

	(void)locker;
	return interpreter_get(python, pid);
}

/* A stack of a forked child may arrive before its fork event: the parent has the same code. */
static struct interpreter *interpreter_or_parents(const struct python *python, pid_t pid)
{
	struct interpreter *interp = interpreter_get(python, pid);
	struct proc_stat stat;

	if (interp || proc_stat_read(pid, 0, &stat))
		return interp;
	return interpreter_get(python, stat.ppid);
}

/* What is shown, by enum memtoll_python_kind. */
static void say_refused(pid_t pid, uint32_t kind, uint16_t version)
{
	static const char *const names[] = { [PYTHON_NONE] = "CPython",
					     [INTERPRETER_RUBY] = "Ruby",
					     [INTERPRETER_PHP] = "PHP",
					     [INTERPRETER_V8] = "V8",
					     [INTERPRETER_JAVA] = "Java" };
	static const char *const shown[] = { [PYTHON_NONE] = "those of 3.9 to 3.14 are",
					     [INTERPRETER_RUBY] = "those of 3.1 are",
					     [INTERPRETER_PHP] = "those of 8.2 without threads are",
					     [INTERPRETER_V8] = "those of Node 18 to 24 are",
					     [INTERPRETER_JAVA] = "those of 17 and later are" };
	const char *adjective = kind >= INTERPRETER_RUBY ? names[kind] : "Python";

	if (kind < INTERPRETER_RUBY)
		kind = PYTHON_NONE;
	if (version)
		message("process %d runs %s %u.%u: its %s frames are not shown, only %s", pid,
			names[kind], version >> 8, version & 0xff, adjective, shown[kind]);
	else
		message("process %d runs a %s interpreter of unknown version: its %s frames are not "
			"shown",
			pid, adjective, adjective);
}

static void refuse(struct python *python, pid_t pid, const struct python_layout *layout)
{
	bool first;

	g_mutex_lock(&python->lock);
	first = g_hash_table_add(python->refused, GINT_TO_POINTER(pid));
	python->unsupported += first;
	g_mutex_unlock(&python->lock);
	if (first && g_hash_table_add(python->warned,
				      GUINT_TO_POINTER(layout->walk.kind << 16 | layout->version)))
		say_refused(pid, layout->walk.kind, layout->version);
}

/* Programs that embed an interpreter have it linked in or use a library named after it. */
static bool may_hold_interpreter(const struct mapping *mapping, const char *executable)
{
	const char *name = strrchr(mapping->path, '/');

	if (!mapping->exec || !mapping->inode || !name)
		return false;
	return strstr(name, "python") || strstr(name, "libruby") || strstr(name, "libphp") ||
	       strstr(name, "libnode") || strstr(name, "libjvm") ||
	       (executable && g_str_has_prefix(executable, mapping->path));
}

int python_show(struct python *python, pid_t pid, const struct maps *maps,
		struct memtoll_python_offsets *offsets)
{
	g_autofree char *executable = NULL;
	struct python_layout layout;
	int found = 0, err;
	size_t i;

	if (has_interpreter(python, pid))
		return 0;
	executable = proc_exe(pid);
	for (i = 0; i < maps->count && !found; i++) {
		const struct mapping *mapping = &maps->entries[i];
		g_autofree char *key = NULL;

		if (!may_hold_interpreter(mapping, executable))
			continue;
		key = g_strdup_printf("%u:%u:%lu", mapping->dev_major, mapping->dev_minor,
				      (unsigned long)mapping->inode);
		if (g_hash_table_contains(python->without, key))
			continue;
		err = python_offsets_find(pid, mapping, &layout);
		/* Not if it could not be opened: another process may live longer. */
		if (err == -ENODATA || err == -ENOEXEC)
			g_hash_table_add(python->without, g_steal_pointer(&key));
		else if (err == -ENOTSUP)
			refuse(python, pid, &layout);
		else if (!err)
			found = 1;
	}
	if (found) {
		g_mutex_lock(&python->lock);
		interpreter_add(python, pid, &layout);
		g_mutex_unlock(&python->lock);
		*offsets = layout.walk;
	}
	return found;
}

void python_fork(struct python *python, pid_t parent, pid_t child)
{
	g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&python->lock);
	const struct interpreter *interp = interpreter_get(python, parent);

	(void)locker;
	if (interp)
		interpreter_add(python, child, &interp->layout)->code_type = interp->code_type;
}

void python_exec(struct python *python, pid_t pid)
{
	g_mutex_lock(&python->lock);
	g_hash_table_remove(python->interpreters, GINT_TO_POINTER(pid));
	g_hash_table_remove(python->refused, GINT_TO_POINTER(pid));
	g_mutex_unlock(&python->lock);
}

/* Everything read from a process for one stack, in one timed_call(): each costs two switches. */
struct naming {
	pid_t pid;
	struct python_layout layout;
	uint64_t code_type;
	size_t count;
	uint64_t addresses[PYTHON_CODES_MAX];
	struct python_code_key known[PYTHON_CODES_MAX]; /* of the cached code objects */
	struct python_code_key keys[PYTHON_CODES_MAX];	/* of those in memory now */
	struct python_code *codes[PYTHON_CODES_MAX];	/* read where these differ */
	bool partial[PYTHON_CODES_MAX];			/* of these: not all of it could be read */
};

static void naming_free(gpointer data)
{
	struct naming *naming = data;
	size_t i;

	for (i = 0; i < naming->count; i++)
		if (naming->codes[i])
			python_code_unref(naming->codes[i]);
	g_free(naming);
}

/* The innermost frame with the same code object, as in recursion. */
static size_t first_of(const struct naming *naming, size_t place)
{
	size_t i;

	for (i = 0; naming->addresses[i] != naming->addresses[place]; i++)
		;
	return i;
}

static void read_codes(void *data)
{
	struct naming *naming = data;
	size_t i;

	python_code_peek(naming->pid, &naming->layout, &naming->code_type, naming->addresses,
			 naming->count, naming->keys);
	for (i = 0; i < naming->count; i++)
		if (naming->keys[i].type && first_of(naming, i) == i &&
		    memcmp(&naming->keys[i], &naming->known[i], sizeof(naming->keys[i])))
			naming->codes[i] = python_code_read(naming->pid, &naming->layout,
							    &naming->keys[i], &naming->partial[i]);
}

static void remember(struct interpreter *interp, uint64_t address, struct python_code *code)
{
	if (g_hash_table_size(interp->codes) >= CODES_MAX)
		g_hash_table_remove_all(interp->codes);
	g_hash_table_replace(interp->codes, g_memdup2(&address, sizeof(address)),
			     python_code_ref(code));
}

/* Read the code objects of a stack that are not cached; NULL: nothing could be read. */
static struct naming *naming_read(struct interpreter *interp, pid_t pid,
				  const struct python_stack *stack)
{
	struct naming *naming = g_new0(struct naming, 1);
	size_t i;

	naming->pid = pid;
	naming->layout = interp->layout;
	naming->code_type = interp->code_type;
	naming->count = MIN(stack->count, PYTHON_CODES_MAX);
	for (i = 0; i < naming->count; i++) {
		const struct python_code *code;

		naming->addresses[i] = stack->frames[i].address;
		code = g_hash_table_lookup(interp->codes, &naming->addresses[i]);
		if (code)
			naming->known[i] = code->key;
	}
	if (!timed_call(pid, TIMED_CALL_MEMORY_MS, read_codes, naming, naming_free))
		return NULL;
	interp->code_type = naming->code_type;
	for (i = 0; i < naming->count; i++)
		if (naming->codes[i] && !naming->partial[i])
			remember(interp, naming->addresses[i], naming->codes[i]);
	return naming;
}

/* The code object of a frame, read or cached, if memory still has the same one. */
static struct python_code *code_get(const struct interpreter *interp, const struct naming *naming,
				    size_t i)
{
	struct python_code *code = naming->codes[first_of(naming, i)];

	if (!code && naming->keys[i].type)
		code = g_hash_table_lookup(interp->codes, &naming->addresses[i]);
	return code && !memcmp(&code->key, &naming->keys[i], sizeof(code->key)) ? code : NULL;
}

int32_t python_frame_place(const struct python_frame *frame, uint32_t kind)
{
	if (kind != INTERPRETER_JAVA)
		return frame->instruction;
	return frame->flags & PYTHON_AT ? (int32_t)(frame->flags >> PYTHON_AT_SHIFT) : -1;
}

/* Name a frame that is not settled. naming: NULL: nothing could be read. */
static void name_frame(struct python_stack *stack, size_t i, const struct interpreter *interp,
		       const struct naming *naming)
{
	struct python_frame *frame = &stack->frames[i];
	struct python_code *code;

	if (!naming)
		return;
	code = code_get(interp, naming, i);
	if (!code || !python_code_has(code, python_frame_place(frame, stack->kind))) {
		/* Another object has the address now, or what is there has no name. */
		frame->settled = !naming->partial[first_of(naming, i)];
		/* The engine's own functions have no script: no name is missing. */
		frame->nameless =
			stack->kind == INTERPRETER_V8 && naming->keys[i].type && frame->settled;
		return;
	}
	if (frame->code && !v8_code_completes(code, frame->code))
		return;
	frame->settled = !code->partial;
	if (frame->code)
		python_code_unref(frame->code);
	frame->nameless = python_code_is_internal(code);
	frame->code = frame->nameless ? NULL : python_code_ref(code);
}

/*
 * Name the frames of a stack as far as its process can be read. again: that is tried once more,
 * when the stack is written, if it is given up now.
 */
static void name_frames(struct python *python, struct python_stack *stack, bool again)
{
	struct interpreter *interp = interpreter_or_parents(python, stack->pid);
	struct naming *naming = interp ? naming_read(interp, stack->pid, stack) : NULL;
	size_t i;

	if (interp)
		stack->kind = interp->layout.walk.kind;
	stack->unread = false;
	for (i = 0; i < stack->count; i++) {
		struct python_frame *frame = &stack->frames[i];

		if (!frame->address || frame->settled)
			continue;
		name_frame(stack, i, interp, naming);
		if (again && interp && !frame->settled) {
			stack->unread = true;
			continue;
		}
		/* One that has its name, but not its line, is none without. */
		frame->settled = true;
		python->unreadable += !frame->code && !frame->nameless;
	}
	if (naming)
		naming_free(naming);
}

void python_resolve(struct python *python, const struct memtoll_python *walked)
{
	g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&python->lock);
	size_t count = MIN(walked->depth, MEMTOLL_PYTHON_DEPTH), i;
	struct python_stack *stack;

	(void)locker;
	if (g_hash_table_contains(python->stacks, &walked->stack_id) ||
	    g_hash_table_size(python->stacks) >= STACKS_MAX)
		return;
	stack = g_malloc0(sizeof(*stack) + count * sizeof(stack->frames[0]));
	stack->pid = (pid_t)walked->tgid;
	stack->count = count;
	stack->truncated = walked->flags & (PYTHON_TRUNCATED | PYTHON_BROKEN);
	for (i = 0; i < count; i++) {
		stack->frames[i].address = walked->frames[i].code;
		stack->frames[i].instruction = (int32_t)walked->frames[i].instruction;
		stack->frames[i].flags = walked->frames[i].flags;
	}
	name_frames(python, stack, true);
	g_hash_table_insert(python->stacks, g_memdup2(&walked->stack_id, sizeof(walked->stack_id)),
			    stack);
}

const struct python_stack *python_stack(struct python *python, uint64_t stack_id)
{
	g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&python->lock);
	struct python_stack *stack = g_hash_table_lookup(python->stacks, &stack_id);

	(void)locker;
	if (stack && stack->unread)
		name_frames(python, stack, false);
	return stack;
}

void python_forget(struct python *python, uint64_t stack_id)
{
	g_mutex_lock(&python->lock);
	g_hash_table_remove(python->stacks, &stack_id);
	g_mutex_unlock(&python->lock);
}

static gboolean is_of(gpointer id, gpointer stack, gpointer pid)
{
	(void)id;
	return ((struct python_stack *)stack)->pid == GPOINTER_TO_INT(pid);
}

void python_forget_process(struct python *python, pid_t pid)
{
	g_mutex_lock(&python->lock);
	g_hash_table_foreach_remove(python->stacks, is_of, GINT_TO_POINTER(pid));
	g_mutex_unlock(&python->lock);
}

uint64_t python_unreadable(struct python *python)
{
	uint64_t count;

	g_mutex_lock(&python->lock);
	count = python->unreadable;
	python->unreadable = 0;
	g_mutex_unlock(&python->lock);
	return count;
}

uint64_t python_unsupported(struct python *python)
{
	uint64_t count;

	g_mutex_lock(&python->lock);
	count = python->unsupported;
	python->unsupported = 0;
	g_mutex_unlock(&python->lock);
	return count;
}
