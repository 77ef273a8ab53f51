// SPDX-License-Identifier: GPL-2.0
/*
 * targets_attach.c: the processes that are followed from the start of the recording on; the rest of
 * the targets is in targets.c.
 */
#include "targets/targets_internal.h"

#include <errno.h>

#include "base/clock.h"
#include "bpf/wire/targets.h"
#include "host/proc.h"
#include "memtoll.skel.h"
#include "probes/process_rows.h"
#include "targets/observers.h"
#include "unwind/unwind_load.h"

/* maps: NULL before a command's exec. */
static int publish_process(struct targets *targets, pid_t pid, const struct maps *maps,
			   const struct memtoll_python_offsets *python)
{
	/*
	 * Counting begins here: stacks want their table at once, and the interpreter's frames. A
	 * command's come with its exec.
	 */
	struct memtoll_target row = {
		.unwind_table = maps ? unwinder_show(targets->unwinder, pid, maps) : 0,
	};

	if (python) {
		row.python = *python;
		targets->config.bpf->bss->python_seen = 1;
	}
	return process_row_put(targets->config.bpf, pid, &row, !maps);
}

/* What takes long. Probes cost and count nothing until the process is published. */
void targets_prepare(struct targets *targets, pid_t pid)
{
	struct followed *followed = targets_follow(targets, pid, "target");
	struct maps maps = {};

	followed_read_maps(targets, followed, &maps);
	followed->code = maps_code(&maps);
	observers_mapped(targets->config.observers, pid, &maps, true);
	unwinder_show(targets->unwinder, pid, &maps);
	followed_record(targets, followed);
	followed_attach_modules(targets, followed, &maps);
	followed_begin_thresholds(targets, followed, false, 0);
	maps_free(&maps);
}

/* It has become another program, as what a container's runtime starts does. */
static void look_back_at_exec(struct targets *targets, struct followed *followed)
{
	/* By which of its threads is not known: its probes may have gone with the first. */
	targets_exec(targets, followed->target.pid, 0);
	/* It has run on unseen. */
	followed_begin_thresholds(targets, followed, false, 0);
	targets_mapped(targets, followed->target.pid);
}

/* What happened to it until it was published nobody has told. */
static void look_back(struct targets *targets, struct followed *followed,
		      const struct proc_stat *stat)
{
	struct maps maps = {};

	/* Where its first thread has ended, or we may not look, there is none. */
	if (followed->stack_start && stat->stack_start &&
	    stat->stack_start != followed->stack_start) {
		look_back_at_exec(targets, followed);
		return;
	}
	followed_read_maps(targets, followed, &maps);
	followed->target.changed |= maps_code(&maps) != followed->code;
	maps_free(&maps);
}

int targets_publish(struct targets *targets, pid_t pid)
{
	struct followed *followed = followed_get(targets, pid);
	struct memtoll_python_offsets python;
	struct proc_stat stat;
	struct maps maps = {};
	bool has_python;
	int err;

	/* Preparing took long, and the process ran on: read again what it maps. */
	followed_read_maps(targets, followed, &maps);
	/* All symbols of the program are looked through: in a large one that takes long, too. */
	has_python = python_show(targets->config.python, pid, &maps, &python);
	followed->target.start_ns = now_ns();
	err = publish_process(targets, pid, &maps, has_python ? &python : NULL);
	followed_start_counting(followed);
	/* As they were before its calls are seen. */
	followed_read_thresholds(targets, followed);
	/* Hits count from here, and so does the time they are compared with. */
	followed->target.cpu_base_ns = process_cpu_ns(pid);
	targets_publish_code(targets, followed, &maps);
	maps_free(&maps);
	/*
	 * Ended before its exit could be seen: otherwise we would wait for it for ever. From 6.16 on the
	 * tracepoint comes before its memory is freed, which takes long where that is large.
	 */
	if (!err && (!followed_read_stat(followed, &stat) || proc_stat_has_ended(&stat))) {
		process_row_remove(targets->config.bpf, pid);
		targets_exiting(targets, pid, -1, NULL);
		return -ESRCH;
	}
	if (!err)
		look_back(targets, followed, &stat);
	return err;
}

int targets_add(struct targets *targets, pid_t pid)
{
	targets_prepare(targets, pid);
	return targets_publish(targets, pid);
}

int targets_expect_exec(struct targets *targets, pid_t pid)
{
	targets_follow(targets, pid, "target")->starting = true;
	return publish_process(targets, pid, NULL, NULL);
}
