/* SPDX-License-Identifier: GPL-2.0 */
/* psi.h: how much of the time tasks waited for memory, I/O or a processor (/proc/pressure). */
#ifndef MEMTOLL_PSI_H
#define MEMTOLL_PSI_H

#include <stdbool.h>

/* name: "memory.some", "memory.full", "io.some", "io.full", "cpu.some". */
bool psi_has(const char *name);

/* In percent, of the last ten seconds, as the kernel has it. False where it does not tell. */
bool psi_read(const char *name, double *percent);
bool psi_read_below(const char *directory, const char *name, double *percent); /* for tests */

#endif /* MEMTOLL_PSI_H */
