// SPDX-License-Identifier: GPL-2.0
/*
 * container_names.c: what runtimes write of their containers. All of it is JSON, which SQLite reads:
 * it is linked anyway, and takes any text (json_valid()).
 */
#define _GNU_SOURCE 1

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "host/container.h"

/* Some tens of KiB of one container; a list of all, of some hundred bytes each. */
#define FILE_MAX (8U << 20)
#define NAME_MAX_LENGTH 253 /* of a DNS name, as Kubernetes has them */

/* ?1: the text, ?2: the id. Columns: name, image, pod, namespace, uid of the pod. */
#define DOCKER                                                                        \
	"SELECT COALESCE(json_extract(x, '$.\"io.kubernetes.container.name\"'),"      \
	" LTRIM(json_extract(v, '$.Name'), '/')), json_extract(v, '$.Config.Image')," \
	" json_extract(x, '$.\"io.kubernetes.pod.name\"'),"                           \
	" json_extract(x, '$.\"io.kubernetes.pod.namespace\"'),"                      \
	" json_extract(x, '$.\"io.kubernetes.pod.uid\"')"                             \
	" FROM (SELECT ?1 AS v, json_extract(?1, '$.Config.Labels') AS x)"            \
	" WHERE json_extract(v, '$.ID') = ?2"

/* What the runtime interface of Kubernetes (CRI) has containers told: annotations. */
#define ANNOTATED                                                                          \
	"SELECT COALESCE(json_extract(x, '$.\"io.kubernetes.cri.container-name\"'),"       \
	" json_extract(x, '$.\"io.kubernetes.container.name\"'),"                          \
	" json_extract(x, '$.\"nerdctl/name\"'), CASE 'sandbox'"                           \
	" WHEN json_extract(x, '$.\"io.kubernetes.cri.container-type\"') THEN 'POD' END)," \
	" COALESCE(json_extract(x, '$.\"io.kubernetes.cri.image-name\"'),"                 \
	" json_extract(x, '$.\"io.kubernetes.cri-o.ImageName\"')),"                        \
	" COALESCE(json_extract(x, '$.\"io.kubernetes.cri.sandbox-name\"'),"               \
	" json_extract(x, '$.\"io.kubernetes.pod.name\"')),"                               \
	" COALESCE(json_extract(x, '$.\"io.kubernetes.cri.sandbox-namespace\"'),"          \
	" json_extract(x, '$.\"io.kubernetes.pod.namespace\"')),"                          \
	" COALESCE(json_extract(x, '$.\"io.kubernetes.cri.sandbox-uid\"'),"                \
	" json_extract(x, '$.\"io.kubernetes.pod.uid\"'))"                                 \
	" FROM (SELECT json_extract(?1, '$.annotations') AS x) WHERE ?2 <> ''"

/* Of the storage that Podman and CRI-O share; metadata is JSON in a text. */
#define LISTED                                                                        \
	"SELECT json_extract(c.value, '$.names[0]'),"                                 \
	" CASE WHEN json_valid(json_extract(c.value, '$.metadata')) THEN"             \
	" json_extract(json_extract(c.value, '$.metadata'), '$.\"image-name\"') END," \
	" NULL, NULL, NULL FROM json_each(?1) c WHERE CASE c.type WHEN 'object'"      \
	" THEN json_extract(c.value, '$.id') = ?2 END LIMIT 1"

static const struct source {
	const char *runtime;
	const char *directory; /* of root's: what it is a link to is root's doing */
	const char *before;    /* the id; NULL: a list, whose name `after` is */
	const char *after;
	const char *query;
} sources[] = {
	{ "docker", "/var/lib/docker/containers", "", "/config.v2.json", DOCKER },
	{ "docker", "/var/snap/docker/common/var-lib-docker/containers", "", "/config.v2.json",
	  DOCKER },
	{ "containerd", "/run/containerd/io.containerd.runtime.v2.task", "k8s.io/", "/config.json",
	  ANNOTATED },
	{ "containerd", "/run/containerd/io.containerd.runtime.v2.task", "default/", "/config.json",
	  ANNOTATED },
	{ "containerd", "/run/k3s/containerd/io.containerd.runtime.v2.task", "k8s.io/",
	  "/config.json", ANNOTATED },
	{ "containerd", "/run/k0s/containerd/io.containerd.runtime.v2.task", "k8s.io/",
	  "/config.json", ANNOTATED },
	{ "containerd", "/var/snap/microk8s/common/run/containerd/io.containerd.runtime.v2.task",
	  "k8s.io/", "/config.json", ANNOTATED },
	{ "cri-o", "/run/containers/storage/overlay-containers", "", "/userdata/config.json",
	  ANNOTATED },
	{ "cri-o", "/var/lib/containers/storage/overlay-containers", "", "/userdata/config.json",
	  ANNOTATED },
	{ "podman", "/var/lib/containers/storage/overlay-containers", NULL, "containers.json",
	  LISTED },
	{ "podman", "/var/lib/containers/storage/overlay-containers", NULL,
	  "volatile-containers.json", LISTED },
};

/* The directory, where nobody else may have put things into it. Or -1. */
static int open_directory(const char *root, const char *directory)
{
	g_autofree char *path = g_strconcat(root, directory, NULL);
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat status;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &status) && (!status.st_uid || status.st_uid == geteuid()) &&
	    !(status.st_mode & (S_IWGRP | S_IWOTH)))
		return fd;
	close(fd);
	return -1;
}

/* Below that no link is followed, and nothing is opened but a file. */
static int open_below(int directory, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	struct open_how look = how;
	struct stat status;
	int place, fd;

	/* What a device does when it is opened is its own business. */
	look.flags = O_PATH | O_CLOEXEC;
	place = (int)syscall(SYS_openat2, directory, path, &look, sizeof(look));
	if (place < 0)
		return -1;
	fd = -1;
	if (!fstat(place, &status) && S_ISREG(status.st_mode) && status.st_size > 0 &&
	    status.st_size <= FILE_MAX)
		fd = (int)syscall(SYS_openat2, directory, path, &how, sizeof(how));
	close(place);
	return fd;
}

static char *read_whole(int fd, size_t *length)
{
	struct stat status;
	char *text = NULL;
	ssize_t got;

	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_size > FILE_MAX)
		return NULL;
	text = g_malloc(status.st_size + 1);
	for (*length = 0; *length < (size_t)status.st_size; *length += got) {
		got = read(fd, text + *length, status.st_size - *length);
		if (got <= 0)
			break;
	}
	text[*length] = '\0';
	return text;
}

static char *read_source(const char *root, const struct source *source, const char *id,
			 size_t *length)
{
	g_autofree char *path = source->before ?
					g_strconcat(source->before, id, source->after, NULL) :
					g_strdup(source->after);
	int directory = open_directory(root, source->directory), fd;
	char *text = NULL;

	if (directory < 0)
		return NULL;
	fd = open_below(directory, path);
	if (fd >= 0) {
		text = read_whole(fd, length);
		close(fd);
	}
	close(directory);
	return text;
}

/* A name of letters that runtimes allow; else NULL. Freed by the caller. */
static char *name_of(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column), *at;
	size_t length = sqlite3_column_bytes(row, column);

	if (!text || !length || length > NAME_MAX_LENGTH || strlen(text) != length)
		return NULL;
	for (at = text; *at; at++)
		if (!g_ascii_isalnum(*at) && !strchr("_.-/:@+", *at))
			return NULL;
	return g_strdup(text);
}

/* False: the text does not tell of it. */
static bool take_names(sqlite3 *database, const char *query, const char *text, size_t length,
		       struct container *container)
{
	sqlite3_stmt *row = NULL;
	bool found = false;

	if (sqlite3_prepare_v2(database, "SELECT json_valid(?1)", -1, &row, NULL) == SQLITE_OK) {
		sqlite3_bind_text(row, 1, text, (int)length, SQLITE_STATIC);
		found = sqlite3_step(row) == SQLITE_ROW && sqlite3_column_int(row, 0);
	}
	sqlite3_finalize(row);
	if (!found || sqlite3_prepare_v2(database, query, -1, &row, NULL) != SQLITE_OK)
		return false;
	sqlite3_bind_text(row, 1, text, (int)length, SQLITE_STATIC);
	sqlite3_bind_text(row, 2, container->id, -1, SQLITE_STATIC);
	found = sqlite3_step(row) == SQLITE_ROW;
	if (found) {
		g_autofree char *uid = name_of(row, 4);

		container->name = name_of(row, 0);
		container->image = name_of(row, 1);
		container->pod = name_of(row, 2);
		container->pod_namespace = name_of(row, 3);
		if (!container->pod_uid)
			container->pod_uid = g_steal_pointer(&uid);
	}
	sqlite3_finalize(row);
	/* CRI-O's containers are in the list of its storage, too, but named otherwise. */
	return found && (container->name || container->pod);
}

static void forget_names(struct container *container)
{
	g_clear_pointer(&container->name, g_free);
	g_clear_pointer(&container->image, g_free);
	g_clear_pointer(&container->pod, g_free);
	g_clear_pointer(&container->pod_namespace, g_free);
}

void container_read_names(const char *root, struct container *container)
{
	sqlite3 *database = NULL;
	bool found = false;
	size_t i;

	if (sqlite3_open(":memory:", &database) != SQLITE_OK)
		goto out;
	for (i = 0; i < G_N_ELEMENTS(sources) && !found; i++) {
		const struct source *source = &sources[i];
		g_autofree char *text = NULL;
		size_t length = 0;

		if (container->runtime && strcmp(container->runtime, source->runtime))
			continue;
		text = read_source(root, source, container->id, &length);
		found = text && take_names(database, source->query, text, length, container);
		if (!found)
			forget_names(container);
		else if (!container->runtime)
			container->runtime = source->runtime;
	}
out:
	sqlite3_close(database);
}
