// SPDX-License-Identifier: GPL-2.0
#include "watch/endpoint.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "watch/endpoint_child.h"
#include "watch/listen_address.h"
#include "watch/log.h"

#define SEND_S 1 /* it reads at once, or hangs */

struct endpoint {
	struct listen_address address;
	int listening;
	int fd; /* to the process that answers; -1: there is none */
	pid_t pid;
};

static int start_child(struct endpoint *endpoint)
{
	const struct timeval limit = { .tv_sec = SEND_S };
	int ends[2] = { -1, -1 };

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	endpoint->pid = fork();
	if (endpoint->pid < 0) {
		close(ends[0]);
		close(ends[1]);
		return -errno;
	}
	if (!endpoint->pid)
		endpoint_child(ends[1], endpoint->listening);
	close(ends[1]);
	endpoint->fd = ends[0];
	setsockopt(endpoint->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	return 0;
}

static void stop_child(struct endpoint *endpoint)
{
	if (endpoint->fd < 0)
		return;
	close(endpoint->fd);
	endpoint->fd = -1;
	kill(endpoint->pid, SIGKILL);
	while (waitpid(endpoint->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void say_where(const struct endpoint *endpoint)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} name = { .v6 = { 0 } };
	const char *path = listen_address_path(&endpoint->address);
	socklen_t length = sizeof(name);

	/* Of a unix socket the path is cut off, and known. */
	getsockname(endpoint->listening, &name.any, &length);
	if (path)
		watch_log(LOG_INFO, "metrics at unix:%s", path);
	else if (name.any.sa_family == AF_INET6)
		watch_log(LOG_INFO, "metrics at http://[::1]:%u/metrics", ntohs(name.v6.sin6_port));
	else
		watch_log(LOG_INFO, "metrics at http://127.0.0.1:%u/metrics",
			  ntohs(name.v4.sin_port));
}

struct endpoint *endpoint_start(const struct listen_address *address)
{
	struct endpoint *endpoint = g_new0(struct endpoint, 1);
	int err;

	endpoint->address = *address;
	endpoint->fd = -1;
	if (!endpoint_can_answer()) {
		watch_log(LOG_ERR,
			  "--listen needs libmicrohttpd (Debian: libmicrohttpd12), here and "
			  "where memtoll was built");
		g_free(endpoint);
		return NULL;
	}
	endpoint->listening = listen_address_open(address);
	err = endpoint->listening < 0 ? endpoint->listening : start_child(endpoint);
	if (!err) {
		say_where(endpoint);
		return endpoint;
	}
	if (listen_address_path(address))
		watch_log(LOG_ERR, "--listen unix:%s: %s", listen_address_path(address),
			  strerror(-err));
	else
		watch_log(LOG_ERR, "--listen: %s", strerror(-err));
	if (endpoint->listening >= 0)
		close(endpoint->listening);
	g_free(endpoint);
	return NULL;
}

static bool send_all(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size) {
		ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		at += sent;
		size -= sent;
	}
	return true;
}

void endpoint_show(struct endpoint *endpoint, const GString *text)
{
	const uint64_t length = text->len;

	if (!endpoint)
		return;
	if (endpoint->fd < 0 && start_child(endpoint))
		return;
	if (send_all(endpoint->fd, &length, sizeof(length)) &&
	    send_all(endpoint->fd, text->str, text->len))
		return;
	watch_log(LOG_WARNING, "what answers --listen has ended, and is started again");
	stop_child(endpoint);
}

void endpoint_stop(struct endpoint *endpoint)
{
	const char *path;

	if (!endpoint)
		return;
	stop_child(endpoint);
	close(endpoint->listening);
	path = listen_address_path(&endpoint->address);
	if (path)
		unlink(path);
	g_free(endpoint);
}
