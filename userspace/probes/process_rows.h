/* SPDX-License-Identifier: GPL-2.0 */
/*
 * process_rows.h: rows of the BPF side's maps `processes` and `process_states`: who is traced. Each
 * is also counted in the filter that all others fail cheaply (bpf/state/processes.bpf.h).
 */
#ifndef MEMTOLL_PROCESS_ROWS_H
#define MEMTOLL_PROCESS_ROWS_H

#include <stdbool.h>
#include <sys/types.h>

struct memtoll_bpf;
struct memtoll_target;
struct memtoll_target_state;

/* Make a process's rows, or renew them. exec_pending: counting starts at its exec. 0, or -errno. */
int process_row_put(struct memtoll_bpf *bpf, pid_t pid, const struct memtoll_target *row,
		    bool exec_pending);

/*
 * How far a process has come, zeros where it has no row. False: it has ended, and its number may be
 * another's by now.
 */
bool process_row_lives(struct memtoll_bpf *bpf, pid_t pid, struct memtoll_target_state *state);

bool process_row_exists(struct memtoll_bpf *bpf, pid_t pid);

/* It may have none. */
void process_row_remove(struct memtoll_bpf *bpf, pid_t pid);

#endif /* MEMTOLL_PROCESS_ROWS_H */
