// SPDX-License-Identifier: GPL-2.0
#include "host/jvm_attach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/root_open.h"
#include "host/jvm_attach_child.h"
#include "host/maps.h"
#include "host/proc.h"
#include "host/target_memory.h"
#include "host/target_rights.h"

#define STATUS_MAX 8192
#define COMMAND_MAX (1U << 20)
#define OFF_SWITCH "DisableAttachMechanism"
/* The name as prctl(2) cuts it. HotSpot makes the thread where it handles SIGQUIT, and only there. */
#define DISPATCHER "Signal Dispatch\n"

const char *jvm_answer_text(enum jvm_answer answer)
{
	static const char *const texts[JVM_ANSWERS] = {
		[JVM_WROTE] = "wrote its perf map",
		[JVM_GONE] = "has ended",
		[JVM_STOPPED] = "is stopped, and was left alone",
		[JVM_NOT_READY] =
			"neither listens nor handles SIGQUIT as HotSpot does, and was left alone",
		[JVM_OTHER] = "is an OpenJ9 JVM, which has no perf map, and was left alone",
		[JVM_DISABLED] = "was started with -XX:+DisableAttachMechanism, and was left alone",
		[JVM_RIGHTS] = "is another user's: that takes root, cap_setuid and cap_setgid",
		[JVM_FOREIGN] =
			"has a socket or a map in its /tmp that is not its own, and was left alone",
		[JVM_DEAF] = "did not open its attach socket in time",
		[JVM_SILENT] = "did not answer in time",
		[JVM_REFUSED] = "has no Compiler.perfmap: that takes HotSpot of Java 17 or newer",
		[JVM_WITHOUT_MAP] = "could not write /tmp/perf-PID.map",
		[JVM_FAILED] = "could not be asked: its /tmp, or its /proc, cannot be used",
	};

	return texts[answer];
}

static bool is_library(const struct mapping *mapping, const char *prefix)
{
	const char *slash = strrchr(mapping->path, '/');

	return mapping->exec && slash && g_str_has_prefix(slash + 1, prefix);
}

bool jvm_in_maps(const struct maps *maps)
{
	size_t i;

	for (i = 0; i < maps->count; i++)
		if (is_library(&maps->entries[i], "libjvm.so"))
			return true;
	return false;
}

/* What is mapped now. */
static enum jvm_answer check_code(pid_t pid)
{
	struct maps maps;
	enum jvm_answer answer = JVM_GONE;
	size_t i;

	if (!maps_read(pid, &maps))
		answer = jvm_in_maps(&maps) ? JVM_WROTE : JVM_NOT_READY;
	for (i = 0; !answer && i < maps.count; i++)
		if (is_library(&maps.entries[i], "libj9vm"))
			answer = JVM_OTHER;
	maps_free(&maps);
	return answer;
}

/* HotSpot's, unless SIGQUIT is the program's own: a server that has a JVM within may end by it. */
static bool has_dispatcher(pid_t pid)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/task", pid);
	DIR *tasks = opendir(path);
	const struct dirent *task;
	bool found = false;

	if (!tasks)
		return false;
	while (!found && (task = readdir(tasks))) {
		g_autofree char *name = g_build_filename(path, task->d_name, "comm", NULL);
		g_autofree char *comm = NULL;

		found = *task->d_name != '.' && g_file_get_contents(name, &comm, NULL, NULL) &&
			!strcmp(comm, DISPATCHER);
	}
	closedir(tasks);
	return found;
}

/* Of several, the last one holds. */
static bool switches_off(const char *options, size_t length)
{
	const char *last = g_strrstr_len(options, (gssize)length, OFF_SWITCH);

	return last && last > options && last[-1] == '+';
}

/* SIGQUIT would have it print all of its threads. */
static bool is_disabled(pid_t pid)
{
	static const char *const names[] = { "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS",
					     "_JAVA_OPTIONS" };
	g_autoptr(GString) command = g_string_new(NULL);
	bool disabled;
	size_t i;

	target_memory_file(pid, "cmdline", COMMAND_MAX, command);
	for (i = 0; i < command->len; i++)
		if (!command->str[i])
			command->str[i] = ' ';
	disabled = switches_off(command->str, command->len);
	for (i = 0; i < G_N_ELEMENTS(names) && !disabled; i++) {
		g_autofree char *value = proc_environment(pid, names[i]);

		disabled = value && switches_off(value, strlen(value));
	}
	return disabled;
}

/* The last number of "NSpid:", of the innermost pid namespace. */
static pid_t pid_inside(const char *status, pid_t pid)
{
	const char *at = strstr(status, "\nNSpid:");
	char *end;
	long inside = pid, number;

	for (at = at ? at + 7 : "\n"; *at != '\n'; at = end) {
		number = strtol(at, &end, 10);
		if (end == at)
			break;
		inside = number;
	}
	return (pid_t)inside;
}

static enum jvm_answer look(struct jvm_target *target)
{
	char status[STATUS_MAX], path[64];
	enum jvm_answer answer;
	ssize_t length;

	target->pidfd = (int)syscall(SYS_pidfd_open, target->pid, 0);
	if (target->pidfd < 0)
		return errno == ESRCH ? JVM_GONE : JVM_FAILED;
	snprintf(path, sizeof(path), "/proc/%d/status", target->pid);
	target->status = open(path, O_RDONLY | O_CLOEXEC);
	if (target->status < 0)
		return JVM_GONE;
	length = pread(target->status, status, sizeof(status) - 1, 0);
	if (length <= 0)
		return JVM_GONE;
	status[length] = '\0';
	target->inside = pid_inside(status, target->pid);
	target->signal = jvm_handles_quit(status);
	if (target->signal == JVM_GONE || target->signal == JVM_STOPPED)
		return target->signal;
	answer = check_code(target->pid);
	if (answer)
		return answer;
	/* One that listens already is asked all the same: with -Xrs it does from its start on. */
	if (is_disabled(target->pid))
		target->signal = JVM_DISABLED;
	else if (!target->signal && !has_dispatcher(target->pid))
		target->signal = JVM_NOT_READY;
	if (!target_rights_read(target->pid, &target->rights))
		return JVM_GONE;
	target->root = root_open(target->pid);
	return target->root < 0 ? JVM_FAILED : JVM_WROTE;
}

/* It is no child of ours: who launches a command waits for all of its children. */
static bool start(const struct jvm_target *target)
{
	pid_t between = fork(), child;

	if (!between) {
		child = fork();
		if (!child)
			jvm_attach_child(target);
		_exit(child < 0);
	}
	if (between < 0)
		return false;
	while (waitpid(between, NULL, 0) < 0 && errno == EINTR)
		;
	return true;
}

int jvm_attach_begin(pid_t pid, struct jvm_said *said)
{
	struct jvm_target target = { .pid = pid, .pidfd = -1, .root = -1, .status = -1 };
	int ends[2] = { -1, -1 };

	*said = (struct jvm_said){ .answer = look(&target) };
	if (said->answer)
		goto out;
	said->answer = JVM_FAILED;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		goto out;
	target.answer = ends[1];
	if (start(&target))
		said->answer = JVM_WROTE;
out:
	if (ends[1] >= 0)
		close(ends[1]);
	if (said->answer && ends[0] >= 0) {
		close(ends[0]);
		ends[0] = -1;
	}
	if (target.pidfd >= 0)
		close(target.pidfd);
	if (target.status >= 0)
		close(target.status);
	if (target.root >= 0)
		close(target.root);
	return ends[0];
}

bool jvm_attach_take(int fd, struct jvm_said *said)
{
	ssize_t length = read(fd, said, sizeof(*said));

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (length != sizeof(*said) || said->answer >= JVM_ANSWERS)
		*said = (struct jvm_said){ .answer = JVM_SILENT, .was_there = true };
	close(fd);
	return true;
}

/* The rights that it is done with are taken before the work; these are the ids. */
struct removal {
	unsigned int user;
	char name[64];
};

static void remove_work(int root, void *data)
{
	const struct removal *removal = data;
	struct stat status;
	int tmp = root_open_directory(root, "tmp");

	if (tmp < 0)
		return;
	if (!fstatat(tmp, removal->name, &status, AT_SYMLINK_NOFOLLOW) && S_ISREG(status.st_mode) &&
	    status.st_uid == removal->user)
		unlinkat(tmp, removal->name, 0);
	close(tmp);
}

void jvm_remove_map(pid_t pid)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/status", pid), *status = NULL;
	struct removal *removal;
	struct target_rights rights;

	if (!g_file_get_contents(path, &status, NULL, NULL) || !target_rights_read(pid, &rights))
		return;
	removal = g_new0(struct removal, 1);
	removal->user = rights.user;
	jvm_map_name(pid_inside(status, pid), removal->name);
	if (with_target_rights(pid, NULL, remove_work, removal, g_free))
		g_free(removal);
}
