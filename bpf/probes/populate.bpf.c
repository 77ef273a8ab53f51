// SPDX-License-Identifier: GPL-2.0
/*
 * populate.bpf.c: pages that the kernel faults in for a program inside a system call: mlock,
 * MAP_POPULATE, mprotect of locked memory, reads past the page cache.
 *
 * get_user_pages() takes those faults: no tracepoint and no perf event tells of them, but the
 * thread's own counts do (mm_account_fault() in mm/memory.c), exactly. What the faults did follows
 * from the area they are in and from the process's memory counters.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "wire/faults.h"
#include "wire/pages.h"
#include "wire/records.h"
#include "state/emit.bpf.h"
#include "state/numbers.bpf.h"
#include "state/threads.bpf.h"
#include "memory/page_state.bpf.h"
#include "probes/page_cache.bpf.h"
#include "probes/fault.bpf.h"
#include "probes/populate.bpf.h"

#define VM_LOCKED_FLAG 0x2000ULL
#define MADV_POPULATE_READ_CODE 22
#define MADV_POPULATE_WRITE_CODE 23

/*
 * Counters are kept by CPU and added up in batches of 32 a CPU or more (lib/percpu_counter.c):
 * differences below this say nothing.
 */
#define RSS_BATCH 128

enum { RSS_FILE, RSS_ANON, RSS_SWAP, RSS_SHARED };

/*
 * Up to 6.1 (kernel commit f1a7941243c1). By the field: for a type that the kernel does not have
 * libbpf looks through the modules' types, which wants CAP_SYS_ADMIN.
 */
struct mm_rss_stat___old {
	__u64 count[RSS_COUNTERS];
} __attribute__((preserve_access_index));

struct mm_struct___old {
	struct mm_rss_stat___old rss_stat;
} __attribute__((preserve_access_index));

static __always_inline void rss_read(__u64 *rss)
{
	__u64 at = current_mm(), step;
	int i;

	if (bpf_core_field_exists(struct mm_struct, rss_stat)) {
		at += bpf_core_field_offset(struct mm_struct, rss_stat) +
		      bpf_core_field_offset(struct percpu_counter, count);
		step = bpf_core_type_size(struct percpu_counter);
	} else {
		at += bpf_core_field_offset(struct mm_struct___old, rss_stat);
		step = sizeof(__u64);
	}
	for (i = 0; i < RSS_COUNTERS; i++)
		if (bpf_probe_read_kernel(&rss[i], sizeof(rss[i]), (void *)(at + i * step)))
			rss[i] = 0;
}

/* How many pages of a file are in the page cache. */
static __always_inline __u64 cached_pages(__u64 file)
{
	return file ? BPF_CORE_READ((struct file *)file, f_mapping, nrpages) : 0;
}

static __always_inline __u64 file_at(__u64 address)
{
	struct vm_area_struct *vma = (struct vm_area_struct *)vma_find(address);

	return vma ? (__u64)BPF_CORE_READ(vma, vm_file) : 0;
}

static __always_inline bool may_populate(const struct open_map_call *map)
{
	struct mm_struct *mm = (struct mm_struct *)current_mm();

	if (map->map_fn >= MAP_FN_MLOCK || (map->flags & MAPPING_POPULATE))
		return true;
	if (map->map_fn == MAP_FN_MADVISE)
		return map->arg == MADV_POPULATE_READ_CODE || map->arg == MADV_POPULATE_WRITE_CODE;
	/* What is locked is faulted in at once; mlockall(MCL_FUTURE) locks all that comes. */
	return BPF_CORE_READ(mm, locked_vm) || (BPF_CORE_READ(mm, def_flags) & VM_LOCKED_FLAG);
}

int populate_begin(struct thread *thread, __u64 file)
{
	struct open_map_call *map;

	if (!thread)
		return 0;
	map = &thread->map;
	map->may_populate = may_populate(map);
	if (!map->may_populate)
		return 0;
	if (map->map_fn == MAP_FN_MADVISE || map->map_fn >= MAP_FN_MPROTECT)
		file = file_at(map->addr);
	map->cached_before = cached_pages(file);
	rss_read(map->rss_before);
	return 0;
}

/* Pages: as many as faults, or by the process's counters where those were of larger folios. */
static __always_inline __u64 count_pages(const struct populated *populated, __u64 grown)
{
	__u64 most = populated->len / MEMTOLL_PAGE_SIZE, faults = populated->faults;

	if (grown < 2 * faults + 2 * RSS_BATCH)
		return faults;
	if (!most)
		return grown;
	return grown + RSS_BATCH > most ? most : grown;
}

static __always_inline __u8 anonymous_class(const struct thread *thread, const __u64 *grown)
{
	__u64 faults = thread->populated.faults;

	if (thread->map.rss_before[RSS_SWAP] && -grown[RSS_SWAP] < 1ULL << 40 &&
	    2 * -grown[RSS_SWAP] > faults)
		return FAULT_SWAP;
	/* Read only, and the shared zero page is mapped. */
	if (thread->map.may_populate &&
	    (thread->populated.reads || (faults > 4 * RSS_BATCH && 2 * grown[RSS_ANON] < faults)))
		return FAULT_READ_POPULATED;
	return FAULT_ZERO_POPULATED;
}

/* Pages of 4 KiB in one of a hugetlbfs, whose block it is: 2 MiB, or as the mount says, 1 GiB. */
static __always_inline __u64 hugetlb_pages(const struct area_cache *area)
{
	struct address_space *mapping = (struct address_space *)area->mapping;
	__u32 shift = BPF_CORE_READ(mapping, host, i_sb, s_blocksize_bits);

	return shift > 12 && shift < 40 ? 1ULL << (shift - 12) : 512;
}

/* What the faults did. Sets how many pages they were. */
static __always_inline __u8 judge(struct thread *thread)
{
	struct populated *populated = &thread->populated;
	struct open_map_call *map = &thread->map;
	__u64 grown[RSS_COUNTERS] = {}, fresh;
	int i;

	if (map->may_populate) {
		rss_read(grown);
		for (i = 0; i < RSS_COUNTERS; i++)
			grown[i] -= map->rss_before[i];
		/* Less than before, by what another thread gave back. */
		for (i = 0; i < RSS_COUNTERS; i++)
			if (i != RSS_SWAP && grown[i] >> 63)
				grown[i] = 0;
	}
	if (thread->area.hugetlb) {
		populated->pages = hugetlb_pages(&thread->area) * populated->faults;
		return FAULT_ZERO_POPULATED;
	}
	switch (thread->area.area) {
	case AREA_SHARED:
		populated->pages = count_pages(populated, grown[RSS_SHARED]);
		fresh = cached_pages(file_at(populated->address)) - map->cached_before;
		return !map->may_populate || (fresh >> 63 ? 0 : 2 * fresh) >= populated->pages ?
			       FAULT_ZERO_POPULATED :
			       FAULT_SHARED_POPULATED;
	case AREA_FILE:
		if (!thread->area.shared && 2 * grown[RSS_ANON] > populated->faults) {
			populated->pages = count_pages(populated, grown[RSS_ANON]);
			return FAULT_COW_POPULATED;
		}
		populated->pages = count_pages(populated, grown[RSS_FILE]);
		return FAULT_FILE_POPULATED;
	case AREA_UNKNOWN:
		/* All of the process's memory: what most of it was. */
		if (grown[RSS_FILE] > grown[RSS_ANON]) {
			populated->pages = count_pages(populated, grown[RSS_FILE]);
			return FAULT_FILE_POPULATED;
		}
		break;
	default:
		break;
	}
	populated->pages = count_pages(populated, grown[RSS_ANON]);
	return anonymous_class(thread, grown);
}

/* Those that waited: for swap, or for a file. */
static __always_inline __u8 major_class(const struct thread *thread)
{
	switch (thread->area.area) {
	case AREA_SHARED:
		return FAULT_SHARED;
	case AREA_FILE:
		return thread->run.fault_class == FAULT_COW_POPULATED ? FAULT_COW : FAULT_FILE;
	default:
		return thread->run.fault_class == FAULT_FILE_POPULATED ? FAULT_FILE : FAULT_SWAP;
	}
}

/* Of the call's faults so many, with their part of its time. */
static __always_inline void emit_part(struct thread *thread, __u64 faults, __u64 pages)
{
	const struct populated *populated = &thread->populated;
	struct memtoll_run *run = &thread->run;
	__u64 each_ns = populated->cpu_ns / (populated->faults | !populated->faults);
	__u64 us = each_ns / 1000;

	run->pages = pages;
	run->faults = faults;
	run->timed_faults = populated->cpu_ns ? faults : 0;
	run->timed_cpu_ns = each_ns * faults;
	run->timed_cpu_us2 = us * us * faults;
	emit(run, sizeof(*run), LOST_RING_FAULTS, faults, false);
}

int populate_end(struct thread *thread)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct populated *populated;
	struct memtoll_run *run;
	__u64 minor_pages;

	if (!thread)
		return 0;
	populated = &thread->populated;
	run = &thread->run;
	/* The open run goes first, and its place is used for this one; and pages before their use. */
	run_emit(thread);
	fills_emit(thread);
	if (populated->address)
		area_learn(thread, populated->address);
	else
		__builtin_memset(&thread->area, 0, sizeof(thread->area));
	run->fault_class = judge(thread);
	run->kind = EVENT_RUN;
	run->tgid = task->tgid;
	run->tid = task->pid;
	run->area = thread->area.area;
	run->in_fn = thread->in_fn;
	run->flags = RUN_KERNEL_MODE | RUN_WRITE | RUN_POPULATED |
		     thread->area.zero_file * RUN_ZERO_FILE;
	run->address = populated->address & ~(MEMTOLL_PAGE_SIZE - 1);
	run->first_ns = populated->now;
	run->last_ns = populated->now;
	run->blocked_ns = 0;
	run->ip = 0;
	run->stack_id = populated->stack_id;
	run->inode = thread->area.inode;
	run->dev = thread->area.dev;
	run->file_page = run->address / MEMTOLL_PAGE_SIZE + thread->area.offset;
	run->swap_type = 0;
	/* What speaks for faults that were passed over went with the run before. */
	run->passed = 0;
	/* In two records, as the kernel counts them, where both are; which pages waited is not known. */
	minor_pages = populated->faults > populated->majors ?
			      sub_sat(populated->pages, populated->majors) :
			      0;
	if (populated->faults > populated->majors)
		emit_part(thread, populated->faults - populated->majors, minor_pages);
	if (populated->majors) {
		run->fault_class = major_class(thread);
		run->flags |= RUN_MAJOR;
		run->address += minor_pages * MEMTOLL_PAGE_SIZE;
		run->file_page += minor_pages;
		run->blocked_ns = populated->blocked_ns;
		emit_part(thread, populated->majors, sub_sat(populated->pages, minor_pages));
	}
	run->faults = 0;
	return 0;
}
