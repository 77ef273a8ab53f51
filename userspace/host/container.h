/* SPDX-License-Identifier: GPL-2.0 */
/*
 * container.h: which container a process is in, by the path of its cgroup, and what its runtime calls
 * it, by the files that the runtime keeps of it.
 *
 * Paths and files are of whoever may start containers: names are of few characters, or none at all.
 */
#ifndef MEMTOLL_CONTAINER_H
#define MEMTOLL_CONTAINER_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CONTAINER_ID 64 /* hexadecimal digits */
#define CONTAINER_ID_SHOWN 12

/* What is not known is NULL. */
struct container {
	char id[CONTAINER_ID + 1];
	const char *runtime; /* "docker", "containerd", "cri-o", "podman" */
	char *name;
	char *image;
	char *pod; /* of Kubernetes: its name, its namespace, and its uid */
	char *pod_namespace;
	char *pod_uid;
	size_t path_length; /* of the path up to its own cgroup: it may have made others below */
	long user;	    /* whose session it runs in, and so whose runtime has made it; or -1 */
};

/*
 * By the path of a cgroup, of version 1 or 2, in the shapes that systemd and cgroupfs drivers make:
 * the innermost container that it is of. False: of none.
 */
bool container_of_path(const char *path, struct container *container);

/* Its names, as the runtime's files below root have them ("": those of this machine). */
void container_read_names(const char *root, struct container *container);

void container_clear(struct container *container);

/* "web", "shop/web-1/app" (namespace, pod, container), or the beginning of its id. */
char *container_title(const struct container *container);

/* Process number of a process as its own pid namespace has it; 0: gone, or it has none but ours. */
pid_t container_pid_inside(pid_t pid);

#endif /* MEMTOLL_CONTAINER_H */
