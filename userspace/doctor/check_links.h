/* SPDX-License-Identifier: GPL-2.0 */
/* check_links.h: a check's programs on many places of one file in one process. */
#ifndef MEMTOLL_CHECK_LINKS_H
#define MEMTOLL_CHECK_LINKS_H

#include <glib.h>
#include <sys/types.h>

#include "probes/attach.h"

struct check_arguments_bpf;

/* Offsets in the file, and what each says to the program. */
struct check_places {
	GArray *offsets; /* __u64 */
	GArray *cookies;
};

void check_places_init(struct check_places *places);
void check_places_add(struct check_places *places, __u64 offset, __u64 cookie);
void check_places_free(struct check_places *places);

/* The skeleton with these programs of it loaded (NULL-terminated names); NULL with errno set. */
struct check_arguments_bpf *check_load(enum uprobe_mechanism mechanism, const char *const *names);

struct check_links {
	int fd; /* of a multi link */
	GPtrArray *links;
};

/* 0 or -errno; to be detached in either case. fd: of the file. */
int check_attach(const struct bpf_program *program, enum uprobe_mechanism mechanism, pid_t pid,
		 int fd, const struct check_places *places, struct check_links *links);
/* Also of zeros, and twice. */
void check_detach(struct check_links *links);

#endif /* MEMTOLL_CHECK_LINKS_H */
