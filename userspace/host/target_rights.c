// SPDX-License-Identifier: GPL-2.0
#include "host/target_rights.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/message.h"
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

/* The numbers of a line that begins with name, of /proc/PID/status (proc(5)). How many, at most max. */
static size_t read_ids(const char *status, const char *name, unsigned int *ids, size_t max)
{
	const char *at = strstr(status, name);
	size_t count = 0;
	char *end;

	for (at = at ? at + strlen(name) : "\n"; count < max && *at != '\n'; at = end) {
		ids[count] = (unsigned int)strtoul(at, &end, 10);
		if (end == at)
			break;
		count++;
	}
	return count;
}

bool target_rights_read(pid_t pid, struct target_rights *rights)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/status", pid), *text = NULL;
	unsigned int users[4], groups[4];

	*rights = (struct target_rights){ .user = RIGHTS_NOBODY, .group = RIGHTS_NOBODY };
	/* Real, effective, saved, of the file system; a name of its own is in one line, escaped. */
	if (!g_file_get_contents(path, &text, NULL, NULL) ||
	    read_ids(text, "\nUid:", users, 4) != 4 || read_ids(text, "\nGid:", groups, 4) != 4)
		return false;
	rights->user = users[3];
	rights->group = groups[3];
	rights->others = read_ids(text, "\nGroups:", rights->other, RIGHTS_GROUPS_MAX);
	return true;
}

/* Groups first: afterwards it may not. False: it may not anyway. */
static bool change_ids(const struct target_rights *rights)
{
	/* The system call is per thread; glibc's setgroups() changes all threads. */
	if (syscall(SYS_setgroups, rights->others, rights->other))
		return false;
	syscall(SYS_setfsgid, rights->group);
	syscall(SYS_setfsuid, rights->user);
	/* The kernel clears "dumpable" when a process changes its credentials. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	return syscall(SYS_setfsuid, -1) == (long)rights->user &&
	       syscall(SYS_setfsgid, -1) == (long)rights->group;
}

bool target_rights_take(const struct target_rights *rights)
{
	static int told;

	if (!geteuid() && change_ids(rights))
		return true;
	/* Also of a root that may not change its ids, as in a container without CAP_SETGID. */
	if (geteuid() || (rights->user == geteuid() && rights->group == getegid())) {
		privileges_keep(PRIVILEGES_NONE);
		return true;
	}
	if (g_atomic_int_compare_and_exchange(&told, 0, 1))
		message("without cap_setuid and cap_setgid nothing is read that programs of other "
			"users name: debug files, names of generated code, option files");
	return false;
}

static gpointer run(gpointer data)
{
	struct rights_call *call = data;
	struct target_rights rights;
	int root = root_open(call->pid);

	if (root >= 0 && call->before)
		call->before(call->job);
	call->done =
		root >= 0 && target_rights_read(call->pid, &rights) && target_rights_take(&rights);
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
