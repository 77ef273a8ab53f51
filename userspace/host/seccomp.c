// SPDX-License-Identifier: GPL-2.0
#include "host/seccomp.h"

#include <errno.h>
#include <glib.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* arch/x86/entry/syscalls/syscall_64.tbl; the build's headers may be older. */
#define URETPROBE 335

bool seccomp_confines(pid_t pid)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/status", pid), *text = NULL;
	const char *line;
	int mode;

	if (!g_file_get_contents(path, &text, NULL, NULL))
		return false;
	/* A name that looks like it is in one line with "Name:", escaped. */
	line = strstr(text, "\nSeccomp:");
	return line && sscanf(line, "\nSeccomp: %d", &mode) == 1 && mode != SECCOMP_MODE_DISABLED;
}

/* The signal that ends a child which makes the call, confined or not; 0: it may; -1: not known. */
static int signal_for_call(bool confined)
{
	int status;
	pid_t pid;

	pid = fork();
	if (pid < 0)
		return -1;
	if (!pid) {
		/* No core for it. */
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		signal(SIGILL, SIG_DFL);
		if (confined && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
			syscall(SYS_exit, 1);
		syscall(URETPROBE);
		syscall(SYS_exit, 0);
	}
	while (waitpid(pid, &status, __WALL) != pid)
		if (errno != EINTR)
			return -1;
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) ? -1 : 0;
}

/*
 * Whoever makes the call from elsewhere than the kernel's code gets SIGILL, if the call is made;
 * strict mode lets read, write and exit pass, and ends with SIGKILL whoever makes another.
 */
static bool ask_kernel(void)
{
	return signal_for_call(false) == SIGILL && signal_for_call(true) == SIGKILL;
}

/* No call before, no refusal since, in any kernel: nothing is asked there. */
static bool is_suspect(void)
{
	struct utsname machine;
	int major, minor;

	return uname(&machine) || sscanf(machine.release, "%d.%d", &major, &minor) != 2 ||
	       (major == 6 && minor >= 11 && minor < 14);
}

bool seccomp_refuses_returns(void)
{
	static gsize known;

	if (g_once_init_enter(&known))
		g_once_init_leave(&known, ask_kernel() ? 2 : 1);
	return known == 2;
}

bool seccomp_may_refuse_returns(void)
{
	static gsize known;

	if (g_once_init_enter(&known))
		g_once_init_leave(&known, is_suspect() ? 2 : 1);
	return known == 2;
}
