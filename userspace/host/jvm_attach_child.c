// SPDX-License-Identifier: GPL-2.0
#include "host/jvm_attach_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/root_open.h"
#include "host/privileges.h"

/* A JVM answers SIGQUIT within milliseconds, unless it waits for a safepoint. */
#define SOCKET_MS 5000
#define ANSWER_MS 5000
/* File systems of the target may not answer: then the kernel ends this process. */
#define ALARM_S 11
#define LOOK_MS 20
#define ANSWER_MAX 4096

/* Descriptors, in the child. */
enum { CHILD_PIDFD = 3, CHILD_ROOT, CHILD_STATUS, CHILD_ANSWER, CHILD_FDS };

struct ask {
	const struct jvm_target *target;
	int tmp; /* the JVM's /tmp */
	char map[64], socket[64], attach[64];
};

enum jvm_answer jvm_handles_quit(const char *status)
{
	const char *state = strstr(status, "\nState:"), *caught = strstr(status, SIGNALS_CAUGHT);

	if (!state || !caught)
		return JVM_GONE;
	state += strspn(state + 7, " \t") + 7;
	if (*state == 'T' || *state == 't')
		return JVM_STOPPED;
	if (*state == 'Z' || *state == 'X')
		return JVM_GONE;
	return strtoull(caught + sizeof(SIGNALS_CAUGHT) - 1, NULL, 16) >> (SIGQUIT - 1) & 1 ?
		       JVM_WROTE :
		       JVM_NOT_READY;
}

void jvm_map_name(pid_t inside, char name[64])
{
	snprintf(name, 64, "perf-%d.map", inside);
}

/*
 * All of its ids: the JVM answers only who is its user, and root of another user namespace is not.
 * The system calls, which are per thread: glibc would look for our parent's threads.
 */
static bool become(const struct target_rights *rights)
{
	bool same = rights->user == geteuid() && rights->group == getegid();

	if (!syscall(SYS_setgroups, rights->others, rights->other)) {
		if (syscall(SYS_setresgid, rights->group, rights->group, rights->group) ||
		    syscall(SYS_setresuid, rights->user, rights->user, rights->user))
			return false;
	} else if (!same) {
		return false;
	}
	privileges_keep(PRIVILEGES_NONE);
	return true;
}

/* A file that is, or is not, the JVM's own. Symbolic links are nobody's. */
enum whose { WHOSE_NONE, WHOSE_OWN, WHOSE_OTHER };

static enum whose whose(const struct ask *ask, const char *name, mode_t type)
{
	struct stat status;

	if (fstatat(ask->tmp, name, &status, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? WHOSE_NONE : WHOSE_OTHER;
	return (status.st_mode & S_IFMT) == type && status.st_uid == ask->target->rights.user ?
		       WHOSE_OWN :
		       WHOSE_OTHER;
}

/* A connected socket; -1: there is none, or nobody listens; -2: it is another's. */
static int try_connect(const struct ask *ask)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);
	struct stat status;
	int fd = -2, place;

	place = openat(ask->tmp, ask->socket, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (place < 0)
		return errno == ENOENT ? -1 : -2;
	if (fstat(place, &status) || !S_ISSOCK(status.st_mode) ||
	    status.st_uid != ask->target->rights.user)
		goto out;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", place);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		if (fd >= 0)
			close(fd);
		/* Left by an earlier process of that pid; or its queue is full. */
		fd = errno == ECONNREFUSED || errno == EAGAIN ? -1 : -2;
		goto out;
	}
	/* Who called listen(2), whatever the file says. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.pid != ask->target->pid) {
		close(fd);
		fd = -2;
	}
out:
	close(place);
	return fd;
}

static bool has_ended(int ms)
{
	struct pollfd ended = { .fd = CHILD_PIDFD, .events = POLLIN };

	return poll(&ended, 1, ms) > 0;
}

/* As late as can be: it is what keeps a process from being killed. */
static enum jvm_answer send_quit(void)
{
	char status[8192];
	ssize_t length = pread(CHILD_STATUS, status, sizeof(status) - 1, 0);
	enum jvm_answer answer;

	if (length <= 0)
		return JVM_GONE;
	status[length] = '\0';
	answer = jvm_handles_quit(status);
	if (answer)
		return answer;
	if (syscall(SYS_pidfd_send_signal, CHILD_PIDFD, SIGQUIT, NULL, 0))
		return errno == ESRCH ? JVM_GONE : JVM_RIGHTS;
	return JVM_WROTE;
}

/* Make it listen. */
static enum jvm_answer wake(const struct ask *ask, int *fd)
{
	uint64_t until = now_ns() + SOCKET_MS * 1000000ULL;
	enum jvm_answer answer = JVM_DEAF;
	int made;

	made = openat(ask->tmp, ask->attach, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
		      0600);
	/* jcmd is just doing the same. */
	if (made < 0 && (errno != EEXIST || whose(ask, ask->attach, S_IFREG) != WHOSE_OWN))
		return errno == EEXIST ? JVM_FOREIGN : JVM_FAILED;
	answer = send_quit();
	if (answer)
		goto out;
	answer = JVM_DEAF;
	while (answer == JVM_DEAF && now_ns() < until) {
		*fd = try_connect(ask);
		if (*fd >= 0)
			answer = JVM_WROTE;
		else if (*fd == -2)
			answer = JVM_FOREIGN;
		else if (has_ended(LOOK_MS))
			answer = JVM_GONE;
	}
out:
	if (made >= 0) {
		close(made);
		unlinkat(ask->tmp, ask->attach, 0);
	}
	return answer;
}

static enum jvm_answer command(int fd)
{
	/* Version, command, three arguments. */
	static const char request[] = "1\0jcmd\0Compiler.perfmap\0\0";
	uint64_t until = now_ns() + ANSWER_MS * 1000000ULL, now;
	char text[ANSWER_MAX];
	size_t length = 0;
	ssize_t got;

	/* With the literal's own zero byte. */
	if (send(fd, request, sizeof(request), MSG_NOSIGNAL) != sizeof(request))
		return JVM_SILENT;
	while ((now = now_ns()) < until && length < sizeof(text)) {
		struct pollfd answer = { .fd = fd, .events = POLLIN };

		if (poll(&answer, 1, (int)((until - now) / 1000000) + 1) <= 0)
			continue;
		got = recv(fd, text + length, sizeof(text) - length, 0);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got <= 0)
			return length >= 2 && !memcmp(text, "0\n", 2) ? JVM_WROTE :
			       length				      ? JVM_REFUSED :
									JVM_SILENT;
		length += (size_t)got;
	}
	/* No JVM says so much. */
	return length < sizeof(text) ? JVM_SILENT : JVM_REFUSED;
}

static struct jvm_said work(const struct jvm_target *target)
{
	struct jvm_said said = { .answer = JVM_RIGHTS };
	struct ask ask = { .target = target };
	enum whose map;
	int fd;

	if (!become(&target->rights))
		return said;
	jvm_map_name(target->inside, ask.map);
	snprintf(ask.socket, sizeof(ask.socket), ".java_pid%d", target->inside);
	snprintf(ask.attach, sizeof(ask.attach), ".attach_pid%d", target->inside);
	ask.tmp = root_open_directory(CHILD_ROOT, "tmp");
	said.answer = JVM_FAILED;
	if (ask.tmp < 0)
		return said;
	/* The JVM would follow a link, and write over what it leads to. */
	map = whose(&ask, ask.map, S_IFREG);
	said.was_there = map != WHOSE_NONE;
	said.answer = JVM_FOREIGN;
	if (map == WHOSE_OTHER)
		return said;
	fd = try_connect(&ask);
	if (fd == -2)
		return said;
	said.answer = fd >= 0 ? JVM_WROTE : target->signal ?: wake(&ask, &fd);
	if (!said.answer)
		said.answer = command(fd);
	if (!said.answer && whose(&ask, ask.map, S_IFREG) != WHOSE_OWN)
		said.answer = JVM_WITHOUT_MAP;
	return said;
}

void jvm_attach_child(const struct jvm_target *target)
{
	const int given[] = { target->pidfd, target->root, target->status, target->answer };
	struct jvm_said said;
	sigset_t none;
	int i;

	/* Above those that they become: none is closed by another's dup2(). */
	int high[CHILD_FDS - CHILD_PIDFD];

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGALRM, SIG_DFL);
	alarm(ALARM_S);
	for (i = 0; i < CHILD_FDS - CHILD_PIDFD; i++) {
		high[i] = fcntl(given[i], F_DUPFD, 64);
		if (high[i] < 0)
			_exit(1);
	}
	for (i = 0; i < CHILD_FDS - CHILD_PIDFD; i++)
		if (dup2(high[i], CHILD_PIDFD + i) < 0)
			_exit(1);
	/* Probes, maps of the kernel's and the recording are not for it. */
	close_range(CHILD_FDS, ~0U, 0);
	said = work(target);
	_exit(write(CHILD_ANSWER, &said, sizeof(said)) == sizeof(said) ? 0 : 1);
}
