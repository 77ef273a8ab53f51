/* SPDX-License-Identifier: GPL-2.0 */
/*
 * native.h: the programs of bpf/ that are logic, compiled for this machine into the test that
 * includes this, and one traced process with one thread for them to see.
 *
 * The helpers that they call are functions of kernel.c, and the structures of the kernel are the
 * real ones: a test fills in what a program looks at, calls it, and reads what it has left in maps
 * and ring buffers. All of a program is in reach, its static functions, too.
 */
#ifndef TESTS_BPF_NATIVE_H
#define TESTS_BPF_NATIVE_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include <cmocka.h>

#include "state/settings.bpf.c"
#include "state/losses.bpf.c"
#include "state/emit.bpf.c"
#include "state/processes.bpf.c"
#include "state/threads.bpf.c"
#include "stacks/unwind_tables.bpf.c"
#include "stacks/return_probe.bpf.c"
#include "stacks/unwind.bpf.c"
#include "stacks/memo.bpf.c"
#include "stacks/stack.bpf.c"
#include "stacks/call_stack.bpf.c"
#include "stacks/site.bpf.c"
#include "stacks/python.bpf.c"
#include "stacks/ruby.bpf.c"
#include "stacks/php.bpf.c"
#include "stacks/v8.bpf.c"
#include "stacks/java.bpf.c"
#include "memory/page_state.bpf.c"
#include "probes/read.bpf.c"
#include "probes/fault.bpf.c"
#include "probes/fault_streams.bpf.c"
#include "probes/alloc.bpf.c"
#include "probes/page_cache.bpf.c"
#include "probes/populate.bpf.c"
#include "probes/mapping.bpf.c"
#include "probes/process.bpf.c"

#define TGID 7919
#define START_STACK 0x7ffffffff000ULL
#define HEAP 0x555555600000ULL
#define HEAP_TOP 0x555555800000ULL

/* The machine's one process. */
static struct {
	struct task_struct task;
	struct mm_struct mm;
	struct pt_regs regs;
} host;

#define KNOB(name, value) kernel_set(&(name), &(__u64){ value }, sizeof(name))

#define ROWS(map) (sizeof(*(map).max_entries) / sizeof(int))
#define ADD_MAP(map, kind) \
	kernel_map(&(map), kind, sizeof(*(map).key), sizeof(*(map).value), ROWS(map))

/* Both rows of a sum (row.bpf.h) added up, all of it 64-bit counters; whether it has one at all. */
static inline bool add_rows(void *total, size_t bytes, const void *own, const void *shared,
			    const void *key)
{
	const __u64 *rows[] = { kernel_map_lookup(own, key), kernel_map_lookup(shared, key) };
	size_t i, k;

	memset(total, 0, bytes);
	for (i = 0; i < 2; i++)
		for (k = 0; rows[i] && k < bytes / sizeof(__u64); k++)
			((__u64 *)total)[k] += rows[i][k];
	return rows[0] || rows[1];
}

static void maps_begin(void)
{
	ADD_MAP(processes, MAP_HASH);
	ADD_MAP(process_states, MAP_HASH);
	ADD_MAP(thread_places, MAP_ARRAY);
	ADD_MAP(memo_places, MAP_ARRAY);
	ADD_MAP(losses, MAP_ARRAY);
	ADD_MAP(rates, MAP_ARRAY);
	ADD_MAP(stacks, MAP_HASH);
	ADD_MAP(walks, MAP_HASH);
	ADD_MAP(files_sent, MAP_LRU);
	ADD_MAP(call_places, MAP_ARRAY);
	ADD_MAP(calls, MAP_HASH);
	ADD_MAP(calls_shared, MAP_HASH);
	ADD_MAP(blocks, MAP_HASH);
	ADD_MAP(file_reads, MAP_HASH);
	ADD_MAP(file_reads_shared, MAP_HASH);
	ADD_MAP(paths_sent, MAP_LRU);
	ADD_MAP(map_calls, MAP_HASH);
	ADD_MAP(map_calls_shared, MAP_HASH);
	/* By the address of the task. */
	kernel_map(&threads, MAP_STORAGE, sizeof(void *), sizeof(*threads.value), 0);
	kernel_map(&memos, MAP_STORAGE, sizeof(void *), sizeof(*memos.value), 0);
	kernel_map(&unwind_tables, MAP_TABLES, sizeof(__u32), 0, UNWIND_TABLES);
	kernel_map(&events, MAP_RING, 0, 0, 0);
	kernel_map(&pythons, MAP_RING, 0, 0, 0);
}

/* What programs keep outside of maps: as it is when they are loaded. */
static void globals_begin(void)
{
	drain_epoch = 0;
	stopped = 0;
	area_generation = 1;
	block_generation = 0;
	ends_seen = 0;
	faults_rest = FAULTS_ALL_SEEN;
	calls_rest = CALLS_ALL_SEEN;
	reads_epoch = 0;
	calls_watched_ns = reads_watched_ns = 0;
	rest_open = 0;
	memset(rest_owners, 0, sizeof(rest_owners));
	memset(rest_pools, 0, sizeof(rest_pools));
	python_seen = 0;
	idle_fns = 0;
	open_until_ns = ~0ULL;
	shut_ns = 0;
	timed_until_ns = ~0ULL;
	timed_shut_ns = 0;
	vmemmap_base = VMEMMAP_UNKNOWN;
	memset(thread_owners, 0, sizeof(thread_owners));
	memset(process_filter, 0, sizeof(process_filter));
	memset(block_filter, 0, sizeof(block_filter));
	memset(rules_known, 0, sizeof(rules_known));
	memset((void *)detached_ns, 0, sizeof(detached_ns));
	KNOB(cfg_min_size, 65536);
	KNOB(cfg_sample, 0);
	KNOB(cfg_casts, 0);
	KNOB(cfg_mthp_orders, 0);
	KNOB(cfg_zero_pfn, 0);
	KNOB(cfg_huge_zero_pfn, 0);
}

/* A process that is traced, without any memory yet. */
static void host_begin(void)
{
	struct memtoll_target_state state = {};
	struct memtoll_target target = {};
	__u32 tgid = TGID;

	kernel_reset();
	maps_begin();
	globals_begin();
	memset(&host, 0, sizeof(host));
	host.task.pid = TGID;
	host.task.tgid = TGID;
	host.task.group_leader = &host.task;
	host.task.start_time = 1299709;
	host.task.mm = &host.mm;
	host.mm.start_stack = START_STACK;
	host.mm.start_brk = HEAP;
	host.mm.brk = HEAP_TOP;
	kernel.task = &host.task;
	kernel.registers = &host.regs;
	kernel_object(&host, sizeof(host));
	process_filter_add(TGID, 1);
	kernel_map_update(&process_states, &tgid, &state, 0);
	kernel_map_update(&processes, &tgid, &target, 0);
}

/* The state that programs keep of the thread. */
static inline struct thread *host_thread(void)
{
	return thread_of(&host.task);
}

static inline struct memtoll_rates *host_rates(void)
{
	__u32 zero = 0;

	return kernel_map_lookup(&rates, &zero);
}

static inline __u64 lost(__u32 what)
{
	return *(__u64 *)kernel_map_lookup(&losses, &what);
}

/* Nothing is lost but, perhaps, what the test expects. */
static inline void assert_lost_only(__u32 what, __u64 count)
{
	__u32 i;

	for (i = 0; i < MEMTOLL_LOSS_COUNT; i++)
		assert_int_equal(lost(i), i == what ? count : 0);
}

/* The next record of this kind; those of stacks that are new are passed over. */
static inline const void *next_event(__u32 kind)
{
	const __u32 *record;

	while ((record = kernel_ring_take(&events, NULL, NULL)))
		if (*record != EVENT_STACK)
			break;
	if (!record)
		fail_msg("there is no record of kind %u", kind);
	assert_int_equal(*record, kind);
	return record;
}

static inline void assert_no_event(void)
{
	const __u32 *record;

	while ((record = kernel_ring_take(&events, NULL, NULL)))
		assert_int_equal(*record, EVENT_STACK);
}

#endif /* TESTS_BPF_NATIVE_H */
