/* SPDX-License-Identifier: GPL-2.0 */
/*
 * notify.h: tells the service manager how it goes (sd_notify(3)). The protocol is a datagram to a
 * socket, and stable; libsystemd would be another library for a call of send(2).
 */
#ifndef MEMTOLL_NOTIFY_H
#define MEMTOLL_NOTIFY_H

#include <stdint.h>

/* "READY=1", "WATCHDOG=1", "STATUS=..."; nothing where no manager asks. */
void notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How often it wants to hear "WATCHDOG=1" of this process: half of its limit; 0: never. */
uint64_t notify_watchdog_ns(void);

#endif /* MEMTOLL_NOTIFY_H */
