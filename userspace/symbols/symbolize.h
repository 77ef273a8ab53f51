/* SPDX-License-Identifier: GPL-2.0 */
/*
 * symbolize.h: functions, files and lines of addresses (elfutils libdwfl).
 *
 * A symbolizer keeps the mappings of every process it was shown, so that addresses can still be
 * named when the process has exited.
 */
#ifndef MEMTOLL_SYMBOLIZE_H
#define MEMTOLL_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/maps.h"

enum frame_kind {
	FRAME_NATIVE = 0,
	FRAME_PYTHON = 1,
	FRAME_JIT = 2,
	FRAME_RUBY = 3,
	FRAME_PHP = 4,
	FRAME_JAVASCRIPT = 5,
	FRAME_JAVA = 6,
};

const char *frame_kind_name(enum frame_kind kind);

/* Strings belong to the symbolizer and live as long as it does. Unknown: "" and 0. */
struct frame {
	const char *function; /* demangled */
	const char *module;   /* path as the process sees it, or "[vdso]" */
	const char *file;
	uint32_t line;
	enum frame_kind kind;
	const char *build_id;	/* hex */
	uint64_t module_offset; /* address less the module's load bias: what addr2line wants */
	uint64_t symbol_offset; /* bytes from the function's start */
};

struct symbolizer;

struct symbolizer *symbolizer__new(void);
void symbolizer__free(struct symbolizer *symbolizer);

/*
 * The process has these mappings now (none: -ESRCH); call again when they changed (exec, dlopen).
 * Earlier mappings of the same pid are kept for addresses that the new ones do not cover, except
 * after exec (replace == true). 0 or -errno.
 */
int symbolizer_show_maps(struct symbolizer *symbolizer, pid_t pid, const struct maps *maps,
			 bool replace);

/* A forked child gets its parent's mappings, until it is shown itself. */
int symbolizer_fork(struct symbolizer *symbolizer, pid_t parent, pid_t child);

/*
 * Its perf map was written anew: what is named from now on is named by that. False: there is none.
 */
bool symbolizer_take_perf_map(struct symbolizer *symbolizer, pid_t pid);

/* Where the code is that its perf map names, ascending. */
void symbolizer_each_generated(struct symbolizer *symbolizer, pid_t pid,
			       void (*each)(void *context, uint64_t start, uint64_t end),
			       void *context);

/* The process is dead and all its addresses have been named. */
void symbolizer_forget(struct symbolizer *symbolizer, pid_t pid);

/* Whether this address, or the call before it, is in known code of the process. */
bool symbolizer_has_code(const struct symbolizer *symbolizer, pid_t pid, uint64_t address);

/*
 * Name an address of a process. is_return_address: look up the call before it. Inlined functions
 * give several frames, innermost first. Number of frames written, at least 1 (an unknown address
 * gives one frame with empty names).
 */
size_t symbolizer_user(struct symbolizer *symbolizer, pid_t pid, uint64_t address,
		       bool is_return_address, struct frame *frames, size_t capacity);

#endif /* MEMTOLL_SYMBOLIZE_H */
