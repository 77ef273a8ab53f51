/* SPDX-License-Identifier: GPL-2.0 */
/* loop.bpf.h: a function called again and again, up to a bound. */
#ifndef MEMTOLL_LOOP_BPF_H
#define MEMTOLL_LOOP_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/*
 * Until the function returns 1, `rounds` times at most. By bpf_loop() where the kernel has it (5.17
 * and later): the verifier then looks at one round, else at each.
 */
static __always_inline void repeat(__u32 rounds, int (*round)(__u32 i, void *context),
				   void *context)
{
	__u32 i;

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop)) {
		bpf_loop(rounds, round, context, 0);
		return;
	}
	for (i = 0; i < rounds; i++)
		if (round(i, context))
			break;
}

#endif /* MEMTOLL_LOOP_BPF_H */
