// SPDX-License-Identifier: GPL-2.0
#include "features.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach.h"
#include "memtoll.skel.h"
#include "pagetable.h"
#include "programs.h"
#include "session.h"
#include "symbolize.h"

static void find_types(struct feature *feature)
{
	feature->works = !access("/sys/kernel/btf/vmlinux", R_OK);
	snprintf(feature->detail, sizeof(feature->detail), "%s", feature->works ?
		 "/sys/kernel/btf/vmlinux" : "no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)");
}

static void find_page_tables(struct feature *feature)
{
	struct pagetable pagetable;
	int err = pagetable_find(&pagetable);

	feature->works = !err;
	if (err)
		snprintf(feature->detail, sizeof(feature->detail), "%s", err == -EPERM ?
			 "frames are hidden in /proc/self/pagemap: CAP_SYS_ADMIN is needed" :
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

	bpf = programs_load(&(struct programs_config){
		.pagetable = &pagetable,
		.mechanism = uprobe_mechanism_find(),
		.min_size = MIN_SIZE_DEFAULT,
		.buffer_bytes = 65536,
		.uprobes = true,
		.faults = true,
		.mappings = true,
		.samples = true,
	}, &refused);
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
	int fd = tracefs_open(), id;

	feature->works = false;
	if (fd < 0) {
		snprintf(feature->detail, sizeof(feature->detail), "tracefs: %s", strerror(-fd));
		return;
	}
	id = openat(fd, "syscalls/sys_enter_mmap/id", O_RDONLY | O_CLOEXEC);
	feature->works = id >= 0;
	snprintf(feature->detail, sizeof(feature->detail), "syscalls:sys_enter_mmap and others: %s",
		 id >= 0 ? "found" : "not found (CONFIG_FTRACE_SYSCALLS)");
	if (id >= 0)
		close(id);
	close(fd);
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
	snprintf(feature->detail, sizeof(feature->detail), "page_fault_user and page_fault_kernel "
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
	feature->works = has_find_vma();
	snprintf(feature->detail, sizeof(feature->detail), "%s", feature->works ? "bpf_find_vma" :
		 "no bpf_find_vma: faults on untouched pages all count as anonymous");
}

static void find_kernel_symbols(struct feature *feature)
{
	struct symbolizer *symbolizer = symbolizer__new();
	uint64_t start, end;

	feature->works = symbolizer && symbolizer_kernel_function(symbolizer, "handle_mm_fault",
								  &start, &end);
	snprintf(feature->detail, sizeof(feature->detail), "%s", feature->works ?
		 "functions are listed" : "hidden: samples in faults count as kernel");
	symbolizer__free(symbolizer);
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
		{ "mapping calls", true, find_tracepoints, "2.6.33" },
		{ "CPU samples", false, find_samples, "4.9" },
		{ "areas", false, find_areas, "5.17 (7c7e3d31e785)" },
		{ "kernel symbols", false, find_kernel_symbols,
		  "any; kptr_restrict, CONFIG_KALLSYMS" },
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
