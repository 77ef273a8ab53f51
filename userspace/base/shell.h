/* SPDX-License-Identifier: GPL-2.0 */
/* shell.h: quoting for the shell. */
#ifndef MEMTOLL_SHELL_H
#define MEMTOLL_SHELL_H

/* A command and its arguments, quoted for a shell. Freed by g_free(). */
char *shell_words(char *const *argv);

#endif /* MEMTOLL_SHELL_H */
