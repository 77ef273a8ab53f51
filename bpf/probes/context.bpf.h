/* SPDX-License-Identifier: GPL-2.0 */
/*
 * context.bpf.h: a word of a program's context, which the compiler must not address in a way of its
 * own.
 */
#ifndef MEMTOLL_CONTEXT_BPF_H
#define MEMTOLL_CONTEXT_BPF_H

/*
 * Through the context itself, by a constant offset: the verifier refuses a pointer that was made of
 * it. Elsewhere (userspace/tests/bpf) whoever compiles this has a load of its own.
 */
#ifndef CONTEXT_WORD
#define CONTEXT_WORD(context, offset)                                                             \
	({                                                                                        \
		__u64 word_;                                                                      \
                                                                                                  \
		asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(word_) : "r"(context), "i"(offset)); \
		word_;                                                                            \
	})
#endif

#endif /* MEMTOLL_CONTEXT_BPF_H */
