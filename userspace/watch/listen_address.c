// SPDX-License-Identifier: GPL-2.0
#include "watch/listen_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <glib.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAITING_MAX 16
#define UNIX "unix:"

static bool parse_unix(const char *path, struct listen_address *address)
{
	struct sockaddr_un *name = (struct sockaddr_un *)&address->socket;

	if (path[0] != '/' || strlen(path) >= sizeof(name->sun_path))
		return false;
	name->sun_family = AF_UNIX;
	strcpy(name->sun_path, path);
	address->length = sizeof(*name);
	return true;
}

bool listen_address_parse(const char *text, struct listen_address *address)
{
	const char *colon = strrchr(text, ':');
	g_autofree char *host = NULL;
	guint64 port;

	memset(address, 0, sizeof(*address));
	if (g_str_has_prefix(text, UNIX))
		return parse_unix(text + strlen(UNIX), address);
	if (!colon || !g_ascii_string_to_unsigned(colon + 1, 10, 0, G_MAXUINT16, &port, NULL))
		return false;
	host = g_strndup(text, colon - text);
	if (!strcmp(host, "[::1]")) {
		struct sockaddr_in6 *name = (struct sockaddr_in6 *)&address->socket;

		name->sin6_family = AF_INET6;
		name->sin6_addr = in6addr_loopback;
		name->sin6_port = htons(port);
		address->length = sizeof(*name);
	} else {
		struct sockaddr_in *name = (struct sockaddr_in *)&address->socket;

		if (!strcmp(host, "localhost"))
			name->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		else if (inet_pton(AF_INET, host, &name->sin_addr) != 1 ||
			 ntohl(name->sin_addr.s_addr) >> 24 != IN_LOOPBACKNET)
			return false;
		name->sin_family = AF_INET;
		name->sin_port = htons(port);
		address->length = sizeof(*name);
	}
	return true;
}

const char *listen_address_path(const struct listen_address *address)
{
	return address->socket.ss_family == AF_UNIX ?
		       ((const struct sockaddr_un *)&address->socket)->sun_path :
		       NULL;
}

static void remove_dead(const struct listen_address *address)
{
	const char *path = listen_address_path(address);
	struct stat status;
	int fd;

	if (!path || lstat(path, &status) || !S_ISSOCK(status.st_mode))
		return;
	/* Who listens there may take no connection. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)&address->socket, address->length) &&
	    errno == ECONNREFUSED)
		unlink(path);
	close(fd);
}

int listen_address_open(const struct listen_address *address)
{
	const char *path = listen_address_path(address);
	int fd, err = -EIO, on = 1;
	mode_t mask;

	fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	remove_dead(address);
	if (!path)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	mask = umask(0117);
	err = bind(fd, (const struct sockaddr *)&address->socket, address->length) ? -errno : 0;
	umask(mask);
	if (!err && listen(fd, WAITING_MAX))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}
