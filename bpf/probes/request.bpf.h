/* SPDX-License-Identifier: GPL-2.0 */
/* request.bpf.h: at a probe of an allocator's function, whose call it is and what is asked for. */
#ifndef MEMTOLL_REQUEST_BPF_H
#define MEMTOLL_REQUEST_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "wire/cookies.h"
#include "wire/functions.h"
#include "wire/slow_places.h"
#include "state/open_calls.bpf.h"
#include "probes/registers.bpf.h"

#define CHUNK_HEADER 16ULL

/* Filled before the places are attached. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SLOW_CALLERS_MAX);
	__type(key, struct memtoll_slow_key);
	__type(value, struct memtoll_slow_caller);
} slow_callers SEC(".maps");

/*
 * At a place past the thread's cache: where the function was entered, and with what. 0: it is not
 * called by a function that is watched here. Not inlined, and by memory: with two ways to each
 * value the verifier would follow both to the end.
 */
static __noinline int slow_entered(struct pt_regs *ctx, __u64 cookie, struct entered *entered)
{
	struct memtoll_slow_key key = { .place = cookie >> COOKIE_PLACE_SHIFT };
	__u64 sp = PT_REGS_SP(ctx), ip = PT_REGS_IP(ctx), word = 0;
	__u64 slot = sp + (cookie >> COOKIE_SP_SHIFT & 0xff) * sizeof(word);
	struct memtoll_slow_caller *caller;
	__s64 from;

	if (cookie & (COOKIE_CALLED | COOKIE_JUMPED)) {
		if (bpf_probe_read_user(&word, sizeof(word), (void *)slot))
			return 0;
		from = word - ip;
		key.from = (__s32)from;
		if (key.from != from) {
			if (cookie & COOKIE_CALLED)
				return 0;
			key.from = 0;
		}
	}
	caller = bpf_map_lookup_elem(&slow_callers, &key);
	if (cookie & COOKIE_JUMPED && key.from) {
		/* Those that call it are in the map; whoever else calls the function that jumps. */
		if (caller)
			return 0;
		key.from = 0;
		caller = bpf_map_lookup_elem(&slow_callers, &key);
	}
	if (!caller)
		return 0;
	entered->ip = ip + caller->function;
	entered->sp = sp + caller->above;
	entered->end_sp = (cookie & COOKIE_CALLED ? slot : entered->sp) + 8;
	entered->bp = PT_REGS_FP(ctx);
	if (caller->rbp)
		bpf_probe_read_user(&entered->bp, sizeof(entered->bp),
				    (void *)(entered->sp + caller->rbp));
	entered->retried = caller->retried;
	return 1;
}

/* The same at any place. */
static __always_inline int request_enter(struct pt_regs *ctx, __u64 cookie, struct entered *entered)
{
	if (cookie & COOKIE_SLOW)
		return slow_entered(ctx, cookie, entered);
	entered->sp = PT_REGS_SP(ctx) + ((cookie >> COOKIE_SP_SHIFT) & 0xff);
	entered->end_sp = entered->sp + 8;
	entered->bp = PT_REGS_FP(ctx);
	entered->ip = PT_REGS_IP(ctx);
	entered->retried = 0;
	return 1;
}

/* What is asked of the function. */
static __always_inline void request_read(struct pt_regs *ctx, __u64 cookie, struct open_call *call,
					 __u32 fn)
{
	struct arguments arguments = arguments_read(ctx, cookie);

	call->pointer = arguments.first;
	call->size = arguments.first;
	switch (fn) {
	case FN_CALLOC:
		call->size *= arguments.second;
		break;
	case FN_REALLOC:
	case FN_ALIGNED_ALLOC:
	case FN_MEMALIGN:
		call->size = arguments.second;
		break;
	case FN_REALLOCARRAY:
		/* glibc multiplies before the first place for a probe: the product is in rax. */
		call->size = cookie & COOKIE_PRODUCT ? PT_REGS_RC(ctx) :
						       arguments.second * arguments.third;
		break;
	case FN_POSIX_MEMALIGN:
		call->size = arguments.third;
		break;
	case FN_FREE:
		if (cookie & COOKIE_CHUNK)
			call->pointer += CHUNK_HEADER;
		call->size = 0;
		break;
	}
}

#endif /* MEMTOLL_REQUEST_BPF_H */
