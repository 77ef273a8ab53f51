/* SPDX-License-Identifier: GPL-2.0 */
/* session.h: one recording from open to close, with one ordered, idempotent teardown. */
#ifndef MEMTOLL_SESSION_H
#define MEMTOLL_SESSION_H

#include <glib.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "probes/attach.h"

#define MIN_SIZE_DEFAULT (64ULL << 10)
#define SAMPLE_MAX (4ULL << 30)
#define SLICE_SHORTEST_NS 100000000ULL
#define SLICE_LONGEST_NS 60000000000ULL
#define BUFFER_DEFAULT (16ULL << 20)
/* In a small memory cgroup (own_limits.h); stacks are charged to it as they come, a KiB each. */
#define BUFFER_SMALL (1ULL << 20)
#define STACKS_SMALL 8192

struct interval;

/* One of several recordings, each of which begins before the last one ends (userspace/watch). */
struct session_watch {
	void *context;
	/* Append processes to follow; those that are followed already do no harm. */
	void (*find)(void *context, GArray *pids);
	/* All is prepared. Counting begins when it returns, and has begun: with the first
	   target then. */
	void (*ready)(void *context);
	void (*begun)(void *context, uint64_t first_ns);
};

struct session_config {
	const pid_t *pids; /* running processes, or */
	size_t pid_count;
	char *const *command;  /* a command to run; NULL-terminated */
	const char *cgroup;    /* directory of a cgroup, whose processes come and go */
	const char *container; /* that it is of: looked for again when it is gone; or NULL */
	const struct session_watch *watch; /* whose processes come and go as well */
	const char *output;		   /* NULL: in memory */
	bool force;
	bool redact;	      /* nothing that redact.sql hides is written, or there at the end */
	uint64_t max_bytes;   /* of the recording, its journal with it; 0: no limit */
	uint64_t slice_ns;    /* 0: as slice_length() has it */
	uint64_t duration_ns; /* 0: until the target ends or a signal comes */
	uint64_t min_size;
	enum probe_place place; /* of malloc and free */
	uint64_t sample;	/* mean bytes between chosen allocations, 0: none */
	bool jvm_perfmap;	/* Java virtual machines are asked for names of their code */
	uint64_t hold_ns;	/* between looks at who holds the memory; 0: none */
	/* Of the ring buffer: a power of two, whole pages; 0: as our own limits allow. */
	uint64_t buffer_bytes;
	bool uprobes; /* the allocator's functions */
	bool faults;
	bool mappings;
	bool samples;
	bool reads;	       /* of files */
	bool counts_only;      /* no time is asked for: what probes cost is not measured */
	double overhead_limit; /* share of the CPU time, 0: none is set */
	const char *overhead_limit_text; /* "none", or in percent: for the record */
	bool may_leave_calls;		 /* system calls of an idle program may go unwatched */
	const char *probes;		 /* as given, for the record */
	const char *command_line;	 /* how memtoll was called */
	/* What each interval costs, told when it is over; the last one is shorter. NULL: nobody. */
	uint64_t interval_ns;
	void (*on_interval)(void *context, const struct interval *interval);
	void *interval_context;
	bool interval_live; /* somebody watches: the first slice is told at once, and cheaply all */
};

struct session;

struct session *session_new(const struct session_config *config);

/* From open to the end of the recording. Exit status (message.h), after one message if not 0. */
int session_record(struct session *session);

/* Give up all but the recording: at any point, and again. */
void session_close(struct session *session);
void session_free(struct session *session);

sqlite3 *session_database(struct session *session);

/* Exit status of the command as wait(2) has it; false where none was run or it has not ended. */
bool session_command_status(const struct session *session, int *wait_status);

#endif /* MEMTOLL_SESSION_H */
