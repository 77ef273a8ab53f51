// SPDX-License-Identifier: GPL-2.0
#include "host/privileges.h"

#include <errno.h>
#include <glib.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/message.h"

/* PROC_PID_INIT_INO: the inode of the first pid namespace (include/linux/proc_ns.h). */
#define FIRST_PID_NAMESPACE 0xeffffffcUL

/* Older kernels have no fetching atomics (5.12) and no task storage (5.11). */
#define OLDEST_MAJOR 5
#define OLDEST_MINOR 15

#define BIT(capability) (1ULL << (capability))

/* Alternatives: the kernel accepts any of the other capabilities instead of the first. */
static const struct {
	int capability;
	int or_other;
	const char *name;
} needed[] = {
	{ CAP_BPF, CAP_SYS_ADMIN, "cap_bpf" },
	{ CAP_PERFMON, CAP_SYS_ADMIN, "cap_perfmon" },
	{ CAP_SYS_PTRACE, CAP_SYS_PTRACE, "cap_sys_ptrace" },
	{ CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE, "cap_dac_read_search" },
};

#define READ BIT(CAP_DAC_READ_SEARCH)
#define LEAVE (BIT(CAP_SETUID) | BIT(CAP_SETGID))
/* CHOWN: the recording and its journals are owned by the user behind sudo. */
#define WRITE (READ | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_CHOWN))
/* SETUID, SETGID: option files are read with the rights of the server's user (server_cache.c). */
#define FOLLOW                                                                               \
	(WRITE | BIT(CAP_BPF) | BIT(CAP_PERFMON) | BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_NICE) | \
	 BIT(CAP_CHECKPOINT_RESTORE) | BIT(CAP_KILL) | BIT(CAP_SETUID) | BIT(CAP_SETGID))
/*
 * SYS_RAWIO: /proc/kcore. SYS_ADMIN: if the kernel lacks an optional function, libbpf before 1.2
 * looks for it in modules, and fails without it.
 */
#define TRACE (FOLLOW | BIT(CAP_SYSLOG) | BIT(CAP_SYS_RAWIO) | BIT(CAP_SYS_ADMIN))

struct capabilities {
	struct __user_cap_header_struct header;
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

/* Of the calling thread (capget(2)); none where they cannot be read. */
static struct capabilities read_capabilities(void)
{
	struct capabilities capabilities = { .header.version = _LINUX_CAPABILITY_VERSION_3 };

	if (syscall(SYS_capget, &capabilities.header, capabilities.data))
		memset(capabilities.data, 0, sizeof(capabilities.data));
	return capabilities;
}

static uint64_t effective_capabilities(void)
{
	struct capabilities capabilities = read_capabilities();

	return (uint64_t)capabilities.data[1].effective << 32 | capabilities.data[0].effective;
}

/* Tries a perf event of a CPU, as fault windows open them. */
static bool may_open_events(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
	};
	int fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || (errno != EACCES && errno != EPERM);
}

/*
 * Whether perf events need CAP_SYS_ADMIN, as in Debian's and Ubuntu's kernels where
 * kernel.perf_event_paranoid is above 2. Tried by this thread with that capability dropped for a
 * moment.
 */
static bool events_take_admin(void)
{
	struct capabilities before = read_capabilities(), without = before;
	static int answer = -1;

	if (answer >= 0)
		return answer;
	without.data[0].effective &= ~(uint32_t)BIT(CAP_SYS_ADMIN);
	syscall(SYS_capset, &without.header, without.data);
	answer = !may_open_events();
	syscall(SYS_capset, &before.header, before.data);
	return answer;
}

/* Inheritable ones stay: they have no effect without the others. */
static void keep(uint64_t mask)
{
	struct capabilities capabilities = read_capabilities();
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(capabilities.data); i++) {
		capabilities.data[i].permitted &= (uint32_t)(mask >> 32 * i);
		capabilities.data[i].effective &= (uint32_t)(mask >> 32 * i);
	}
	syscall(SYS_capset, &capabilities.header, capabilities.data);
}

void privileges_keep(enum privileges privileges)
{
	static const uint64_t masks[] = {
		[PRIVILEGES_TRACE] = TRACE,
		[PRIVILEGES_FOLLOW] = FOLLOW,
		[PRIVILEGES_WRITE] = WRITE,
		[PRIVILEGES_READ] = READ,
		[PRIVILEGES_SHOW] = READ | LEAVE,
		[PRIVILEGES_LEAVE] = LEAVE,
		[PRIVILEGES_NONE] = 0,
	};
	uint64_t has = effective_capabilities(), mask = masks[privileges];
	bool apart = has & BIT(CAP_BPF) && has & BIT(CAP_PERFMON);

	/* Before Linux 5.8 CAP_SYS_ADMIN stands for CAP_BPF and CAP_PERFMON. */
	if (mask & BIT(CAP_BPF) && (!apart || events_take_admin()))
		mask |= BIT(CAP_SYS_ADMIN);
	if (mask & READ && !(has & READ))
		mask |= BIT(CAP_DAC_OVERRIDE);
	keep(mask);
}

bool privileges_invoker(uid_t *user, gid_t *group)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");
	guint64 numbers[2];

	if (geteuid() != 0 || !uid || !gid ||
	    !g_ascii_string_to_unsigned(uid, 10, 0, UINT_MAX - 1, &numbers[0], NULL) ||
	    !g_ascii_string_to_unsigned(gid, 10, 0, UINT_MAX - 1, &numbers[1], NULL))
		return false;
	*user = (uid_t)numbers[0];
	*group = (gid_t)numbers[1];
	return true;
}

void privileges_leave(void)
{
	uid_t user;
	gid_t group;

	/* Groups first: afterwards it may not. Half of it is worse than none of it. */
	if (privileges_invoker(&user, &group) &&
	    (setgroups(0, NULL) || setgid(group) || setuid(user)))
		message("the pager runs as root: %s", g_strerror(errno));
	/* What exec() gives is no more than what there is (cap_bprm_creds_from_file()). */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	keep(0);
}

void privileges_keep_from_command(void)
{
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

/* "cap_bpf, cap_perfmon": the missing capabilities; NULL: none. */
static char *missing(void)
{
	g_autoptr(GString) names = g_string_new(NULL);
	uint64_t has = effective_capabilities();
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(needed); i++)
		if (!(has & (BIT(needed[i].capability) | BIT(needed[i].or_other))))
			g_string_append_printf(names, "%s%s", names->len ? ", " : "",
					       needed[i].name);
	return names->len ? g_string_free(g_steal_pointer(&names), FALSE) : NULL;
}

static bool kernel_is_too_old(const char *release)
{
	int major, minor;

	return sscanf(release, "%d.%d", &major, &minor) == 2 &&
	       (major < OLDEST_MAJOR || (major == OLDEST_MAJOR && minor < OLDEST_MINOR));
}

int check_privileges(void)
{
	g_autofree char *lacks = NULL;
	struct utsname machine;
	struct stat namespace;

	if (!uname(&machine) && kernel_is_too_old(machine.release)) {
		message("this kernel, Linux %s, is too old; memtoll needs Linux %d.%d or later",
			machine.release, OLDEST_MAJOR, OLDEST_MINOR);
		return STATUS_UNSUPPORTED;
	}
	lacks = missing();
	if (lacks) {
		if (geteuid())
			message("tracing needs root (run it with sudo) or these capabilities, which are "
				"missing: %s",
				lacks);
		else
			message("this root may not trace: it lacks %s, as in a container that was not "
				"given them",
				lacks);
		return STATUS_UNSUPPORTED;
	}
	if (!may_open_events()) {
		message("perf events are refused here: kernel.perf_event_paranoid is above 2, which "
			"takes cap_sys_admin, or a seccomp filter forbids them");
		return STATUS_UNSUPPORTED;
	}
	if (access("/sys/kernel/btf/vmlinux", R_OK)) {
		message("this kernel has no type information (/sys/kernel/btf/vmlinux); "
			"CONFIG_DEBUG_INFO_BTF is needed");
		return STATUS_UNSUPPORTED;
	}
	/* BPF programs see pids of the first namespace, /proc here has those of another. */
	if (!stat("/proc/self/ns/pid", &namespace) && namespace.st_ino != FIRST_PID_NAMESPACE) {
		message("memtoll runs in a container's pid namespace; run it on the host "
			"(or with --pid=host)");
		return STATUS_UNSUPPORTED;
	}
	privileges_keep(PRIVILEGES_TRACE);
	return STATUS_DONE;
}
