// SPDX-License-Identifier: GPL-2.0
#include "arguments.h"

#include <glib.h>

#include "message.h"

int parse_arguments(const struct argp *argp, int argc, char **argv, void *input)
{
	g_autofree char *name = g_strdup_printf("memtoll %s", argv[0]), *command = argv[0];
	int index = 0, err;

	/* argp takes the program's name for its help from here. */
	argv[0] = name;
	err = argp_parse(argp, argc, argv, ARGP_IN_ORDER | ARGP_NO_ERRS, &index, input);
	argv[0] = g_steal_pointer(&command);
	if (!err)
		return STATUS_DONE;
	message("%s: unknown option, or its value is missing; try 'memtoll %s --help'",
		index > 0 && index <= argc ? argv[index - 1] : "?", argv[0]);
	return STATUS_USAGE;
}
