// SPDX-License-Identifier: GPL-2.0
#include "host/target_rights.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/root_open.h"
#include "host/privileges.h"
#include "host/timed_call.h"

struct rights_call {
	pid_t pid;
	void (*before)(void *job);
	void (*work)(int root, void *job);
	void *job;
	GDestroyNotify release; /* of job */
	bool done;
};

/* Given up, and has ended after all, or was never begun. */
static void call_free(gpointer data)
{
	struct rights_call *call = data;

	call->release(call->job);
	g_free(call);
}

/* File system user and group of a process (proc(5)). */
static bool file_owner(pid_t pid, unsigned int *user, unsigned int *group)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/status", pid), *text = NULL;
	const char *uid, *gid;

	if (!g_file_get_contents(path, &text, NULL, NULL))
		return false;
	uid = strstr(text, "\nUid:");
	gid = strstr(text, "\nGid:");
	return uid && gid && sscanf(uid, "\nUid: %*u %*u %*u %u", user) == 1 &&
	       sscanf(gid, "\nGid: %*u %*u %*u %u", group) == 1;
}

/* Of this thread, for good: setfsuid(2) is per thread. */
static bool take_rights_of(pid_t pid)
{
	unsigned int user, group;

	if (!file_owner(pid, &user, &group))
		return false;
	if (geteuid()) {
		privileges_keep(PRIVILEGES_NONE);
		return true;
	}
	/* The system call is per thread; glibc's setgroups() changes all threads. */
	if (syscall(SYS_setgroups, 0, NULL))
		return false;
	syscall(SYS_setfsgid, group);
	syscall(SYS_setfsuid, user);
	/* The kernel clears "dumpable" when a process changes its credentials. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	return syscall(SYS_setfsuid, -1) == (long)user;
}

static gpointer run(gpointer data)
{
	struct rights_call *call = data;
	int root = root_open(call->pid);

	if (root >= 0 && call->before)
		call->before(call->job);
	call->done = root >= 0 && take_rights_of(call->pid);
	if (call->done)
		call->work(root, call->job);
	if (root >= 0)
		close(root);
	return NULL;
}

/* Not in the worker of timed_call.h: the rights are not given back. */
static void begin(void *call)
{
	GThread *thread = g_thread_try_new("rights", run, call, NULL);

	if (thread)
		g_thread_join(thread);
}

bool with_target_rights(pid_t pid, void (*before)(void *job), void (*work)(int root, void *job),
			void *job, GDestroyNotify release)
{
	struct rights_call *call = g_new0(struct rights_call, 1);
	bool done;

	call->pid = pid;
	call->before = before;
	call->work = work;
	call->job = job;
	call->release = release;
	if (!timed_call(pid, TIMED_CALL_FILE_MS, begin, call, call_free))
		return false;
	done = call->done;
	if (!done)
		release(job);
	g_free(call);
	return done;
}
