/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cpu_samples.h: CPU samples of a slice, counted by process, place, allocator function and stack.
 */
#ifndef MEMTOLL_CPU_SAMPLES_H
#define MEMTOLL_CPU_SAMPLES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire/records.h"
#include "recording/recording.h"
#include "symbols/symbolize.h"

struct cpu_samples;
struct ledger;
struct sampled;
struct targets;

/*
 * stacks_fd: the map of stacks. loops_fd: of decoded code. ledger and sampled: know the blocks
 * that are cleared and copied to.
 */
struct cpu_samples *cpu_samples_new(int stacks_fd, int loops_fd, struct symbolizer *symbolizer,
				    const struct ledger *ledger, const struct sampled *sampled);
void cpu_samples_free(struct cpu_samples *samples);

/*
 * A thread can be in the allocator although no probe saw it go there, outside of windows or as
 * nothing marks the time in free: its stack decides.
 */
void cpu_samples_add(struct cpu_samples *samples, const struct targets *targets,
		     const struct memtoll_sample *sample);

/*
 * The stack of a call that was seen, before the samples of its slice are written; those that were
 * too many to be held had to do without.
 */
void cpu_samples_called(struct cpu_samples *samples, unsigned int fn, uint64_t stack_id);

/* Write to the present slice, and begin anew. on_stack() gets each stack referred to. */
int cpu_samples_commit(struct cpu_samples *samples, const struct targets *targets,
		       struct recording *recording, void (*on_stack)(void *context, uint64_t id),
		       void *context);

/* There will be no samples with this stack any more. */
void cpu_samples_forget_stack(struct cpu_samples *samples, uint64_t id);

/* What was learned of a process's code is of another image. */
void cpu_samples_executed(struct cpu_samples *samples, pid_t pid);

/* Whether the code that took these faults clears: not by its name, which others know. */
bool cpu_samples_clears(struct cpu_samples *samples, const struct memtoll_run *run);

#endif /* MEMTOLL_CPU_SAMPLES_H */
