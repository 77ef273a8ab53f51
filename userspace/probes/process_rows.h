/* SPDX-License-Identifier: GPL-2.0 */
/*
 * process_rows.h: rows of the BPF side's map `processes`: who is traced. Each is also counted in the
 * filter that all others fail cheaply (bpf/state/processes.bpf.h).
 */
#ifndef MEMTOLL_PROCESS_ROWS_H
#define MEMTOLL_PROCESS_ROWS_H

#include <stdbool.h>
#include <sys/types.h>

struct memtoll_bpf;
struct memtoll_target;

/* Make a process's row, or renew it. 0, or -errno. */
int process_row_put(struct memtoll_bpf *bpf, pid_t pid, const struct memtoll_target *row);

/*
 * A process's row, zeros where it has none. False: the process has ended, and its number may be
 * another's by now.
 */
bool process_row_lives(struct memtoll_bpf *bpf, pid_t pid, struct memtoll_target *row);

/* It may have none. */
void process_row_remove(struct memtoll_bpf *bpf, pid_t pid);

#endif /* MEMTOLL_PROCESS_ROWS_H */
