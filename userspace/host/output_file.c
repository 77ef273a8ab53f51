// SPDX-License-Identifier: GPL-2.0
#include "host/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"

struct output_file {
	char *path;
	char *written; /* until it is finished */
	FILE *stream;
	bool force;
};

/* The user behind sudo owns what is made for them. A failure leaves the file with root. */
static void give_to_invoker(int fd)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");
	guint64 user, group;

	if (geteuid() != 0 || !uid || !gid ||
	    !g_ascii_string_to_unsigned(uid, 10, 0, UINT_MAX - 1, &user, NULL) ||
	    !g_ascii_string_to_unsigned(gid, 10, 0, UINT_MAX - 1, &group, NULL))
		return;
	if (fchown(fd, (uid_t)user, (gid_t)group))
		message("the file stays owned by root: %s", g_strerror(errno));
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

struct output_file *output_file_open(const char *path, bool force)
{
	struct output_file *file;
	int fd;

	if (output_file_check(path, force))
		return NULL;
	file = g_new0(struct output_file, 1);
	file->path = g_strdup(path);
	file->written = g_strdup_printf("%s.tmp-%d", path, (int)getpid());
	file->force = force;
	fd = output_file_create(file->written, path);
	if (fd < 0) {
		g_clear_pointer(&file->written, g_free); /* not ours to remove */
		goto failed;
	}
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

int output_file_finish(struct output_file *file)
{
	int err = 0;

	if (!file)
		return 0;
	if (fclose(file->stream))
		err = -errno;
	file->stream = NULL;
	/* What came into being there meanwhile is not replaced either. */
	if (!err && renameat2(AT_FDCWD, file->written, AT_FDCWD, file->path,
			      file->force ? 0 : RENAME_NOREPLACE))
		err = -errno;
	/* Not every file system knows that flag (NFS): a second name, which the first is removed for. */
	if (err == -EINVAL && !file->force && !link(file->written, file->path)) {
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
	if (!file)
		return;
	if (file->stream)
		fclose(file->stream);
	if (file->written)
		g_unlink(file->written);
	g_free(file->written);
	g_free(file->path);
	g_free(file);
}
