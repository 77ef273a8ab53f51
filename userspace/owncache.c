// SPDX-License-Identifier: GPL-2.0
/*
 * owncache.c: how MariaDB and MySQL find their options is told in "Configuring MariaDB with Option
 * Files" of its manual, how PostgreSQL does in "Server Configuration" of its own.
 */
#include "owncache.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "proc.h"

#define INCLUDES_MAX 8		/* deep: files may include one another */

/* Options may be spelled with - or _, in any case. */
static bool same_name(const char *text, size_t length, const char *name)
{
	size_t i;

	for (i = 0; i < length && name[i]; i++)
		if (g_ascii_tolower(text[i] == '-' ? '_' : text[i]) != name[i])
			return false;
	return i == length && !name[i];
}

/* Bytes of a size; a bare number counts in units of `unit` bytes. -1: it is none. */
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

static void set(struct own_cache *cache, const char *value, uint64_t unit, const char *source)
{
	cache->bytes = size_of(value, unit);
	g_free(cache->source);
	cache->source = g_strdup(source);
}

void own_cache_clear(struct own_cache *cache)
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

static void read_innodb_file(const char *root, const char *path, int depth,
			     struct own_cache *cache);

static int by_text(gconstpointer a, gconstpointer b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void read_innodb_directory(const char *root, const char *path, int depth,
				  struct own_cache *cache)
{
	g_autofree char *real = g_strconcat(root, path, NULL);
	g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
	GDir *directory = g_dir_open(real, 0, NULL);
	const char *name;
	guint i;

	if (!directory)
		return;
	while ((name = g_dir_read_name(directory)))
		if (g_str_has_suffix(name, ".cnf"))
			g_ptr_array_add(names, g_build_filename(path, name, NULL));
	g_dir_close(directory);
	g_ptr_array_sort(names, by_text);
	for (i = 0; i < names->len; i++)
		read_innodb_file(root, g_ptr_array_index(names, i), depth, cache);
}

/* Groups that the server reads, of any version. */
static bool is_server_group(const char *line)
{
	return g_str_has_prefix(line, "[mysqld") || g_str_has_prefix(line, "[mariadb") ||
	       g_str_has_prefix(line, "[server]");
}

static void read_innodb_file(const char *root, const char *path, int depth,
			     struct own_cache *cache)
{
	g_autofree char *real = g_strconcat(root, path, NULL), *text = NULL;
	g_auto(GStrv) lines = NULL;
	bool inside = false;
	char *value;
	size_t i;

	if (depth > INCLUDES_MAX || !g_file_get_contents(real, &text, NULL, NULL))
		return;
	lines = g_strsplit(text, "\n", -1);
	for (i = 0; lines[i]; i++) {
		char *line = g_strstrip(lines[i]);

		if (g_str_has_prefix(line, "!includedir"))
			read_innodb_directory(root, g_strstrip(line + 11), depth + 1, cache);
		else if (g_str_has_prefix(line, "!include"))
			read_innodb_file(root, g_strstrip(line + 8), depth + 1, cache);
		else if (*line == '[')
			inside = is_server_group(line);
		else if (inside && take_setting(line, innodb_name, &value))
			set(cache, value, 1, path);
	}
}

static void find_innodb(char *const *arguments, const char *root, struct own_cache *cache)
{
	static const char *const files[] = { "/etc/my.cnf", "/etc/mysql/my.cnf" };
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
		read_innodb_file(root, defaults, 0, cache);
	for (i = 0; i < G_N_ELEMENTS(files) && !defaults && !none; i++)
		read_innodb_file(root, files[i], 0, cache);
	if (extra && !none)
		read_innodb_file(root, extra, 0, cache);
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

#define POSTGRESQL_BLOCK 8192	/* what shared_buffers counts in: BLCKSZ */

static const char postgresql_name[] = "shared_buffers";

static void read_postgresql_file(const char *root, const char *path, int depth,
				 struct own_cache *cache)
{
	g_autofree char *real = g_strconcat(root, path, NULL), *text = NULL;
	g_autofree char *directory = g_path_get_dirname(path);
	g_auto(GStrv) lines = NULL;
	char *value;
	size_t i;

	if (depth > INCLUDES_MAX || !g_file_get_contents(real, &text, NULL, NULL))
		return;
	lines = g_strsplit(text, "\n", -1);
	for (i = 0; lines[i]; i++) {
		char *line = g_strstrip(lines[i]);

		line[strcspn(line, "#")] = '\0';
		if (take_setting(line, postgresql_name, &value))
			set(cache, value, POSTGRESQL_BLOCK, path);
		else if (take_setting(line, "include", &value) ||
			 take_setting(line, "include_if_exists", &value)) {
			g_autofree char *file = NULL;

			g_strdelimit(value, "'", ' ');
			g_strstrip(value);
			file = *value == '/' ? g_strdup(value) :
					       g_build_filename(directory, value, NULL);
			read_postgresql_file(root, file, depth + 1, cache);
		}
	}
}

/* The value of "-c name=value", "-cname=value" or "--name=value"; NULL: this is none of them. */
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

static void find_postgresql(char *const *arguments, const char *root, const char *directory,
			    struct own_cache *cache)
{
	g_autofree char *file = g_build_filename(directory, "postgresql.conf", NULL);
	g_autofree char *automatic = g_build_filename(directory, "postgresql.auto.conf", NULL);
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
	read_postgresql_file(root, file, 0, cache);
	read_postgresql_file(root, automatic, 0, cache);
	for (i = 0; arguments[i]; i++) {
		value = argument_of(arguments, i, postgresql_name);
		if (!value && g_str_has_prefix(arguments[i], "-B"))
			value = arguments[i][2] ? arguments[i] + 2 : arguments[i + 1];
		if (value)
			set(cache, value, POSTGRESQL_BLOCK, "command line");
	}
}

bool own_cache_of(const char *program, char *const *arguments, const char *root,
		  const char *directory, struct own_cache *cache)
{
	memset(cache, 0, sizeof(*cache));
	if (!strcmp(program, "mariadbd") || !strcmp(program, "mysqld"))
		find_innodb(arguments, root, cache);
	else if (!strcmp(program, "postgres"))
		find_postgresql(arguments, root, directory, cache);
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

/* A server process of PostgreSQL writes over its command line: its parent's counts. */
static pid_t who_was_started(pid_t pid, const char *program)
{
	g_autofree char *above = NULL;
	struct proc_stat stat;

	if (strcmp(program, "postgres") || proc_stat_read(pid, 0, &stat))
		return pid;
	above = program_of(stat.ppid);
	return above && !strcmp(above, program) ? stat.ppid : pid;
}

bool own_cache_find(pid_t pid, struct own_cache *cache)
{
	g_autofree char *program = program_of(pid), *directory = NULL;
	g_autofree char *root = g_strdup_printf("/proc/%d/root", pid);
	g_autofree char *link = g_strdup_printf("/proc/%d/cwd", pid);
	g_auto(GStrv) arguments = NULL;

	if (!program)
		return false;
	/* PostgreSQL works in the directory of its data. */
	directory = g_file_read_link(link, NULL);
	arguments = arguments_of(who_was_started(pid, program));
	return own_cache_of(program, arguments, root, directory ? directory : "/", cache);
}
