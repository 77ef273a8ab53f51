// SPDX-License-Identifier: GPL-2.0
#include "host/container.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789abcdef"

#define UID_DASHED 36 /* 8-4-4-4-12; in names of slices the dashes are underscores */
#define UID_PLAIN 32  /* of a static pod: a hash of its file */

/* What stands before the id: systemd's names of scopes, and what some drivers call directories. */
static const struct {
	const char *prefix;
	const char *runtime;
} prefixes[] = {
	{ "docker-", "docker" },      { "cri-containerd-", "containerd" },
	{ "nerdctl-", "containerd" }, { "containerd-", "containerd" },
	{ "crio-", "cri-o" },	      { "libpod-payload-", "podman" },
	{ "libpod-", "podman" },
};

/* Directories that ids lie in as they are. */
static const struct {
	const char *name;
	const char *runtime;
} parents[] = {
	{ "docker", "docker" },
	{ "libpod_parent", "podman" },
};

static bool is_id(const char *text, size_t length)
{
	return length == CONTAINER_ID && strspn(text, DIGITS) >= CONTAINER_ID;
}

static const char *runtime_of_parent(const char *name, size_t length)
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(parents); i++)
		if (length == strlen(parents[i].name) && !memcmp(name, parents[i].name, length))
			return parents[i].runtime;
	return NULL;
}

/* "docker-ID", "ID": without ".scope". */
static bool take_id(const char *part, size_t length, struct container *container)
{
	size_t i, skip;

	container->runtime = NULL;
	for (i = 0; i < G_N_ELEMENTS(prefixes) && !container->runtime; i++) {
		skip = strlen(prefixes[i].prefix);
		if (length < skip || memcmp(part, prefixes[i].prefix, skip) ||
		    !is_id(part + skip, length - skip))
			continue;
		container->runtime = prefixes[i].runtime;
		part += skip;
		length -= skip;
	}
	if (!is_id(part, length))
		return false;
	memcpy(container->id, part, CONTAINER_ID);
	container->id[CONTAINER_ID] = '\0';
	return true;
}

/*
 * One part of a path: "docker-ID.scope", "ID", or "kubepods-burstable-podUID.slice:cri-containerd:ID",
 * as runc makes it of systemd's names where systemd does not make the cgroup.
 */
static bool read_part(const char *part, size_t length, struct container *container)
{
	const char *first = memchr(part, ':', length);
	const char *last = g_strrstr_len(part, (gssize)length, ":");
	g_autofree char *named = NULL;

	if (first && last > first) {
		named = g_strdup_printf("%.*s-%.*s", (int)(last - first - 1), first + 1,
					(int)(part + length - last - 1), last + 1);
		return take_id(named, strlen(named), container);
	}
	if (length > 6 && !memcmp(part + length - 6, ".scope", 6))
		length -= 6;
	return take_id(part, length, container);
}

static bool is_uid(const char *text, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (!g_ascii_isxdigit(text[i]) && text[i] != '-' && text[i] != '_')
			return false;
	return true;
}

/* "podUID", "kubepods-besteffort-podUID.slice". NULL: no pod's. */
static char *pod_uid_of(const char *part, size_t length)
{
	static const size_t lengths[] = { UID_DASHED, UID_PLAIN };
	const char *end = memchr(part, ':', length);
	size_t i;

	length = end ? (size_t)(end - part) : length;
	if (length > 6 && !memcmp(part + length - 6, ".slice", 6))
		length -= 6;
	for (i = 0; i < G_N_ELEMENTS(lengths); i++) {
		const char *uid = part + length - lengths[i];

		if (length >= lengths[i] + 3 && !memcmp(uid - 3, "pod", 3) &&
		    (length == lengths[i] + 3 || uid[-4] == '-') && is_uid(uid, lengths[i]))
			return g_strdelimit(g_strndup(uid, lengths[i]), "_", '-');
	}
	return NULL;
}

/* The part before the one at `at`; its length, 0 where there is none. */
static size_t part_before(const char *path, const char **at)
{
	const char *end = *at;

	while (end > path && end[-1] == '/')
		end--;
	*at = end;
	while (*at > path && (*at)[-1] != '/')
		(*at)--;
	return end - *at;
}

/* systemd.special(7): all that a user runs is below user-UID.slice. */
static long user_of_path(const char *path)
{
	static const char slice[] = "/user.slice/user-";
	const char *at = strstr(path, slice);
	char *end;
	long user;

	if (!at || !g_ascii_isdigit(at[sizeof(slice) - 1]))
		return -1;
	user = strtol(at + sizeof(slice) - 1, &end, 10);
	return g_str_has_prefix(end, ".slice/") && user < UINT32_MAX ? user : -1;
}

bool container_of_path(const char *path, struct container *container)
{
	const char *part = path + strlen(path);
	size_t length;

	*container = (struct container){ .user = user_of_path(path) };
	do {
		length = part_before(path, &part);
		if (!length)
			return false;
	} while (!read_part(part, length, container));
	container->path_length = part + length - path;
	container->pod_uid = pod_uid_of(part, length);
	length = part_before(path, &part);
	if (!container->runtime)
		container->runtime = runtime_of_parent(part, length);
	while (length && !container->pod_uid) {
		container->pod_uid = pod_uid_of(part, length);
		length = part_before(path, &part);
	}
	return true;
}

void container_clear(struct container *container)
{
	g_free(container->name);
	g_free(container->image);
	g_free(container->pod);
	g_free(container->pod_namespace);
	g_free(container->pod_uid);
	*container = (struct container){ 0 };
}

char *container_title(const struct container *container)
{
	const char *space = container->pod_namespace ? container->pod_namespace : "";
	g_autofree char *name = container->name ? g_strdup(container->name) :
						  g_strndup(container->id, CONTAINER_ID_SHOWN);

	if (!container->pod)
		return g_steal_pointer(&name);
	return g_strdup_printf("%s%s%s/%s", space, *space ? "/" : "", container->pod, name);
}

pid_t container_pid_inside(pid_t pid)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/status", pid), *text = NULL;
	const char *at;
	long inside = 0;
	int namespaces = 0;
	char *end;

	if (!g_file_get_contents(path, &text, NULL, NULL))
		return 0;
	/* Outermost first (proc(5)). A name of its own is in one line, escaped. */
	at = strstr(text, "\nNSpid:");
	for (at = at ? at + 7 : "\n"; *at != '\n'; at = end) {
		long number = strtol(at, &end, 10);

		if (end == at)
			break;
		inside = number;
		namespaces++;
	}
	return namespaces > 1 ? (pid_t)inside : 0;
}
