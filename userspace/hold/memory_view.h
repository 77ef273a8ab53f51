/* SPDX-License-Identifier: GPL-2.0 */
/*
 * memory_view.h: a process's memory as the walk of its heaps sees it. Tests and fuzzers have images
 * in its place.
 */
#ifndef MEMTOLL_MEMORY_VIEW_H
#define MEMTOLL_MEMORY_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define VIEW_PAGE 4096ULL

enum page_state {
	PAGE_ABSENT,   /* never touched, or given back */
	PAGE_RESIDENT, /* in memory */
	PAGE_SWAPPED,
};

struct memory_view {
	/* The whole range, or false. */
	bool (*read)(void *context, uint64_t address, void *to, size_t size);
	/* enum page_state of each of the pages from address on. */
	bool (*pages)(void *context, uint64_t address, size_t count, uint8_t *states);
	/* Let it go on for a moment: what is half done now is done then. NULL: it does not. */
	void (*pause)(void *context);
	void *context;
};

struct process_view {
	struct memory_view view;
	pid_t pid;
	int pagemap;
};

/*
 * Of a live process, which is not stopped: by target_memory.h, and /proc/PID/pagemap. 0, or -errno.
 * Closed also after an error.
 */
int process_view_open(pid_t pid, struct process_view *process);
void process_view_close(struct process_view *process);

/* Bytes of a range by the state of their pages. */
struct page_bytes {
	uint64_t bytes;
	uint64_t resident;
	uint64_t swapped;
};

/* States of the pages from first on. */
struct page_range {
	uint64_t first; /* address of the first page */
	size_t count;
	uint8_t *states;
};

/* Add [start, end), which is within range. */
void page_bytes_add(struct page_bytes *sum, const struct page_range *range, uint64_t start,
		    uint64_t end);
void page_bytes_join(struct page_bytes *sum, const struct page_bytes *other);

#endif /* MEMTOLL_MEMORY_VIEW_H */
