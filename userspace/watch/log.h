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

/*
 * What is said by message() from here on, of a recording or of options, is a warning of the journal's;
 * nothing changes where that does not read it.
 */
void watch_log_messages(void);

#endif /* MEMTOLL_LOG_H */
