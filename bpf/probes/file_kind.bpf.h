/* SPDX-License-Identifier: GPL-2.0 */
/* file_kind.bpf.h: whether a file is one whose reads are counted. */
#ifndef MEMTOLL_FILE_KIND_BPF_H
#define MEMTOLL_FILE_KIND_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* include/uapi/linux/stat.h */
#define S_IFMT_MASK 0170000U
#define S_IFREG_MODE 0100000U
#define S_IFBLK_MODE 0060000U

/* File systems whose contents the kernel generates on reading: nothing of them is ever cached. */
static __always_inline bool is_generated(__u64 magic)
{
	switch (magic) {
	case 0x9fa0:	 /* proc */
	case 0x62656572: /* sysfs */
	case 0x64626720: /* debugfs */
	case 0x74726163: /* tracefs */
	case 0x27e0eb:	 /* cgroup */
	case 0x63677270: /* cgroup2 */
	case 0x73636673: /* securityfs */
	case 0xcafe4a11: /* bpf */
		return true;
	default:
		return false;
	}
}

/* S_IFREG_MODE or S_IFBLK_MODE; 0: nothing that a cache could hold. */
static __always_inline __u32 file_kind(const struct inode *inode)
{
	__u32 type = BPF_CORE_READ(inode, i_mode) & S_IFMT_MASK;

	if (type != S_IFREG_MODE && type != S_IFBLK_MODE)
		return 0;
	return is_generated(BPF_CORE_READ(inode, i_sb, s_magic)) ? 0 : type;
}

#endif /* MEMTOLL_FILE_KIND_BPF_H */
