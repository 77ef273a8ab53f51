/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kernel_subset.h: of the kernel's type information what our programs' relocations ask for. For each
 * structure that they name libbpf looks through all of the kernel's types, more than a hundred
 * thousand: a tenth of what a start takes.
 */
#ifndef MEMTOLL_KERNEL_SUBSET_H
#define MEMTOLL_KERNEL_SUBSET_H

#include <stdbool.h>

struct btf;

/*
 * The structures, unions and enumerations of the kernel that have a name of one of these, with all
 * that lies inside of them; pointers lead nowhere, as no relocation follows one. Freed by the caller
 * with btf__free(). NULL with errno set.
 */
struct btf *kernel_subset_make(const struct btf *kernel, const struct btf *names);

/*
 * That of the running kernel, kept under this key during this boot: a file for libbpf, which lasts as
 * long as this process. NULL: there is none.
 */
const char *kernel_subset_path(const char *key);

/* Make the one for programs with these types, for the next start. Failing to is no error. */
void kernel_subset_keep(const char *key, const struct btf *names);

/* What was not good for loading is not used again in this process. False: none was used. */
bool kernel_subset_drop(void);

#endif /* MEMTOLL_KERNEL_SUBSET_H */
