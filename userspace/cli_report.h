/* SPDX-License-Identifier: GPL-2.0 */
/* cli_report.h: the subcommand report. */
#ifndef MEMTOLL_CLI_REPORT_H
#define MEMTOLL_CLI_REPORT_H

/* argv[0] is "report". Exit status: message.h. */
int cli_report(int argc, char **argv);

#endif /* MEMTOLL_CLI_REPORT_H */
