/* SPDX-License-Identifier: GPL-2.0 */
/* session_internal.h: between session.c and session_*.c. */
#ifndef MEMTOLL_SESSION_INTERNAL_H
#define MEMTOLL_SESSION_INTERNAL_H

#include <signal.h>

#include "base/clock.h"
#include "budget/fault_window.h"
#include "host/pagetable.h"
#include "host/priority.h"
#include "host/swapdevice.h"
#include "probes/attach.h"
#include "probes/calibrate.h"
#include "session/dispatch.h"
#include "session/session.h"
#include "targets/launch.h"

#define MS 1000000ULL

struct session {
	struct session_config config;
	struct memtoll_bpf *bpf;
	struct pagetable pagetable;
	enum uprobe_mechanism mechanism;
	struct calibration *calibration; /* NULL, too: the prices are known already */
	struct calibration_result prices;
	double prices_age_s; /* 0: measured now */
	struct symbolizer *symbolizer;
	struct python *python;
	struct python_reader *python_reader;
	struct recording *recording;
	struct targets *targets;
	struct memory_cgroups *memory_cgroups;
	struct swap_devices *swap_devices;
	bool swap_types_seen[SWAP_TYPES]; /* in swap entries, since devices changed */
	bool swap_in_counted;
	bool counts_ended; /* what ours are compared with is recorded for the last time */
	bool locks_asked;  /* futex calls are to be watched */
	struct observers *observers;
	struct consumers *consumers;
	struct budget *budget;
	struct slice_writer *writer;
	struct dispatch dispatch;
	struct probes *probes;
	struct ring_buffer *ring;
	struct launch *launch;
	struct progress *progress;
	struct hold_looks *hold_looks; /* NULL: none are asked for */
	struct jvm_names *jvm_names;   /* NULL: the same */
	struct system_counters *system;
	int signal_fd;
	struct watchdog *watchdog;
	sigset_t old_signals;
	bool signals_blocked;
	uint64_t start_ns;
	uint64_t first_ns;   /* the first target is about to count */
	uint64_t end_due_ns; /* 0: none */
	uint64_t slice_start_ns;
	uint64_t cgroup_read_ns;
	char *cgroup_again; /* config.cgroup, where the container has come back in another one */
	uint64_t cgroup_gone_ns; /* since when it is not there; 0: it is */
	uint64_t cgroup_looked_ns;
	uint64_t
		cgroup_inode; /* of its directory, which each that is made has another of; 0: unknown */
	unsigned int restarts;
	uint64_t sizes_read_ns;
	uint64_t kept_up_ns;
	uint64_t windows_seen_ns; /* when windows were last begun or ended as due */
	struct fault_window window;
	struct priority priority;
	bool more_waits;      /* of the command's processes than were handled */
	bool draining;	      /* threads have been asked for their open runs */
	bool others_reported; /* another memtoll traces a target, too */
	const char *end_reason;
	bool command_ended;
	int command_status;
};

/* ---- session.c ---- */

/* State as of now, not counted over a slice: written with every slice, in case we are killed. */
void session_record_state(struct session *session);

/* ---- session_loop.c: windows, signals, slices ---- */

/* Until the recording is over. Exit status, after a message where it is not 0. */
int session_run(struct session *session);

uint64_t session_step_budget(struct session *session);
void session_switch_window(struct session *session, bool open);
void session_move_window(struct session *session, uint64_t now);

/* While a slice is written: context is the session. */
void session_service_targets(void *context);

/*
 * Follow the cgroup's processes, or those that are watched for, that are not followed yet; false:
 * the cgroup is gone. begin: called when all is prepared, just before counting begins; or NULL.
 */
bool session_add_coming(struct session *session, void (*begin)(struct session *session));

/*
 * Processes that came into the container recorded by name. If its cgroup is gone, look whether it
 * has started again, in another one perhaps, and follow that. False: nobody will come any more.
 */
bool session_follow_container(struct session *session, uint64_t now);
/* Which cgroup it is that is followed. */
void session_note_cgroup(struct session *session);

/* Signals that came; true: the recording is over. */
bool session_read_signals(struct session *session);

/* ---- session_command.c: a command that was launched ---- */

extern const struct launch_events session_launch_events;

/* context: the session. A process of the command that is not followed by ptrace is from now on. */
void session_adopt(void *context, pid_t pid);
/* One has started that ptrace does not hold. */
void session_started(void *context);

/* A command outlives its recording only if it ignores SIGTERM. */
void session_end_command(struct session *session);

#endif /* MEMTOLL_SESSION_INTERNAL_H */
