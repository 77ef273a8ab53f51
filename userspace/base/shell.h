/* SPDX-License-Identifier: GPL-2.0 */
/* shell.h: what a shell reads and says. */
#ifndef MEMTOLL_SHELL_H
#define MEMTOLL_SHELL_H

/* A command and its arguments, quoted for a shell. Freed by g_free(). */
char *shell_words(char *const *argv);

/* A wait(2) status as a shell has it: the exit status, or 128 and the signal. */
int shell_exit_status(int wait_status);

#endif /* MEMTOLL_SHELL_H */
