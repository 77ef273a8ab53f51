/* SPDX-License-Identifier: GPL-2.0 */
/* registers.bpf.h: a function's arguments, read at a probe behind its entry. */
#ifndef MEMTOLL_REGISTERS_BPF_H
#define MEMTOLL_REGISTERS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "wire/cookies.h"
#include "probes/context.bpf.h"

#ifdef __TARGET_ARCH_x86
/* One load for each: the compiler would take one, of an offset that is no constant. */
#define LOAD_REGISTER(field) (value = CONTEXT_WORD(ctx, __builtin_offsetof(struct pt_regs, field)))

/* A register by its number in instructions. */
static __noinline __u64 register_value(struct pt_regs *ctx, __u32 number)
{
	__u64 value = 0;

	switch (number) {
	case 0:
		LOAD_REGISTER(ax);
		break;
	case 1:
		LOAD_REGISTER(cx);
		break;
	case 2:
		LOAD_REGISTER(dx);
		break;
	case 3:
		LOAD_REGISTER(bx);
		break;
	case 5:
		LOAD_REGISTER(bp);
		break;
	case 6:
		LOAD_REGISTER(si);
		break;
	case 7:
		LOAD_REGISTER(di);
		break;
	case 8:
		LOAD_REGISTER(r8);
		break;
	case 9:
		LOAD_REGISTER(r9);
		break;
	case 10:
		LOAD_REGISTER(r10);
		break;
	case 11:
		LOAD_REGISTER(r11);
		break;
	case 12:
		LOAD_REGISTER(r12);
		break;
	case 13:
		LOAD_REGISTER(r13);
		break;
	case 14:
		LOAD_REGISTER(r14);
		break;
	case 15:
		LOAD_REGISTER(r15);
		break;
	}
	return value;
}
#else
static __always_inline __u64 register_value(struct pt_regs *ctx, __u32 number)
{
	return 0;
}
#endif

/* The arguments of a function, as they were at its entry, read at the probe behind it. */
struct arguments {
	__u64 first, second, third;
};

static __always_inline __u64 argument(struct pt_regs *ctx, __u64 cookie, __u32 index, __u64 abi)
{
	__u32 place = cookie >> (COOKIE_ARGUMENT_SHIFT + index * COOKIE_ARGUMENT_BITS) &
		      ((1U << COOKIE_ARGUMENT_BITS) - 1);

	return place ? register_value(ctx, place - 1) : abi;
}

static __always_inline struct arguments arguments_read(struct pt_regs *ctx, __u64 cookie)
{
	struct arguments arguments = { PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx) };

	if (cookie >> COOKIE_ARGUMENT_SHIFT) {
		arguments.first = argument(ctx, cookie, 0, arguments.first);
		arguments.second = argument(ctx, cookie, 1, arguments.second);
		arguments.third = argument(ctx, cookie, 2, arguments.third);
	}
	return arguments;
}

#endif /* MEMTOLL_REGISTERS_BPF_H */
