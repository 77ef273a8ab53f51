// SPDX-License-Identifier: GPL-2.0
#include "cli/paged.h"

#include <errno.h>
#include <stdio.h>

#include "base/message.h"
#include "base/terminal.h"
#include "host/privileges.h"

int print_paged(sqlite3 *database, const struct report_options *options)
{
	FILE *pager;
	int err;

	/* It becomes the user behind sudo, for which it takes two capabilities. */
	pager = pager_open(privileges_leave);
	privileges_keep(PRIVILEGES_NONE);
	err = report_text(database, options, pager);
	if (!pager_close(pager)) {
		message("the pager cannot be run; set MEMTOLL_PAGER, or to cat for none");
		return -ENOENT;
	}
	return err;
}
