/* SPDX-License-Identifier: GPL-2.0 */
/*
 * resymbolize.h: name the native frames of a recording once more, where debug files have been
 * found since, or on a machine that has them.
 *
 * A frame is kept with the build-id of its file and its address in that file, so that the names can
 * come from any file with the same build-id, wherever it lies. Frames of interpreters and of
 * generated code stay as they are.
 */
#ifndef MEMTOLL_RESYMBOLIZE_H
#define MEMTOLL_RESYMBOLIZE_H

#include <sqlite3.h>
#include <stdint.h>

struct resymbolize_result {
	uint64_t modules;   /* files with a build-id in the recording */
	uint64_t found;	    /* of them, files with that build-id were found */
	uint64_t addresses; /* distinct places in all of them */
	uint64_t functions; /* of them, with a function's name afterwards */
	uint64_t lines;	    /* of them, with a line afterwards */
};

/*
 * Look in directories (NULL-terminated, in their order; each laid out as /usr/lib/debug, as a root
 * directory, or just holding the files), then for the module's own path here and /usr/lib/debug.
 * database: of recording_open_to_change(). Ends its transaction: 0, or -errno with the recording as
 * it was.
 */
int resymbolize(sqlite3 *database, char *const *directories, struct resymbolize_result *result);

#endif /* MEMTOLL_RESYMBOLIZE_H */
