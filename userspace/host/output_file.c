// SPDX-License-Identifier: GPL-2.0
#include "host/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"
#include "host/privileges.h"

struct output_file {
	char *path;
	char *written; /* its name until it is finished; NULL: none, or already its own */
	FILE *stream;
	bool force;
	bool at_once;
};

void give_to_invoker(int fd)
{
	static bool told;
	uid_t user;
	gid_t group;

	if (!privileges_invoker(&user, &group) || !fchown(fd, user, group) || told)
		return;
	/* Once: metrics are made anew each few seconds, for weeks. */
	told = true;
	message("what is made for the user behind sudo stays owned by root: %s", g_strerror(errno));
}

/* Not what is there: its name may be a link to another's file. */
int open_or_make(const char *path, int flags, mode_t mode)
{
	int fd = open(path, flags | O_CREAT | O_EXCL, mode);

	if (fd >= 0)
		give_to_invoker(fd);
	else if (errno == EEXIST)
		fd = open(path, flags);
	return fd;
}

int output_file_check(const char *path, bool force)
{
	struct stat status;

	if (lstat(path, &status)) {
		if (errno == ENOENT)
			return 0; /* the directory is judged when the file is made */
		message("%s: %s", path, g_strerror(errno));
		return -errno;
	}
	if (S_ISLNK(status.st_mode)) {
		message("%s is a symbolic link, which is not followed; use -o for another name",
			path);
		return -ELOOP;
	}
	if (S_ISDIR(status.st_mode)) {
		message("%s is a directory; use -o for a file's name", path);
		return -EISDIR;
	}
	if (!S_ISREG(status.st_mode)) {
		message("%s is not a regular file; use -o for another name", path);
		return -EINVAL;
	}
	if (!force) {
		message("%s exists; use --force to replace it or -o for another name", path);
		return -EEXIST;
	}
	return 0;
}

int output_file_create(const char *path, const char *shown)
{
	char *directory = g_path_get_dirname(shown);
	int err = -EIO, fd;

	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		err = -errno;
		if (err == -ENOENT)
			message(g_file_test(directory, G_FILE_TEST_IS_DIR) ?
					"%s: no file can be made in %s" :
					"%s: directory %s does not exist",
				shown, directory);
		else if (err == -ENOTDIR)
			message("%s: %s is not a directory", shown, directory);
		else if (err == -EACCES || err == -EROFS || err == -EPERM)
			message("%s: cannot write in directory %s: %s", shown, directory,
				g_strerror(-err));
		else
			message("%s: %s", shown, g_strerror(-err));
		goto out;
	}
	give_to_invoker(fd);
	err = fd;
out:
	g_free(directory);
	return err;
}

/* A file without a name goes with us, whatever ends us. -errno where the file system has none. */
static int create_nameless(const char *path)
{
	g_autofree char *directory = g_path_get_dirname(path);
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	give_to_invoker(fd);
	return fd;
}

/* A name beside the file's, to be its own in the end. */
static int create_beside(struct output_file *file)
{
	int fd;

	file->written = g_strdup_printf("%s.tmp-%d", file->path, (int)getpid());
	fd = output_file_create(file->written, file->path);
	if (fd < 0)
		g_clear_pointer(&file->written, g_free); /* not ours to remove */
	return fd;
}

/* What lies there stays until there is a line in its place. */
static int create_at_once(struct output_file *file)
{
	return file->force ? create_beside(file) : output_file_create(file->path, file->path);
}

struct output_file *output_file_open(const char *path, bool force, bool at_once)
{
	struct output_file *file;
	int fd;

	if (output_file_check(path, force))
		return NULL;
	file = g_new0(struct output_file, 1);
	file->path = g_strdup(path);
	file->force = force;
	file->at_once = at_once;
	fd = at_once ? create_at_once(file) : create_nameless(path);
	if (fd < 0 && !at_once)
		fd = create_beside(file);
	if (fd < 0)
		goto failed;
	file->stream = fdopen(fd, "w");
	if (file->stream)
		return file;
	message("%s: %s", path, g_strerror(errno));
	close(fd);
failed:
	output_file_remove(file);
	return NULL;
}

FILE *output_file_stream(struct output_file *file)
{
	return file->stream;
}

void output_file_show(struct output_file *file)
{
	/* Tried again, and said, when it is finished. */
	if (file->at_once && file->written && !rename(file->written, file->path))
		g_clear_pointer(&file->written, g_free);
}

/* Gives it a name: a link does not replace another, a name beside it can. */
static int name_it(struct output_file *file)
{
	g_autofree char *own = g_strdup_printf("/proc/self/fd/%d", fileno(file->stream));
	g_autofree char *beside = g_strdup_printf("%s.tmp-%d", file->path, (int)getpid());
	const char *name = file->force ? beside : file->path;

	if (linkat(AT_FDCWD, own, AT_FDCWD, name, AT_SYMLINK_FOLLOW))
		return -errno;
	if (file->force)
		file->written = g_steal_pointer(&beside);
	return 0;
}

int output_file_finish(struct output_file *file)
{
	int err = 0;

	if (!file)
		return 0;
	if (fflush(file->stream) || ferror(file->stream))
		err = errno ? -errno : -EIO;
	if (!err && !file->written && !file->at_once)
		err = name_it(file);
	if (fclose(file->stream) && !err)
		err = -errno;
	file->stream = NULL;
	/* What came into being there meanwhile is not replaced either. */
	if (!err && file->written &&
	    renameat2(AT_FDCWD, file->written, AT_FDCWD, file->path,
		      file->force ? 0 : RENAME_NOREPLACE))
		err = -errno;
	/* Not every file system knows that flag (NFS): a second name, which the first is removed for. */
	if (err == -EINVAL && !file->force && file->written && !link(file->written, file->path)) {
		output_file_remove(file);
		return 0;
	}
	if (err)
		message("%s cannot be written: %s", file->path, g_strerror(-err));
	else
		g_clear_pointer(&file->written, g_free);
	output_file_remove(file);
	return err;
}

void output_file_remove(struct output_file *file)
{
	struct stat status;

	if (!file)
		return;
	/* Lines that are there already stay; none was the promise of one. */
	if (file->stream && file->at_once && !file->written &&
	    !fstat(fileno(file->stream), &status) && !status.st_size)
		g_unlink(file->path);
	if (file->stream)
		fclose(file->stream);
	if (file->written)
		g_unlink(file->written);
	g_free(file->written);
	g_free(file->path);
	g_free(file);
}
