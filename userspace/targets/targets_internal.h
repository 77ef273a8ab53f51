/* SPDX-License-Identifier: GPL-2.0 */
/* targets_internal.h: between targets.c and targets_*.c. */
#ifndef MEMTOLL_TARGETS_INTERNAL_H
#define MEMTOLL_TARGETS_INTERNAL_H

#include <glib.h>

#include "bpf/wire/targets.h"
#include "host/maps.h"
#include "host/proc.h"
#include "targets/starts.h"
#include "targets/targets.h"

/* A module attached in one process. */
struct attached {
	const struct allocator_module *module;
	const struct slow_places *slow; /* in place of some entries; NULL: of none */
	size_t cached;			/* slow: blocks of more bytes are in no thread's cache */
	uint64_t code_start, code_end; /* of its first mapping of code, and what that begins with */
	uint64_t code_offset;
	struct uprobe_attachment *groups[PROBE_GROUPS]; /* NULL: detached */
	enum allocator_linkage linkage;
	const char *unprobed; /* why none of its functions is probed, or NULL */
	unsigned int image;   /* of the process, the last one that it was mapped in */
};

/* Addresses of calloc in a process; those beyond the capacity are left out. */
struct callocs {
	uint64_t address[MEMTOLL_CALLOCS];
	size_t count;
};

struct followed {
	struct target target;
	GPtrArray *attached; /* struct attached */
	struct callocs callocs;
	char *tunables;
	uint64_t malloc_par;		  /* address; 0: not known */
	uint64_t values[THRESHOLD_NAMES]; /* as it ended; values_ns 0: not read */
	uint64_t values_ns;
	bool pinned;		   /* thresholds that do not move by themselves, as last read */
	uint64_t start_ticks;	   /* distinguishes it from others of its number; 0: not known */
	bool missing;		   /* the BPF side no longer had it a slice ago */
	const char *memory_cgroup; /* as recorded last; NULL: not yet */
	bool contained;		   /* a container was recorded last */
	bool listed;		   /* has a row in table process */
	bool starting;		   /* held by ptrace; libraries are being mapped */
	bool rowless;		   /* the BPF side has no row of it any more */
	uint64_t look_at_ns;	   /* brief: when it is to be looked at; 0: it has been */
	struct starting *start;	   /* as its loader reports it, or NULL */
	bool too_many;		   /* allocators */
	bool postponed;		   /* what it has mapped is to be looked at, later */
	uint64_t rest_until_ns;	   /* CLOCK_MONOTONIC */
	uint64_t look_ns;	   /* when to look again, without a record; 0: never */
	uint64_t look_step_ns;
	unsigned int images;  /* programs that it has run */
	uint64_t stack_start; /* of the one that it was when it was first looked at */
	uint64_t code;	      /* maps_code(), as it was prepared */
	uint64_t left_out;    /* mappings of code, at most at a time */
};

struct scan {
	struct allocator_module *modules;
	size_t count;
};

struct targets {
	struct targets_config config;
	GHashTable *followed;	/* pid -> struct followed */
	GHashTable *modules;	/* "major:minor:inode" -> struct allocator_module or NULL */
	GPtrArray *scans;	/* struct scan: the arrays that `modules` points into */
	GHashTable *containers; /* path of a memory cgroup -> id of its container, or "" */
	struct unwinder *unwinder;
	struct starts *starts;
	GQueue briefs;		 /* pids that are or were brief, the oldest first */
	unsigned int watched;	 /* bits of enum probe_group: attached */
	uint64_t ended_ns;	 /* counting has ended then; 0: it has not */
	uint64_t look_due_ns;	 /* the next brief one may be looked at */
	bool detached;		 /* for good: processes that start from now on get no probes */
	bool endangered;	 /* one got no probes, for they would end it */
	size_t module_count;	 /* in scans */
	GHashTable *slow_places; /* struct allocator_module -> struct slow_places */
	GHashTable *stay;	 /* modules of which it was said that they keep their entries */
	__u16 slow_number;	 /* of the next of their places */
	uint64_t *numbers;	 /* bits: these were a followed process's */
	struct targets_losses losses;	/* but for the unwinder's */
	unsigned int dead;		/* still followed */
	unsigned int forgotten;		/* no longer followed */
	unsigned int forgotten_without; /* of these, that had no allocator we know */
	uint64_t forgotten_cpu_ns;
};

/* ---- targets.c: who they are ---- */

struct followed *followed_get(const struct targets *targets, pid_t pid);

/* Follow it from now on; what had the number before is forgotten. Nothing is published yet. */
struct followed *targets_follow(struct targets *targets, pid_t pid, const char *role);
/* The same in two steps: without a look at it, and the look. False: it is gone. */
struct followed *targets_follow_unseen(struct targets *targets, pid_t pid, const char *role);
bool followed_see(struct targets *targets, struct followed *followed);

/* So many are looked at later: what is known of them now is what records say. */
void followed_record_unseen(struct targets *targets, struct followed *followed, const char *comm);

/* What it maps now; empty if it is gone. Mappings left out are counted as lost once. */
void followed_read_maps(struct targets *targets, struct followed *followed, struct maps *maps);
void followed_record_cgroup(struct targets *targets, struct followed *followed);
void followed_record(struct targets *targets, struct followed *followed);

/* ---- targets_container.c: the container that a process's memory cgroup is of ---- */

void followed_record_container(struct targets *targets, struct followed *followed);

/* ---- targets_counters.c: what the kernel has counted for them ---- */

/* Whether the number is still its own. */
bool followed_read_stat(const struct followed *followed, struct proc_stat *stat);
bool followed_read_counters(struct followed *followed);
void followed_start_counting(struct followed *followed);

/*
 * Of faults what the kernel side has: the kernel's count from where our own began, for each thread,
 * to where it ended. Readings of /proc are earlier and later.
 */
void followed_use_counted(struct followed *followed, uint64_t minor, uint64_t major);
/* A row for one that is not looked at yet, or will not be. */
void followed_list_brief(struct targets *targets, struct followed *followed);
/* CPU time of all its life, as the kernel side has it. */
void followed_use_cpu(struct followed *followed, uint64_t cpu_ns);
void counters_read_size(pid_t tid, struct counters *counters);

/* CPU time of all its threads, the dead ones too, up to now; 0 when it is gone. */
uint64_t process_cpu_ns(pid_t pid);

/* ---- targets_probes.c ---- */

void attached_free(gpointer attached);
void scan_free(gpointer scan);

/* Probe one module, mapped or not. NULL: the process has too many. */
struct attached *followed_attach_module(struct targets *targets, struct followed *followed,
					const struct allocator_module *module);
/* Probe every allocator module that the process maps and that is not probed in it yet. */
void followed_attach_modules(struct targets *targets, struct followed *followed,
			     const struct maps *maps);
/* Detach its probes; what was attached stays listed, for the recording. */
void followed_detach(struct followed *followed);
bool followed_has_allocator(const struct followed *followed);

/* ---- targets_places.c ---- */

/*
 * Places to be probed in a process instead of entries; NULL: none. cached: of these, the largest
 * block that is not always seen there.
 */
const struct slow_places *targets_places(struct targets *targets, pid_t pid,
					 const struct allocator_module *module, size_t *cached);
int attached_record_places(struct targets *targets, pid_t pid, const struct attached *attached);

/* ---- targets_events.c ---- */

/* It has ended. exit_code: -1: not known. record: of the ring buffer, or NULL. */
void followed_end(struct targets *targets, struct followed *followed, int exit_code,
		  const struct memtoll_process *record);

/* ---- targets_code.c ---- */

/*
 * Give the BPF side what it needs of the process's code: how to unwind it, where memset and calloc
 * are, and an interpreter's frames. Its row must exist.
 */
void targets_publish_code(struct targets *targets, const struct followed *followed,
			  const struct maps *maps);

/*
 * Of these only calloc, as a sample in memset may be calloc's. Without a row: later, with the rest.
 */
void targets_publish_callocs(struct targets *targets, const struct followed *followed);

/* The table that a child has from its parent may have been another when it was forked. */
void targets_publish_table(struct targets *targets, pid_t pid, uint32_t table);

void callocs_add(struct callocs *callocs, const struct allocator_module *module,
		 const struct mapping *mapping);

/* False where another allocator is in front of glibc's. */
bool followed_uses_glibc(const struct followed *followed);

/* Its thresholds begin, or are seen for the first time: as thresholds_start() has it. */
void followed_begin_thresholds(struct targets *targets, const struct followed *followed,
			       bool from_start, pid_t parent);

/* Read them; the values count when all records up to now have been processed. */
void followed_look_at_thresholds(struct followed *followed);
void followed_read_thresholds(struct targets *targets, struct followed *followed);

#endif /* MEMTOLL_TARGETS_INTERNAL_H */
