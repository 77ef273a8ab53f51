/* SPDX-License-Identifier: GPL-2.0 */
/* targets.h: the processes being traced: probed, followed, and their kernel counters. */
#ifndef MEMTOLL_TARGETS_H
#define MEMTOLL_TARGETS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "events/sums.h"
#include "host/cgroup.h"
#include "ledger/thresholds.h"
#include "probes/attach.h"
#include "python/python.h"
#include "recording/recording.h"

/* What the kernel itself has counted for a process, and its size now. */
struct counters {
	uint64_t cpu_ns;
	uint64_t minor_faults;
	uint64_t major_faults;
	int64_t rss_bytes; /* -1: unknown; of a dead one, as seen last */
	int64_t swap_bytes;
};

struct target {
	pid_t pid;
	pid_t parent_pid;
	const char *role; /* "target" or "child" */
	uint64_t start_ns;
	bool exited;
	uint64_t ended_ns;	  /* when it has */
	bool brief;		  /* one of a storm, and nobody has looked at it */
	bool changed;		  /* files were mapped since it was last looked at */
	struct counters now;	  /* last reading */
	struct counters recorded; /* as of the last slice */
	struct counters base;	  /* when counting began */
	uint64_t cpu_base_ns;	  /* CPU time when counting began; of a fork 0 */
	uint64_t cpu_seen_ns;	  /* and since then */
	unsigned int slices_dead; /* written since it has exited */
};

struct targets;
struct memtoll_bpf;
struct memtoll_process;
struct observers;

struct targets_config {
	struct memtoll_bpf *bpf;
	struct observers *observers;
	struct python *python;
	struct recording *recording;
	struct memory_cgroups *memory_cgroups;
	struct thresholds *thresholds;
	enum uprobe_mechanism mechanism;
	enum probe_place place;
	uint64_t min_size;
	bool held; /* processes stand still until they are probed */
	bool uprobes;
	bool maps_reported; /* targets_changed() is called for what they map */
	/* Of a storm of new processes one in so long is looked at; 0: all are. */
	uint64_t start_every_ns;
	/* Called with one that was brief, when it has been looked at. NULL: nobody wants to know. */
	void (*looked_at)(void *context, pid_t pid);
	void *looked_context;
};

struct targets *targets_new(const struct targets_config *config);

/*
 * After a slice: of processes that had ended before it all is written. They are followed no more,
 * and observers forget them. Counts and times of all go on to include them.
 */
void targets_forget_dead(struct targets *targets);

/* Detach everything and free. */
void targets_free(struct targets *targets);

/*
 * Follow a running process: first its probes and all that takes long, which counts nothing; then
 * counting begins. So several begin at one moment. 0 or -errno; -ESRCH when it is gone.
 */
void targets_prepare(struct targets *targets, pid_t pid);
int targets_publish(struct targets *targets, pid_t pid);
/* Both. */
int targets_add(struct targets *targets, pid_t pid);

/* A command that is held before exec: counted from its exec on. */
int targets_expect_exec(struct targets *targets, pid_t pid);

/*
 * What ptrace or the ring buffer reports of followed processes. Twice does no harm. caller: the
 * thread that called exec; 0: not known.
 */
void targets_exec(struct targets *targets, pid_t pid, pid_t caller);
/* Code may have been mapped without an event: look at all processes again. */
void targets_suspect_code(struct targets *targets);
void targets_mapped(struct targets *targets, pid_t pid);
/*
 * Of a held process: true where it starts as one did before, and may run on until its dynamic
 * loader, mapped there, sends SIGURG when everything is mapped. targets_has_started(): that it is.
 */
bool targets_exec_held(struct targets *targets, pid_t pid, pid_t caller, uint64_t loader,
		       bool may_signal);
bool targets_has_started(struct targets *targets, pid_t pid);
void targets_ready(struct targets *targets, pid_t pid);
/* forked_ns: when; the record of it may be read when it has ended. */
void targets_forked(struct targets *targets, pid_t parent, pid_t child, uint64_t forked_ns,
		    bool held);
/* One of a storm of new ones: looked at only when it has lived for some time. */
void targets_forked_brief(struct targets *targets, pid_t parent, pid_t child, uint64_t forked_ns);
/* A thread is held at its end, the memory of its process not yet freed: read its size. */
void targets_dying(struct targets *targets, pid_t tid);
/* exit_code: as wait(2) has it. record: of the ring buffer; NULL: ptrace has reported it. */
void targets_exiting(struct targets *targets, pid_t pid, int exit_code,
		     const struct memtoll_process *record);
/* It has exited, and the kernel has added up what it took. */
void targets_freed(struct targets *targets, pid_t pid, const struct memtoll_process *record);

/* A followed process mapped a file executable: look again soon. */
void targets_changed(struct targets *targets, pid_t pid);
void targets_refresh(struct targets *targets);

struct target *targets_find(struct targets *targets, pid_t pid);
/*
 * Whether a process that is listed somewhere is one to follow: none has its number, or that one has
 * ended and is not it. A cgroup lists a process until its memory is given back, which takes long
 * where that is much, and its end has been told of before (Linux 6.16 on).
 */
bool targets_is_new(struct targets *targets, pid_t pid);
/* Of whom the kernel side has counted something. 0: all processes not traced. */
enum sums_owner targets_owner(struct targets *targets, pid_t pid);
bool targets_all_exited(const struct targets *targets);
/* That have ended and are not yet forgotten: targets_forget_dead(). */
unsigned int targets_dead(const struct targets *targets);
unsigned int targets_count(const struct targets *targets);

/* Attach exactly these groups of probes (bits of enum probe_group) in all processes. */
void targets_watch(struct targets *targets, unsigned int groups);

/* CPU time of all processes since they are followed, as of now; two system calls a process. */
uint64_t targets_cpu_ns(struct targets *targets);

/*
 * Read the kernel's counters of all that live, their sizes, and where their memory is accounted.
 * Who ended more than a slice ago without a record of it ends here: the ring buffer was full.
 */
void targets_read_counters(struct targets *targets);
/*
 * The last time: counting has ended, and so do the targets' counters, however long they live on.
 * counted: the kernel side has the faults of all their threads.
 */
void targets_end_counting(struct targets *targets, bool counted);

/*
 * The latter two only, so that a process that ends between two slices has been read shortly before.
 * Nothing is read where many live: that would cost too much.
 */
void targets_read_sizes(struct targets *targets);
void targets_each(struct targets *targets, void (*each)(void *context, struct target *target),
		  void *context);

/* Detach all uprobes; the processes stay known. */
void targets_detach(struct targets *targets);

/* Processes followed of which no allocator function could be probed. */
unsigned int targets_without_allocator(const struct targets *targets);

/*
 * Whether a file that the process maps is an allocator and nothing else: a library of one, not the
 * C library and no program that has one in it.
 */
bool targets_is_allocator(const struct targets *targets, pid_t pid, const char *path);

/* Losses found in userspace. */
struct targets_losses {
	uint64_t unwind_left_out;
	uint64_t mappings_left_out;
	uint64_t maps_postponed;
	uint64_t late;
	uint64_t brief; /* of storms */
	uint64_t pids_reused;
	uint64_t attach_failures;
};

/* Whether it has such an allocator. */
bool targets_have_past_cache(const struct targets *targets, pid_t pid);
/*
 * Which function of an allocator that is probed past its threads' caches these addresses of a stack,
 * leaf first, are in a call of; FN_NONE: of none, or it is not known.
 */
unsigned int targets_past_cache(const struct targets *targets, pid_t pid, const __u64 *frames,
				size_t count);

/* Since the last call. */
struct targets_losses targets_take_losses(struct targets *targets);

/*
 * How stacks are walked through code that the process has made itself, in place of what was said
 * before: rows (struct memtoll_unwind_row) relative to base.
 */
void targets_show_generated(struct targets *targets, pid_t pid, uint64_t base, const GArray *rows);

/*
 * Read glibc's thresholds out of the processes, as far as it is known where they lie. Whether that
 * was the last time.
 */
bool targets_read_thresholds(struct targets *targets);

/* Write what is known of the allocators. */
int targets_record_allocators(struct targets *targets);

#endif /* MEMTOLL_TARGETS_H */
