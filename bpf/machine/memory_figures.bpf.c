// SPDX-License-Identifier: GPL-2.0
/*
 * memory_figures.bpf.c: what memory.stat and memory.events say, without text: by functions of the
 * kernel's (mm/bpf_memcontrol.c, Linux 7.0 and later). Run when it is asked for; an object of its
 * own, which is not loaded where they are missing.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "wire/memory_figures.h"

char LICENSE[] SEC("license") = "GPL";

extern struct cgroup *bpf_cgroup_from_id(u64 number) __ksym;
extern void bpf_cgroup_release(struct cgroup *cgroup) __ksym;
extern struct mem_cgroup *bpf_get_mem_cgroup(struct cgroup_subsys_state *css) __ksym;
extern void bpf_put_mem_cgroup(struct mem_cgroup *group) __ksym;
extern void bpf_mem_cgroup_flush_stats(struct mem_cgroup *group) __ksym;
extern unsigned long bpf_mem_cgroup_usage(struct mem_cgroup *group) __ksym;
extern unsigned long bpf_mem_cgroup_page_state(struct mem_cgroup *group, int item) __ksym;
extern unsigned long bpf_mem_cgroup_vm_events(struct mem_cgroup *group,
					      enum vm_event_item event) __ksym;
extern unsigned long bpf_mem_cgroup_memory_events(struct mem_cgroup *group,
						  enum memcg_memory_event event) __ksym;

/* Events until 7.0, states of nodes from then on. */
enum node_stat_item___moved {
	PGSCAN_KSWAPD___moved,
	PGSCAN_DIRECT___moved,
	PGSCAN_KHUGEPAGED___moved,
	PGSCAN_PROACTIVE___moved,
	PGSTEAL_KSWAPD___moved,
	PGSTEAL_DIRECT___moved,
	PGSTEAL_KHUGEPAGED___moved,
	PGSTEAL_PROACTIVE___moved,
};

#define STATE(GROUP, ENUM, ITEM)                                                            \
	(bpf_core_enum_value_exists(ENUM, ITEM) ?                                           \
		 (__s64)bpf_mem_cgroup_page_state(GROUP, bpf_core_enum_value(ENUM, ITEM)) : \
		 -1)
#define EVENT(GROUP, ITEM)                                                                        \
	(bpf_core_enum_value_exists(enum vm_event_item, ITEM) ?                                   \
		 (__s64)bpf_mem_cgroup_vm_events(GROUP,                                           \
						 bpf_core_enum_value(enum vm_event_item, ITEM)) : \
		 -1)
/* In the one place or in the other. */
#define ADD_RECLAIM(SUM, GROUP, ITEM)                                                            \
	do {                                                                                     \
		SUM += at_least_none(STATE(GROUP, enum node_stat_item___moved, ITEM##___moved)); \
		SUM += at_least_none(EVENT(GROUP, ITEM));                                        \
	} while (0)

static __always_inline __s64 at_least_none(__s64 value)
{
	return value < 0 ? 0 : value;
}

static __always_inline __s64 memory_event(struct mem_cgroup *group, int event)
{
	return (__s64)bpf_mem_cgroup_memory_events(group, event);
}

static __always_inline void read(struct memory_figures *figures, struct mem_cgroup *group)
{
	__s64 scanned = 0, stolen = 0;

	bpf_mem_cgroup_flush_stats(group);
	figures->values[MEMORY_USAGE] = bpf_mem_cgroup_usage(group);
	figures->values[MEMORY_ANON] = STATE(group, enum node_stat_item, NR_ANON_MAPPED);
	figures->values[MEMORY_FILE] = STATE(group, enum node_stat_item, NR_FILE_PAGES);
	figures->values[MEMORY_SHMEM] = STATE(group, enum node_stat_item, NR_SHMEM);
	figures->values[MEMORY_FAULTS] = EVENT(group, PGFAULT);
	figures->values[MEMORY_MAJOR_FAULTS] = EVENT(group, PGMAJFAULT);
	figures->values[MEMORY_REFAULTS_ANON] =
		STATE(group, enum node_stat_item, WORKINGSET_REFAULT_ANON);
	figures->values[MEMORY_REFAULTS_FILE] =
		STATE(group, enum node_stat_item, WORKINGSET_REFAULT_FILE);
	ADD_RECLAIM(scanned, group, PGSCAN_KSWAPD);
	ADD_RECLAIM(scanned, group, PGSCAN_DIRECT);
	ADD_RECLAIM(scanned, group, PGSCAN_KHUGEPAGED);
	ADD_RECLAIM(scanned, group, PGSCAN_PROACTIVE);
	ADD_RECLAIM(stolen, group, PGSTEAL_KSWAPD);
	ADD_RECLAIM(stolen, group, PGSTEAL_DIRECT);
	ADD_RECLAIM(stolen, group, PGSTEAL_KHUGEPAGED);
	ADD_RECLAIM(stolen, group, PGSTEAL_PROACTIVE);
	figures->values[MEMORY_SCANNED] = scanned;
	figures->values[MEMORY_STOLEN] = stolen;
	figures->values[MEMORY_HIGH] = memory_event(group, MEMCG_HIGH);
	figures->values[MEMORY_MAX] = memory_event(group, MEMCG_MAX);
	figures->values[MEMORY_OOM_KILLS] = memory_event(group, MEMCG_OOM_KILL);
}

/* 0: it is gone, or memory is not accounted to it. */
SEC("syscall")
int memory_figures_read(struct memory_figures *figures)
{
	struct cgroup *cgroup = bpf_cgroup_from_id(figures->cgroup);
	struct mem_cgroup *group;

	if (!cgroup)
		return 0;
	group = bpf_get_mem_cgroup(&cgroup->self);
	if (group) {
		read(figures, group);
		bpf_put_mem_cgroup(group);
	}
	bpf_cgroup_release(cgroup);
	return group != NULL;
}
