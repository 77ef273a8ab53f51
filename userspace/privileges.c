// SPDX-License-Identifier: GPL-2.0
#include "privileges.h"

#include <glib.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "message.h"

/* PROC_PID_INIT_INO: the inode of the first pid namespace (include/linux/proc_ns.h). */
#define FIRST_PID_NAMESPACE 0xeffffffcUL

/* Before, programs fail to load: no fetching atomics and no task storage (5.12, 5.11). */
#define OLDEST_MAJOR 5
#define OLDEST_MINOR 15

static uint64_t effective_capabilities(void)
{
	g_autofree char *text = NULL;
	const char *line;

	if (!g_file_get_contents("/proc/self/status", &text, NULL, NULL))
		return 0;
	line = strstr(text, "\nCapEff:");
	return line ? strtoull(line + 8, NULL, 16) : 0;
}

static bool kernel_is_too_old(const char *release)
{
	int major, minor;

	return sscanf(release, "%d.%d", &major, &minor) == 2 &&
	       (major < OLDEST_MAJOR || (major == OLDEST_MAJOR && minor < OLDEST_MINOR));
}

int check_privileges(void)
{
	struct utsname machine;
	struct stat namespace;

	if (!uname(&machine) && kernel_is_too_old(machine.release)) {
		message("this kernel, Linux %s, is too old; memtoll needs Linux %d.%d or later",
			machine.release, OLDEST_MAJOR, OLDEST_MINOR);
		return STATUS_UNSUPPORTED;
	}
	if (!(effective_capabilities() & 1ULL << CAP_SYS_ADMIN)) {
		message(geteuid() ? "tracing needs root; run it with sudo" :
				    "this root may not trace: it lacks CAP_SYS_ADMIN, as in a container "
				    "that was not given it");
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
