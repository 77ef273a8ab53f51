// SPDX-License-Identifier: GPL-2.0
/* worker_child.c: a recording like any other, which tells what each interval cost while it goes on. */
#include "watch/worker_child.h"

#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/text.h"
#include "host/memory_files.h"
#include "probes/memory_kfuncs.h"
#include "recording/interval.h"
#include "recording/query_number.h"
#include "report/report.h"
#include "report/report_views.h"
#include "watch/part_file.h"
#include "watch/target_set.h"
#include "watch/worker.h"

#define GO_MS 10000 /* whoever does not say so by then is gone, or hangs */
#define GENERATIONS 16
#define SIZE "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"

struct child {
	const struct worker_config *config;
	int fd;
	struct session *session;
	struct memory_kfuncs *kfuncs; /* NULL: files */
	GHashTable *sizes;	      /* pid -> struct size */
	struct worker_toll named[WORKER_TOLLS];
	struct worker_message told[TARGETS_MAX]; /* of all intervals */
};

/* Of a process that lives, as it was last recorded: one that rests has no row. */
struct size {
	int64_t rss_bytes, swap_bytes;
};

static void tell(const struct child *child, const struct worker_message *message)
{
	/* Who was to read it may be gone; the recording is finished all the same. */
	while (send(child->fd, message, sizeof(*message), MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

/* ---- of the session ---- */

static void on_find(void *context, GArray *pids)
{
	struct child *child = context;

	target_set_find(child->config->targets, now_ns(), pids);
}

static void on_ready(void *context)
{
	struct child *child = context;
	struct pollfd fd = { .fd = child->fd, .events = POLLIN };
	char go;

	tell(child, &(struct worker_message){ .event = WORKER_READY });
	while (poll(&fd, 1, GO_MS) < 0 && errno == EINTR)
		;
	(void)!recv(child->fd, &go, 1, MSG_DONTWAIT);
}

static void on_begun(void *context, uint64_t first_ns)
{
	struct child *child = context;

	tell(child,
	     &(struct worker_message){ .event = WORKER_BEGUN,
				       .begun = { .first_ns = first_ns, .at_ns = now_ns() } });
}

/* ---- intervals ---- */

/* By the recording: a child is its parent's. -1: nobody's. */
static int target_of(const struct child *child, pid_t pid)
{
	int index = target_set_of(child->config->targets, pid), left = GENERATIONS;
	sqlite3_stmt *row = NULL;

	if (index >= 0)
		return index;
	sqlite3_prepare_v2(session_database(child->session),
			   "SELECT parent_pid FROM process WHERE pid = ?", -1, &row, NULL);
	while (row && index < 0 && left--) {
		sqlite3_bind_int(row, 1, pid);
		if (sqlite3_step(row) != SQLITE_ROW)
			break;
		pid = sqlite3_column_int(row, 0);
		sqlite3_reset(row);
		index = target_set_of(child->config->targets, pid);
	}
	sqlite3_finalize(row);
	return index;
}

/* Who is none of them belongs to the first: there is no other way to be followed. */
static guint index_of(const struct child *child, GHashTable *known, pid_t pid)
{
	gpointer index;

	if (!g_hash_table_lookup_extended(known, GINT_TO_POINTER(pid), NULL, &index)) {
		int found = target_of(child, pid);

		index = found >= 0 ? GINT_TO_POINTER(found) :
				     GUINT_TO_POINTER(target_set_first(child->config->targets));
		g_hash_table_insert(known, GINT_TO_POINTER(pid), index);
	}
	return GPOINTER_TO_UINT(index);
}

static void name_tolls(struct worker_toll *tolls, const struct interval *interval)
{
	guint i;

	for (i = 0; i < interval->tolls->len && i < WORKER_TOLLS; i++) {
		const struct interval_toll *toll =
			&g_array_index(interval->tolls, struct interval_toll, i);

		g_strlcpy(tolls[i].name, toll->name, sizeof(tolls[i].name));
		g_strlcpy(tolls[i].family, toll->family, sizeof(tolls[i].family));
	}
}

static void add_toll(struct worker_toll *tolls, const struct interval_process_toll *toll)
{
	guint i;

	for (i = 0; i < WORKER_TOLLS && tolls[i].name[0]; i++) {
		if (strcmp(tolls[i].name, toll->name))
			continue;
		tolls[i].time_ns += MAX(toll->time_ns, 0);
		tolls[i].count += MAX(toll->count, 0);
		tolls[i].bytes += MAX(toll->bytes, 0);
	}
}

static void add_size(const struct child *child, struct worker_message *message,
		     const struct interval_process *process)
{
	gpointer pid = GINT_TO_POINTER(process->pid);
	struct size *size = g_hash_table_lookup(child->sizes, pid);

	if (kill(process->pid, 0) && errno == ESRCH) {
		g_hash_table_remove(child->sizes, pid);
		return;
	}
	if (!size) {
		size = g_new0(struct size, 1);
		g_hash_table_insert(child->sizes, pid, size);
	}
	if (process->rss_bytes >= 0) {
		size->rss_bytes = process->rss_bytes;
		size->swap_bytes = MAX(process->swap_bytes, 0);
	}
	message->target.processes++;
	message->target.rss_bytes += size->rss_bytes;
	message->target.swap_bytes += size->swap_bytes;
}

/* What each target did; named: has the names of the tolls. Freed by the caller. */
static struct worker_message *gather(const struct child *child, const struct interval *interval,
				     const struct worker_toll *named)
{
	const guint count = target_set_count(child->config->targets);
	g_autoptr(GArray) processes = interval_processes(interval);
	g_autoptr(GArray) tolls = interval_process_tolls(interval);
	g_autoptr(GHashTable) known = g_hash_table_new(NULL, NULL);
	struct worker_message *messages = g_new0(struct worker_message, count);
	guint i, k;

	for (i = 0; i < count; i++) {
		messages[i].event = WORKER_TARGET;
		messages[i].target.number = target_set_number(child->config->targets, i);
		messages[i].target.first = !i;
		for (k = 0; k < WORKER_TOLLS; k++) {
			struct worker_toll *toll = &messages[i].target.tolls[k];

			g_strlcpy(toll->name, named[k].name, sizeof(toll->name));
			g_strlcpy(toll->family, named[k].family, sizeof(toll->family));
		}
	}
	for (i = 0; i < processes->len; i++) {
		const struct interval_process *process =
			&g_array_index(processes, struct interval_process, i);
		struct worker_message *message = &messages[index_of(child, known, process->pid)];

		message->target.observed_ns += MAX(process->observed_ns, 0);
		message->target.overhead_ns += MAX(process->overhead_ns, 0);
		add_size(child, message, process);
	}
	for (i = 0; i < tolls->len; i++) {
		const struct interval_process_toll *toll =
			&g_array_index(tolls, struct interval_process_toll, i);

		add_toll(messages[index_of(child, known, toll->pid)].target.tolls, toll);
	}
	return messages;
}

/* sum += sign * part */
static void add_up(struct worker_message *sum, const struct worker_message *part, double sign)
{
	guint i;

	sum->target.observed_ns += sign * part->target.observed_ns;
	sum->target.overhead_ns += sign * part->target.overhead_ns;
	for (i = 0; i < WORKER_TOLLS; i++) {
		sum->target.tolls[i].time_ns += sign * part->target.tolls[i].time_ns;
		sum->target.tolls[i].count += sign * part->target.tolls[i].count;
		sum->target.tolls[i].bytes += sign * part->target.tolls[i].bytes;
	}
}

/* By the kernel's functions, else by its files. */
static void read_memory(const struct child *child, guint index, struct memory_figures *figures)
{
	const char *directory = target_set_directory(child->config->targets, index);

	memory_figures_clear(figures);
	if (!directory || (child->kfuncs && memory_kfuncs_read(child->kfuncs, directory, figures)))
		return;
	memory_files_read(directory, figures);
}

static void tell_targets(struct child *child, const struct interval *interval)
{
	const guint count = target_set_count(child->config->targets);
	g_autofree struct worker_message *messages = NULL;
	guint i;

	name_tolls(child->named, interval);
	messages = gather(child, interval, child->named);
	for (i = 0; i < count; i++) {
		add_up(&child->told[i], &messages[i], 1);
		read_memory(child, i, &messages[i].target.memory);
		tell(child, &messages[i]);
	}
}

/*
 * Where the budget has few calls looked at, there are intervals without one that was: their estimates
 * come to less than that of the whole recording, which is the better one. The difference is told.
 */
static void tell_corrections(struct child *child)
{
	const struct interval whole = { .database = session_database(child->session) };
	const guint count = target_set_count(child->config->targets);
	g_autofree struct worker_message *messages = gather(child, &whole, child->named);
	guint i;

	for (i = 0; i < count; i++) {
		messages[i].event = WORKER_CORRECTION;
		add_up(&messages[i], &child->told[i], -1);
		tell(child, &messages[i]);
	}
}

static void on_interval(void *context, const struct interval *interval)
{
	struct worker_message message = { .event = WORKER_LOSS };
	struct child *child = context;
	guint i;

	tell_targets(child, interval);
	for (i = 0; i < interval->losses->len; i++) {
		const struct interval_loss *loss =
			&g_array_index(interval->losses, struct interval_loss, i);

		g_strlcpy(message.loss.name, loss->name, sizeof(message.loss.name));
		message.loss.count = loss->count;
		tell(child, &message);
	}
	message = (struct worker_message){
		.event = WORKER_INTERVAL,
		.interval = { .start_ns = interval->start_ns,
			      .end_ns = interval->end_ns,
			      .bytes = query_number_or(interval->recording, SIZE, 0) },
	};
	tell(child, &message);
}

/* ---- the end ---- */

/* Names of programs and of their functions: printable, and no longer than a line. */
static void put_name(char *text, size_t size, const unsigned char *name)
{
	g_autofree char *shown = text_printable(name ? (const char *)name : "");
	const char *end;

	g_strlcpy(text, shown, size);
	/* Nothing is left of a character that was cut through. */
	if (!g_utf8_validate(text, -1, &end))
		text[end - text] = '\0';
}

static void tell_places(const struct child *child)
{
	sqlite3 *database = session_database(child->session);
	sqlite3_stmt *row = NULL;

	sqlite3_prepare_v2(
		database,
		"SELECT toll, call, allocated, touched, SUM(time_ns), SUM(count),"
		" SUM(bytes) FROM temp.site_short WHERE toll <> 'compute' AND time_ns > 0"
		" GROUP BY 1, 2, 3, 4 ORDER BY SUM(time_ns) DESC LIMIT 1000",
		-1, &row, NULL);
	while (row && sqlite3_step(row) == SQLITE_ROW) {
		struct worker_message message = {
			.event = WORKER_PLACE_TOLL,
			.place.time_ns = sqlite3_column_double(row, 4),
			.place.count = sqlite3_column_double(row, 5),
			.place.bytes = sqlite3_column_double(row, 6),
		};

		put_name(message.place.toll, sizeof(message.place.toll),
			 sqlite3_column_text(row, 0));
		put_name(message.place.call, sizeof(message.place.call),
			 sqlite3_column_text(row, 1));
		put_name(message.place.allocated, sizeof(message.place.allocated),
			 sqlite3_column_text(row, 2));
		put_name(message.place.touched, sizeof(message.place.touched),
			 sqlite3_column_text(row, 3));
		tell(child, &message);
	}
	sqlite3_finalize(row);
}

/* What has seen nobody is not kept: nothing is in it. */
static void conclude(struct child *child, int status)
{
	struct worker_message done = { .event = WORKER_DONE, .done.status = status };
	const struct worker_config *config = child->config;
	/* Where it has failed there may be none. */
	sqlite3 *database = status ? NULL : session_database(child->session);
	bool complete = false;
	int err;

	if (!status) {
		complete = query_number_or(database,
					   "SELECT value FROM meta WHERE key = 'complete'", 0);
		done.done.end_ns =
			query_number_or(database, "SELECT value FROM meta WHERE key = 'end_ns'", 0);
		done.done.processes = query_number_or(database, "SELECT COUNT(*) FROM process", 0);
		done.done.full = query_number_or(
			database, "SELECT value = 'size limit' FROM meta WHERE key = 'end_reason'",
			0);
		if (!report_views_make(database, child->config->places ? "site_short" : "family",
				       0)) {
			tell_corrections(child);
			if (child->config->places)
				tell_places(child);
		}
	}
	session_free(child->session);
	if (complete && done.done.processes) {
		err = part_file_settle(config->directory, config->name);
		done.done.kept = !err;
		if (err)
			message("%s: %s", config->name, strerror(-err));
	}
	if (!done.done.kept)
		part_file_remove(config->directory, config->name);
	tell(child, &done);
}

/* What else the watch has open is not ours, and would stay open for as long as we live. */
static void close_others(int fd, int other)
{
	const unsigned int low = MIN(fd, other), high = MAX(fd, other);

	if (low > 3)
		close_range(3, low - 1, 0);
	if (high > low + 1)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0U, 0);
}

void worker_child(const struct worker_config *config, int fd)
{
	static struct child child;
	const struct session_watch watch = {
		.context = &child, .find = on_find, .ready = on_ready, .begun = on_begun
	};
	g_autofree char *path = part_file_path(config->directory, config->name);
	struct session_config session = *config->session;
	sigset_t asked;
	char go;

	child.config = config;
	child.fd = fd;
	child.sizes = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	close_others(fd, config->lock_fd);
	/* Should the watch die the recording ends, whole; it may have died already. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (!recv(fd, &go, 1, MSG_PEEK | MSG_DONTWAIT))
		_exit(STATUS_FAILED);
	/* A terminal's ^C is for the watch, which ends its recordings. */
	setpgid(0, 0);
	/*
	 * The session reads them. One more, as the watch dies while this recording ends, does not
	 * break off what is left to do.
	 */
	sigemptyset(&asked);
	sigaddset(&asked, SIGINT);
	sigaddset(&asked, SIGTERM);
	sigaddset(&asked, SIGHUP);
	sigprocmask(SIG_SETMASK, &asked, NULL);
	if (target_set_has_cgroups(config->targets))
		child.kfuncs = memory_kfuncs_open();
	session.watch = &watch;
	session.output = path;
	session.on_interval = on_interval;
	session.interval_context = &child;
	child.session = session_new(&session);
	conclude(&child, session_record(child.session));
	memory_kfuncs_close(child.kfuncs);
	close(fd);
	_exit(STATUS_DONE);
}
