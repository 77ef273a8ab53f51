// SPDX-License-Identifier: GPL-2.0
#include "cli/target_options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "cli/arguments.h"
#include "host/cgroup.h"
#include "host/container_find.h"
#include "host/privileges.h"
#include "host/proc.h"

/* "1", "1,2": numbers of the range of pid_t, commas between them. */
static bool is_pid_list(const char *text)
{
	g_auto(GStrv) words = g_strsplit(text, ",", -1);
	guint64 pid;
	size_t i;

	for (i = 0; words[i]; i++)
		if (!g_ascii_string_to_unsigned(words[i], 10, 1, G_MAXINT, &pid, NULL))
			return false;
	return i > 0;
}

error_t take_target(struct target_options *options, int key, char *value, struct argp_state *state)
{
	switch (key) {
	case 'p':
		if (!is_pid_list(value))
			refuse("-p '%s' is not a list of process ids", value);
		options->pids = value;
		break;
	case 'n':
		if (!*value)
			refuse("-n '%s' is not a name", value);
		options->name = value;
		break;
	case 'c':
		if (!*value)
			refuse("-c '%s' is not a cgroup", value);
		options->cgroup = value;
		break;
	case ARGP_KEY_ARGS:
		/* Everything from the first word that is no option of ours is the command. */
		options->command = state->argv + state->next;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int count(const struct target_options *options)
{
	return !!options->pids + !!options->name + !!options->cgroup + !!options->command;
}

bool has_target(const struct target_options *options)
{
	return count(options) > 0;
}

int want_target(const struct target_options *options)
{
	int targets = count(options);

	if (targets == 1)
		return STATUS_DONE;
	message(targets ? "more than one target; use one of -p, -n, -c and -- COMMAND" :
			  "no target; use -p PID, -n NAME, -c CGROUP or -- COMMAND");
	return STATUS_USAGE;
}

static int check_process(pid_t pid)
{
	g_autofree char *status = NULL, *path = g_strdup_printf("/proc/%d/status", pid);
	const char *tgid;
	struct proc_stat stat;

	if (pid == getpid()) {
		message("process %d is memtoll itself", pid);
		return STATUS_FAILED;
	}
	if (proc_stat_read(pid, 0, &stat)) {
		message("no process with pid %d", pid);
		return STATUS_FAILED;
	}
	if (stat.flags & PROC_FLAG_KTHREAD) {
		message("process %d (%s) is a kernel thread: it has no memory of its own", pid,
			stat.comm);
		return STATUS_FAILED;
	}
	if (stat.state == 'Z' || stat.state == 'X') {
		if (stat.threads > 1)
			message("the first thread of process %d (%s) has ended: it can be followed only "
				"from before",
				pid, stat.comm);
		else
			message("process %d (%s) is a zombie: it has ended", pid, stat.comm);
		return STATUS_FAILED;
	}
	if (g_file_get_contents(path, &status, NULL, NULL) && (tgid = strstr(status, "\nTgid:")) &&
	    atoi(tgid + 6) != pid) {
		message("%d is a thread of process %d; use -p %d", pid, atoi(tgid + 6),
			atoi(tgid + 6));
		return STATUS_FAILED;
	}
	return STATUS_DONE;
}

static int resolve_pids(const char *text, GArray *pids)
{
	g_auto(GStrv) words = g_strsplit(text, ",", -1);
	size_t i;
	guint k;

	for (i = 0; words[i]; i++) {
		pid_t pid = atoi(words[i]);
		bool seen = false;
		int status;

		status = check_process(pid);
		if (status)
			return status;
		for (k = 0; k < pids->len; k++)
			seen |= g_array_index(pids, pid_t, k) == pid;
		if (!seen)
			g_array_append_val(pids, pid);
	}
	return STATUS_DONE;
}

static int resolve_name(const char *name, GArray *pids)
{
	g_autoptr(GString) list = g_string_new(NULL);
	pid_t *found = NULL;
	ssize_t count = proc_find_name(name, &found), i;
	int status = STATUS_FAILED;

	if (count < 0) {
		message("cannot read /proc: %s", strerror(-count));
	} else if (!count) {
		message("no process is named '%s'", name);
	} else if (count > 1) {
		for (i = 0; i < count; i++)
			g_string_append_printf(list, "%s%d", i ? "," : "", found[i]);
		message("%zd processes are named '%s'; use -p %s, or one of them", count, name,
			list->str);
	} else {
		g_array_append_val(pids, found[0]);
		status = STATUS_DONE;
	}
	free(found);
	return status;
}

/*
 * The cgroup of a path or, where there is none, of a container: title is what that is called. What is
 * both is a path, as it was before there were names.
 */
static int resolve_cgroup(const char *name, char **directory, char **title)
{
	g_autofree char *hierarchy = NULL, *ambiguous = NULL;
	struct container_found found = { 0 };
	unsigned int count = 0;

	*directory = cgroup_find(name);
	if (*directory)
		return STATUS_DONE;
	hierarchy = cgroup_find("/");
	if (hierarchy)
		count = container_find(hierarchy, "", name, &found, &ambiguous);
	*directory = g_steal_pointer(&found.directory);
	*title = g_steal_pointer(&found.title);
	if (count == 1)
		return STATUS_DONE;
	if (ambiguous)
		message("%u containers are called '%s': %s", count, name, ambiguous);
	else
		message("no cgroup and no container '%s'; name a directory below /sys/fs/cgroup, or "
			"what its runtime calls it",
			name);
	return STATUS_FAILED;
}

/* Whether we may trace those that are there now; a command is ours. */
static int check_rights(const struct target_options *options)
{
	g_autoptr(GArray) targets = g_array_new(FALSE, FALSE, sizeof(pid_t));
	int status = STATUS_DONE;
	guint i;

	g_array_append_vals(targets, options->found->data, options->found->len);
	if (options->directory)
		cgroup_processes(options->directory, targets);
	for (i = 0; i < targets->len && !status; i++)
		status = check_privileges_for(g_array_index(targets, pid_t, i));
	return status;
}

int find_target(struct target_options *options, struct session_config *config)
{
	int status = STATUS_DONE;

	options->found = g_array_new(FALSE, FALSE, sizeof(pid_t));
	if (options->pids)
		status = resolve_pids(options->pids, options->found);
	if (!status && options->name)
		status = resolve_name(options->name, options->found);
	if (!status && options->cgroup)
		status = resolve_cgroup(options->cgroup, &options->directory, &options->container);
	if (!status)
		status = check_rights(options);
	config->cgroup = options->directory;
	config->container = options->container;
	config->pids = (pid_t *)options->found->data;
	config->pid_count = options->found->len;
	config->command = options->command;
	return status;
}

void clear_target(struct target_options *options)
{
	g_clear_pointer(&options->found, g_array_unref);
	g_clear_pointer(&options->directory, g_free);
	g_clear_pointer(&options->container, g_free);
}
