/* SPDX-License-Identifier: GPL-2.0 */
/*
 * shared_sites.h: call sites are of a program, not of each of its processes.
 *
 * Where no stack is walked the kernel side knows a site by addresses, which each process has others
 * of. With the example of its stack it keeps an id by places in modules, which all processes that run
 * this code have (site_share() in bpf/stacks/site.bpf.c). Stacks that are walked have such ids anyway.
 */
#ifndef MEMTOLL_SHARED_SITES_H
#define MEMTOLL_SHARED_SITES_H

#include <stdbool.h>
#include <stdint.h>

struct memtoll_stack;
struct shared_sites;

struct shared_sites *shared_sites_new(int stacks_fd);
void shared_sites_free(struct shared_sites *sites);

/* The id that all processes have for it; other ids than those of sites are as they are. */
uint64_t shared_sites_get(struct shared_sites *sites, uint64_t id);

/* The stack with this id, an example if it is a site's; false: the kernel side has none. */
bool shared_sites_stack(const struct shared_sites *sites, uint64_t id, struct memtoll_stack *stack);

/* The kernel side no longer has it. */
void shared_sites_forget(struct shared_sites *sites, uint64_t id);

#endif /* MEMTOLL_SHARED_SITES_H */
