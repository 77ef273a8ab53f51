/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bpf_core_read.h: libbpf's, with what it asks the loader for: this kernel is the one of vmlinux.h,
 * but for what kernel_lacks() takes away.
 */
#ifndef SHIM_BPF_CORE_READ_H
#define SHIM_BPF_CORE_READ_H

#include "bpf/bpf_helpers.h"

#define __builtin_preserve_access_index(access) (access)
#define preserve_access_index /* the attribute */

#include_next <bpf/bpf_core_read.h>

#undef bpf_core_field_exists
#undef bpf_core_field_offset
#undef bpf_core_type_id_kernel
#undef bpf_core_type_size
#undef bpf_core_enum_value_exists
#undef bpf_core_enum_value

#define bpf_core_field_exists(field...) kernel_has(#field)
#define bpf_core_field_offset(type, field) __builtin_offsetof(type, field)
/* A type is known by its size: that much is read of it. */
#define bpf_core_type_id_kernel(type) ((__u32)sizeof(type))
#define bpf_core_type_size(type) sizeof(type)
#define bpf_core_enum_value_exists(type, value) kernel_has(#value)
#define bpf_core_enum_value(type, value) (value)

#endif /* SHIM_BPF_CORE_READ_H */
