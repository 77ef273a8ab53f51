/* SPDX-License-Identifier: GPL-2.0 */
/* handlers.h: who answers faults for which a handler in user mode is asked, and after how long. */
#ifndef MEMTOLL_HANDLERS_H
#define MEMTOLL_HANDLERS_H

#include <linux/types.h>
#include <stdint.h>

#include "bpf/wire/sums.h"
#include "recording/recording.h"

struct memtoll_bpf;
struct targets;

/* Where the handler answers; 0: its process is not traced. */
uint64_t handlers_stack(const struct memtoll_answer_key *key);

/* What one handler has answered in a slice. 0, or -errno of the recording. */
int handlers_write(struct recording *recording, struct memtoll_bpf *bpf, struct targets *targets,
		   const struct memtoll_answer_key *key, const struct memtoll_answer *answer);

/* The longest wait of each process until now. 0, or -errno of the recording. */
int handlers_commit(struct recording *recording, struct memtoll_bpf *bpf, struct targets *targets,
		    void (*want_stack)(void *context, uint64_t stack_id), void *context);

#endif /* MEMTOLL_HANDLERS_H */
