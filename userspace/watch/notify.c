// SPDX-License-Identifier: GPL-2.0
#include "watch/notify.h"

#include <glib.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_send(const char *format, ...)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	g_autofree char *text = NULL;
	va_list values;
	int fd;

	/* "@..." is a name in the abstract namespace: its first byte is 0. */
	if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(address.sun_path))
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	va_start(values, format);
	text = g_strdup_vprintf(format, values);
	va_end(values);
	memcpy(address.sun_path, path, strlen(path));
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address,
	       offsetof(struct sockaddr_un, sun_path) + strlen(path));
	close(fd);
}

uint64_t notify_watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (!usec || (pid && strtol(pid, NULL, 10) != getpid()))
		return 0;
	return g_ascii_strtoull(usec, NULL, 10) * 1000 / 2;
}
