// SPDX-License-Identifier: GPL-2.0
/* sleeper: does nothing until standard input ends. */
#include "workload.h"

int main(void)
{
	char bytes[64];

	alarm(WORKLOAD_LIFE_S);
	workload_report("\"ready\": true");
	while (read(STDIN_FILENO, bytes, sizeof(bytes)) > 0)
		;
	return 0;
}
