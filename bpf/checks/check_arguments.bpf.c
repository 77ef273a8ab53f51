// SPDX-License-Identifier: GPL-2.0
/*
 * check_arguments.bpf.c: proves on a live process that a probe behind a function's entry sees every
 * call, with the arguments and the stack pointer that the function was entered with. For as short
 * as it takes, a second probe sits on the entry itself. A skeleton of its own, for `memtoll
 * doctor`.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "wire/cookies.h"
#include "wire/sums.h"
#include "probes/registers.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* cookie: bits 0..7 which place, 24..26 which arguments are read, the rest as in cookies.h. */
#define COOKIE_INDEX_MASK 0xff
#define COOKIE_WANTED_SHIFT 24

struct entered {
	__u64 arguments[3];
	__u64 sp;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64); /* thread and place */
	__type(value, struct entered);
} open_calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct memtoll_value_sum);
} sums SEC(".maps");

static __always_inline __u64 call_key(__u64 cookie)
{
	return bpf_get_current_pid_tgid() << 8 | (cookie & COOKIE_INDEX_MASK);
}

SEC("?uprobe")
int value_entry(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx), key = call_key(cookie);
	__u32 index = cookie & COOKIE_INDEX_MASK;
	struct memtoll_value_sum *sum = bpf_map_lookup_elem(&sums, &index);
	struct entered entered = {
		.arguments = { PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx) },
		.sp = PT_REGS_SP(ctx),
	};

	if (sum && !bpf_map_update_elem(&open_calls, &key, &entered, BPF_ANY))
		__sync_fetch_and_add(&sum->entered, 1);
	return 0;
}

SEC("?uprobe")
int value_place(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx), key = call_key(cookie);
	struct entered *entered = bpf_map_lookup_elem(&open_calls, &key);
	__u32 index = cookie & COOKIE_INDEX_MASK, wanted = cookie >> COOKIE_WANTED_SHIFT & 7;
	struct memtoll_value_sum *sum = bpf_map_lookup_elem(&sums, &index);
	struct arguments arguments;
	bool agrees;

	/* Entered before the probes were there. */
	if (!entered || !sum)
		return 0;
	arguments = arguments_read(ctx, cookie);
	agrees = PT_REGS_SP(ctx) + (cookie >> COOKIE_SP_SHIFT & 0xff) == entered->sp &&
		 (!(wanted & 1) || arguments.first == entered->arguments[0]) &&
		 (!(wanted & 2) || arguments.second == entered->arguments[1]) &&
		 (!(wanted & 4) || arguments.third == entered->arguments[2]) &&
		 (!(cookie & COOKIE_PRODUCT) ||
		  PT_REGS_RC(ctx) == entered->arguments[1] * entered->arguments[2]);
	__sync_fetch_and_add(agrees ? &sum->agreed : &sum->differed, 1);
	bpf_map_delete_elem(&open_calls, &key);
	return 0;
}
