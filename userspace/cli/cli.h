/* SPDX-License-Identifier: GPL-2.0 */
/* cli.h: the subcommands. Each takes its own argv and returns an exit status (message.h). */
#ifndef MEMTOLL_CLI_H
#define MEMTOLL_CLI_H

#include <argp.h>

#include "session/session.h"

/* Options of record that say how to trace, for argp's children; the input is a session_config. */
extern const struct argp tracing_argp;

/* What they are where none is given; command_line stays as it is. */
void tracing_defaults(struct session_config *config);

/* "5%", "none": given by an option of that name; refuses. */
void tracing_limit(const char *option, const char *text, struct session_config *config);

int cli_record(int argc, char **argv);
int cli_stat(int argc, char **argv);
int cli_report(int argc, char **argv);
int cli_symbolize(int argc, char **argv);
int cli_explain(int argc, char **argv);
int cli_gate(int argc, char **argv);
int cli_compare(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_hold(int argc, char **argv);
int cli_demo(int argc, char **argv);
int cli_watch(int argc, char **argv);

#endif /* MEMTOLL_CLI_H */
