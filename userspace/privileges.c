// SPDX-License-Identifier: GPL-2.0
#include "privileges.h"

#include <glib.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "message.h"

/* PROC_PID_INIT_INO: the inode of the first pid namespace (include/linux/proc_ns.h). */
#define FIRST_PID_NAMESPACE 0xeffffffcUL

static uint64_t effective_capabilities(void)
{
	g_autofree char *text = NULL;
	const char *line;

	if (!g_file_get_contents("/proc/self/status", &text, NULL, NULL))
		return 0;
	line = strstr(text, "\nCapEff:");
	return line ? strtoull(line + 8, NULL, 16) : 0;
}

int check_privileges(void)
{
	struct stat namespace;

	if (!(effective_capabilities() & 1ULL << CAP_SYS_ADMIN)) {
		message("tracing needs root; run it with sudo");
		return STATUS_UNSUPPORTED;
	}
	if (access("/sys/kernel/btf/vmlinux", R_OK)) {
		message("this kernel has no type information (/sys/kernel/btf/vmlinux); "
			"CONFIG_DEBUG_INFO_BTF is needed");
		return STATUS_UNSUPPORTED;
	}
	/* The kernel names processes by their first namespace's ids; /proc here by another's. */
	if (!stat("/proc/self/ns/pid", &namespace) && namespace.st_ino != FIRST_PID_NAMESPACE) {
		message("memtoll runs in a container's pid namespace; run it on the host "
			"(or with --pid=host)");
		return STATUS_UNSUPPORTED;
	}
	return STATUS_DONE;
}
