/* SPDX-License-Identifier: GPL-2.0 */
/*
 * starts.h: how programs start. A command's process has to be held between the mapping of its
 * libraries and its first own instruction. The first time that a program starts it is held at each
 * system call of its dynamic loader; later starts of the same run until the loader itself reports
 * that it has mapped all (start.bpf.c), with probes attached beforehand to what was mapped the
 * first time.
 */
#ifndef MEMTOLL_STARTS_H
#define MEMTOLL_STARTS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/maps.h"
#include "probes/attach.h"

struct starts;
struct starting;

struct starts *starts_new(struct memtoll_bpf *bpf, enum uprobe_mechanism mechanism);
void starts_free(struct starts *starts);

/*
 * A held process has called exec; base: where its dynamic loader is mapped. NULL where the loader
 * cannot be probed: it has no such function, or the kernel cannot link to it. Ended by
 * starting_end().
 */
struct starting *starting_new(struct starts *starts, pid_t pid, const struct maps *maps,
			      uint64_t base);

/*
 * What the same program, with the same loader and the same settings of it (LD_PRELOAD ...), had
 * mapped when it was ready: struct allocator_module. NULL: this is the first. Otherwise it will get
 * SIGURG at the end of loading.
 */
const GPtrArray *starting_modules(const struct starting *starting);

/* The loader has mapped everything. */
bool starting_is_over(const struct starting *starting);

/*
 * It is ready, and these are its allocators (remembered, and freed, from now on); NULL: it never
 * was. Frees.
 */
void starting_end(struct starting *starting, GPtrArray *modules);

#endif /* MEMTOLL_STARTS_H */
