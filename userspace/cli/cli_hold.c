// SPDX-License-Identifier: GPL-2.0
/* cli_hold.c: `memtoll hold`: who holds the memory of a live process. */
#include <argp.h>
#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/target_options.h"
#include "hold/hold.h"
#include "hold/hold_json.h"
#include "hold/hold_text.h"
#include "host/cgroup.h"
#include "host/memory_room.h"
#include "host/privileges.h"
#include "host/proc.h"
#include "host/timed_call.h"

#define PROCESSES_MAX 4096U
#define PINNING_TOLD 8192U /* blocks, of all processes together */

enum {
	OPTION_READ_SWAPPED = 300,
	OPTION_SCHEMA,
	OPTION_PINNING,
};

struct hold_options {
	struct target_options target;
	bool json;
	bool schema;
	bool read_swapped;
	bool pinning;
};

static const struct argp_option hold_argp_options[] = {
	{ NULL, 0, NULL, 0, "Target (one of these):", 1 },
	{ "pid", 'p', "PID[,PID...]", 0, "running processes", 1 },
	{ "name", 'n', "NAME", 0, "the one process with this name", 1 },
	{ "cgroup", 'c', "NAME", 0,
	  "all processes of a cgroup, by its path, or of a container or pod, by its name or how its "
	  "id begins",
	  1 },
	{ NULL, 0, NULL, 0, "Looking:", 2 },
	{ "read-swapped", OPTION_READ_SWAPPED, NULL, 0,
	  "read heaps' pages that are swapped out, too, which brings them back", 2 },
	{ NULL, 0, NULL, 0, "Output:", 3 },
	{ "json", 'j', NULL, 0, "one JSON object instead of text", 3 },
	{ "pinning", OPTION_PINNING, NULL, 0,
	  "with --json: blocks that keep free memory from going back, one by one, by address", 3 },
	{ "schema", OPTION_SCHEMA, NULL, 0, "print the JSON Schema of --json; needs no target", 3 },
	{ 0 },
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct hold_options *options = state->input;

	switch (key) {
	case 'j':
		options->json = true;
		return 0;
	case OPTION_READ_SWAPPED:
		options->read_swapped = true;
		return 0;
	case OPTION_PINNING:
		options->pinning = true;
		return 0;
	case OPTION_SCHEMA:
		options->schema = true;
		return 0;
	case ARGP_KEY_ARGS:
		refuse("'%s' is no option; hold looks at what runs: use -p PID, -n NAME or -c CGROUP",
		       state->argv[state->next]);
	default:
		return take_target(&options->target, key, value, state);
	}
}

static const char hold_doc[] =
	"Tell who holds the memory of live processes: blocks of malloc that are live, what malloc "
	"keeps of the freed ones, how much of that would come back by malloc_trim(0) and what pins "
	"the rest; and everything else that is resident. Nothing is stopped, and nothing changed."
	"\vExamples:\n"
	"  memtoll hold -p 1234\n"
	"  memtoll hold --json -n redis-server\n"
	"  memtoll hold -c system.slice/mariadb.service\n";

/* The processes to look at. Exit status, after a message. */
static int find_processes(struct hold_options *options, GArray *pids)
{
	struct session_config config = { 0 };
	int status = find_target(&options->target, &config);

	if (status)
		return status;
	g_array_append_vals(pids, config.pids, config.pid_count);
	if (config.cgroup)
		cgroup_processes(config.cgroup, pids);
	if (!pids->len) {
		message("the cgroup '%s' has no processes", options->target.cgroup);
		return STATUS_FAILED;
	}
	if (pids->len > PROCESSES_MAX) {
		message("%u processes are too many; name a cgroup with at most %u", pids->len,
			PROCESSES_MAX);
		return STATUS_FAILED;
	}
	return STATUS_DONE;
}

static void free_process(gpointer process)
{
	hold_free(process);
	g_free(process);
}

/*
 * Whether there is memory for what a process has on swap; else a message. What comes back in a full
 * cgroup pushes out other pages, and the kernel may rather end the process.
 */
static bool has_room(pid_t pid)
{
	struct memory_room room;
	struct proc_status status;
	char swapped[32], left[32];

	if (proc_status_read(pid, &status) || status.swap_bytes <= 0)
		return true;
	room = memory_room_of(pid);
	if (status.swap_bytes <= room.bytes)
		return true;
	format_bytes(swapped, sizeof(swapped), (double)status.swap_bytes);
	format_bytes(left, sizeof(left), (double)room.bytes);
	message("process %d has %s on swap, and %s has room for %s: they are left there", pid,
		swapped, room.in_group ? "its memory cgroup" : "this machine", left);
	return false;
}

/* Exit status, after a message. What ends meanwhile does not matter where there are others. */
static int look_at(const struct hold_options *options, pid_t pid, GPtrArray *processes,
		   struct hold_missing *missing)
{
	struct hold_process *process = g_new0(struct hold_process, 1);
	int err = hold_read(pid, options->read_swapped && has_room(pid), process);

	if (!err) {
		g_ptr_array_add(processes, process);
		return STATUS_DONE;
	}
	free_process(process);
	missing->ended += err == -ESRCH;
	missing->unread += err != -ESRCH;
	switch (err) {
	case -ESRCH:
		message("process %d ended, or became another program, while it was looked at", pid);
		return STATUS_FAILED;
	case -ENOEXEC:
		message("process %d is a program of 32 bits; memtoll looks into those of 64 bits only",
			pid);
		return STATUS_UNSUPPORTED;
	case -EACCES:
	case -EPERM:
		message("process %d may not be read: that takes root, or cap_sys_ptrace", pid);
		return STATUS_UNSUPPORTED;
	case -ETIMEDOUT:
		message("process %d does not answer: its memory, or /proc/%d, could not be read in time",
			pid, pid);
		return STATUS_FAILED;
	default:
		message("cannot read process %d: %s", pid, strerror(-err));
		return STATUS_FAILED;
	}
}

/* 4: of a part it is not known what it is. */
static int print(const struct hold_options *options, const GPtrArray *processes,
		 const struct hold_missing *missing)
{
	int status = missing->unread ? STATUS_LOSSES : STATUS_DONE;
	guint i;

	if (options->json)
		hold_json(stdout, processes, missing, options->pinning ? PINNING_TOLD : 0);
	else
		hold_text(stdout,
			  options->target.cgroup ? options->target.cgroup : options->target.pids,
			  processes, missing);
	if (fflush(stdout)) {
		message("cannot write: %s", strerror(errno));
		return STATUS_FAILED;
	}
	for (i = 0; i < processes->len; i++) {
		const struct hold_process *process = g_ptr_array_index(processes, i);

		if (!hold_is_partial(process))
			continue;
		if (process->heaps.corrupt)
			message("the heap of process %d is corrupt: nothing fits at 0x%" PRIx64
				"; its figures are partial",
				process->pid, process->heaps.damage.address);
		else
			message("more than 1 %% of the heaps of process %d could not be read: its "
				"figures are partial",
				process->pid);
		status = STATUS_LOSSES;
	}
	return status;
}

static int hold(struct hold_options *options)
{
	g_autoptr(GPtrArray) processes = g_ptr_array_new_with_free_func(free_process);
	g_autoptr(GArray) pids = g_array_new(FALSE, FALSE, sizeof(pid_t));
	int status = find_processes(options, pids), failed = STATUS_DONE;
	struct hold_missing missing = { 0 };
	guint i;

	if (status)
		return status;
	for (i = 0; i < pids->len; i++) {
		status = look_at(options, g_array_index(pids, pid_t, i), processes, &missing);
		failed = MAX(failed, status);
	}
	if (!processes->len)
		return failed;
	status = print(options, processes, &missing);
	/* Of several, those that could be looked at are printed, and the others were named. */
	return options->target.pids && failed ? failed : status;
}

int cli_hold(int argc, char **argv)
{
	const struct argp argp = {
		.options = hold_argp_options,
		.parser = parse_option,
		.doc = hold_doc,
	};
	struct hold_options options = { 0 };
	int status;

	if (parse_arguments(&argp, argc, argv, &options))
		return STATUS_USAGE;
	if (options.schema) {
		hold_json_schema(stdout);
		return fflush(stdout) ? STATUS_FAILED : STATUS_DONE;
	}
	if (!has_target(&options.target)) {
		message("no target; use -p PID, -n NAME or -c CGROUP");
		return STATUS_USAGE;
	}
	if (want_target(&options.target))
		return STATUS_USAGE;
	privileges_keep(PRIVILEGES_TRACE);
	timed_calls_be_patient(TIMED_CALL_STUCK_MAX);
	status = hold(&options);
	clear_target(&options.target);
	return status;
}
