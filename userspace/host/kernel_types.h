/* SPDX-License-Identifier: GPL-2.0 */
/* kernel_types.h: where members of the kernel's structures lie, by its own type information. */
#ifndef MEMTOLL_KERNEL_TYPES_H
#define MEMTOLL_KERNEL_TYPES_H

#include <stdint.h>

struct btf;

/*
 * Bytes from the start of a structure to a member, which may be one of an anonymous member's. -ENOENT:
 * there is no such structure or member, or it is a bit field.
 */
int64_t kernel_member_at(const struct btf *btf, const char *structure, const char *member);

#endif /* MEMTOLL_KERNEL_TYPES_H */
