/* SPDX-License-Identifier: GPL-2.0 */
/* log.h: lines for whoever reads them a week later: in the journal with their priority. */
#ifndef MEMTOLL_LOG_H
#define MEMTOLL_LOG_H

#include <syslog.h>

/*
 * A line on stderr, as message() prints it. Where the journal reads it, it begins with the priority
 * (LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO) as sd-daemon(3) has it.
 */
void watch_log(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif /* MEMTOLL_LOG_H */
