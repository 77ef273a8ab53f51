/* SPDX-License-Identifier: GPL-2.0 */
/* numbers.bpf.h: arithmetic that all parts use. */
#ifndef MEMTOLL_NUMBERS_BPF_H
#define MEMTOLL_NUMBERS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

/* include/uapi/asm-generic/errno-base.h: the map has such a key already. */
#define EEXIST 17

/*
 * whole - part, but never below 0; of what differs by less than 2^63. Without a branch: the verifier
 * would follow both ways from each of them.
 */
static __always_inline __u64 sub_sat(__u64 whole, __u64 part)
{
	__s64 rest = whole - part, below = rest >> 63;

	/* Or the compiler makes a branch of it. */
	barrier_var(below);
	return rest & ~below;
}

#define STACK_HASH_SEED 0x9e3779b97f4a7c15ULL
#define STACK_HASH_PRIME 0xff51afd7ed558ccdULL

static __always_inline __u64 mix(__u64 hash, __u64 value)
{
	hash = (hash ^ value) * STACK_HASH_PRIME;
	return hash ^ (hash >> 32);
}

#endif /* MEMTOLL_NUMBERS_BPF_H */
