// SPDX-License-Identifier: GPL-2.0
#include "python/python_reader.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bpf/wire/python_offsets.h"
#include "host/privileges.h"

struct python_reader {
	struct python *python;
	struct ring_buffer *ring;
	GMutex consuming; /* a ring buffer has one consumer at a time */
	GThread *thread;
	int stop_fd; /* readable: the thread is to end */
};

static int on_record(void *context, void *data, size_t size)
{
	const struct memtoll_python *walked = data;

	(void)size;
	python_resolve(context, walked);
	return 0;
}

void python_reader_catch_up(struct python_reader *reader)
{
	if (!reader)
		return;
	g_mutex_lock(&reader->consuming);
	ring_buffer__consume(reader->ring);
	g_mutex_unlock(&reader->consuming);
}

static gpointer read_records(gpointer data)
{
	struct python_reader *reader = data;
	struct pollfd fds[] = {
		{ .fd = ring_buffer__epoll_fd(reader->ring), .events = POLLIN },
		{ .fd = reader->stop_fd, .events = POLLIN },
	};

	privileges_keep(PRIVILEGES_FOLLOW);
	while (!fds[1].revents) {
		if (poll(fds, G_N_ELEMENTS(fds), -1) < 0 && errno != EINTR)
			break;
		python_reader_catch_up(reader);
	}
	return NULL;
}

struct python_reader *python_reader_start(int pythons_fd, struct python *python)
{
	struct python_reader *reader = g_new0(struct python_reader, 1);

	reader->python = python;
	g_mutex_init(&reader->consuming);
	reader->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (reader->stop_fd >= 0)
		reader->ring = ring_buffer__new(pythons_fd, on_record, python, NULL);
	if (reader->ring)
		reader->thread = g_thread_try_new("python", read_records, reader, NULL);
	if (reader->thread)
		return reader;
	python_reader_stop(reader);
	return NULL;
}

void python_reader_stop(struct python_reader *reader)
{
	int kept = errno;

	if (!reader)
		return;
	if (reader->thread) {
		eventfd_write(reader->stop_fd, 1);
		g_thread_join(reader->thread);
		python_reader_catch_up(reader);
	}
	ring_buffer__free(reader->ring);
	if (reader->stop_fd >= 0)
		close(reader->stop_fd);
	g_mutex_clear(&reader->consuming);
	g_free(reader);
	errno = kept;
}
