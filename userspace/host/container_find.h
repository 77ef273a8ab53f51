/* SPDX-License-Identifier: GPL-2.0 */
/* container_find.h: the containers that run now, by name. */
#ifndef MEMTOLL_CONTAINER_FIND_H
#define MEMTOLL_CONTAINER_FIND_H

/* A cgroup that a name stands for. */
struct container_found {
	char *directory; /* of the container, or of the pod */
	char *title;
};

/*
 * The containers whose cgroup lies below a directory of a mounted hierarchy, and that are called so:
 * by name ("web"; of Kubernetes "app", "web-1/app", "shop/web-1/app"), a pod ("web-1", "shop/web-1"),
 * or the beginning of an id, of four digits at least. A name goes before a pod, and that before an
 * id. root: as for container_read_names().
 *
 * One: found is filled. Several: ambiguous lists them, as one line. How many there are.
 */
unsigned int container_find(const char *hierarchy, const char *root, const char *name,
			    struct container_found *found, char **ambiguous);

void container_found_clear(struct container_found *found);

#endif /* MEMTOLL_CONTAINER_FIND_H */
