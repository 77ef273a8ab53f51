// SPDX-License-Identifier: GPL-2.0
/*
 * check_slow_path.bpf.c: proves on a live process that the places of an allocator's slow way
 * (allocators/slow_path.h) see what the function was asked for, and counts how many of its calls
 * come there. In the skeleton of check_arguments.bpf.c.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "wire/cookies.h"
#include "wire/sums.h"
#include "probes/registers.bpf.h"

#define COOKIE_INDEX_MASK 0xff

/*
 * The entry's cookie: bits 0..7 which function, 8..10 what is kept of its arguments, the rest as in
 * cookies.h. That of a place: bits 0..7 the same, 8..11 the register, 12..13 what it has, 16..31
 * how far the stack pointer is below its value at the entry.
 */
#define SLOW_KEPT_SHIFT 8
#define SLOW_KEPT_MASK 7
#define SLOW_REGISTER_SHIFT 8
#define SLOW_VALUE_SHIFT 12
#define SLOW_DEPTH_SHIFT 16

enum { KEPT_FIRST = 0, KEPT_SECOND = 1, KEPT_THIRD = 2, KEPT_PRODUCT = 3 };
enum { SLOW_SIZE = 0, SLOW_PADDED = 1, SLOW_CHUNK = 2, SLOW_BLOCK = 3 };

/* No more calls are counted; those under way still come to their places. */
volatile bool slow_closed = false;

struct slow_call {
	__u64 value;
	__u64 sp;
	__u32 index;
	__u32 unused;
};

/* Of a thread: the call it entered last. What that calls in its turn comes over it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct slow_call);
} slow_calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct memtoll_slow_sum);
} slow_sums SEC(".maps");

SEC("?uprobe")
int slow_entry(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx), thread = bpf_get_current_pid_tgid();
	struct arguments arguments = arguments_read(ctx, cookie);
	__u32 index = cookie & COOKIE_INDEX_MASK;
	struct memtoll_slow_sum *sum = bpf_map_lookup_elem(&slow_sums, &index);
	struct slow_call call = {
		.value = arguments.first,
		.sp = PT_REGS_SP(ctx) + (cookie >> COOKIE_SP_SHIFT & 0xff),
		.index = index,
	};

	if (slow_closed) {
		bpf_map_delete_elem(&slow_calls, &thread);
		return 0;
	}
	switch (cookie >> SLOW_KEPT_SHIFT & SLOW_KEPT_MASK) {
	case KEPT_SECOND:
		call.value = arguments.second;
		break;
	case KEPT_THIRD:
		call.value = arguments.third;
		break;
	case KEPT_PRODUCT:
		call.value *= arguments.second;
		break;
	}
	if (sum && !bpf_map_update_elem(&slow_calls, &thread, &call, BPF_ANY))
		__sync_fetch_and_add(&sum->entered, 1);
	return 0;
}

SEC("?uprobe")
int slow_place(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx), thread = bpf_get_current_pid_tgid();
	struct slow_call *call = bpf_map_lookup_elem(&slow_calls, &thread);
	__u32 index = cookie & COOKIE_INDEX_MASK;
	struct memtoll_slow_sum *sum = bpf_map_lookup_elem(&slow_sums, &index);
	__u64 value = register_value(ctx, cookie >> SLOW_REGISTER_SHIFT & 0xf);
	bool agrees;

	/* Other functions come by here, too: this call is known by where its frame is. */
	if (!call || !sum || call->index != index ||
	    PT_REGS_SP(ctx) + (cookie >> SLOW_DEPTH_SHIFT & 0xffff) != call->sp)
		return 0;
	switch (cookie >> SLOW_VALUE_SHIFT & 3) {
	case SLOW_PADDED:
		/* realloc asks for what has the same chunk, of up to 15 bytes less. */
		agrees = value + 15 >= call->value;
		break;
	case SLOW_CHUNK:
		agrees = value + 16 == call->value;
		break;
	default:
		agrees = value == call->value;
		break;
	}
	__sync_fetch_and_add(agrees ? &sum->agreed : &sum->differed, 1);
	bpf_map_delete_elem(&slow_calls, &thread);
	return 0;
}
