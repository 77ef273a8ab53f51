// SPDX-License-Identifier: GPL-2.0
#include "session/consumers.h"

#include <bpf/libbpf.h>
#include <glib.h>

#include "host/mapped_files.h"
#include "ledger/advised.h"
#include "ledger/giveback.h"
#include "ledger/ledger.h"
#include "ledger/sampled.h"
#include "ledger/thresholds.h"
#include "ledger/trim_reuse.h"
#include "memtoll.skel.h"
#include "python/python.h"
#include "recording/hits.h"
#include "session/cpu_samples.h"
#include "session/fills.h"
#include "session/huge_looks.h"
#include "session/kernel_stacks.h"
#include "session/latency.h"
#include "session/past_cache.h"
#include "session/reads.h"
#include "symbols/symbolize.h"
#include "targets/observers.h"

/* ---- with the records: those of before an exec or exit belong to the old memory ---- */

static void ledger_forked(void *state, pid_t parent, pid_t child)
{
	ledger_fork(state, parent, child);
}

static void ledger_executed(void *state, pid_t pid)
{
	ledger_exec(state, pid);
}

static void ledger_exited(void *state, pid_t pid)
{
	ledger_exit(state, pid);
}

static void ledger_forgotten(void *state, pid_t pid)
{
	ledger_forget(state, pid);
}

static void stacks_exited(void *state, pid_t pid)
{
	kernel_stacks_exited(state, pid);
}

static void giveback_forked(void *state, pid_t parent, pid_t child)
{
	(void)parent;
	giveback_restart(state, child);
}

static void giveback_ended(void *state, pid_t pid)
{
	giveback_restart(state, pid);
}

static void advised_forked(void *state, pid_t parent, pid_t child)
{
	(void)parent;
	advised_restart(state, child);
}

static void advised_ended(void *state, pid_t pid)
{
	advised_restart(state, pid);
}

static void sampled_ended(void *state, pid_t pid)
{
	sampled_forget(state, pid);
}

static void trim_reuse_ended(void *state, pid_t pid)
{
	trim_reuse_forget(state, pid);
}

static void huge_looks_ended(void *state, pid_t pid)
{
	huge_looks_end(state, pid);
}

/* Where they begin is in targets_thresholds.c: that takes the process's environment. */
static void thresholds_forgotten(void *state, pid_t pid)
{
	thresholds_forget(state, pid);
}

static void samples_executed(void *state, pid_t pid)
{
	cpu_samples_executed(state, pid);
}

/* ---- at once: the process is read while it is there ---- */

static void symbolizer_forked(void *state, pid_t parent, pid_t child)
{
	symbolizer_fork(state, parent, child);
}

static void symbolizer_mapped(void *state, pid_t pid, const struct maps *maps, bool new_image)
{
	symbolizer_show_maps(state, pid, maps, new_image);
}

static void symbolizer_forgotten(void *state, pid_t pid)
{
	symbolizer_forget(state, pid);
}

static void python_forked(void *state, pid_t parent, pid_t child)
{
	python_fork(state, parent, child);
}

static void python_ended(void *state, pid_t pid)
{
	python_exec(state, pid);
}

static void python_forgotten(void *state, pid_t pid)
{
	python_forget_process(state, pid);
}

static void areas_mapped(void *state, pid_t pid, const struct maps *maps, bool new_image)
{
	(void)pid;
	(void)new_image;
	mapped_files_learn_code(state, maps);
}

static void observe(const struct consumers *consumers, const struct consumers_config *config)
{
	const struct observer table[] = {
		{ .moment = WITH_RECORDS,
		  .state = consumers->ledger,
		  .forked = ledger_forked,
		  .executed = ledger_executed,
		  .exited = ledger_exited,
		  .forgotten = ledger_forgotten },
		{ .moment = WITH_RECORDS,
		  .state = consumers->sampled,
		  .executed = sampled_ended,
		  .exited = sampled_ended },
		{ .moment = WITH_RECORDS,
		  .state = consumers->trim_reuse,
		  .executed = trim_reuse_ended,
		  .exited = trim_reuse_ended,
		  .forgotten = trim_reuse_ended },
		{ .moment = WITH_RECORDS,
		  .state = consumers->huge_looks,
		  .executed = huge_looks_ended,
		  .exited = huge_looks_ended },
		{ .moment = WITH_RECORDS,
		  .state = consumers->giveback,
		  .forked = giveback_forked,
		  .executed = giveback_ended,
		  .exited = giveback_ended,
		  .forgotten = giveback_ended },
		{ .moment = WITH_RECORDS,
		  .state = consumers->samples,
		  .executed = samples_executed },
		{ .moment = WITH_RECORDS,
		  .state = consumers->advised,
		  .forked = advised_forked,
		  .executed = advised_ended,
		  .exited = advised_ended,
		  .forgotten = advised_ended },
		{ .moment = WITH_RECORDS,
		  .state = consumers->thresholds,
		  .forgotten = thresholds_forgotten },
		{ .moment = WITH_RECORDS,
		  .state = consumers->kernel_stacks,
		  .exited = stacks_exited },
		{ .moment = AT_ONCE, .state = consumers->areas, .mapped = areas_mapped },
		{ .moment = AT_ONCE,
		  .state = config->symbolizer,
		  .forked = symbolizer_forked,
		  .mapped = symbolizer_mapped,
		  .forgotten = symbolizer_forgotten },
		{ .moment = AT_ONCE,
		  .state = config->python,
		  .forked = python_forked,
		  .executed = python_ended,
		  .exited = python_ended,
		  .forgotten = python_forgotten },
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(table); i++)
		observers_add(config->observers, &table[i]);
}

static void on_unspoken(void *context, const struct memtoll_run *part)
{
	giveback_unspoken(context, part);
}

struct consumers *consumers_new(const struct consumers_config *config)
{
	struct consumers *consumers = g_new0(struct consumers, 1);
	struct memtoll_bpf *bpf = config->bpf;

	consumers->ledger = ledger_new();
	ledger_set_min_size(consumers->ledger, config->min_size);
	consumers->giveback = giveback_new();
	ledger_on_unspoken(consumers->ledger, on_unspoken, consumers->giveback);
	consumers->advised = advised_new();
	consumers->thresholds = thresholds_new();
	consumers->sampled = sampled_new(config->sample, config->min_size);
	consumers->trim_reuse = trim_reuse_new();
	consumers->reads =
		reads_new(config->recording, bpf->maps.file_reads, bpf->maps.file_reads_shared);
	consumers->fills = fills_new();
	consumers->huge_looks = huge_looks_new();
	consumers->latency = latency_new();
	consumers->samples =
		cpu_samples_new(bpf_map__fd(bpf->maps.stacks), bpf_map__fd(bpf->maps.store_loops),
				config->symbolizer, consumers->ledger, consumers->sampled);
	consumers->hits = hit_counts_new();
	consumers->areas = mapped_files_new();
	consumers->kernel_stacks = kernel_stacks_new(bpf);
	consumers->past_cache = past_cache_new(bpf_map__fd(bpf->maps.stacks));
	observe(consumers, config);
	return consumers;
}

void consumers_free(struct consumers *consumers)
{
	if (!consumers)
		return;
	giveback_free(consumers->giveback);
	advised_free(consumers->advised);
	thresholds_free(consumers->thresholds);
	sampled_free(consumers->sampled);
	trim_reuse_free(consumers->trim_reuse);
	reads_free(consumers->reads);
	fills_free(consumers->fills);
	huge_looks_free(consumers->huge_looks);
	latency_free(consumers->latency);
	cpu_samples_free(consumers->samples);
	ledger_free(consumers->ledger);
	hit_counts_free(consumers->hits);
	mapped_files_free(consumers->areas);
	kernel_stacks_free(consumers->kernel_stacks);
	past_cache_free(consumers->past_cache);
	g_free(consumers);
}

void consumers_lose(struct consumers *consumers, enum memtoll_loss loss, uint64_t count)
{
	consumers->lost[loss] += count;
}
