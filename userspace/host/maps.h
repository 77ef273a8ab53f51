/* SPDX-License-Identifier: GPL-2.0 */
/*
 * maps.h: what a process has mapped. The process chooses how many mappings there are, of what files
 * and under what names: all three are bounded here, and what is left out is counted.
 */
#ifndef MEMTOLL_MAPS_H
#define MEMTOLL_MAPS_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Of each process, as it is at one time: code, and the rest. vm.max_map_count is 65,530 by default.
 */
#define MAPS_CODE_MAX 65536U
#define MAPS_DATA_MAX 65536U
/* Files that a process has code of. Large programs have hundreds. */
#define MAPS_FILES_MAX 4096U
/* All paths together; of those beyond only the last part is kept, "/.../NAME". */
#define MAPS_PATHS_MAX (8U << 20)

struct mapping {
	uint64_t start;
	uint64_t end;
	uint64_t offset; /* bytes into the file */
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	bool read;
	bool write;
	bool exec;
	bool shared;
	bool deleted;	  /* the kernel's " (deleted)" suffix, taken off the path */
	const char *path; /* "" for anonymous memory; "[heap]", "[vdso]" as they are */
};

struct maps {
	struct mapping *entries; /* ascending by start */
	size_t count;
	GStringChunk *paths; /* each once */
	uint64_t left_out;   /* mappings of code beyond the bounds */
};

/*
 * Read a process's mappings: by PROCMAP_QUERY (Linux 6.11), which asks for the path of a file once
 * instead of once a mapping, else /proc/PID/maps. 0, or -errno (-ENOENT: no such process; -ESRCH:
 * it is gone). The caller frees with maps_free(), also after an error.
 */
int maps_read(pid_t pid, struct maps *maps);
/* The same from /proc/PID/maps, whatever the kernel has. */
int maps_read_text(pid_t pid, struct maps *maps);
/* What an open file says in that form; for tests. */
int maps_read_open(int fd, struct maps *maps);
void maps_free(struct maps *maps);

/* A number that other code, or the same elsewhere, has another of. */
uint64_t maps_code(const struct maps *maps);

/* The entry that holds address, or NULL. */
const struct mapping *maps_find(const struct maps *maps, uint64_t address);

/* By device and inode, for hash tables: keys are struct mapping. */
bool is_same_file(const struct mapping *a, const struct mapping *b);
guint mapping_file_hash(gconstpointer mapping);
gboolean mapping_file_equal(gconstpointer a, gconstpointer b);

/*
 * Open the file behind a mapping as that process sees it: /proc/PID/map_files first (right even
 * when the file was replaced or deleted), then /proc/PID/root + path, then the path itself, the
 * last two only if device and inode are the mapping's. A descriptor, or -errno; -ETIMEDOUT: its
 * file system does not answer (timed_call.h).
 */
int mapping_open(pid_t pid, const struct mapping *mapping);

/* By a process, through FUSE: that says of its files what it likes, and may not answer. */
bool file_is_served(int fd);

#endif /* MEMTOLL_MAPS_H */
