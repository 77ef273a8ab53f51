/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vmlinux.h: the kernel's types beside those of the C library: the real ones, so that structures
 * are what they are in the kernel. Names that both have, for different types, are the C library's.
 */
#ifndef SHIM_VMLINUX_H
#define SHIM_VMLINUX_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BPF_NO_PRESERVE_ACCESS_INDEX
#define int64_t kernel_int64_t
#define uint64_t kernel_uint64_t
#define wchar_t kernel_wchar_t

#include_next "vmlinux.h"

#undef int64_t
#undef uint64_t
#undef wchar_t

#endif /* SHIM_VMLINUX_H */
