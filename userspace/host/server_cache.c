// SPDX-License-Identifier: GPL-2.0
/*
 * Sources: "Configuring MariaDB with Option Files" of MariaDB's manual, "Server Configuration" of
 * PostgreSQL's.
 */
#include "host/server_cache.h"

#include <dirent.h>
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "base/root_open.h"
#include "host/proc.h"
#include "host/target_rights.h"

#define INCLUDES_MAX 8 /* nesting: files may include one another */
#define FILES_MAX 64   /* in all, including those of directories */
#define FILE_BYTES_MAX (1 << 20)

/* Option files of one process. */
struct option_files {
	int root;
	unsigned int opened;
	struct server_cache *cache;
};

/* Contents of a file below the root; NULL: none, or not one that a server would read. */
static char *read_text(struct option_files *files, const char *path)
{
	g_autofree char *text = NULL;
	size_t length = 0;
	struct stat status;
	ssize_t got = 1;
	int fd;

	if (files->opened++ >= FILES_MAX)
		return NULL;
	fd = root_open_file(files->root, path, false);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &status) && status.st_size <= FILE_BYTES_MAX)
		text = g_malloc(FILE_BYTES_MAX + 1);
	while (text && got > 0 && length < FILE_BYTES_MAX) {
		got = read(fd, text + length, FILE_BYTES_MAX - length);
		length += got > 0 ? (size_t)got : 0;
	}
	close(fd);
	if (!text || got < 0)
		return NULL;
	text[length] = '\0';
	return g_steal_pointer(&text);
}

/* What the files that were not opened say might be the last word. */
static void check_all_opened(const struct option_files *files)
{
	if (files->opened <= FILES_MAX)
		return;
	files->cache->bytes = -1;
	g_free(files->cache->source);
	files->cache->source = g_strdup_printf("more than %d option files", FILES_MAX);
}

/* Options may be spelled with - or _, in any case. */
static bool same_name(const char *text, size_t length, const char *name)
{
	size_t i;

	for (i = 0; i < length && name[i]; i++)
		if (g_ascii_tolower(text[i] == '-' ? '_' : text[i]) != name[i])
			return false;
	return i == length && !name[i];
}

/* Bytes of a size; a bare number is in units of `unit` bytes. -1: not a size. */
static int64_t size_of(const char *text, uint64_t unit)
{
	g_autofree char *copy = g_strstrip(g_strdup(text));
	size_t length = strlen(copy);
	uint64_t bytes;

	if (length > 1 && (*copy == '\'' || *copy == '"') && copy[length - 1] == *copy) {
		copy[length - 1] = '\0';
		memmove(copy, copy + 1, length - 1);
	}
	if (!*copy || !parse_size(copy, &bytes))
		return -1;
	return g_ascii_isdigit(copy[strlen(copy) - 1]) ? bytes * unit : bytes;
}

static void set(struct server_cache *cache, const char *value, uint64_t unit, const char *source)
{
	cache->bytes = size_of(value, unit);
	g_free(cache->source);
	cache->source = g_strdup(source);
}

void server_cache_clear(struct server_cache *cache)
{
	g_clear_pointer(&cache->source, g_free);
}

/*
 * "name = value" or "name value"; false: another name, or none. In place: *value points into line.
 */
static bool take_setting(char *line, const char *name, char **value)
{
	size_t length = strcspn(line, " \t=");

	if (!same_name(line, length, name))
		return false;
	line += length;
	line += strspn(line, " \t");
	if (*line == '=')
		line++;
	*value = g_strstrip(line);
	return true;
}

/* ---- MariaDB, MySQL ---- */

static const char innodb_name[] = "innodb_buffer_pool_size";

static void read_innodb_file(struct option_files *files, const char *path, int depth);

static int by_text(gconstpointer a, gconstpointer b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void read_innodb_directory(struct option_files *files, const char *path, int depth)
{
	g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
	int fd = root_open_directory(files->root, path);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	guint i;

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while (names->len < FILES_MAX && (entry = readdir(directory)))
		if (g_str_has_suffix(entry->d_name, ".cnf"))
			g_ptr_array_add(names, g_build_filename(path, entry->d_name, NULL));
	closedir(directory);
	g_ptr_array_sort(names, by_text);
	for (i = 0; i < names->len; i++)
		read_innodb_file(files, g_ptr_array_index(names, i), depth);
}

/* Groups that the server reads, of any version. */
static bool is_server_group(const char *line)
{
	return g_str_has_prefix(line, "[mysqld") || g_str_has_prefix(line, "[mariadb") ||
	       g_str_has_prefix(line, "[server]");
}

static void read_innodb_file(struct option_files *files, const char *path, int depth)
{
	g_autofree char *text = depth > INCLUDES_MAX ? NULL : read_text(files, path);
	g_auto(GStrv) lines = NULL;
	bool inside = false;
	char *value;
	size_t i;

	if (!text)
		return;
	lines = g_strsplit(text, "\n", -1);
	for (i = 0; lines[i]; i++) {
		char *line = g_strstrip(lines[i]);

		if (g_str_has_prefix(line, "!includedir"))
			read_innodb_directory(files, g_strstrip(line + 11), depth + 1);
		else if (g_str_has_prefix(line, "!include"))
			read_innodb_file(files, g_strstrip(line + 8), depth + 1);
		else if (*line == '[')
			inside = is_server_group(line);
		else if (inside && take_setting(line, innodb_name, &value))
			set(files->cache, value, 1, path);
	}
}

static void find_innodb(char *const *arguments, struct option_files *files)
{
	static const char *const usual[] = { "/etc/my.cnf", "/etc/mysql/my.cnf" };
	struct server_cache *cache = files->cache;
	const char *defaults = NULL, *extra = NULL, *name;
	bool none = false;
	char *value;
	size_t i;

	cache->program = "InnoDB";
	cache->setting = innodb_name;
	cache->bytes = 128 << 20;
	cache->source = g_strdup("default");
	for (i = 0; arguments[i]; i++) {
		none |= !strcmp(arguments[i], "--no-defaults");
		if (g_str_has_prefix(arguments[i], "--defaults-file="))
			defaults = arguments[i] + 16;
		if (g_str_has_prefix(arguments[i], "--defaults-extra-file="))
			extra = arguments[i] + 22;
	}
	if (defaults)
		read_innodb_file(files, defaults, 0);
	for (i = 0; i < G_N_ELEMENTS(usual) && !defaults && !none; i++)
		read_innodb_file(files, usual[i], 0);
	if (extra && !none)
		read_innodb_file(files, extra, 0);
	check_all_opened(files);
	for (i = 0; arguments[i]; i++) {
		g_autofree char *copy = NULL;

		if (!g_str_has_prefix(arguments[i], "--"))
			continue;
		name = arguments[i] + 2;
		name += g_str_has_prefix(name, "loose-") ? 6 : 0;
		copy = g_strdup(name);
		if (!take_setting(copy, innodb_name, &value))
			continue;
		if (*value)
			set(cache, value, 1, "command line");
		else if (arguments[i + 1])
			set(cache, arguments[i + 1], 1, "command line");
	}
}

/* ---- PostgreSQL ---- */

#define POSTGRESQL_BLOCK 8192 /* what shared_buffers counts in: BLCKSZ */

static const char postgresql_name[] = "shared_buffers";

static void read_postgresql_file(struct option_files *files, const char *path, int depth)
{
	g_autofree char *text = depth > INCLUDES_MAX ? NULL : read_text(files, path);
	g_autofree char *directory = g_path_get_dirname(path);
	g_auto(GStrv) lines = NULL;
	char *value;
	size_t i;

	if (!text)
		return;
	lines = g_strsplit(text, "\n", -1);
	for (i = 0; lines[i]; i++) {
		char *line = g_strstrip(lines[i]);

		line[strcspn(line, "#")] = '\0';
		if (take_setting(line, postgresql_name, &value))
			set(files->cache, value, POSTGRESQL_BLOCK, path);
		else if (take_setting(line, "include", &value) ||
			 take_setting(line, "include_if_exists", &value)) {
			g_autofree char *file = NULL;

			g_strdelimit(value, "'", ' ');
			g_strstrip(value);
			file = *value == '/' ? g_strdup(value) :
					       g_build_filename(directory, value, NULL);
			read_postgresql_file(files, file, depth + 1);
		}
	}
}

/* The value of "-c name=value", "-cname=value" or "--name=value"; NULL: another argument. */
static const char *argument_of(char *const *arguments, size_t i, const char *name)
{
	const char *text = arguments[i];
	size_t length;

	if (!strcmp(text, "-c"))
		text = arguments[i + 1] ? arguments[i + 1] : "";
	else if (g_str_has_prefix(text, "-c") || g_str_has_prefix(text, "--"))
		text += 2;
	else
		return NULL;
	length = strcspn(text, "=");
	return text[length] && same_name(text, length, name) ? text + length + 1 : NULL;
}

static void find_postgresql(char *const *arguments, const char *directory,
			    struct option_files *files)
{
	g_autofree char *file = g_build_filename(directory, "postgresql.conf", NULL);
	g_autofree char *automatic = g_build_filename(directory, "postgresql.auto.conf", NULL);
	struct server_cache *cache = files->cache;
	const char *value;
	size_t i;

	cache->program = "PostgreSQL";
	cache->setting = postgresql_name;
	cache->bytes = 128 << 20;
	cache->source = g_strdup("default");
	for (i = 0; arguments[i]; i++) {
		value = argument_of(arguments, i, "config_file");
		if (!value)
			continue;
		g_free(file);
		file = g_strdup(value);
	}
	read_postgresql_file(files, file, 0);
	read_postgresql_file(files, automatic, 0);
	check_all_opened(files);
	for (i = 0; arguments[i]; i++) {
		value = argument_of(arguments, i, postgresql_name);
		if (!value && g_str_has_prefix(arguments[i], "-B"))
			value = arguments[i][2] ? arguments[i] + 2 : arguments[i + 1];
		if (value)
			set(cache, value, POSTGRESQL_BLOCK, "command line");
	}
}

static bool is_innodb(const char *program)
{
	return !strcmp(program, "mariadbd") || !strcmp(program, "mysqld");
}

static bool is_postgresql(const char *program)
{
	return !strcmp(program, "postgres");
}

bool server_cache_of(const char *program, char *const *arguments, int root, const char *directory,
		     struct server_cache *cache)
{
	struct option_files files = { .root = root, .cache = cache };

	memset(cache, 0, sizeof(*cache));
	if (is_innodb(program))
		find_innodb(arguments, &files);
	else if (is_postgresql(program))
		find_postgresql(arguments, directory, &files);
	else
		return false;
	return true;
}

/* ---- a process ---- */

static char *program_of(pid_t pid)
{
	g_autofree char *path = proc_exe(pid);
	char *end;

	if (!path)
		return NULL;
	end = strstr(path, " (deleted)");
	if (end)
		*end = '\0';
	return g_path_get_basename(path);
}

static char **arguments_of(pid_t pid)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/cmdline", pid), *text = NULL;
	GPtrArray *words = g_ptr_array_new();
	gsize length = 0, at;

	if (g_file_get_contents(path, &text, &length, NULL))
		for (at = 0; at < length; at += strlen(text + at) + 1)
			g_ptr_array_add(words, g_strdup(text + at));
	g_ptr_array_add(words, NULL);
	return (char **)g_ptr_array_free(words, FALSE);
}

/* Backends of PostgreSQL overwrite their command line: take the parent's. */
static pid_t who_was_started(pid_t pid, const char *program)
{
	g_autofree char *above = NULL;
	struct proc_stat stat;

	if (!is_postgresql(program) || proc_stat_read(pid, 0, &stat))
		return pid;
	above = program_of(stat.ppid);
	return above && !strcmp(above, program) ? stat.ppid : pid;
}

/*
 * Answered by a thread of its own, which changes its user, and with a time limit: option files may
 * be in a FUSE file system that never answers, and so may the memory of the command line.
 */
struct question {
	pid_t pid;
	char *program;
	char *directory;
	char **arguments;
	struct server_cache cache;
	bool found;
};

static void question_free(gpointer data)
{
	struct question *question = data;

	server_cache_clear(&question->cache);
	g_free(question->program);
	g_free(question->directory);
	g_strfreev(question->arguments);
	g_free(question);
}

static void answer(int root, void *given)
{
	struct question *question = given;

	question->found =
		server_cache_of(question->program, question->arguments, root,
				question->directory ? question->directory : "/", &question->cache);
}

/* What only those may read who trace it. */
static void read_process(void *given)
{
	struct question *question = given;
	g_autofree char *link = g_strdup_printf("/proc/%d/cwd", question->pid);

	/* The working directory of PostgreSQL is its data directory. */
	question->directory = g_file_read_link(link, NULL);
	question->arguments = arguments_of(who_was_started(question->pid, question->program));
}

bool server_cache_find(pid_t pid, struct server_cache *cache)
{
	g_autofree char *program = program_of(pid);
	struct question *question;
	bool found;

	if (!program || (!is_innodb(program) && !is_postgresql(program)))
		return false;
	question = g_new0(struct question, 1);
	question->pid = pid;
	question->program = g_steal_pointer(&program);
	if (!with_target_rights(pid, read_process, answer, question, question_free))
		return false;
	found = question->found;
	if (found) {
		*cache = question->cache;
		question->cache = (struct server_cache){};
	}
	question_free(question);
	return found;
}
