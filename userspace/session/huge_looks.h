/* SPDX-License-Identifier: GPL-2.0 */
/*
 * huge_looks.h: how much of the huge pages that a fault cleared is used. Some are looked at again
 * for as long as they are there, at intervals that double.
 */
#ifndef MEMTOLL_HUGE_LOOKS_H
#define MEMTOLL_HUGE_LOOKS_H

#include <stdint.h>
#include <sys/types.h>

struct huge_looks;
struct memtoll_run;
struct recording;

struct huge_looks *huge_looks_new(void);
void huge_looks_free(struct huge_looks *looks);

void huge_looks_fault(struct huge_looks *looks, const struct memtoll_run *run);

/* Look at what is due: a few pages, within a fiftieth of the time. now: CLOCK_MONOTONIC. */
void huge_looks_look(struct huge_looks *looks, uint64_t now);

/* Its memory is gone. */
void huge_looks_end(struct huge_looks *looks, pid_t pid);

/* Table huge_look. 0 or -errno. */
int huge_looks_write(struct huge_looks *looks, struct recording *recording);

#endif /* MEMTOLL_HUGE_LOOKS_H */
