// SPDX-License-Identifier: GPL-2.0
/*
 * session_container.c: a container that ends while it is recorded by name, and starts again: its
 * cgroup is made anew, or it has another one, as one that was made anew by its orchestrator.
 */
#include <glib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/message.h"
#include "host/cgroup.h"
#include "host/container_find.h"
#include "recording/recording.h"
#include "session/session_internal.h"

#define LOOK_NS (500 * MS) /* all cgroups are looked through */
#define AWAIT_NS (10000 * MS)

static bool find_again(struct session *session)
{
	g_autofree char *hierarchy = cgroup_find("/"), *ambiguous = NULL;
	struct container_found found = { 0 };

	/* Of two of its name neither is it. */
	if (hierarchy)
		container_find(hierarchy, "", session->config.container, &found, &ambiguous);
	if (found.directory) {
		g_free(session->cgroup_again);
		session->cgroup_again = g_steal_pointer(&found.directory);
		session->config.cgroup = session->cgroup_again;
	}
	container_found_clear(&found);
	return session->config.cgroup == session->cgroup_again;
}

void session_note_cgroup(struct session *session)
{
	struct stat status;

	if (!stat(session->config.cgroup, &status))
		session->cgroup_inode = status.st_ino;
}

static void tell_restart(struct session *session)
{
	session->restarts++;
	recording_meta_int(session->recording, "container_restarts", session->restarts);
	message("container %s has started again", session->config.container);
}

static bool await(struct session *session, uint64_t now)
{
	const char *name = session->config.container;

	if (!session->cgroup_gone_ns) {
		session->cgroup_gone_ns = now;
		message("container %s has ended; if it starts again within %llu s, it is followed",
			name, AWAIT_NS / (1000 * MS));
	} else if (now - session->cgroup_looked_ns < LOOK_NS) {
		return true;
	}
	session->cgroup_looked_ns = now;
	if (find_again(session)) {
		session_note_cgroup(session);
		if (session_add_coming(session, NULL)) {
			session->cgroup_gone_ns = 0;
			tell_restart(session);
			return true;
		}
	}
	if (now - session->cgroup_gone_ns < AWAIT_NS)
		return true;
	session->end_reason = "container ended";
	return false;
}

bool session_follow_container(struct session *session, uint64_t now)
{
	uint64_t before = session->cgroup_inode;

	if (session->cgroup_gone_ns)
		return await(session, now);
	session_note_cgroup(session);
	if (!session_add_coming(session, NULL))
		return await(session, now);
	/* It was away for less than the time between two looks. */
	if (before && session->cgroup_inode != before)
		tell_restart(session);
	return true;
}
