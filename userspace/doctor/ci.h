/* SPDX-License-Identifier: GPL-2.0 */
/* ci.h: what a container lacks to record a command in it, and the setting that gives it. */
#ifndef MEMTOLL_CI_H
#define MEMTOLL_CI_H

#include <glib.h>
#include <stdbool.h>

/* Without it nothing can be recorded; or, not required, something is missing in what is. */
struct ci_lack {
	const char *name; /* "cap_bpf", "pid namespace" */
	bool required;
	char *why;
	char *docker;	  /* option of docker run, or what to do on the host */
	char *github;	  /* GitHub's runners */
	char *kubernetes; /* field of a pod or a container */
};

/* Needs no privileges, and changes nothing. struct ci_lack, the required ones first. */
GPtrArray *ci_find(void);

/* A line each. 0 or -errno after a message. */
int ci_print(const GPtrArray *lacks, bool json);

bool ci_works(const GPtrArray *lacks);

#endif /* MEMTOLL_CI_H */
