/* SPDX-License-Identifier: GPL-2.0 */
/*
 * recording.h: writing and opening recordings (SQLite; the schema is recording.sql).
 *
 * A writer keeps one transaction open per slice. Facts of a slice are added in any order; rows
 * with the same key are summed. After an error every later call returns that error and nothing
 * more is written; what was committed stays valid.
 */
#ifndef MEMTOLL_RECORDING_H
#define MEMTOLL_RECORDING_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sqlite3.h>
#include <sys/types.h>

#include "bpf/wire/rates.h"
#include "bpf/wire/records.h"
#include "bpf/wire/sums.h"
#include "symbols/symbolize.h"

/* "mtol": written to the database header as application_id. */
#define RECORDING_APPLICATION_ID 0x6d746f6c
#define RECORDING_FORMAT 1

struct file_site;
struct recording;

/*
 * Create the file at path, or an in-memory recording when path is NULL. The file is made with
 * O_EXCL|O_NOFOLLOW, mode 0600, and given to the user behind sudo (SUDO_UID, SUDO_GID). With
 * force an existing regular file is replaced, but only at recording_finish(): until then the data
 * goes to a new file beside it, and the old one stays. NULL on failure, with one clear line on
 * stderr.
 */
struct recording *recording_create(const char *path, bool force);

/*
 * One that only ever tells what redact.sql leaves of it: it is kept in memory, and the file is empty,
 * until recording_finish() puts the pseudonyms in and writes what is left in one go. Whoever is
 * killed before, or fails, leaves nothing of it on disk.
 */
struct recording *recording_create_redacted(const char *path, bool force);

/*
 * From here on the file and its journal together stay below so many bytes (in memory: the
 * database). The slice that does not fit is undone, one line says so, and every call returns -EFBIG
 * until recording_resume_full(). At least RECORDING_LIMIT_MIN.
 */
#define RECORDING_LIMIT_MIN (1ULL << 20)
void recording_limit(struct recording *recording, uint64_t bytes);
bool recording_is_limited(const struct recording *recording);
bool recording_is_full(const struct recording *recording);
/* The last rows of a full recording are to come: meta only. The end of its last slice, or 0. */
uint64_t recording_resume_full(struct recording *recording);

/* Facts about the recording. Any time before recording_finish(). */
int recording_meta(struct recording *recording, const char *key, const char *value);
int recording_meta_int(struct recording *recording, const char *key, int64_t value);

struct process_fact {
	pid_t pid;
	pid_t parent_pid;
	const char *comm;
	const char *command;
	const char *executable;
	uint64_t start_ns;
	const char *role; /* "target" or "child" */
};

/* Insert, or after exec replace, a process. */
int recording_process(struct recording *recording, const struct process_fact *process);
int recording_process_end(struct recording *recording, pid_t pid, uint64_t end_ns, int exit_code);
/* Where its memory is accounted now; the process must have been recorded. */
int recording_process_cgroup(struct recording *recording, pid_t pid, const char *path);

/* Of a process as well: the container that it is in, NULL: none, and its number there; 0: unknown. */
int recording_process_container(struct recording *recording, pid_t pid, const char *id,
				pid_t pid_inside);

struct container_fact {
	const char *id;
	const char *runtime; /* NULL: unknown; so for all but the title */
	const char *name;
	const char *image;
	const char *pod;
	const char *pod_namespace;
	const char *pod_uid;
	const char *title;
};

int recording_container(struct recording *recording, const struct container_fact *container);

struct allocator_fact {
	pid_t pid;
	const char *module;
	const char *kind;
	const char *version;
	const char *functions;
	const char *refused;
	int64_t mmap_threshold_low; /* -1: NULL; so for the next two */
	int64_t mmap_threshold_high;
	int dynamic;
	const char *tunables;
	const char *linkage;
};

int recording_allocator(struct recording *recording, const struct allocator_fact *allocator);

/* A later call for the same key replaces the row. */
struct allocator_probe_fact {
	pid_t pid;
	const char *module;
	const char *symbol;
	const char *call;
	int offset; /* -1: not probed */
	const char *instruction;
	bool timed;
	const char *refusal;
};

int recording_allocator_probe(struct recording *recording,
			      const struct allocator_probe_fact *probe);
/* A function that is probed past its threads' cache, which may hold blocks of cached_bytes. */
int recording_past_cache(struct recording *recording, pid_t pid, const char *module,
			 const char *call, uint64_t cached_bytes, bool timed);
int recording_price(struct recording *recording, const char *probe, double hit_ns, double inside_ns,
		    double error_ns);
int recording_calibration(struct recording *recording, const char *name, double value);
int recording_system_counter(struct recording *recording, const char *name, int64_t value);
int recording_not_captured(struct recording *recording, const char *toll, const char *reason);

/* Bytes are -1 where unknown, limits also where there is none: NULL. */
struct memory_cgroup_fact {
	const char *path;
	int version;
	int64_t limit_bytes;
	const char *limit_path; /* NULL: no limit */
	int64_t swap_limit_bytes;
	int64_t usage_bytes;
	int64_t peak_bytes;
	int64_t file_bytes;
	int64_t beside_bytes;
};

/* A later call for the same key replaces the row; so for the next three. */
int recording_memory_cgroup(struct recording *recording, const struct memory_cgroup_fact *group);
int recording_memory_cgroup_counter(struct recording *recording, const char *path, const char *name,
				    int64_t value);

struct swap_device_fact {
	const char *path;
	const char *kind; /* "disk", "file" or "zram" */
	uint64_t size_bytes;
	int priority;
	int type; /* the kernel's number; -1: unknown */
};

int recording_swap_device(struct recording *recording, const struct swap_device_fact *device);
/* json: as hold.schema.json has it; anything else is a look that found nothing. */
int recording_hold_look(struct recording *recording, uint64_t look, uint64_t start_ns,
			uint64_t took_ns, const char *json);

struct hold_pin_fact {
	pid_t pid;
	const char *at; /* "page" or "end" */
	uint64_t size;
	const char *call; /* NULL: not seen made */
	uint64_t stack_id;
	uint64_t blocks;
	uint64_t bytes;
	double estimate;
	const char *hint;
};

int recording_hold_pin(struct recording *recording, uint64_t look, const struct hold_pin_fact *pin);

struct hold_reuse_fact {
	pid_t pid;
	uint64_t since_ns;
	double seconds;
	uint64_t pages;
	uint64_t used_pages;
};

int recording_hold_reuse(struct recording *recording, uint64_t look,
			 const struct hold_reuse_fact *reuse);
int recording_huge_look(struct recording *recording, pid_t pid, uint64_t looked,
			uint64_t used_pages, uint64_t gone);

/* Cumulative since the start. call and stack of an allocation site, or area and its name. */
struct access_fact {
	pid_t pid;
	const char *call; /* NULL means "": outside of allocations */
	uint64_t allocated_stack;
	const char *area;      /* NULL means "": in an allocation */
	const char *area_name; /* NULL means "" */
	uint64_t first_pages;
	uint64_t first_sequential_pages;
	uint64_t in_pages;
	uint64_t in_sequential_pages;
	uint64_t distinct_pages;
	uint64_t max_returns;
	uint64_t untracked_pages;
};

int recording_access(struct recording *recording, const struct access_fact *access);

/* Cumulative since the start: pages of a file that one kind of cause brought in. */
struct fill_fact {
	const struct file_site *site;
	const char *cause;     /* "fault", "read" or "map" */
	const char *area_name; /* "": it was not mapped */
	bool library;	       /* it is mapped executable as well */
};

int recording_fill(struct recording *recording, const struct fill_fact *fill);

struct page_drop_fact {
	pid_t pid;	  /* 0: kswapd */
	const char *what; /* "file" or "swap" */
	const char *how;
	uint64_t stack_id;
	const char *comm;
	const char *memory_cgroup;
	uint64_t pages;
};

int recording_page_drop(struct recording *recording, const struct page_drop_fact *fact);

/* Advice to let memory go, or (with a class) what came back of it. */
struct advised_fact {
	pid_t pid;
	const char *advice; /* "cold" or "dontneed" */
	uint64_t stack_id;
	const char *fault_class;
	uint64_t calls;
	uint64_t bytes;
	uint64_t again_faults;
	uint64_t again_pages;
};

int recording_advised(struct recording *recording, const struct advised_fact *fact);

struct handler_fact {
	pid_t pid; /* whose faults it answers */
	pid_t handler_pid;
	pid_t handler_tid;
	const char *comm; /* of the thread, and of its process */
	const char *process;
	const char *request;
	uint64_t stack_id;
	uint64_t waits;
	uint64_t wait_ns;
};

int recording_handler(struct recording *recording, const struct handler_fact *fact);
int recording_wait(struct recording *recording, pid_t pid, uint64_t low_ns, uint64_t high_ns,
		   uint64_t waits);
int recording_longest_wait(struct recording *recording, pid_t pid,
			   const struct memtoll_longest_wait *longest);

int recording_slice_begin(struct recording *recording, uint64_t start_ns);

struct process_slice_fact {
	pid_t pid;
	uint64_t cpu_ns; /* differences over the slice */
	/* Below 0 in the last one where it turns out that readings of before had too many. */
	int64_t minor_faults;
	int64_t major_faults;
	int64_t rss_bytes; /* at its end; -1: unknown */
	int64_t swap_bytes;
};

int recording_process_slice(struct recording *recording, const struct process_slice_fact *fact);

struct call_fact {
	pid_t pid;
	const char *call;
	uint64_t stack_id;
	bool known_clearing;
	uint64_t timed_calls;	     /* the others are sum.untimed_calls */
	struct memtoll_call_sum sum; /* differences over the slice */
};

int recording_call(struct recording *recording, const struct call_fact *call);

/* Calls of a site that took from low_ns to less than high_ns; UINT64_MAX: no upper bound. */
struct latency_fact {
	pid_t pid;
	const char *call;
	uint64_t stack_id;
	uint64_t low_ns;
	uint64_t high_ns;
	uint64_t calls;
};

int recording_latency(struct recording *recording, const struct latency_fact *latency);
int recording_outlier(struct recording *recording, const char *call,
		      const struct memtoll_outlier *outlier);

struct block_fact {
	pid_t pid;
	const char *call;
	uint64_t stack_id;
	uint64_t made;
	uint64_t made_bytes;
	uint64_t freed;
	uint64_t freed_bytes;
	uint64_t never_used_bytes;
};

int recording_block(struct recording *recording, const struct block_fact *block);

struct fault_fact {
	pid_t pid;
	const char *fault_class; /* of table fault_class */
	uint64_t allocated_stack;
	const char *allocated_call;
	uint64_t touched_stack;
	const char *area;
	const char *area_name; /* NULL means "" */
	const char *in_call;
	bool in_memset;
	uint64_t faults;
	uint64_t pages;
	uint64_t timed_faults;
	uint64_t timed_cpu_ns;
	uint64_t timed_cpu_us2;
	uint64_t blocked_ns;
};

int recording_fault(struct recording *recording, const struct fault_fact *fault);

struct fault_run_fact {
	pid_t pid;
	pid_t tid;
	const char *fault_class;
	uint64_t address;
	uint64_t pages;
	uint64_t faults;
	uint64_t first_ns;
	uint64_t last_ns;
	uint64_t allocated_stack;
	const char *allocated_call; /* NULL means ""; so for the next */
	uint64_t touched_stack;
	const char *area;
};

int recording_fault_run(struct recording *recording, const struct fault_run_fact *run);

struct map_call_fact {
	pid_t pid;
	const char *call;
	const char *in_call;
	uint64_t stack_id;
	struct memtoll_map_sum sum;
};

int recording_map_call(struct recording *recording, const struct map_call_fact *call);
/* One of glibc's thresholds changed, or more is known of it. */
struct threshold_row {
	uint64_t time_ns;
	pid_t pid;
	const char *name;
	uint64_t low_bytes;
	int64_t high_bytes; /* -1: NULL */
	const char *how;
	const char *call;
	uint64_t stack_id;
};

int recording_threshold(struct recording *recording, const struct threshold_row *row);

/* Given back: calls and so on. Got again: by whom, class and how much; calls is 0 then. */
struct giveback_fact {
	pid_t pid;
	const char *how;
	const char *gave_call;
	uint64_t gave_stack;
	const char *got_call;
	uint64_t got_stack;
	const char *fault_class;
	uint64_t calls;
	uint64_t gave_bytes;
	uint64_t largest_bytes;
	uint64_t span_bytes;
	uint64_t again_faults;
	uint64_t again_bytes;
	uint64_t twice_bytes;
	uint64_t thread_calls;
};

int recording_giveback(struct recording *recording, const struct giveback_fact *giveback);

struct sample_fact {
	pid_t pid;
	const char *place;
	const char *in_call;
	uint64_t stack_id;
	uint64_t allocated_stack; /* 0: in no block that is known */
	const char *allocated_call;
	uint32_t bytes_per_16_cycles;
	uint64_t samples;
	uint64_t spread_bytes; /* 0: not known */
	uint64_t length_bytes; /* 0: not known */
	const char *area;
	const char *area_name;
	uint64_t clearing; /* of the samples, in the kernel's code that clears pages */
};

int recording_sample(struct recording *recording, const struct sample_fact *sample);
/* stack_id: of what reclaim happened in; 0: none. */
int recording_swap(struct recording *recording, pid_t pid, const char *what, uint64_t stack_id,
		   const struct memtoll_swap_sum *sum);

struct file_fact {
	int64_t file; /* its number in this recording */
	uint32_t dev;
	uint64_t inode;
	const char *path;
	const char *kind; /* "file" or "block device" */
	uint64_t bytes;	  /* its size when first read; 0: unknown */
};

int recording_file(struct recording *recording, const struct file_fact *file);

struct file_read_fact {
	pid_t pid;
	int64_t file;
	const char *call;
	uint64_t stack_id;
	bool direct;
	struct memtoll_read_sum sum; /* differences over the slice */
};

int recording_own_cache(struct recording *recording, pid_t pid, const char *program,
			const char *setting, int64_t bytes, const char *source);

/* How far apart the uses of the same block are, cumulative: reuse_distance.h. */
struct reuse_fact {
	const char *subject; /* "file", "files", "cache" or "swap" */
	int64_t file;	     /* 0: all */
	uint64_t block_bytes;
	uint64_t uses;
	double different;
	double first;
	double rate;
	double error;
	double max_distance;
};

/* Replaces the earlier rows of this subject, its distances too. */
int recording_reuse(struct recording *recording, const struct reuse_fact *fact);
int recording_reuse_distance(struct recording *recording, const char *subject, int64_t file,
			     uint64_t low, uint64_t high, double uses);
int recording_file_read(struct recording *recording, const struct file_read_fact *fact);
int recording_hit(struct recording *recording, pid_t pid, const char *probe, uint64_t hits);
/* An allocator function that was not watched throughout the slice. */
int recording_watch(struct recording *recording, const char *call, uint64_t windows,
		    uint64_t watched_ns, uint64_t watched_cpu_ns);
/*
 * CPU time of one process in the slice, and what of it was in windows of the function's group, which
 * malloc, calloc or realloc stands for.
 */
int recording_watch_process(struct recording *recording, const char *call, pid_t pid,
			    uint64_t windows, uint64_t cpu_ns, uint64_t watched_cpu_ns);
/*
 * Its calls that were counted after windows and not looked at, and the target's CPU time meanwhile.
 */
int recording_watch_passed(struct recording *recording, const char *call, uint64_t calls,
			   uint64_t cpu_ns);
/*
 * How much of something that was counted throughout the slice fell into the function's windows.
 * event: a function, fault, map, read (by other than read(2)), plain_read.
 */
int recording_watch_event(struct recording *recording, const char *call, const char *event,
			  uint64_t watched, uint64_t all);
/* Times between hits of a thread in this slice. hit: call or idle. */
/* So many of them were looked at, and so many more only counted. */
int recording_thinned(struct recording *recording, const char *what, uint64_t seen,
		      uint64_t passed);
int recording_hit_gap(struct recording *recording, const char *hit,
		      const struct memtoll_gaps *gaps);
/* What --sample chose at one site in this slice. */
struct sampled_site;
int recording_sampled(struct recording *recording, const char *call,
		      const struct sampled_site *site);
int recording_loss(struct recording *recording, const char *name, uint64_t count);

/* A stack, once; frames are deduplicated. stacks already stored are ignored. */
int recording_stack(struct recording *recording, uint64_t stack_id, pid_t pid, const char *how,
		    bool complete, const char *stopped);
int recording_stack_frame(struct recording *recording, uint64_t stack_id, unsigned int depth,
			  uint64_t address, const struct frame *frame, bool inlined);
/*
 * Frames of a process's stacks that have no name and are in no file get what name() writes; false:
 * it has none either. is_return_address: as symbolizer_user() has it.
 */
struct jit_namer {
	void *context;
	bool (*name)(void *context, uint64_t address, bool is_return_address, struct frame *frame);
};
int recording_name_jit(struct recording *recording, pid_t pid, const struct jit_namer *namer);
bool recording_has_stack(struct recording *recording, uint64_t stack_id);
/* No more calls for it are expected; should one come, what is stored stays. */
void recording_forget_stack(struct recording *recording, uint64_t stack_id);

/* Commit the slice. 0 or -errno (-ENOSPC when the disk is full, after one clear line on stderr). */
int recording_slice_commit(struct recording *recording, uint64_t end_ns);

/* Write meta complete=1, sync, put the file in its place. 0 or -errno. */
int recording_finish(struct recording *recording);

/* The database, for report_*() on an in-memory recording. */
sqlite3 *recording_database(struct recording *recording);
void recording_close(struct recording *recording);

/*
 * Open a recording for reading, never changing it, and check that it is one: SQLite,
 * application_id, a format this version reads, tables intact. NULL on failure, with one clear
 * line on stderr that says which it was. May be called while the file is being written.
 */
sqlite3 *recording_open(const char *path);

/* The same of what can be read from standard input, by way of a copy that goes with it. */
sqlite3 *recording_open_stdin(void);

#endif /* MEMTOLL_RECORDING_H */
