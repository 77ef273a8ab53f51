// SPDX-License-Identifier: GPL-2.0
#include "watch/json_out.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "host/output_file.h"

#define LAST_MS 1000

struct json_out {
	int fd;
	bool own;
	GString *kept;
};

struct json_out *json_out_new(int fd)
{
	struct json_out *out = g_new0(struct json_out, 1);

	out->fd = fd;
	out->kept = g_string_new("");
	return out;
}

struct json_out *json_out_open(const char *path)
{
	struct json_out *out;
	int fd;

	if (!strcmp(path, "-"))
		return json_out_new(STDOUT_FILENO);
	fd = open_or_make(path, O_WRONLY | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return NULL;
	out = json_out_new(fd);
	out->own = true;
	return out;
}

/*
 * stdout is others' as well, and stays as it is: it is not made non-blocking. Where poll() says so a
 * pipe takes PIPE_BUF bytes at once.
 */
static int write_kept(struct json_out *out, int wait_ms)
{
	const gint64 until_us = g_get_monotonic_time() + 1000LL * wait_ms;
	struct pollfd fd = { .fd = out->fd, .events = POLLOUT };
	size_t written = 0;
	int err = 0;

	while (written < out->kept->len) {
		gint64 left_us = MAX(until_us - g_get_monotonic_time(), 0);
		ssize_t done;

		if (poll(&fd, 1, (int)(left_us / 1000)) <= 0)
			break;
		done = write(out->fd, out->kept->str + written,
			     MIN(out->kept->len - written, PIPE_BUF));
		/* A disk that is full will have room again. */
		if (done < 0 && (errno == ENOSPC || errno == EDQUOT))
			break;
		if (done < 0 && errno != EINTR && errno != EAGAIN) {
			err = -errno;
			break;
		}
		written += MAX(done, 0);
	}
	g_string_erase(out->kept, 0, (gssize)written);
	return err;
}

int json_out_flush(struct json_out *out)
{
	return write_kept(out, 0);
}

int json_out_add(struct json_out *out, const char *line, size_t length)
{
	int err = json_out_flush(out);

	if (err)
		return err;
	if (out->kept->len + length > JSON_OUT_KEPT)
		return -ENOBUFS;
	g_string_append_len(out->kept, line, (gssize)length);
	return json_out_flush(out);
}

void json_out_free(struct json_out *out)
{
	if (!out)
		return;
	write_kept(out, LAST_MS);
	if (out->own)
		close(out->fd);
	g_string_free(out->kept, TRUE);
	g_free(out);
}
