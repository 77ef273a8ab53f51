// SPDX-License-Identifier: GPL-2.0
#include "watch/endpoint_child.h"

#if __has_include(<microhttpd.h>)

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <grp.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/privileges.h"
#include "watch/openmetrics.h"

#define LIBRARY "libmicrohttpd.so.12"
#define TEXT_MAX (16U << 20)
#define NOBODY 65534
/* A collector asks by one or two connections, and at once. */
#define CONNECTIONS_MAX 16U
#define CONNECTION_S 5U
#define CONNECTION_BYTES 32768U

static struct {
	__typeof__(MHD_start_daemon) *start;
	__typeof__(MHD_create_response_from_buffer) *response;
	__typeof__(MHD_add_response_header) *header;
	__typeof__(MHD_queue_response) *queue;
	__typeof__(MHD_destroy_response) *destroy;
} http;

struct shown {
	GMutex lock;
	GString *text;
};

static void *find(void *library, const char *name)
{
	return library ? dlsym(library, name) : NULL;
}

static bool load(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	http.start = find(library, "MHD_start_daemon");
	http.response = find(library, "MHD_create_response_from_buffer");
	http.header = find(library, "MHD_add_response_header");
	http.queue = find(library, "MHD_queue_response");
	http.destroy = find(library, "MHD_destroy_response");
	return http.start && http.response && http.header && http.queue && http.destroy;
}

/* Looked for in a process of its own: so the watch never has the library in its memory. */
bool endpoint_can_answer(void)
{
	siginfo_t info = { 0 };
	pid_t pid = fork();

	if (!pid)
		_exit(load() ? 0 : 1);
	return pid > 0 && !waitid(P_PID, pid, &info, WEXITED) && info.si_code == CLD_EXITED &&
	       !info.si_status;
}

static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned int status,
				 const char *type, const char *text, size_t length)
{
	struct MHD_Response *response = http.response(length, (void *)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	http.header(response, "Content-Type", type);
	http.header(response, "X-Content-Type-Options", "nosniff");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		http.header(response, "Allow", "GET, HEAD");
	result = http.queue(connection, status, response);
	http.destroy(response);
	return result;
}

static enum MHD_Result send_line(struct MHD_Connection *connection, unsigned int status,
				 const char *text)
{
	return send_text(connection, status, "text/plain; charset=utf-8", text, strlen(text));
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *data_size, void **request)
{
	struct shown *shown = context;
	enum MHD_Result result;

	(void)version;
	(void)data;
	/* Called with the header first, when nothing may be answered but a refusal. */
	if (!*request) {
		*request = shown;
		return MHD_YES;
	}
	if (*data_size) {
		*data_size = 0;
		return MHD_YES;
	}
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return send_line(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET or HEAD\n");
	if (!strcmp(url, "/"))
		return send_line(connection, MHD_HTTP_OK, "memtoll watch: see /metrics\n");
	if (strcmp(url, "/metrics") != 0)
		return send_line(connection, MHD_HTTP_NOT_FOUND, "only /metrics is here\n");
	g_mutex_lock(&shown->lock);
	result = send_text(connection, MHD_HTTP_OK, OPENMETRICS_TYPE, shown->text->str,
			   shown->text->len);
	g_mutex_unlock(&shown->lock);
	return result;
}

static bool read_all(int fd, void *data, size_t size)
{
	char *at = data;

	while (size) {
		ssize_t got = read(fd, at, size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += got;
		size -= got;
	}
	return true;
}

static bool read_text(int fd, struct shown *shown)
{
	g_autofree char *text = NULL;
	uint64_t length;

	if (!read_all(fd, &length, sizeof(length)) || length > TEXT_MAX)
		return false;
	text = g_malloc(length + 1);
	if (!read_all(fd, text, length))
		return false;
	g_mutex_lock(&shown->lock);
	g_string_truncate(shown->text, 0);
	g_string_append_len(shown->text, text, length);
	g_mutex_unlock(&shown->lock);
	return true;
}

/*
 * Nobody, in no group, with no capability, and no way back. A unit may leave us no right to become
 * somebody else; it has its own bounds then.
 */
static bool give_up_privileges(void)
{
	if (!geteuid() && !setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
	    setresuid(NOBODY, NOBODY, NOBODY))
		return false;
	privileges_keep(PRIVILEGES_NONE);
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

void endpoint_child(int fd, int listening)
{
	struct shown shown = { .text = g_string_new("# EOF\n") };
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	g_mutex_init(&shown.lock);
	/* Descriptors of recordings are not for who answers strangers. */
	if (dup2(fd, STDIN_FILENO) < 0 || dup2(listening, STDOUT_FILENO) < 0)
		_exit(1);
	close_range(3, ~0U, 0);
	if (!load() || !give_up_privileges())
		_exit(1);
	fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
	if (!http.start(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, answer, &shown,
			MHD_OPTION_LISTEN_SOCKET, STDOUT_FILENO, MHD_OPTION_CONNECTION_LIMIT,
			CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, CONNECTION_S,
			MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
			MHD_OPTION_END))
		_exit(1);
	while (read_text(STDIN_FILENO, &shown))
		;
	_exit(0);
}

#else

#include <unistd.h>

bool endpoint_can_answer(void)
{
	return false;
}

void endpoint_child(int fd, int listening)
{
	(void)fd;
	(void)listening;
	_exit(1);
}

#endif
