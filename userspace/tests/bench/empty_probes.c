// SPDX-License-Identifier: GPL-2.0
/*
 * empty_probes: probes that do nothing, at the places that memtoll would choose in a process: the
 * least that tracing its allocator can cost on this machine.
 *
 * usage: empty_probes PID entry|return
 *   entry   only where a function begins
 *   return  and where it returns
 * Says "attached" and stays until standard input ends. By the mechanism that memtoll itself would
 * take, which must be session or multi links.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "allocators/modules.h"
#include "host/proc.h"
#include "probes/attach.h"

#define ATTACH_UPROBE_MULTI 48
#define ATTACH_UPROBE_SESSION 57
#define ON_RETURN 1U

/* bpf_attr.link_create with its uprobe_multi member (include/uapi/linux/bpf.h of 6.6). */
struct multi_link {
	__u32 program;
	__u32 target;
	__u32 attach_type;
	__u32 flags;
	__u64 path;
	__u64 offsets;
	__u64 counters;
	__u64 cookies;
	__u32 count;
	__u32 multi_flags;
	__u32 pid;
	__u32 unused;
};

/* result: of a session program, 1 at the entry leaves the return out. A descriptor, or -errno. */
static int load(int attach_type, int result)
{
	const struct bpf_insn program[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = result },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach_type);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "empty", "GPL", program, 2, &opts);
}

static int attach(int attach_type, int result, __u32 flags, const char *path, pid_t pid,
		  const __u64 *offsets, __u32 count)
{
	struct multi_link link = {
		.attach_type = attach_type,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.count = count,
		.multi_flags = flags,
		.pid = pid,
	};
	int program = load(attach_type, result);

	if (program < 0)
		return program;
	link.program = program;
	return syscall(SYS_bpf, BPF_LINK_CREATE, &link, sizeof(link)) < 0 ? -errno : 0;
}

static int attach_module(const struct allocator_module *module, pid_t pid, bool returns)
{
	__u64 offsets[FAMILY_MAX];
	__u32 count = 0;
	char path[64];
	int err = 0;

	for (size_t i = 0; i < module->point_count; i++)
		if (module->points[i].place.found && !module->points[i].place.pushed)
			offsets[count++] =
				module->points[i].symbol_offset + module->points[i].place.offset;
	if (!count)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", module->fd);
	switch (uprobe_mechanism_find()) {
	case UPROBE_SESSION:
		return attach(ATTACH_UPROBE_SESSION, !returns, 0, path, pid, offsets, count);
	case UPROBE_MULTI:
		if (returns)
			err = attach(ATTACH_UPROBE_MULTI, 0, ON_RETURN, path, pid, offsets, count);
		return err ? err : attach(ATTACH_UPROBE_MULTI, 0, 0, path, pid, offsets, count);
	default:
		return -ENOTSUP;
	}
}

int main(int argc, char **argv)
{
	struct allocator_module *modules;
	struct maps maps;
	size_t count;
	pid_t pid;
	int err;

	if (argc != 3)
		return 2;
	pid = atoi(argv[1]);
	err = pid > 0 ? maps_read(pid, &maps) : -EINVAL;
	if (!err)
		err = allocator_modules_find(pid, &maps, &modules, &count);
	for (size_t i = 0; !err && i < count; i++)
		err = attach_module(&modules[i], pid, !strcmp(argv[2], "return"));
	if (err) {
		fprintf(stderr, "empty_probes: %s\n", strerror(-err));
		return 1;
	}
	puts("attached");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
