/* SPDX-License-Identifier: GPL-2.0 */
/*
 * stores.bpf.h: what the code at a CPU sample stores, and where: by its registers, where it has
 * been decoded, and by the memory that it has just written. That tells a vector register's value,
 * too, which no program can read.
 */
#ifndef MEMTOLL_STORES_BPF_H
#define MEMTOLL_STORES_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "wire/records.h"
#include "wire/store_loops.h"
#include "probes/registers.bpf.h"

#define RSP 4

/* Written by userspace: store_code.c. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MEMTOLL_STORE_LOOPS);
	__type(key, struct memtoll_store_key);
	__type(value, struct memtoll_store_loop);
} store_loops SEC(".maps");

/* The context of a sample begins with the registers. */
static __noinline __u64 sample_register(struct pt_regs *ctx, __u32 number)
{
	return number == RSP ? CONTEXT_WORD(ctx, __builtin_offsetof(struct pt_regs, sp)) :
			       register_value(ctx, number);
}

/* Of the words [from, from + 8): those that were stored last. */
static __always_inline __u32 stored_memory(__u64 from, __u32 first, __u32 count)
{
	__u64 words[STORE_WORDS], any = 0;
	__u32 i;

	if (bpf_probe_read_user(words, sizeof(words), (void *)from))
		return 0;
	for (i = 0; i < STORE_WORDS; i++)
		if (i - first < count)
			any |= words[i];
	return any ? STORES_MEMORY_OTHER : STORES_MEMORY_ZERO;
}

static __always_inline __u64 stores_left(struct pt_regs *ctx, const struct memtoll_store_loop *loop)
{
	__u64 counter = sample_register(ctx, loop->counter);
	__u64 end = loop->flags & STORE_END ? sample_register(ctx, loop->end) :
					      (__u64)(__s64)loop->end_at;

	return (loop->flags & STORE_COUNTS_DOWN ? counter - end : end - counter) *
	       loop->bytes_per_count;
}

/* Where the stores are, from the sample's place, if that is in a function that has just returned; else 0. */
static __noinline int sample_stores(struct pt_regs *ctx, struct memtoll_sample *sample)
{
	struct memtoll_store_key key = { .ip = sample->ip, .tgid = sample->tgid };
	const struct memtoll_store_loop *loop;
	__u64 code, address, value;

	loop = bpf_map_lookup_elem(&store_loops, &key);
	if (!loop || bpf_probe_read_user(&code, sizeof(code), (void *)key.ip) ||
	    code != loop->code) {
		sample->stores = STORES_UNKNOWN_CODE;
		return 0;
	}
	if (loop->flags & STORE_REGISTER) {
		value = sample_register(ctx, loop->value) << (64 - loop->value_bits & 63);
		sample->stores |= value ? STORES_REGISTER_OTHER : STORES_REGISTER_ZERO;
	}
	if (loop->flags & STORE_LEFT)
		sample->left = stores_left(ctx, loop);
	if (!(loop->flags & STORE_ADDRESS))
		return loop->returned_from;
	address = sample_register(ctx, loop->base) + loop->disp;
	if (loop->flags & STORE_INDEX)
		address += sample_register(ctx, loop->index) << (loop->shift & 3);
	sample->store = address;
	if (loop->flags & STORE_DOWN)
		sample->stores |= stored_memory(address, 0, loop->words);
	else
		sample->stores |= stored_memory(address - STORE_WORDS * sizeof(__u64),
						STORE_WORDS - loop->words, loop->words);
	return loop->returned_from;
}

#endif /* MEMTOLL_STORES_BPF_H */
