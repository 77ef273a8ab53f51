/* SPDX-License-Identifier: GPL-2.0 */
/* shell.h: command lines as text. */
#ifndef MEMTOLL_SHELL_H
#define MEMTOLL_SHELL_H

/* A command and its arguments as a shell takes them. Freed by g_free(). */
char *shell_words(char *const *argv);

#endif /* MEMTOLL_SHELL_H */
