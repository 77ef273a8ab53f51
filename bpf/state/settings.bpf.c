// SPDX-License-Identifier: GPL-2.0
/* settings.bpf.c: what userspace sets, before loading and while programs run. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/config.h"
#include "wire/syscalls.h"
#include "state/settings.bpf.h"
#include "state/windows.bpf.h"

char LICENSE[] SEC("license") = "GPL";

const volatile __u64 cfg_min_size = 65536;
const volatile __u64 cfg_page_offset = 0xffff888000000000ULL;
const volatile __u32 cfg_page_levels = 4;
const volatile __u64 cfg_zero_pfn = 0;
const volatile __u64 cfg_huge_zero_pfn = 0;
const volatile __u32 cfg_mthp_orders = 0;
const volatile bool cfg_find_vma = true;
const volatile bool cfg_casts = false;
const volatile __u64 cfg_sample = 0;
const volatile __u32 cfg_sampling_log[SAMPLING_LOG_ENTRIES] = {};
const volatile bool cfg_lock_path = false;
const volatile bool cfg_never = false;

volatile __u32 drain_epoch = 0;
volatile __u32 stopped = 0;
volatile __u64 stopping_ns = 0;
volatile __u32 area_generation = 1;
volatile __u32 block_generation = 0;
volatile __u32 python_seen = 0;
volatile __u32 price_inside_ns[FN_COUNT] = {};
volatile __u32 price_fault_ns = 0;
volatile __s64 outliers_left = 256;
volatile __s64 preempted_left = 128;
volatile __u64 outlier_floor_ns = 50000;
volatile __u32 lock_suspected = 0;
volatile __u32 handler_suspected = 0;

volatile __u32 idle_fns = 0;
volatile __u64 open_until_ns = ~0ULL;
volatile __u64 shut_ns = 0;
volatile __u64 timed_until_ns = ~0ULL;
volatile __u64 timed_shut_ns = 0;
volatile __u64 detached_ns[FN_MASK + 1] = {};
volatile __u64 reads_watched_ns = 0;
volatile __u64 calls_watched_ns = 0;
volatile __u64 locks_watched_ns = ~0ULL;
volatile __u32 ends_seen = 0;
volatile __u32 fault_draw = ~0U;
volatile __u32 faults_rest = FAULTS_ALL_SEEN;
volatile __u32 calls_rest = CALLS_ALL_SEEN;
volatile __u32 reads_epoch = 0;
volatile __u32 reads_settle = 0;
volatile __u32 reads_are_counted = 0;
__u64 rest_open = 0;
__u32 rest_owners[REST_POOLS] = {};
__u32 rest_seen[REST_POOLS] = {};
__u64 rest_pools[REST_POOLS] = {};
