/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cookies.h: bits of the u64 cookie that says which probe was hit, and what is known of its place.
 */
#ifndef MEMTOLL_WIRE_COOKIES_H
#define MEMTOLL_WIRE_COOKIES_H

#define COOKIE_NONE 0ULL
#define COOKIE_DIFFERS (~0ULL) /* from probe to probe: of entry_cookies alone */
#define COOKIE_FN_MASK 0xffULL
#define COOKIE_GLIBC (1ULL << 8)      /* chunk headers may be read */
#define COOKIE_ENTRY_ONLY (1ULL << 9) /* no return probe here */
#define COOKIE_PRODUCT (1ULL << 10)   /* reallocarray: the size asked is in the result register */
#define COOKIE_SLOW (1ULL << 11)      /* past the thread's cache: whose call, slow_callers says */
#define COOKIE_CALLED (1ULL << 12)    /* of these: in what the function calls there */
#define COOKIE_JUMPED (1ULL << 14)    /* or in what it jumps to, and others call */
#define COOKIE_CHUNK (1ULL << 13)     /* free: the address given is the chunk's */
/*
 * Bytes pushed between the symbol and the probe, 8 bits. In what was called or jumped to: words from
 * the stack pointer to the return address.
 */
#define COOKIE_SP_SHIFT 16
/*
 * Where the first three arguments are at the probe, 5 bits each: 0, where the ABI puts them; else
 * 1 + the number of a register as instructions have it (rax 0, rcx 1, rdx 2 ... r15 15).
 */
#define COOKIE_ARGUMENT_SHIFT 32
#define COOKIE_ARGUMENT_BITS 5
#define COOKIE_PLACE_SHIFT 48 /* number of the place, of those past the cache */

#endif /* MEMTOLL_WIRE_COOKIES_H */
