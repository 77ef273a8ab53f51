/* SPDX-License-Identifier: GPL-2.0 */
/*
 * endpoint_child.h: what answers. HTTP is libmicrohttpd's, which is loaded by this process only: it
 * brings gnutls along, and memtoll starts without either.
 */
#ifndef MEMTOLL_ENDPOINT_CHILD_H
#define MEMTOLL_ENDPOINT_CHILD_H

#include <stdbool.h>

/* Built with the library, and it is there. */
bool endpoint_can_answer(void);

/* After fork. fd: texts come there, each after its length in 8 bytes; listening: requests do. */
void endpoint_child(int fd, int listening) __attribute__((noreturn));

#endif /* MEMTOLL_ENDPOINT_CHILD_H */
