/* SPDX-License-Identifier: GPL-2.0 */
/* option_list.h: a command's options for programs: what manual pages and completion are made from. */
#ifndef MEMTOLL_OPTION_LIST_H
#define MEMTOLL_OPTION_LIST_H

#include <argp.h>

/*
 * Lines, in the order of --help; fields are separated by tabs, and empty where there is nothing:
 *   argument	TEXT			what follows the options
 *   group	HEADING			of the options after it
 *   option	SHORT LONG VALUE HELP	without dashes; a value in brackets may be left out
 */
void print_option_list(const struct argp *argp);

#endif /* MEMTOLL_OPTION_LIST_H */
