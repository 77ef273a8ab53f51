/* SPDX-License-Identifier: GPL-2.0 */
/*
 * python.h: the Python frames of stacks. BPF programs send addresses of code objects; these are
 * named at once, while the code is still in memory, and woven into the native frames when the stack
 * is written.
 */
#ifndef MEMTOLL_PYTHON_H
#define MEMTOLL_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/maps.h"
#include "python/python_code.h"
#include "python/python_offsets.h"

struct python;

struct python_frame {
	uint64_t address;	  /* of the code object; 0: an eval loop without a frame */
	struct python_code *code; /* NULL: the frame is left out */
	bool settled;		  /* no more is to be known of it */
	bool nameless;		  /* and it has no name: the interpreter's own */
	int32_t instruction;	  /* as struct memtoll_python has it */
	uint32_t flags;		  /* PYTHON_ENTRY, PYTHON_AT */
};

struct python_stack {
	pid_t pid;
	uint32_t kind;	/* of interpreter: enum memtoll_python_kind */
	bool truncated; /* frames are missing at the outer end */
	bool unread;	/* all or a part of it: its process did not let itself be read in time */
	size_t count;
	struct python_frame frames[]; /* innermost first */
};

/* May be used by several threads, each stack by one thread; python_show() by one thread only. */
struct python *python_new(void);
void python_free(struct python *python);

/*
 * Look for an interpreter in a process. 1: found, *offsets are for BPF. 0: none, or known already.
 * Interpreters of unknown versions are counted, with one message for each version.
 */
int python_show(struct python *python, pid_t pid, const struct maps *maps,
		struct memtoll_python_offsets *offsets);

/*
 * A forked child has its parent's interpreter; after exec or exit there is none until
 * python_show().
 */
void python_fork(struct python *python, pid_t parent, pid_t child);
void python_exec(struct python *python, pid_t pid);

/* Name the frames of a new stack, by reading the process's memory. */
void python_resolve(struct python *python, const struct memtoll_python *walked);

/*
 * The named frames of a stack, or NULL; they are read now where the process did not let them be
 * read when the stack came. Valid until the stack or its process is forgotten.
 */
const struct python_stack *python_stack(struct python *python, uint64_t stack_id);
void python_forget(struct python *python, uint64_t stack_id);
/* Forget stacks of a dead process that were never written, as their native part was lost. */
void python_forget_process(struct python *python, pid_t pid);

/* Where in its code a frame of such an interpreter is, as python_code_line() takes it. */
int32_t python_frame_place(const struct python_frame *frame, uint32_t kind);

/* Since the last call: frames that could not be named; processes with an unknown interpreter. */
uint64_t python_unreadable(struct python *python);
uint64_t python_unsupported(struct python *python);

/* ---- weaving ---- */

enum python_part {
	PYTHON_PART_INNER = 0, /* a frame called by Python code */
	PYTHON_PART_ENTRY = 1, /* a frame called from C: the outermost of its eval loop */
	PYTHON_PART_EMPTY = 2, /* an eval loop without a frame */
};

struct python_weave {
	const bool *is_loop; /* native frames, leaf first: which of them run an eval loop */
	size_t natives;
	bool native_whole;	       /* the native frames reach the thread's start */
	const enum python_part *parts; /* Python frames, innermost first */
	size_t parts_count;
	bool python_whole;
};

struct python_strand {
	bool is_python;
	unsigned int index; /* into the native frames or the Python frames */
};

/*
 * Order of both kinds of frames, leaf first: each native frame that runs an eval loop is replaced
 * by the Python frames it runs. order has room for all. Returns the number written. *placed:
 * false where loops and frames do not match, and all Python frames stand at the innermost loop.
 */
size_t python_weave(const struct python_weave *weave, struct python_strand *order, bool *placed);

/* Whether a native function runs Python code. */
bool python_is_loop(const char *function);

#endif /* MEMTOLL_PYTHON_H */
