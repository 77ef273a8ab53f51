// SPDX-License-Identifier: GPL-2.0
/*
 * check_pagetable.bpf.c: programs that userspace runs on itself before tracing, to prove what the
 * tracing programs rely on. A skeleton of its own: its answers are knobs of the other one.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

/*
 * Nothing here is relocated, for which all of the kernel's types would be read and searched: some 15
 * ms of each start.
 */
#define KERNEL_WORD_BY_HELPER
#include "memory/pagetable.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Where struct task_struct has its mm, and struct mm_struct its pgd: userspace keeps it for the boot. */
const volatile __u64 cfg_mm_at = 0;
const volatile __u64 cfg_pgd_at = 0;

__u64 walked_frame = 0; /* 0: there is no page */
__u64 walked_root = 0;
__u64 word_read = 0;
int word_error = 0;

/* ctx: user address, base of the direct map, levels. Run by BPF_PROG_TEST_RUN. */
SEC("?raw_tp")
int check_walk(__u64 *ctx)
{
	__u64 mm = kernel_word(bpf_get_current_task() + cfg_mm_at);
	struct walked walked = {};
	enum walk_end end = WALK_FAILED;

	walked_frame = 0;
	if (!mm)
		return 0;
	walked_root = kernel_word(mm + cfg_pgd_at);
	end = walk(walked_root, ctx[0], ctx[1], ctx[2], &walked);
	if ((end == WALK_ENTRY || end == WALK_HUGE) && (walked.entry & PTE_PRESENT))
		walked_frame = walked_pfn(&walked, ctx[0]);
	return 0;
}

/* ctx: kernel address of a 64-bit variable. */
SEC("?raw_tp")
int check_word(__u64 *ctx)
{
	word_error = bpf_probe_read_kernel(&word_read, sizeof(word_read), (void *)ctx[0]);
	return 0;
}
