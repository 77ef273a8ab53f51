// SPDX-License-Identifier: GPL-2.0
/*
 * container_names.c: what runtimes write of their containers. All of it is JSON, which SQLite reads:
 * it is linked anyway, and takes any text (json_valid()).
 */
#define _GNU_SOURCE 1

#include <fcntl.h>
#include <pwd.h>
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

/* ?1: the text. Where dockerd keeps all (dockerd(8): --data-root). */
#define DOCKER_ROOT "SELECT json_extract(?1, '$.\"data-root\"') WHERE ?2 <> ''"
#define DOCKER_SETTINGS "daemon.json"

enum place {
	OF_MACHINE, /* of root's: what it is a link to is root's doing */
	AT_HOME,    /* of whose session the container runs in */
	MOVED,	    /* below where the daemon's settings have it */
};

static const struct source {
	const char *runtime;
	const char *directory;
	const char *before; /* the id; NULL: a list, whose name `after` is */
	const char *after;
	const char *query;
	enum place place;
} sources[] = {
	{ "docker", "/var/lib/docker/containers", "", "/config.v2.json", DOCKER, OF_MACHINE },
	{ "docker", "/var/snap/docker/common/var-lib-docker/containers", "", "/config.v2.json",
	  DOCKER, OF_MACHINE },
	{ "containerd", "/run/containerd/io.containerd.runtime.v2.task", "k8s.io/", "/config.json",
	  ANNOTATED, OF_MACHINE },
	{ "containerd", "/run/containerd/io.containerd.runtime.v2.task", "default/", "/config.json",
	  ANNOTATED, OF_MACHINE },
	{ "containerd", "/run/k3s/containerd/io.containerd.runtime.v2.task", "k8s.io/",
	  "/config.json", ANNOTATED, OF_MACHINE },
	{ "containerd", "/run/k0s/containerd/io.containerd.runtime.v2.task", "k8s.io/",
	  "/config.json", ANNOTATED, OF_MACHINE },
	{ "containerd", "/var/snap/microk8s/common/run/containerd/io.containerd.runtime.v2.task",
	  "k8s.io/", "/config.json", ANNOTATED, OF_MACHINE },
	{ "cri-o", "/run/containers/storage/overlay-containers", "", "/userdata/config.json",
	  ANNOTATED, OF_MACHINE },
	{ "cri-o", "/var/lib/containers/storage/overlay-containers", "", "/userdata/config.json",
	  ANNOTATED, OF_MACHINE },
	{ "podman", "/var/lib/containers/storage/overlay-containers", NULL, "containers.json",
	  LISTED, OF_MACHINE },
	{ "podman", "/var/lib/containers/storage/overlay-containers", NULL,
	  "volatile-containers.json", LISTED, OF_MACHINE },
	{ "docker", "/containers", "", "/config.v2.json", DOCKER, MOVED },
	{ "docker", "/.local/share/docker/containers", "", "/config.v2.json", DOCKER, AT_HOME },
	{ "podman", "/.local/share/containers/storage/overlay-containers", NULL, "containers.json",
	  LISTED, AT_HOME },
	{ "podman", "/.local/share/containers/storage/overlay-containers", NULL,
	  "volatile-containers.json", LISTED, AT_HOME },
};

/* The directory, where nobody but owner may have put things into it. Or -1. */
static int open_directory(const char *path, uid_t owner)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat status;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &status) && status.st_uid == owner &&
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

static char *read_below(const char *directory, uid_t owner, const char *path, size_t *length)
{
	int place = open_directory(directory, owner), fd;
	char *text = NULL;

	/* Root's, and in a container or a test its own. */
	if (place < 0 && !owner && geteuid())
		place = open_directory(directory, geteuid());
	if (place < 0)
		return NULL;
	fd = open_below(place, path);
	if (fd >= 0) {
		text = read_whole(fd, length);
		close(fd);
	}
	close(place);
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

/* A query over a text, on its first row; NULL: there is none. */
static sqlite3_stmt *ask(sqlite3 *database, const char *query, const char *text, size_t length,
			 const char *id)
{
	sqlite3_stmt *row = NULL;

	if (sqlite3_prepare_v2(database, query, -1, &row, NULL) == SQLITE_OK) {
		sqlite3_bind_text(row, 1, text, (int)length, SQLITE_STATIC);
		sqlite3_bind_text(row, 2, id, -1, SQLITE_STATIC);
		if (sqlite3_step(row) == SQLITE_ROW)
			return row;
	}
	sqlite3_finalize(row);
	return NULL;
}

static bool is_json(sqlite3 *database, const char *text, size_t length)
{
	sqlite3_stmt *row =
		ask(database, "SELECT 1 WHERE json_valid(?1) AND ?2 = ''", text, length, "");
	const bool is = row != NULL;

	sqlite3_finalize(row);
	return is;
}

/* False: the text does not tell of it. */
static bool take_names(sqlite3 *database, const char *query, const char *text, size_t length,
		       struct container *container)
{
	sqlite3_stmt *row = is_json(database, text, length) ?
				    ask(database, query, text, length, container->id) :
				    NULL;
	const bool found = row != NULL;

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

/* Where root's files say that users live, without asking a network's directory. Freed by the caller. */
static char *home_of(const char *root, long user)
{
	g_autofree char *name = g_strconcat(root, "/etc/passwd", NULL);
	FILE *file = user < 0 ? NULL : fopen(name, "re");
	const struct passwd *entry;
	char *home = NULL;

	while (file && !home && (entry = fgetpwent(file)))
		if (entry->pw_uid == (uid_t)user && entry->pw_dir[0] == '/')
			home = g_strdup(entry->pw_dir);
	if (file)
		fclose(file);
	return home;
}

/* Freed by the caller; NULL: it is where it is for everybody. */
static char *docker_root(const char *root, sqlite3 *database)
{
	g_autofree char *settings = g_strconcat(root, "/etc/docker", NULL);
	size_t length = 0;
	g_autofree char *text = read_below(settings, 0, DOCKER_SETTINGS, &length);
	sqlite3_stmt *row = text && is_json(database, text, length) ?
				    ask(database, DOCKER_ROOT, text, length, "x") :
				    NULL;
	const char *path = row ? (const char *)sqlite3_column_text(row, 0) : NULL;
	char *moved = path && path[0] == '/' ? g_strdup(path) : NULL;

	sqlite3_finalize(row);
	return moved;
}

/* Freed by the caller; NULL: this machine has none, for this container. */
static char *directory_of(const char *root, const struct source *source, sqlite3 *database,
			  const struct container *container)
{
	g_autofree char *base = NULL;

	if (source->place == AT_HOME)
		base = home_of(root, container->user);
	else if (source->place == MOVED)
		base = docker_root(root, database);
	else
		base = g_strdup("");
	return base ? g_strconcat(root, base, source->directory, NULL) : NULL;
}

static bool read_source(const char *root, const struct source *source, sqlite3 *database,
			struct container *container)
{
	g_autofree char *directory = directory_of(root, source, database, container);
	g_autofree char *path =
		source->before ? g_strconcat(source->before, container->id, source->after, NULL) :
				 g_strdup(source->after);
	const uid_t owner = source->place == AT_HOME ? (uid_t)container->user : 0;
	size_t length = 0;
	g_autofree char *text = directory ? read_below(directory, owner, path, &length) : NULL;

	if (text && take_names(database, source->query, text, length, container))
		return true;
	forget_names(container);
	return false;
}

void container_read_names(const char *root, struct container *container)
{
	sqlite3 *database = NULL;
	bool found = false;
	size_t i;

	if (sqlite3_open(":memory:", &database) != SQLITE_OK)
		goto out;
	for (i = 0; i < G_N_ELEMENTS(sources) && !found; i++) {
		if (container->runtime && strcmp(container->runtime, sources[i].runtime))
			continue;
		found = read_source(root, &sources[i], database, container);
		if (found && !container->runtime)
			container->runtime = sources[i].runtime;
	}
out:
	sqlite3_close(database);
}
