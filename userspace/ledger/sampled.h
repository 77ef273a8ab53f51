/* SPDX-License-Identifier: GPL-2.0 */
/*
 * sampled.h: blocks sampled by --sample: their weights, and frees that pair with them. Pure, no
 * I/O.
 */
#ifndef MEMTOLL_SAMPLED_H
#define MEMTOLL_SAMPLED_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/records.h"
#include "bpf/wire/sampling.h"

/* One site in one slice: columns of table sampled. */
struct sampled_site {
	pid_t pid;
	uint8_t fn;
	uint64_t stack_id;
	uint64_t chosen;
	uint64_t chosen_bytes;
	double calls;
	double calls_variance;
	double bytes;
	double bytes_variance;
	double freed;
	double freed_bytes;
	double freed_bytes_variance;
};

struct sampled;

/*
 * mean_bytes: between two chosen places; 0: nothing is sampled. min_size: of what is not sampled.
 */
struct sampled *sampled_new(uint64_t mean_bytes, uint64_t min_size);
void sampled_free(struct sampled *sampled);

/*
 * A record of the ring buffer. True: it was of sampled blocks only, which the ledger does not
 * follow. Otherwise what the ledger is to have is left in it.
 */
bool sampled_block(struct sampled *sampled, struct memtoll_block *block);

/* The live chosen block at an address: who made it. False: none is there that is known. */
bool sampled_owner(const struct sampled *sampled, pid_t pid, uint64_t address, uint64_t *stack_id,
		   uint8_t *fn);

/* For how many blocks of this size a chosen one stands. */
double sampled_weight(const struct sampled *sampled, uint64_t size);

/* The process's memory is gone: exec, exit. */
void sampled_forget(struct sampled *sampled, pid_t pid);

/* Hand over the sums since the last time. */
void sampled_drain(struct sampled *sampled,
		   void (*each)(void *context, const struct sampled_site *site), void *context);

#endif /* MEMTOLL_SAMPLED_H */
