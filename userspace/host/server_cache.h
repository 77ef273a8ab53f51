/* SPDX-License-Identifier: GPL-2.0 */
/*
 * server_cache.h: the cache that a database server keeps for itself, as its command line or its files
 * of options say. The server is not asked: no credentials are needed, and a size that was changed
 * while it runs is not seen.
 */
#ifndef MEMTOLL_SERVER_CACHE_H
#define MEMTOLL_SERVER_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct server_cache {
	const char *program;	/* "InnoDB" or "PostgreSQL" */
	const char *setting;	/* "innodb_buffer_pool_size", "shared_buffers" */
	int64_t bytes;		/* -1: what is set cannot be read */
	char *source; /* "command line", a path, or "default"; freed by server_cache_clear() */
};

/*
 * false: no program that is known to have one, or what it says of itself cannot be had in half a
 * second. Files are regular ones below the process's root, opened with its user's rights; how large
 * and how many they may be is bounded: a process names what it likes.
 */
bool server_cache_find(pid_t pid, struct server_cache *cache);
void server_cache_clear(struct server_cache *cache);

/* The parts, for tests. arguments end with NULL; paths are below root (root_open.h). */
bool server_cache_of(const char *program, char *const *arguments, int root, const char *directory,
		  struct server_cache *cache);

#endif /* MEMTOLL_SERVER_CACHE_H */
