/* SPDX-License-Identifier: GPL-2.0 */
/* store_code.h: what the code at CPU samples stores; decoded once, and told to the BPF side. */
#ifndef MEMTOLL_STORE_CODE_H
#define MEMTOLL_STORE_CODE_H

#include <linux/types.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/records.h"
#include "session/store_loop.h"

struct store_code;

/* One loop, or row of stores: the same at each of its instructions. NONE: no such code. */
struct stored_by {
	enum store_kind kind;
	enum store_value value;
	uint32_t bytes_per_16_cycles;
	uint32_t length; /* as in struct store_loop */
	uint64_t head;	 /* address of its first instruction */
};

/* loops_fd: the map of what is decoded. */
struct store_code *store_code_new(int loops_fd);
void store_code_free(struct store_code *code);

/* While the process is there. */
struct stored_by store_code_at(struct store_code *code, const struct memtoll_sample *sample);
/* Of the instruction that faulted. */
struct stored_by store_code_of(struct store_code *code, const struct memtoll_run *run);

/* The process has other code. */
void store_code_forget(struct store_code *code, pid_t pid);

#endif /* MEMTOLL_STORE_CODE_H */
