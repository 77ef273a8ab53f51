// SPDX-License-Identifier: GPL-2.0
/*
 * ci.c: memtoll doctor --ci. Settings: docker-run(1); GitHub, "Workflow syntax", container.options;
 * Kubernetes, SecurityContext and PodSpec of its API.
 */
#include "doctor/ci.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/message.h"
#include "base/text.h"
#include "host/privileges.h"

#define BTF "/sys/kernel/btf/vmlinux"
#define SECCOMP_DOCKER "--security-opt=seccomp=unconfined"

static void lack_free(void *data)
{
	struct ci_lack *lack = data;

	g_free(lack->why);
	g_free(lack->docker);
	g_free(lack->github);
	g_free(lack->kubernetes);
	g_free(lack);
}

static struct ci_lack *add(GPtrArray *lacks, const char *name, bool required, const char *why)
{
	struct ci_lack *lack = g_new0(struct ci_lack, 1);

	lack->name = name;
	lack->required = required;
	lack->why = g_strdup(why);
	g_ptr_array_add(lacks, lack);
	return lack;
}

/* Of docker run: a job's container has the same options at GitHub. */
static void add_docker_option(struct ci_lack *lack, const char *option)
{
	lack->docker = g_strdup(option);
	lack->github =
		g_strdup_printf("container.options: %s; without a container: sudo memtoll", option);
}

/* A number of a file of /proc/sys; -1: it is not there. */
static long setting(const char *path)
{
	g_autofree char *text = NULL;

	return g_file_get_contents(path, &text, NULL, NULL) ? strtol(text, NULL, 10) : -1;
}

/* The thread is filtered: what is refused may be the filter's doing. */
static bool is_filtered(void)
{
	g_autofree char *status = NULL;
	const char *line;

	if (!g_file_get_contents("/proc/self/status", &status, NULL, NULL))
		return false;
	line = strstr(status, "\nSeccomp:");
	return line && strtol(line + strlen("\nSeccomp:"), NULL, 10) != 0;
}

/* What is missing for want of it is seen otherwise, or is for what no job does. */
static bool is_left_out(const struct privilege *privilege)
{
	static const char *const others[] = { "cap_sys_admin", "cap_sys_rawio", "cap_setuid",
					      "cap_kill",      "cap_chown",	NULL };

	return (privilege->need != PRIVILEGE_ALWAYS && g_strv_contains(others, privilege->name)) ||
	       (!strcmp(privilege->name, "cap_syslog") &&
		setting("/proc/sys/kernel/kptr_restrict") <= 0);
}

/* A container's capabilities are root's: whoever else runs in it has none of them. */
static void add_capability(GPtrArray *lacks, const struct privilege *privilege)
{
	struct ci_lack *lack =
		add(lacks, privilege->name, privilege->need == PRIVILEGE_ALWAYS, privilege->reason);
	g_autofree char *name = g_ascii_strup(privilege->name + strlen("cap_"), -1);
	g_autofree char *option = g_strdup_printf("--cap-add=%s", name);

	if (geteuid() && privilege_is_bounded(privilege->name)) {
		add_docker_option(lack, "--user=0");
		lack->kubernetes = g_strdup("securityContext.runAsUser: 0");
		return;
	}
	if (geteuid()) {
		g_autofree char *both = g_strdup_printf("--user=0 %s", option);

		add_docker_option(lack, both);
		lack->kubernetes = g_strdup_printf(
			"securityContext.runAsUser: 0, securityContext.capabilities.add: [%s]",
			name);
		return;
	}
	add_docker_option(lack, option);
	lack->kubernetes = g_strdup_printf("securityContext.capabilities.add: [%s]", name);
}

static bool has(const struct privilege *privileges, size_t count, const char *name)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (!strcmp(privileges[i].name, name))
			return privileges[i].has;
	return false;
}

static void add_filter(GPtrArray *lacks, const char *name, const char *why)
{
	struct ci_lack *lack = add(lacks, name, true, why);

	add_docker_option(lack, SECCOMP_DOCKER);
	lack->kubernetes = g_strdup("securityContext.seccompProfile.type: Unconfined");
}

/* Asked for by trial, which says nothing of who lacks the capability. */
static void try_bpf(GPtrArray *lacks)
{
	union bpf_attr attr;
	int fd;

	/* The kernel refuses what is not zero behind the fields of this command. */
	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = 4;
	attr.value_size = 4;
	attr.max_entries = 1;
	fd = syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	if (fd >= 0) {
		close(fd);
		return;
	}
	if (errno == EPERM || errno == EACCES || errno == ENOSYS)
		add_filter(lacks, "bpf(2)",
			   is_filtered() ?
				   "refused by a seccomp filter" :
				   "refused, though the capability is there: by a security module");
}

static void try_events(GPtrArray *lacks, bool has_admin)
{
	struct ci_lack *lack;

	if (privileges_may_open_events())
		return;
	if (has_admin || setting("/proc/sys/kernel/perf_event_paranoid") <= 2) {
		add_filter(lacks, "perf_event_open(2)",
			   is_filtered() ? "refused by a seccomp filter" :
					   "refused by a security module");
		return;
	}
	lack = add(lacks, "kernel.perf_event_paranoid", true,
		   "it is above 2, which takes cap_sys_admin for perf events");
	lack->docker = g_strdup(
		"on the host: sysctl -w kernel.perf_event_paranoid=2; or --cap-add=SYS_ADMIN");
	lack->github = g_strdup("a step before: sudo sysctl -w kernel.perf_event_paranoid=2");
	lack->kubernetes = g_strdup("on the node: sysctl -w kernel.perf_event_paranoid=2; or "
				    "securityContext.capabilities.add: [SYS_ADMIN]");
}

static void find_kernel(GPtrArray *lacks)
{
	struct ci_lack *lack;

	if (privileges_kernel_is_old()) {
		lack = add(lacks, "kernel", true, "Linux 5.15 or later is needed");
		lack->docker = g_strdup("a host with such a kernel");
		lack->github = g_strdup("runs-on: ubuntu-latest");
		lack->kubernetes = g_strdup("a node with such a kernel");
	}
	if (!access(BTF, R_OK))
		return;
	lack = add(lacks, "kernel types", true,
		   "no " BTF ": hidden here, or a kernel without CONFIG_DEBUG_INFO_BTF");
	add_docker_option(lack, "--volume=/sys/kernel/btf:/sys/kernel/btf:ro");
	lack->kubernetes =
		g_strdup("a volume of hostPath: /sys/kernel/btf, mounted there, readOnly: true");
}

static void find_namespaces(GPtrArray *lacks)
{
	struct ci_lack *lack;

	if (!privileges_first_user_namespace()) {
		lack = add(lacks, "user namespace", true,
			   "its root is nobody to the kernel, whatever capabilities are there");
		lack->docker = g_strdup("--userns=host, with a daemon that runs as root");
		lack->github =
			g_strdup("container.options: --userns=host; without a container: sudo "
				 "memtoll");
		lack->kubernetes = g_strdup("spec.hostUsers: true");
	}
	if (privileges_first_pid_namespace())
		return;
	lack = add(
		lacks, "pid namespace", true,
		"the kernel's BPF programs see the host's numbers of processes, /proc here has others");
	add_docker_option(lack, "--pid=host");
	lack->kubernetes = g_strdup("spec.hostPID: true");
}

/* By ptrace a command is held until it is probed. */
static void find_ptrace(GPtrArray *lacks, bool has_ptrace)
{
	long scope = setting("/proc/sys/kernel/yama/ptrace_scope");
	struct ci_lack *lack;

	if (scope < 2 || (scope == 2 && has_ptrace))
		return;
	lack = add(
		lacks, "kernel.yama.ptrace_scope", true,
		scope == 2 ?
			"it is 2, which takes cap_sys_ptrace to hold a command until it is probed" :
			"it is 3, which forbids to hold a command until it is probed, for good");
	lack->docker = g_strdup(scope == 2 ? "--cap-add=SYS_PTRACE" :
					     "on the host, at its start: "
					     "kernel.yama.ptrace_scope=1");
	lack->github =
		g_strdup(scope == 2 ? "container.options: --cap-add=SYS_PTRACE" : "another runner");
	lack->kubernetes =
		g_strdup(scope == 2 ? "securityContext.capabilities.add: [SYS_PTRACE]" :
				      "on the node, at its start: kernel.yama.ptrace_scope=1");
}

GPtrArray *ci_find(void)
{
	GPtrArray *lacks = g_ptr_array_new_with_free_func(lack_free);
	struct privilege privileges[PRIVILEGES_MAX];
	size_t count = privileges_list(privileges, PRIVILEGES_MAX), i;
	/* Nothing that is tried there says what else is refused. */
	bool is_tried = privileges_first_user_namespace();
	int required;

	find_kernel(lacks);
	find_namespaces(lacks);
	for (required = 1; required >= 0; required--) {
		for (i = 0; i < count; i++)
			if (!privileges[i].has && !is_left_out(&privileges[i]) &&
			    (privileges[i].need == PRIVILEGE_ALWAYS) == required)
				add_capability(lacks, &privileges[i]);
		if (!required)
			break;
		find_ptrace(lacks, has(privileges, count, "cap_sys_ptrace"));
		if (is_tried && has(privileges, count, "cap_bpf"))
			try_bpf(lacks);
		if (is_tried && has(privileges, count, "cap_perfmon"))
			try_events(lacks, has(privileges, count, "cap_sys_admin"));
	}
	return lacks;
}

bool ci_works(const GPtrArray *lacks)
{
	guint i;

	for (i = 0; i < lacks->len; i++)
		if (((const struct ci_lack *)g_ptr_array_index(lacks, i))->required)
			return false;
	return true;
}

static void print_lines(const GPtrArray *lacks)
{
	bool untried = false;
	guint i;

	printf("memtoll %s here: record, stat, watch, top, compare. Recordings are read everywhere: "
	       "report, explain.\n",
	       ci_works(lacks) ? "can trace" : "cannot trace");
	for (i = 0; i < lacks->len; i++) {
		const struct ci_lack *lack = g_ptr_array_index(lacks, i);

		printf("%s %s: %s. Docker: %s. GitHub: %s. Kubernetes: %s.\n",
		       lack->required ? "missing" : "better with", lack->name, lack->why,
		       lack->docker, lack->github, lack->kubernetes);
		untried |= lack->required &&
			   (!strcmp(lack->name, "cap_bpf") || !strcmp(lack->name, "cap_perfmon") ||
			    !strcmp(lack->name, "user namespace"));
	}
	if (untried)
		puts("not tried: whether bpf(2) and perf_event_open(2) are filtered, which takes all of "
		     "these; run it again with them.");
}

static int print_json(const GPtrArray *lacks)
{
	static const char sql[] =
		"SELECT json_object('name', ?1, 'required', json(iif(?2, 'true', 'false')), 'why', ?3,"
		" 'docker', ?4, 'github', ?5, 'kubernetes', ?6)";
	sqlite3 *database = NULL;
	sqlite3_stmt *row = NULL;
	int err = -ENOMEM;
	guint i;

	if (sqlite3_open(":memory:", &database) != SQLITE_OK ||
	    sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK)
		goto out;
	printf("{\"format\":1,\"works\":%s,\"missing\":[", ci_works(lacks) ? "true" : "false");
	for (i = 0, err = 0; !err && i < lacks->len; i++) {
		const struct ci_lack *lack = g_ptr_array_index(lacks, i);

		sqlite3_bind_text(row, 1, lack->name, -1, SQLITE_STATIC);
		sqlite3_bind_int(row, 2, lack->required);
		sqlite3_bind_text(row, 3, lack->why, -1, SQLITE_STATIC);
		sqlite3_bind_text(row, 4, lack->docker, -1, SQLITE_STATIC);
		sqlite3_bind_text(row, 5, lack->github, -1, SQLITE_STATIC);
		sqlite3_bind_text(row, 6, lack->kubernetes, -1, SQLITE_STATIC);
		if (sqlite3_step(row) == SQLITE_ROW)
			printf("%s%s", i ? "," : "", (const char *)sqlite3_column_text(row, 0));
		else
			err = -ENOMEM;
		sqlite3_reset(row);
	}
	if (!err)
		puts("]}");
out:
	if (err)
		message("cannot make the JSON object: %s", sqlite3_errmsg(database));
	sqlite3_finalize(row);
	sqlite3_close(database);
	return err;
}

int ci_print(const GPtrArray *lacks, bool json)
{
	int err = 0;

	if (json)
		err = print_json(lacks);
	else
		print_lines(lacks);
	if (!err && (fflush(stdout) || ferror(stdout))) {
		message("cannot write to standard output");
		err = -EIO;
	}
	return err;
}
