/* SPDX-License-Identifier: GPL-2.0 */
/*
 * read_file.bpf.h: which file is read: whether it is one, and its path, told once. Part of
 * read.bpf.c.
 */
#ifndef MEMTOLL_READ_FILE_BPF_H
#define MEMTOLL_READ_FILE_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "wire/records.h"
#include "state/emit.bpf.h"
#include "state/loop.bpf.h"
#include "state/losses.bpf.h"
#include "memory/page_state.bpf.h"
#include "probes/file_kind.bpf.h"

#if defined(__TARGET_ARCH_x86)
#define O_DIRECT_FLAG 040000U
#elif defined(__TARGET_ARCH_arm64)
#define O_DIRECT_FLAG 0200000U
#endif

/* Files whose path was sent to userspace. An inode's number is used again, its generation not. */
struct path_key {
	__u64 inode;
	__u32 dev;
	__u32 generation;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct path_key);
	__type(value, __u8);
} paths_sent SEC(".maps");

struct path_walk {
	__u64 dentry;
	__u64 mount;
	__u64 part;
};

/*
 * One step towards the root: over the border of a mount, or adding one name. 0 when done. A global
 * function: looked at once by the verifier, not at each turn of the loop; its pointers may be NULL
 * as far as it knows.
 */
int path_step(struct path_walk *walk, struct memtoll_path *path)
{
	struct dentry *dentry, *parent;
	struct mount *mount, *above;

	if (!walk || !path)
		return 0;
	dentry = (struct dentry *)walk->dentry;
	mount = (struct mount *)walk->mount;
	parent = BPF_CORE_READ(dentry, d_parent);
	if (dentry == BPF_CORE_READ(mount, mnt.mnt_root) || dentry == parent) {
		above = BPF_CORE_READ(mount, mnt_parent);
		walk->dentry = (__u64)BPF_CORE_READ(mount, mnt_mountpoint);
		walk->mount = (__u64)above;
		return above != mount;
	}
	if (walk->part >= MEMTOLL_PATH_PARTS) {
		path->flags |= PATH_CUT;
		return 0;
	}
	bpf_probe_read_kernel_str(path->parts[walk->part], MEMTOLL_PATH_PART,
				  BPF_CORE_READ(dentry, d_name.name));
	walk->part++;
	walk->dentry = (__u64)parent;
	return 1;
}

/* The names on the way from the file to the root. Each mount on the way takes a step of its own. */
static __always_inline void path_fill(struct memtoll_path *path, struct file *file)
{
	struct path_walk walk = {
		.dentry = (__u64)BPF_CORE_READ(file, f_path.dentry),
		.mount = (__u64)BPF_CORE_READ(file, f_path.mnt) -
			 bpf_core_field_offset(struct mount, mnt),
	};
	int step;

	for (step = 0; step < 2 * MEMTOLL_PATH_PARTS; step++)
		if (!path_step(&walk, path))
			break;
	if (walk.part < MEMTOLL_PATH_PARTS)
		path->parts[walk.part][0] = '\0';
}

static __always_inline struct path_key path_key_of(struct inode *inode)
{
	return (struct path_key){
		.inode = BPF_CORE_READ(inode, i_ino),
		.dev = BPF_CORE_READ(inode, i_sb, s_dev),
		.generation = BPF_CORE_READ(inode, i_generation),
	};
}

/*
 * A file's path goes to userspace once. A global function: else the verifier would walk the path
 * once more for each way by which a read comes here.
 */
int path_send(__u64 file_at, __u32 flags)
{
	struct file *file = (struct file *)file_at;
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct path_key key = path_key_of(inode);
	struct memtoll_path *path;
	__u8 sent = 1;

	path = bpf_ringbuf_reserve(&events, sizeof(*path), 0);
	if (!path) {
		lose(LOST_RING_PROCESS, 1);
		return 0;
	}
	path->kind = EVENT_PATH;
	path->tgid = bpf_get_current_pid_tgid() >> 32;
	path->inode = key.inode;
	path->dev = key.dev;
	path->flags = flags;
	path->bytes = flags & READ_BLOCK_DEVICE ? 0 : BPF_CORE_READ(inode, i_size);
	path_fill(path, file);
	bpf_ringbuf_submit(path, BPF_RB_NO_WAKEUP);
	bpf_map_update_elem(&paths_sent, &key, &sent, BPF_ANY);
	return 0;
}

/*
 * Fill in the file's identity. 0: nothing that a cache could hold. A global function: each kind of
 * file would be a way of its own through what follows.
 */
__noinline int file_judge(__u64 opened, __u64 *number, __u32 *dev, __u32 *flags)
{
	struct file *file = (struct file *)opened;
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	__u32 type = file_kind(inode);
	struct path_key key;

	if (!number || !dev || !flags || !type)
		return 0;
	*flags = (BPF_CORE_READ(file, f_flags) & O_DIRECT_FLAG ? READ_DIRECT : 0) |
		 (type == S_IFBLK_MODE ? READ_BLOCK_DEVICE : 0);
	key = path_key_of(inode);
	if (!bpf_map_lookup_elem(&paths_sent, &key))
		path_send((__u64)file, *flags);
	*number = key.inode;
	*dev = key.dev;
	return 1;
}

#endif /* MEMTOLL_READ_FILE_BPF_H */
