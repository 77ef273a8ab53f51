// SPDX-License-Identifier: GPL-2.0
/*
 * What a process can choose itself (its name, the paths it maps) is parsed as hostile; a process
 * may vanish between any two reads.
 */
#define _GNU_SOURCE 1 /* O_PATH, memrchr */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/proc.h"
#include "host/target_memory.h"

/* TASK_COMM_LEN less the final 0, include/linux/sched.h. */
#define COMM_LEN 15

/* A command line longer than this is cut: it is shown to people. */
#define CMDLINE_MAX (64u * 1024)

static const char deleted_suffix[] = " (deleted)";

/*
 * Read a file of /proc, whose size is not known before, up to limit bytes. 0 or -errno; after an
 * error content has what could be read.
 */
static int read_all(const char *path, GString *content, size_t limit)
{
	char buffer[16384];
	int err = 0;
	ssize_t got;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (content->len < limit) {
		got = read(fd, buffer, MIN(sizeof(buffer), limit - content->len));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			err = -errno;
		if (got <= 0)
			break;
		g_string_append_len(content, buffer, got);
	}
	close(fd);
	return err;
}

/* Fields 4 to 52 of proc(5), in order; those that are not there (older kernels) are 0. */
static size_t take_fields(const char *text, int64_t *fields, size_t capacity)
{
	size_t count = 0;
	char *end;

	while (count < capacity) {
		fields[count] = (int64_t)strtoull(text, &end, 10);
		if (end == text)
			break;
		count++;
		text = end;
	}
	return count;
}

static int parse_stat(const char *text, size_t len, struct proc_stat *stat)
{
	enum {
		FIRST = 4,
		PPID = 4 - FIRST,
		FLAGS = 9 - FIRST,
		MINOR = 10 - FIRST,
		MAJOR = 12 - FIRST,
		THREADS = 20 - FIRST,
		START = 22 - FIRST,
		STACK = 28 - FIRST,
		EXIT_CODE = 52 - FIRST,
		FIELDS
	};
	int64_t fields[FIELDS] = { 0 };
	const char *open = memchr(text, '(', len);
	const char *close = memrchr(text, ')', len);
	size_t comm_len;

	if (!open || !close || close < open || text + len - close < 4 || close[1] != ' ' ||
	    close[3] != ' ')
		return -EBADMSG;
	if (take_fields(close + 4, fields, FIELDS) <= START)
		return -EBADMSG;
	/* Unlike in status, the name is not escaped here: it may have newlines and parentheses. */
	comm_len = MIN((size_t)(close - open - 1), sizeof(stat->comm) - 1);
	memcpy(stat->comm, open + 1, comm_len);
	stat->comm[comm_len] = '\0';
	stat->state = close[2];
	stat->ppid = (pid_t)fields[PPID];
	stat->flags = (uint32_t)fields[FLAGS];
	stat->minor_faults = (uint64_t)fields[MINOR];
	stat->major_faults = (uint64_t)fields[MAJOR];
	stat->threads = (uint64_t)fields[THREADS];
	stat->start_ticks = (uint64_t)fields[START];
	stat->stack_start = (uint64_t)fields[STACK];
	stat->exit_code = (int)fields[EXIT_CODE];
	return 0;
}

int proc_stat_read(pid_t pid, pid_t tid, struct proc_stat *stat)
{
	GString *content = g_string_new(NULL);
	char path[96];
	int err;

	memset(stat, 0, sizeof(*stat));
	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	else
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	err = read_all(path, content, 4096);
	if (!err)
		err = parse_stat(content->str, content->len, stat);
	g_string_free(content, TRUE);
	return err;
}

bool proc_stat_has_ended(const struct proc_stat *stat)
{
	return (stat->state == 'Z' || stat->state == 'X' || (stat->flags & PROC_FLAG_EXITING)) &&
	       stat->threads <= 1;
}

/* Value of a line of status with the unit kB, in bytes; -1: there is no such line. */
static int64_t status_bytes(const char *text, const char *key)
{
	const char *line = strstr(text, key);

	return line ? g_ascii_strtoll(line + strlen(key), NULL, 10) * 1024 : -1;
}

int proc_status_read(pid_t tid, struct proc_status *status)
{
	GString *content = g_string_new(NULL);
	const char *tgid;
	char path[64];
	int err;

	status->tgid = 0;
	status->rss_bytes = status->swap_bytes = -1;
	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	err = read_all(path, content, 8192);
	if (err)
		goto out;
	/* The name, in the first line, is escaped: it has no newline. */
	err = -EBADMSG;
	tgid = strstr(content->str, "\nTgid:");
	if (!tgid)
		goto out;
	status->tgid = atoi(tgid + strlen("\nTgid:"));
	status->rss_bytes = status_bytes(content->str, "\nVmRSS:");
	status->swap_bytes = status_bytes(content->str, "\nVmSwap:");
	err = 0;
out:
	g_string_free(content, TRUE);
	return err;
}

uint64_t proc_turns(pid_t pid, pid_t tid)
{
	g_autoptr(GString) content = g_string_new(NULL);
	uint64_t turns = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	/* Time on CPUs, time of waiting for one, turns. */
	if (read_all(path, content, 256) || sscanf(content->str, "%*u %*u %" SCNu64, &turns) != 1)
		return 0;
	return turns;
}

static bool is_octal(char digit)
{
	return digit >= '0' && digit <= '7';
}

char *proc_unescape(const char *text)
{
	GString *word = g_string_new(NULL);

	for (; *text && !strchr(" \t\n", *text); text++) {
		if (text[0] == '\\' && is_octal(text[1]) && is_octal(text[2]) &&
		    is_octal(text[3])) {
			g_string_append_c(word, (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 |
						       (text[3] - '0')));
			text += 3;
		} else {
			g_string_append_c(word, *text);
		}
	}
	return g_string_free(word, FALSE);
}

char *proc_cmdline(pid_t pid)
{
	GString *content = g_string_new(NULL);
	struct proc_stat stat;

	target_memory_file(pid, "cmdline", CMDLINE_MAX, content);
	while (content->len > 0 && content->str[content->len - 1] == '\0')
		g_string_truncate(content, content->len - 1);
	for (size_t i = 0; i < content->len; i++)
		if (content->str[i] == '\0')
			content->str[i] = ' ';
	if (content->len == 0) {
		if (proc_stat_read(pid, 0, &stat) < 0) {
			g_string_free(content, TRUE);
			return NULL;
		}
		g_string_printf(content, "[%s]", stat.comm);
	}
	return g_string_free(content, FALSE);
}

char *proc_environment(pid_t pid, const char *name)
{
	g_autoptr(GString) content = g_string_new(NULL);
	size_t skip = strlen(name);

	target_memory_file(pid, "environ", PROC_ENVIRONMENT_MAX, content);
	for (size_t at = 0; at < content->len; at += strlen(content->str + at) + 1)
		if (strncmp(content->str + at, name, skip) == 0 && content->str[at + skip] == '=')
			return g_strdup(content->str + at + skip + 1);
	return NULL;
}

char *proc_exe(pid_t pid)
{
	char target[PATH_MAX + sizeof(deleted_suffix)];
	char path[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	len = readlink(path, target, sizeof(target) - 1);
	if (len <= 0)
		return NULL;
	target[len] = '\0';
	if (g_str_has_suffix(target, deleted_suffix))
		target[len - (ssize_t)strlen(deleted_suffix)] = '\0';
	return g_strdup(target);
}

static bool has_name(pid_t pid, const char *name, const struct proc_stat *stat)
{
	const char *slash;
	char *exe;
	bool equal;

	/* The kernel keeps only 15 bytes of a name. */
	if (strncmp(stat->comm, name, COMM_LEN) == 0 && strlen(stat->comm) <= COMM_LEN)
		return true;
	exe = proc_exe(pid);
	slash = exe ? strrchr(exe, '/') : NULL;
	equal = slash && strcmp(slash + 1, name) == 0;
	g_free(exe);
	return equal;
}

bool proc_has_name(pid_t pid, const char *name)
{
	struct proc_stat stat;

	if (pid == getpid() || proc_stat_read(pid, 0, &stat) < 0)
		return false;
	if (stat.state == 'Z' || stat.state == 'X' || proc_stat_has_ended(&stat) ||
	    (stat.flags & PROC_FLAG_KTHREAD))
		return false;
	return has_name(pid, name, &stat);
}

ssize_t proc_find_name(const char *name, pid_t **pids)
{
	struct dirent *entry;
	GArray *found;
	ssize_t count;
	DIR *dir;

	*pids = NULL;
	if (!*name)
		return -EINVAL;
	dir = opendir("/proc");
	if (!dir)
		return -errno;
	found = g_array_new(FALSE, FALSE, sizeof(pid_t));
	while ((entry = readdir(dir))) {
		char *end;
		long number;
		pid_t pid;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		number = strtol(entry->d_name, &end, 10);
		if (*end || number <= 0 || number > INT_MAX)
			continue;
		pid = (pid_t)number;
		if (proc_has_name(pid, name))
			g_array_append_val(found, pid);
	}
	closedir(dir);
	count = found->len;
	*pids = (pid_t *)(void *)g_array_free(found, FALSE);
	return count;
}
