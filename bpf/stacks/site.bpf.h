/* SPDX-License-Identifier: GPL-2.0 */
/*
 * site.bpf.h: the site of an allocator call that is summed without its stack being walked. It is
 * the function and its direct caller; where that is a wrapper (operator new, xmalloc), which all
 * sorts of code calls, those callers as well.
 *
 * Where a return address stands, seen from the call's stack pointer, follows from the return
 * addresses below it. So of each chain of callers a note keeps where the next one stands and which
 * one was seen there first. As long as it is always the same, the chain is a site, and only one
 * call in eight is looked at. Once others are seen there, the next caller is part of the site: a
 * word of the stack to be read, 20 ns, and no walk.
 */
#ifndef MEMTOLL_SITE_BPF_H
#define MEMTOLL_SITE_BPF_H

#include "vmlinux.h"

#include "state/thread.bpf.h"
#include "stacks/call_stack.bpf.h"

/* Not one calls the other: a program has 512 bytes of stack. */
int site_learn(struct thread *thread, __u32 tgid, __u64 id);
__u64 site_by_notes(struct thread *thread, __u64 id);

/* Of the open call, whose caller has been looked for. */
static __always_inline __u64 site_of_call(struct thread *thread, __u32 tgid)
{
	__u64 id = stack_site(tgid, thread), site = site_by_notes(thread, id);

	if (!thread->site_unknown)
		return site;
	site_learn(thread, tgid, id);
	return site_by_notes(thread, id);
}

#endif /* MEMTOLL_SITE_BPF_H */
