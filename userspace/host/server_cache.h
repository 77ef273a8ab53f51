/* SPDX-License-Identifier: GPL-2.0 */
/*
 * server_cache.h: size of a database server's own cache, from its command line and option files.
 * The server is not asked: no credentials are needed, but changes at run time are not seen.
 */
#ifndef MEMTOLL_SERVER_CACHE_H
#define MEMTOLL_SERVER_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct server_cache {
	const char *program; /* "InnoDB" or "PostgreSQL" */
	const char *setting; /* "innodb_buffer_pool_size", "shared_buffers" */
	int64_t bytes;	     /* -1: what is set cannot be read, or is in files beyond the bound */
	char *source; /* "command line", a path, "default", or why not; freed by server_cache_clear() */
};

/*
 * False: not a known server, or its files cannot be read within half a second. Only regular files
 * below the process's root are read, with its user's rights; their number and sizes are bounded,
 * since a process can name any file.
 */
bool server_cache_find(pid_t pid, struct server_cache *cache);
void server_cache_clear(struct server_cache *cache);

/* The parts, for tests. arguments end with NULL; paths are below root (root_open.h). */
bool server_cache_of(const char *program, char *const *arguments, int root, const char *directory,
		     struct server_cache *cache);

#endif /* MEMTOLL_SERVER_CACHE_H */
