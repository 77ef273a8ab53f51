// SPDX-License-Identifier: GPL-2.0
/*
 * targets_container.c: which container a process is in. Its names are read once for each cgroup: the
 * path is what the kernel has, and does not change while it is the same container.
 */
#include "host/container.h"
#include "recording/recording.h"
#include "targets/targets_internal.h"

/* Its id, or "". */
static char *record_container(struct recording *recording, const char *path)
{
	struct container container;
	g_autofree char *title = NULL;
	char *id;

	if (!container_of_path(path, &container)) {
		container_clear(&container);
		return g_strdup("");
	}
	container_read_names("", &container);
	title = container_title(&container);
	recording_container(recording, &(struct container_fact){
					       .id = container.id,
					       .runtime = container.runtime,
					       .name = container.name,
					       .image = container.image,
					       .pod = container.pod,
					       .pod_namespace = container.pod_namespace,
					       .pod_uid = container.pod_uid,
					       .title = title,
				       });
	id = g_strdup(container.id);
	container_clear(&container);
	return id;
}

void followed_record_container(struct targets *targets, struct followed *followed)
{
	struct recording *recording = targets->config.recording;
	const char *path = followed->memory_cgroup, *id;
	pid_t pid = followed->target.pid;

	/* Paths are kept once each, as long as the groups are (cgroup.h). */
	id = g_hash_table_lookup(targets->containers, path);
	if (!id) {
		g_hash_table_insert(targets->containers, (char *)path,
				    record_container(recording, path));
		id = g_hash_table_lookup(targets->containers, path);
	}
	if (*id || followed->contained)
		recording_process_container(recording, pid, *id ? id : NULL,
					    *id ? container_pid_inside(pid) : 0);
	followed->contained = *id != '\0';
}
