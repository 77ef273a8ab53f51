// SPDX-License-Identifier: GPL-2.0
#include "session/run_facts.h"

#include <glib.h>
#include <stdint.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/shell.h"
#include "base/version.h"
#include "host/huge_pages.h"
#include "probes/programs.h"

/*
 * Tolls that this run cannot see: they are null in the report, not 0. rss_stat_exact: the kernel
 * has an event for every change of a memory counter (6.2, commit f1a7941243c1).
 */
static void record_not_captured(struct recording *recording, const struct session_config *config,
				bool rss_stat_exact)
{
	const struct {
		const char *toll;
		bool captured;
		const char *reason;
	} tolls[] = {
		{ "zero.kernel", config->faults, "faults were not traced" },
		{ "zero.libc", config->uprobes, "the allocator was not probed" },
		{ "zero.app", config->samples, "the CPUs were not sampled" },
		{ "copy.app", config->samples, "the CPUs were not sampled" },
		{ "swap.in", config->faults, "faults were not traced" },
		{ "swap.out", config->faults && rss_stat_exact,
		  config->faults ? "this kernel tells of memory counters only now and then" :
				   "faults were not traced" },
		{ "reclaim", config->faults, "faults were not traced" },
		{ "cow", config->faults, "faults were not traced" },
		{ "file.fault", config->faults, "faults were not traced" },
		{ "fault.user", config->faults, "faults were not traced" },
		{ "fault.other", config->faults, "faults were not traced" },
		{ "file.read", config->reads, "reads were not traced" },
		{ "alloc", config->uprobes, "the allocator was not probed" },
		{ "map", config->mappings, "mapping calls were not traced" },
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(tolls); i++)
		if (!tolls[i].captured)
			recording_not_captured(recording, tolls[i].toll, tolls[i].reason);
}

void run_start_record(struct recording *recording, const struct session_config *config,
		      enum uprobe_mechanism mechanism, uint64_t start_ns)
{
	g_autofree char *command =
		config->command	  ? g_strjoinv(" ", (char **)config->command) :
		config->container ? g_strdup_printf("container %s", config->container) :
		config->cgroup	  ? g_strdup_printf("cgroup %s", config->cgroup) :
				    NULL;
	g_autofree char *words = config->command ? shell_words(config->command) : NULL;
	const char *setting = huge_pages_setting();
	struct utsname machine;
	struct timespec realtime;

	uname(&machine);
	clock_gettime(CLOCK_REALTIME, &realtime);
	recording_meta(recording, "tool_version", memtoll_version);
	recording_meta(recording, "command_line", config->command_line);
	if (command)
		recording_meta(recording, "target_command", command);
	if (words)
		recording_meta(recording, "target_words", words);
	recording_meta(recording, "kernel", machine.release);
	recording_meta(recording, "machine", machine.machine);
	recording_meta(recording, "host", machine.nodename);
	recording_meta(recording, "uprobe_mechanism",
		       config->uprobes ? uprobe_mechanism_name(mechanism) : "none");
	recording_meta(recording, "overhead_limit", config->overhead_limit_text);
	recording_meta(recording, "probes", config->probes);
	recording_meta_int(recording, "min_size_bytes", config->min_size);
	if (config->sample)
		recording_meta_int(recording, "sample_bytes", config->sample);
	recording_meta_int(recording, "start_ns", start_ns);
	recording_meta_int(recording, "start_realtime_ns",
			   realtime.tv_sec * 1000000000LL + realtime.tv_nsec);
	record_not_captured(recording, config, has_exact_rss_stat());
	if (setting)
		recording_meta(recording, "huge_pages", setting);
	recording_meta_int(recording, "memory_bytes",
			   (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
}

int run_prices_record(struct recording *recording, const struct calibration_result *prices,
		      double age_s)
{
	const struct {
		const char *probe;
		const struct price *price;
	} rows[] = {
		{ "malloc", &prices->malloc },
		{ "calloc", &prices->calloc },
		{ "free", &prices->free },
		{ "realloc", &prices->malloc },
		{ "reallocarray", &prices->malloc },
		{ "posix_memalign", &prices->malloc },
		{ "aligned_alloc", &prices->malloc },
		{ "memalign", &prices->malloc },
		{ "fault", &prices->fault },
		{ "fault_end", &prices->fault_end },
		{ "map", &prices->map },
		{ "read", &prices->read },
		{ "read_other", &prices->read_other },
		{ "idle", &prices->idle },
		{ "syscall", &prices->syscall },
	};
	const struct {
		const char *name;
		double value;
	} figures[] = {
		{ "fault_ns", prices->fault_ns },
		{ "fault_timed_inside_ns", prices->fault_timed_inside_ns },
		{ "fault_timed_error_ns", prices->fault_timed_error_ns },
		{ "malloc_ns", prices->malloc_ns },
		{ "memset_bytes_per_s", prices->memset_bytes_per_s },
		{ "memset_near_bytes_per_s", prices->memset_near_bytes_per_s },
		{ "memset_middle_bytes_per_s", prices->memset_middle_bytes_per_s },
		{ "memset_far_bytes_per_s", prices->memset_far_bytes_per_s },
		{ "memset_begin_ns", prices->memset_begin_ns },
		{ "string_begin_ns", prices->string_begin_ns },
		{ "memcpy_bytes_per_s", prices->memcpy_bytes_per_s },
		{ "loops_per_s", prices->loops_per_s },
		{ "clear_4k_bytes_per_s", prices->clear_4k_bytes_per_s },
		{ "clear_2m_bytes_per_s", prices->clear_2m_bytes_per_s },
		{ "age_s", age_s },
	};
	int err = 0;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(rows) && !err; i++)
		err = recording_price(recording, rows[i].probe, rows[i].price->hit_ns,
				      rows[i].price->inside_ns, rows[i].price->error_ns);
	for (i = 0; i < G_N_ELEMENTS(figures) && !err; i++)
		err = recording_calibration(recording, figures[i].name, figures[i].value);
	return err;
}
