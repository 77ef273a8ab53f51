/* SPDX-License-Identifier: GPL-2.0 */
/*
 * unwind_hotspot.h: unwind rows of code that HotSpot's C1 and C2 compilers made. It has no call frame
 * information, and C2 keeps no frame pointer. But a method's frame has one size from its prologue
 * to its epilogue, and both are always the same instructions (OpenJDK, x86_64.ad, MachPrologNode and
 * MachEpilogNode; macroAssembler_x86.cpp, verified_entry()):
 *
 *	mov [rsp - N], eax; push rbp; sub rsp, SIZE	or	sub rsp, SIZE; mov [rsp + SIZE - 8], rbp
 *	add rsp, SIZE; pop rbp; ...; ret
 */
#ifndef MEMTOLL_UNWIND_HOTSPOT_H
#define MEMTOLL_UNWIND_HOTSPOT_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Append rows (struct memtoll_unwind_row) of one method, or of a stub, that lies at pc, above all
 * before; the last one says that nothing is known behind it. False: it is not as above, as what keeps
 * a frame pointer: no rows.
 */
bool unwind_hotspot_rows(const uint8_t *code, size_t size, uint32_t pc, GArray *rows);

#endif /* MEMTOLL_UNWIND_HOTSPOT_H */
