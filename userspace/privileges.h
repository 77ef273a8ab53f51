/* SPDX-License-Identifier: GPL-2.0 */
/* privileges.h: may this process trace? */
#ifndef MEMTOLL_PRIVILEGES_H
#define MEMTOLL_PRIVILEGES_H

/* An exit status (message.h): 0, or 3 after one message that says what is missing. */
int check_privileges(void);

#endif /* MEMTOLL_PRIVILEGES_H */
