// SPDX-License-Identifier: GPL-2.0
#include "watch/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/message.h"
#include "watch/log.h"
#include "watch/part_file.h"
#include "watch/worker_child.h"

struct worker {
	pid_t pid;
	int fd;
	char *directory;
	char *name;
	bool ended;
};

struct worker *worker_start(const struct worker_config *config)
{
	struct worker *worker;
	int ends[2];
	pid_t pid;

	/* Messages are kept apart, and whole. */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		watch_log(LOG_ERR, "no recording can be begun: %s", strerror(errno));
		return NULL;
	}
	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		watch_log(LOG_ERR, "no recording can be begun: %s", strerror(errno));
		close(ends[0]);
		close(ends[1]);
		return NULL;
	}
	if (!pid)
		worker_child(config, ends[1]);
	close(ends[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	worker = g_new0(struct worker, 1);
	worker->pid = pid;
	worker->fd = ends[0];
	worker->directory = g_strdup(config->directory);
	worker->name = g_strdup(config->name);
	return worker;
}

int worker_fd(const struct worker *worker)
{
	return worker->fd;
}

const char *worker_name(const struct worker *worker)
{
	return worker->name;
}

int worker_read(struct worker *worker, struct worker_message *message)
{
	ssize_t got = recv(worker->fd, message, sizeof(*message), 0);

	if (got == sizeof(*message))
		return 1;
	/* It had not read all that we sent when it ended: what it sent comes after that. */
	return got < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET) ? 0 : -1;
}

void worker_go(struct worker *worker)
{
	/* It may have ended. */
	(void)!send(worker->fd, "", 1, MSG_NOSIGNAL);
}

void worker_end(struct worker *worker)
{
	if (!worker->ended)
		kill(worker->pid, SIGTERM);
	worker->ended = true;
}

void worker_kill(struct worker *worker)
{
	kill(worker->pid, SIGKILL);
}

void worker_free(struct worker *worker)
{
	int status;

	if (!worker)
		return;
	while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
		;
	part_file_remove(worker->directory, worker->name);
	close(worker->fd);
	g_free(worker->directory);
	g_free(worker->name);
	g_free(worker);
}
