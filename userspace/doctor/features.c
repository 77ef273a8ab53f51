// SPDX-License-Identifier: GPL-2.0
#include "doctor/features.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/cgroup.h"
#include "host/kallsyms.h"
#include "host/pagetable.h"
#include "host/priority.h"
#include "memtoll.skel.h"
#include "probes/attach.h"
#include "probes/memory_kfuncs.h"
#include "probes/programs.h"
#include "session/session.h"

static void tell(struct feature *feature, bool works, const char *yes, const char *no)
{
	feature->works = works;
	snprintf(feature->detail, sizeof(feature->detail), "%s", works ? yes : no);
}

static void find_types(struct feature *feature)
{
	feature->works = !access("/sys/kernel/btf/vmlinux", R_OK);
	snprintf(feature->detail, sizeof(feature->detail), "%s",
		 feature->works ? "/sys/kernel/btf/vmlinux" :
				  "no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)");
}

static void find_page_tables(struct feature *feature)
{
	struct pagetable pagetable;
	int err = pagetable_find(&pagetable);

	feature->works = !err;
	if (err)
		snprintf(
			feature->detail, sizeof(feature->detail), "%s",
			err == -EPERM ?
				"BPF programs may not be loaded: CAP_BPF and CAP_PERFMON are needed" :
				strerror(-err));
	else
		snprintf(feature->detail, sizeof(feature->detail),
			 "direct map at %#lx, %u levels, from %s; zero page %s, huge zero page %s",
			 (unsigned long)pagetable.page_offset, pagetable.levels, pagetable.source,
			 pagetable.zero_pfn ? "known" : "unknown",
			 pagetable.huge_zero_pfn ? "known" : "unknown");
	pagetable_release(&pagetable);
}

static void find_programs(struct feature *feature)
{
	struct memtoll_bpf *bpf;
	struct pagetable pagetable = { .levels = 4 };
	const char *refused;

	bpf = programs_load(
		&(struct programs_config){
			.pagetable = &pagetable,
			.mechanism = uprobe_mechanism_find(),
			.min_size = MIN_SIZE_DEFAULT,
			.buffer_bytes = 65536,
			.uprobes = true,
			.faults = true,
			.mappings = true,
			.samples = true,
			.reads = true,
			.swap = true,
		},
		&refused);
	feature->works = bpf != NULL;
	if (bpf)
		snprintf(feature->detail, sizeof(feature->detail), "all load");
	else
		snprintf(feature->detail, sizeof(feature->detail), "%s: %s",
			 refused ? refused : "none loads", strerror(errno));
	memtoll_bpf__destroy(bpf);
}

static void find_uprobes(struct feature *feature)
{
	enum uprobe_mechanism mechanism = uprobe_mechanism_find();

	feature->works = true;
	snprintf(feature->detail, sizeof(feature->detail), "%s links",
		 uprobe_mechanism_name(mechanism));
}

static void find_tracepoints(struct feature *feature)
{
	tell(feature, has_syscall_tracepoints(), "sys_enter and sys_exit",
	     "no sys_enter and sys_exit (CONFIG_HAVE_SYSCALL_TRACEPOINTS)");
}

static bool event_opens(unsigned long config)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.sample_period = 1000000,
		.disabled = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static void find_fault_events(struct feature *feature)
{
	feature->works = event_opens(PERF_COUNT_SW_PAGE_FAULTS_MIN) &&
			 event_opens(PERF_COUNT_SW_PAGE_FAULTS_MAJ);
	snprintf(feature->detail, sizeof(feature->detail),
		 "page_fault_user and page_fault_kernel "
		 "at the start, page-faults-minor and -major at the end: %s",
		 feature->works ? "open" : strerror(errno));
}

static void find_samples(struct feature *feature)
{
	feature->works = event_opens(PERF_COUNT_SW_CPU_CLOCK);
	snprintf(feature->detail, sizeof(feature->detail), "cpu-clock at %d Hz: %s",
		 SAMPLE_FREQUENCY, feature->works ? "opens" : strerror(errno));
}

static void find_areas(struct feature *feature)
{
	tell(feature, has_find_vma(), "bpf_find_vma",
	     "no bpf_find_vma: faults on untouched pages all count as anonymous");
}

/* The fallbacks of older kernels: how faults are classified and swapped-out pages counted. */
static void find_swap_out(struct feature *feature)
{
	tell(feature, has_exact_rss_stat(), "rss_stat at every change: pages pushed out, by whom",
	     "rss_stat only once in 64 changes: swap.out is not captured; faults are classified "
	     "by their page-table entries alone");
}

static void find_swap_in(struct feature *feature)
{
	tell(feature, has_memcg_events(),
	     "count_memcg_events: device, zswap or all zeros, page by page, read-ahead too",
	     "no count_memcg_events: zram by its device; zswap and all-zero pages count as device, "
	     "their sums are in /proc/vmstat");
}

static void find_reads(struct feature *feature)
{
	feature->works = has_syscall_tracepoints();
	snprintf(feature->detail, sizeof(feature->detail),
		 "system calls: %s; io_uring, counts only: %s; page cache seen: %s",
		 feature->works ? "yes" : "no", has_uring_tracepoint() ? "yes" : "no",
		 has_page_cache_tracepoint() ? "yes" : "no");
}

static void find_left_reads(struct feature *feature)
{
	tell(feature, has_page_cache_lookups(),
	     "mm_filemap_get_pages: read(2) of sockets is left alone over the limit, files are "
	     "noticed",
	     "no mm_filemap_get_pages: read(2) of sockets stays watched");
}

static void find_left_calls(struct feature *feature)
{
	tell(feature, has_unwatched_tracepoints(),
	     "mmap_lock, mm_filemap_get_pages, block_bio_queue: system calls that tell nothing are "
	     "left alone",
	     "nothing tells of those that are not watched: all are, always");
}

static void find_huge_pages(struct feature *feature)
{
	struct pagetable pagetable;
	char sizes[96] = "none";
	size_t length = 0;
	uint32_t order;

	feature->works = !pagetable_find(&pagetable);
	for (order = 1; order < 9; order++)
		if (pagetable.mthp_orders & (1U << order))
			length += snprintf(sizes + length, sizeof(sizes) - length, "%s%u kB",
					   length ? ", " : "", 4U << order);
	snprintf(feature->detail, sizeof(feature->detail),
		 "2 MiB by the page tables; smaller ones that are on: %s", sizes);
	pagetable_release(&pagetable);
}

static void find_memory_cgroups(struct feature *feature)
{
	struct memory_cgroup group;

	feature->works = cgroup_of_process(getpid(), &group);
	if (!feature->works) {
		snprintf(feature->detail, sizeof(feature->detail),
			 "none: limits are the machine's");
		return;
	}
	snprintf(feature->detail, sizeof(feature->detail), "version %d, limits %s", group.version,
		 group.directory ? "can be read" : "are not to be seen from here");
	memory_cgroup_free(&group);
}

static void find_memory_kfuncs(struct feature *feature)
{
	struct memory_kfuncs *kfuncs = memory_kfuncs_open();

	tell(feature, kfuncs, "watch has its cgroups' figures by functions of the kernel's",
	     has_memory_kfuncs() ?
		     "refused: watch reads memory.stat of its cgroups" :
		     "no bpf_mem_cgroup_memory_events: watch reads memory.stat of its "
		     "cgroups");
	memory_kfuncs_close(kfuncs);
}

static void find_kernel_symbols(struct feature *feature)
{
	struct kernel_function fault = { .name = "handle_mm_fault" };

	kallsyms_find(NULL, &fault, 1);
	feature->works = fault.start != 0;
	snprintf(feature->detail, sizeof(feature->detail), "%s",
		 feature->works ? "functions are listed" :
				  "hidden: samples in faults count as kernel");
}

static void find_priority(struct feature *feature)
{
	struct priority priority;

	priority_begin(&priority);
	tell(feature, getpriority(PRIO_PROCESS, 0) <= PRIORITY_NICE,
	     "memtoll comes before others on the CPU, as long as it takes little of it",
	     "no CAP_SYS_NICE: on a busy machine windows of probes are closed late");
	priority_end(&priority);
}

size_t features_find(struct feature *features, size_t capacity)
{
	static const struct {
		const char *name;
		bool required;
		void (*find)(struct feature *feature);
		const char *source;
	} list[] = {
		{ "types", true, find_types, "5.4" },
		{ "page tables", true, find_page_tables, "any; proved by a walk of our own page" },
		{ "programs", true, find_programs, "5.15" },
		{ "uprobes", true, find_uprobes,
		  "session: 6.13 (535a3692ba72), multi: 6.6 (89ae89f53d20), perf: 5.15" },
		{ "fault events", true, find_fault_events, "2.6.32; x86 tracepoints: 3.13" },
		{ "mapping calls", true, find_tracepoints, "5.5, with types" },
		{ "CPU samples", false, find_samples, "4.9" },
		{ "areas", false, find_areas, "5.17 (7c7e3d31e785)" },
		{ "swap-out", false, find_swap_out, "6.2 (f1a7941243c1)" },
		{ "swap-in", false, find_swap_in, "6.14" },
		{ "file reads", false, find_reads, "5.5, with types" },
		{ "reads left", false, find_left_reads, "6.12" },
		{ "calls left", false, find_left_calls, "6.12" },
		{ "huge pages", false, find_huge_pages, "2.6.38; smaller ones: 6.8" },
		{ "memory cgroups", false, find_memory_cgroups, "2.6.25; version 2: 4.5" },
		{ "cgroup figures", false, find_memory_kfuncs, "7.0 (mm/bpf_memcontrol.c)" },
		{ "kernel symbols", false, find_kernel_symbols,
		  "any; kptr_restrict, CAP_SYSLOG, CONFIG_KALLSYMS" },
		{ "priority", false, find_priority, "any" },
	};
	size_t i, count = sizeof(list) / sizeof(*list);

	for (i = 0; i < count && i < capacity; i++) {
		features[i].name = list[i].name;
		features[i].required = list[i].required;
		features[i].source = list[i].source;
		list[i].find(&features[i]);
	}
	return i;
}
