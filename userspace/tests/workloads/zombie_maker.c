// SPDX-License-Identifier: GPL-2.0
/* zombie_maker: keeps a dead child it does not wait for until standard input ends. */
#include <sys/wait.h>

#include "workload.h"

int main(void)
{
	siginfo_t info;
	char bytes[64];
	pid_t pid;

	alarm(WORKLOAD_LIFE_S);
	pid = fork();
	if (pid < 0)
		return 1;
	if (pid == 0)
		_exit(0);
	/* WNOWAIT: know that it is dead and leave it so. */
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT))
		return 1;
	workload_report("\"ready\": true, \"zombie\": %d", pid);
	while (read(STDIN_FILENO, bytes, sizeof(bytes)) > 0)
		;
	return waitpid(pid, NULL, 0) == pid ? 0 : 1;
}
