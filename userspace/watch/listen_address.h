/* SPDX-License-Identifier: GPL-2.0 */
/* listen_address.h: an address on this machine, and a socket that listens there. */
#ifndef MEMTOLL_LISTEN_ADDRESS_H
#define MEMTOLL_LISTEN_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

struct listen_address {
	struct sockaddr_storage socket;
	socklen_t length;
};

/* "127.0.0.1:9712", "[::1]:9712", "localhost:9712", "unix:/path"; false: it is none of these. */
bool listen_address_parse(const char *text, struct listen_address *address);

/*
 * A descriptor that listens, or -errno. A socket that nobody listens at any more is replaced; a new
 * one is for its owner and group.
 */
int listen_address_open(const struct listen_address *address);

/* The path of a unix socket; NULL of others. */
const char *listen_address_path(const struct listen_address *address);

#endif /* MEMTOLL_LISTEN_ADDRESS_H */
