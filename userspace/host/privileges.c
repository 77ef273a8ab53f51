// SPDX-License-Identifier: GPL-2.0
#include "host/privileges.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
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

/* PROC_PID_INIT_INO, PROC_USER_INIT_INO: inodes of the first namespaces (include/linux/proc_ns.h). */
#define FIRST_PID_NAMESPACE 0xeffffffcUL
#define FIRST_USER_NAMESPACE 0xeffffffdUL

/* Older kernels have no fetching atomics (5.12) and no task storage (5.11). */
#define OLDEST_MAJOR 5
#define OLDEST_MINOR 15

#define BIT(capability) (1ULL << (capability))

/* or_other: the kernel accepts that one instead. What each is for was tried by leaving it out. */
static const struct {
	int capability;
	int or_other;
	struct privilege told;
} all[] = {
	{ CAP_BPF,
	  CAP_SYS_ADMIN,
	  { "cap_bpf", PRIVILEGE_ALWAYS, "to load BPF programs and make their maps",
	    "the last slice is written", false } },
	{ CAP_PERFMON,
	  CAP_SYS_ADMIN,
	  { "cap_perfmon", PRIVILEGE_ALWAYS,
	    "to attach them to tracepoints and to code, to let them read memory, and for perf"
	    " events",
	    "the last slice is written", false } },
	{ CAP_SYS_PTRACE,
	  CAP_SYS_PTRACE,
	  { "cap_sys_ptrace", PRIVILEGE_OTHERS,
	    "for what /proc tells of other users' processes: mappings, memory, root directory",
	    "the last slice is written", false } },
	{ CAP_DAC_READ_SEARCH,
	  CAP_DAC_OVERRIDE,
	  { "cap_dac_read_search", PRIVILEGE_OTHERS,
	    "to read programs, libraries and debug files that not everybody may read, and what"
	    " container runtimes keep",
	    "the recording is closed", false } },
	{ CAP_SYSLOG,
	  CAP_SYSLOG,
	  { "cap_syslog", PRIVILEGE_BETTER,
	    "for names of the kernel's functions, where kernel.kptr_restrict hides their addresses",
	    "all probes are attached", false } },
	{ CAP_CHECKPOINT_RESTORE,
	  CAP_SYS_ADMIN,
	  { "cap_checkpoint_restore", PRIVILEGE_BETTER,
	    "for names from programs and libraries that were deleted while they ran",
	    "the last slice is written", false } },
	{ CAP_SYS_NICE,
	  CAP_SYS_NICE,
	  { "cap_sys_nice", PRIVILEGE_BETTER,
	    "to come before others on the CPU: fewer losses on a busy machine",
	    "the last slice is written", false } },
	{ CAP_SYS_RAWIO,
	  CAP_SYS_RAWIO,
	  { "cap_sys_rawio", PRIVILEGE_BETTER,
	    "to find the kernel's direct map in /proc/kcore, where nothing else tells it",
	    "all probes are attached", false } },
	{ CAP_SYS_ADMIN,
	  CAP_SYS_ADMIN,
	  { "cap_sys_admin", PRIVILEGE_BETTER,
	    "for perf events where kernel.perf_event_paranoid is above 2 (Debian, Ubuntu), and"
	    " before Linux 6.2 with libbpf before 1.2",
	    "all probes are attached, or the last slice is written", false } },
	{ CAP_SETUID,
	  CAP_SETUID,
	  { "cap_setuid", PRIVILEGE_BETTER,
	    "with cap_setgid, as root: to read files that other users' programs name with those"
	    " users' rights",
	    "the last slice is written", false } },
	{ CAP_KILL,
	  CAP_KILL,
	  { "cap_kill", PRIVILEGE_BETTER, "to end a command that has become another user",
	    "the last slice is written", false } },
	{ CAP_CHOWN,
	  CAP_CHOWN,
	  { "cap_chown", PRIVILEGE_BETTER,
	    "under sudo: a recording belongs to the user who asked for it",
	    "the recording is closed", false } },
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
bool privileges_may_open_events(void)
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
	answer = !privileges_may_open_events();
	syscall(SYS_capset, &before.header, before.data);
	return answer;
}

/* Linux major.minor or later. */
static bool kernel_is(const char *release, int major, int minor)
{
	int found[2];

	return sscanf(release, "%d.%d", &found[0], &found[1]) == 2 &&
	       (found[0] > major || (found[0] == major && found[1] >= minor));
}

/*
 * A function of the kernel's that is not there is looked for in its modules by libbpf before 1.2, for
 * which the kernel asks CAP_SYS_ADMIN; bpf_rdonly_cast() is there from 6.2 on.
 */
static bool loading_takes_admin(void)
{
	struct utsname machine;

	return libbpf_major_version() == 1 && libbpf_minor_version() < 2 && !uname(&machine) &&
	       !kernel_is(machine.release, 6, 2);
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
	if (mask & BIT(CAP_BPF) && (!apart || events_take_admin() || loading_takes_admin()))
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

/*
 * From Linux 6.15 on CAP_PERFMON is enough to read another process's mappings (mm_access()). Before, a
 * command of one's own cannot be probed without CAP_SYS_PTRACE: seen on 6.1.
 */
static enum privilege_need need_of(size_t i)
{
	struct utsname machine;

	if (all[i].capability == CAP_SYS_PTRACE && !uname(&machine) &&
	    !kernel_is(machine.release, 6, 15))
		return PRIVILEGE_ALWAYS;
	if (all[i].capability == CAP_SYS_ADMIN && loading_takes_admin())
		return PRIVILEGE_ALWAYS;
	return all[i].told.need;
}

static bool has_privilege(uint64_t has, size_t i)
{
	return has & (BIT(all[i].capability) | BIT(all[i].or_other));
}

size_t privileges_list(struct privilege *privileges, size_t capacity)
{
	uint64_t has = effective_capabilities();
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(all) && i < capacity; i++) {
		privileges[i] = all[i].told;
		privileges[i].need = need_of(i);
		privileges[i].has = has_privilege(has, i);
	}
	return i;
}

bool privilege_is_bounded(const char *name)
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(all); i++)
		if (!strcmp(all[i].told.name, name))
			return prctl(PR_CAPBSET_READ, all[i].capability, 0, 0, 0) == 1;
	return false;
}

/* Or it cannot be seen: a kernel without such namespaces. */
static bool is_first_namespace(const char *path, ino_t first)
{
	struct stat namespace;

	return stat(path, &namespace) || namespace.st_ino == first;
}

bool privileges_first_pid_namespace(void)
{
	return is_first_namespace("/proc/self/ns/pid", FIRST_PID_NAMESPACE);
}

bool privileges_first_user_namespace(void)
{
	return is_first_namespace("/proc/self/ns/user", FIRST_USER_NAMESPACE);
}

/* "cap_bpf, cap_perfmon": those missing of what it always takes; NULL: none. */
static char *missing(void)
{
	g_autoptr(GString) names = g_string_new(NULL);
	uint64_t has = effective_capabilities();
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(all); i++)
		if (need_of(i) == PRIVILEGE_ALWAYS && !has_privilege(has, i))
			g_string_append_printf(names, "%s%s", names->len ? ", " : "",
					       all[i].told.name);
	return names->len ? g_string_free(g_steal_pointer(&names), FALSE) : NULL;
}

/* By trial: whose process it is, and what it has done to itself, is not all that decides. */
int check_privileges_for(pid_t pid)
{
	g_autofree char *root = g_strdup_printf("/proc/%d/root", pid);
	g_autofree char *program = g_strdup_printf("/proc/%d/exe", pid);
	uint64_t has = effective_capabilities();
	const char *lacks = NULL;
	char target[2];
	int fd;

	/* What is refused all the same is told by whoever needs it. */
	if (has & BIT(CAP_SYS_PTRACE) && has & (READ | BIT(CAP_DAC_OVERRIDE)))
		return STATUS_DONE;
	if (readlink(root, target, sizeof(target)) < 0 && (errno == EACCES || errno == EPERM)) {
		lacks = "cap_sys_ptrace";
	} else {
		fd = open(program, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0)
			close(fd);
		else if (errno == EACCES || errno == EPERM)
			lacks = "cap_dac_read_search";
	}
	if (!lacks)
		return STATUS_DONE;
	message("process %d is another user's, or hides itself: to trace it takes root, or %s, which is "
		"missing",
		pid, lacks);
	return STATUS_UNSUPPORTED;
}

bool privileges_kernel_is_old(void)
{
	struct utsname machine;

	return !uname(&machine) && !kernel_is(machine.release, OLDEST_MAJOR, OLDEST_MINOR);
}

int check_privileges(void)
{
	g_autofree char *lacks = NULL;
	struct utsname machine;

	if (!uname(&machine) && !kernel_is(machine.release, OLDEST_MAJOR, OLDEST_MINOR)) {
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
	if (!privileges_may_open_events()) {
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
	if (!privileges_first_pid_namespace()) {
		message("memtoll runs in a container's pid namespace; run it on the host "
			"(or with --pid=host)");
		return STATUS_UNSUPPORTED;
	}
	privileges_keep(PRIVILEGES_TRACE);
	return STATUS_DONE;
}
