// SPDX-License-Identifier: GPL-2.0
/*
 * proc.c: readers of /proc. Whatever a process can choose itself (its name, the paths it maps) is
 * parsed as hostile; a process may vanish between any two reads.
 */
#define _GNU_SOURCE 1	/* O_PATH, memrchr */

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
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "proc.h"

#define PF_KTHREAD 0x00200000u

/* TASK_COMM_LEN less the final 0, include/linux/sched.h. */
#define COMM_LEN 15

/* A command line longer than this is cut: it is shown to people. */
#define CMDLINE_MAX (64u * 1024)

static const char deleted_suffix[] = " (deleted)";

/*
 * The content of a file of /proc, whose size is not known before, up to limit bytes. 0 or -errno;
 * content stays valid, and is what could be read, after an error.
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

/* Read a number in the given base and the character that must follow it. */
static bool take_number(const char **cursor, int base, char follower, uint64_t *value)
{
	char *end;

	if (!isxdigit((unsigned char)**cursor))
		return false;
	errno = 0;
	*value = strtoull(*cursor, &end, base);
	if (errno || end == *cursor || *end != follower)
		return false;
	*cursor = end + 1;
	return true;
}

/*
 * The path of a maps line. seq_path() writes a newline as \012 and nothing else specially, so a
 * backslash in front of other digits is part of the name.
 */
static char *maps_path(const char *text, bool *deleted)
{
	GString *path = g_string_new(NULL);

	for (; *text; text++) {
		if (strncmp(text, "\\012", 4) == 0) {
			g_string_append_c(path, '\n');
			text += 3;
		} else {
			g_string_append_c(path, *text);
		}
	}
	*deleted = path->str[0] == '/' && g_str_has_suffix(path->str, deleted_suffix);
	if (*deleted)
		g_string_truncate(path, path->len - strlen(deleted_suffix));
	return g_string_free(path, FALSE);
}

/* "start-end rwxp offset major:minor inode      path" */
static bool parse_mapping(const char *line, struct mapping *mapping)
{
	uint64_t major, minor;
	const char *cursor = line;

	memset(mapping, 0, sizeof(*mapping));
	if (!take_number(&cursor, 16, '-', &mapping->start) ||
	    !take_number(&cursor, 16, ' ', &mapping->end) ||
	    mapping->start >= mapping->end)
		return false;
	if (strnlen(cursor, 5) < 5 || cursor[4] != ' ')
		return false;
	mapping->read = cursor[0] == 'r';
	mapping->write = cursor[1] == 'w';
	mapping->exec = cursor[2] == 'x';
	mapping->shared = cursor[3] == 's';
	cursor += 5;
	if (!take_number(&cursor, 16, ' ', &mapping->offset) ||
	    !take_number(&cursor, 16, ':', &major) ||
	    !take_number(&cursor, 16, ' ', &minor) || major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	mapping->dev_major = (uint32_t)major;
	mapping->dev_minor = (uint32_t)minor;
	/* The kernel ends the inode with a space also where no path follows. */
	if (!take_number(&cursor, 10, ' ', &mapping->inode))
		return false;
	cursor += strspn(cursor, " ");
	mapping->path = maps_path(cursor, &mapping->deleted);
	return true;
}

/*
 * Append, keeping entries ascending and disjoint: between two reads of the file the process may
 * have merged mappings, and the rest then begins below the last entry.
 */
static void append_mapping(GArray *entries, struct mapping *mapping)
{
	uint64_t last_end = 0;

	if (entries->len > 0)
		last_end = g_array_index(entries, struct mapping, entries->len - 1).end;
	if (mapping->end <= last_end) {
		g_free(mapping->path);
		return;
	}
	if (mapping->start < last_end) {
		if (mapping->inode)
			mapping->offset += last_end - mapping->start;
		mapping->start = last_end;
	}
	g_array_append_val(entries, *mapping);
}

int maps_read(pid_t pid, struct maps *maps)
{
	GArray *entries = g_array_new(FALSE, FALSE, sizeof(struct mapping));
	GString *content = g_string_new(NULL);
	struct mapping mapping;
	char path[64];
	char *line, *end;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	err = read_all(path, content, SIZE_MAX);
	for (line = content->str; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (parse_mapping(line, &mapping))
			append_mapping(entries, &mapping);
	}
	/* Zombies and kernel threads have no address space: the file is there, but empty. */
	if (!err && entries->len == 0)
		err = -ESRCH;
	maps->count = entries->len;
	maps->entries = (struct mapping *)(void *)g_array_free(entries, FALSE);
	g_string_free(content, TRUE);
	return err;
}

void maps_free(struct maps *maps)
{
	for (size_t i = 0; i < maps->count; i++)
		g_free(maps->entries[i].path);
	g_free(maps->entries);
	maps->entries = NULL;
	maps->count = 0;
}

const struct mapping *maps_find(const struct maps *maps, uint64_t address)
{
	size_t low = 0, high = maps->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct mapping *mapping = &maps->entries[middle];

		if (address < mapping->start)
			high = middle;
		else if (address >= mapping->end)
			low = middle + 1;
		else
			return mapping;
	}
	return NULL;
}

/*
 * Open path for reading if it is a regular file, and, where mapping is not NULL, the very file
 * that is mapped. The first open is O_PATH: opening a device or a FIFO could act or block.
 */
static int open_regular(const char *path, const struct mapping *mapping)
{
	int handle, err, fd;
	char reopen[64];
	struct stat st;

	handle = open(path, O_PATH | O_CLOEXEC);
	if (handle < 0)
		return -errno;
	if (fstat(handle, &st) < 0) {
		err = -errno;
		goto out;
	}
	err = -EINVAL;
	if (!S_ISREG(st.st_mode))
		goto out;
	err = -ESTALE;
	if (mapping && (st.st_ino != mapping->inode || major(st.st_dev) != mapping->dev_major ||
			minor(st.st_dev) != mapping->dev_minor))
		goto out;
	snprintf(reopen, sizeof(reopen), "/proc/self/fd/%d", handle);
	fd = open(reopen, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	err = fd < 0 ? -errno : fd;
out:
	close(handle);
	return err;
}

int mapping_open(pid_t pid, const struct mapping *mapping)
{
	char link[96];
	char *path;
	int fd, first;

	if (mapping->inode == 0)
		return -ENOENT;
	snprintf(link, sizeof(link), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid,
		 mapping->start, mapping->end);
	first = open_regular(link, NULL);
	if (first >= 0 || first == -EINVAL || mapping->path[0] != '/')
		return first;
	path = g_strdup_printf("/proc/%d/root%s", pid, mapping->path);
	fd = open_regular(path, mapping);
	g_free(path);
	if (fd < 0)
		fd = open_regular(mapping->path, mapping);
	/* Missing privileges are what the user can do something about: tell them first. */
	return fd < 0 && (first == -EPERM || first == -EACCES) ? first : fd;
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
	enum { FIRST = 4, PPID = 4 - FIRST, FLAGS = 9 - FIRST, MINOR = 10 - FIRST,
	       MAJOR = 12 - FIRST, THREADS = 20 - FIRST, START = 22 - FIRST,
	       EXIT_CODE = 52 - FIRST, FIELDS };
	int64_t fields[FIELDS] = { 0 };
	const char *open = memchr(text, '(', len);
	const char *close = memrchr(text, ')', len);
	size_t comm_len;

	if (!open || !close || close < open || text + len - close < 4 || close[1] != ' ' ||
	    close[3] != ' ')
		return -EBADMSG;
	if (take_fields(close + 4, fields, FIELDS) <= START)
		return -EBADMSG;
	/* Unlike in status, the name stands here unescaped, with its newlines and parentheses. */
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

/* A value of kibibytes of a line of status, in bytes; -1: there is no such line. */
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
	/* The name, in the first line, is escaped: every newline ends a line. */
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
			g_string_append_c(word, (char)((text[1] - '0') << 6 |
						       (text[2] - '0') << 3 | (text[3] - '0')));
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
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	read_all(path, content, CMDLINE_MAX);
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
	g_autofree char *path = g_strdup_printf("/proc/%d/environ", pid);
	g_autofree char *environment = NULL;
	size_t length = 0, skip = strlen(name);

	if (!g_file_get_contents(path, &environment, &length, NULL))
		return NULL;
	for (size_t at = 0; at < length; at += strlen(environment + at) + 1)
		if (strncmp(environment + at, name, skip) == 0 && environment[at + skip] == '=')
			return g_strdup(environment + at + skip + 1);
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

	/* The kernel keeps 15 bytes of the name, so of a longer one only these can agree. */
	if (strncmp(stat->comm, name, COMM_LEN) == 0 && strlen(stat->comm) <= COMM_LEN)
		return true;
	exe = proc_exe(pid);
	slash = exe ? strrchr(exe, '/') : NULL;
	equal = slash && strcmp(slash + 1, name) == 0;
	g_free(exe);
	return equal;
}

static bool is_candidate(pid_t pid, const char *name)
{
	struct proc_stat stat;

	if (pid == getpid() || proc_stat_read(pid, 0, &stat) < 0)
		return false;
	if (stat.state == 'Z' || stat.state == 'X' || (stat.flags & PF_KTHREAD))
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
		if (is_candidate(pid, name))
			g_array_append_val(found, pid);
	}
	closedir(dir);
	count = found->len;
	*pids = (pid_t *)(void *)g_array_free(found, FALSE);
	return count;
}
