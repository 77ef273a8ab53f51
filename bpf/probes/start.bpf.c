// SPDX-License-Identifier: GPL-2.0
/*
 * start.bpf.c: how a program starts. A dynamic loader calls a function of its own, _dl_debug_state,
 * before and after it maps libraries, for debuggers to stop there, and says in _r_debug.r_state
 * which it is (elf/link.h of glibc). It is a probe here: to hold a command's processes at each
 * system call of their loaders instead costs a millisecond a process.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/targets.h"

#define SIGURG 23 /* include/uapi/asm-generic/signal.h */

/* enum of r_state */
#define RT_CONSISTENT 0
#define RT_ADD 1

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct memtoll_start);
} starts SEC(".maps");

/*
 * The tracer, by ptrace, sees the signal before the process does, and takes it away. Should the
 * tracer be gone by then, the process ignores it: a program that has not begun has no handler.
 */
SEC("?uprobe")
int loader_mapped(struct pt_regs *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct memtoll_start *start = bpf_map_lookup_elem(&starts, &tgid);
	__u32 state;

	if (!start || start->mapped ||
	    bpf_probe_read_user(&state, sizeof(state), (void *)start->state_at))
		return 0;
	if (state == RT_ADD)
		start->adding = 1;
	if (state != RT_CONSISTENT || !start->adding)
		return 0;
	start->mapped = 1;
	if (start->awaited)
		bpf_send_signal_thread(SIGURG);
	return 0;
}
