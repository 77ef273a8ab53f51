// SPDX-License-Identifier: GPL-2.0
/*
 * recording.c: the life of a recording that is written: file, transactions, end. The facts are
 * added by recording_facts.c; the reader is recording_open.c.
 *
 * journal_mode is DELETE, not WAL: a copy of the file alone is then a whole recording, and a
 * killed tracer leaves at most a rollback journal that the next reader plays back. synchronous is
 * OFF while recording (a crash of the tracer loses nothing by that, only a crash of the machine
 * could) and FULL for the last commit.
 */
#include "recording/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"
#include "bpf/wire/losses.h"
#include "host/output_file.h"
#include "recording/recording_redact.h"
#include "recording/recording_schema.h"
#include "recording/recording_store.h"
#include "recording/recording_vfs.h"

/* A byte that is no UTF-8 becomes one character of three: bind_value(). */
#define MADE_VALID 3

/* How long a commit waits for a reader that holds the file. */
#define BUSY_MS 10000

/* Which errno stands behind a failure of SQLite. */
static int sqlite_errno(sqlite3 *database, int status)
{
	int err = 0;

	/* sqlite3_system_errno() does not know of failures of a commit; the file does. */
	if (sqlite3_file_control(database, "main", SQLITE_FCNTL_LAST_ERRNO, &err) != SQLITE_OK ||
	    !err)
		err = sqlite3_system_errno(database);
	switch (status & 0xff) {
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		return err ? -err : -EIO;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return -EACCES;
	default:
		return -EIO;
	}
}

/* Say it once; nothing more is written from here on. */
static int fail(struct recording *recording, int status)
{
	const char *detail;
	char *reason;

	recording->error = sqlite_errno(recording->database, status);
	switch (recording->error) {
	case -ENOSPC:
		detail = "no space left on device";
		break;
	case -EBUSY:
		detail = "another program keeps it locked";
		break;
	case -EIO:
		detail = sqlite3_errmsg(recording->database);
		break;
	default:
		detail = g_strerror(-recording->error);
		break;
	}
	reason = g_strdup(detail); /* the rollback changes the message */
	if (recording->open_transaction)
		sqlite3_exec(recording->database, "ROLLBACK", NULL, NULL, NULL);
	recording->open_transaction = false;
	if (recording->redacts)
		message("%s: %s; with --redact nothing is written of what was not finished",
			recording->path ? recording->path : "recording in memory", reason);
	else if (recording->committed > 0)
		message("%s: %s; recorded up to slice %lld",
			recording->written ? recording->written : "recording in memory", reason,
			(long long)recording->committed);
	else
		message("%s: %s; nothing was recorded",
			recording->written ? recording->written : "recording in memory", reason);
	g_free(reason);
	return recording->error;
}

/*
 * The slice that is under way did not fit: what was committed is whole, and is all there will be.
 */
static int end_full(struct recording *recording)
{
	recording->full = true;
	recording->error = -EFBIG;
	if (recording->open_transaction)
		sqlite3_exec(recording->database, "ROLLBACK", NULL, NULL, NULL);
	recording->open_transaction = false;
	if (recording->committed > 0)
		message("%s: another slice would make it larger than its limit of %llu bytes "
			"(--max-size); it ends with slice %lld, whole up to there",
			recording->written ? recording->written : "recording in memory",
			(unsigned long long)recording->limit_bytes,
			(long long)recording->committed);
	else
		message("%s: its limit of %llu bytes (--max-size) is too small for the first slice; "
			"nothing was recorded",
			recording->written ? recording->written : "recording in memory",
			(unsigned long long)recording->limit_bytes);
	return recording->error;
}

/* The journal's, which is opened with the first row of a transaction and closed with the last. */
static void give_up_spare(struct recording *recording)
{
	if (recording->spare_fd >= 0)
		close(recording->spare_fd);
	recording->spare_fd = -1;
}

static int bind_value(sqlite3_stmt *statement, int index, const struct value *value)
{
	char *valid;

	switch (value->type) {
	case VALUE_INT:
		return sqlite3_bind_int64(statement, index, value->integer);
	case VALUE_REAL:
		return sqlite3_bind_double(statement, index, value->real);
	case VALUE_NULL:
		return sqlite3_bind_null(statement, index);
	case VALUE_TEXT:
		break;
	}
	/* A comm or a path may be any bytes; readers may count on UTF-8. */
	if (g_utf8_validate(value->text, -1, NULL))
		return sqlite3_bind_text(statement, index, value->text, -1, SQLITE_TRANSIENT);
	valid = g_utf8_make_valid(value->text, -1);
	return sqlite3_bind_text(statement, index, valid, -1, g_free);
}

static int execute(struct recording *recording, enum statement which, const struct value *values,
		   size_t value_count)
{
	sqlite3_stmt **statement = &recording->prepared[which];
	int status = SQLITE_OK;
	size_t i;

	if (!*statement) {
		status = sqlite3_prepare_v3(recording->database, recording_statements[which], -1,
					    SQLITE_PREPARE_PERSISTENT, statement, NULL);
		if (status != SQLITE_OK)
			return fail(recording, status);
	}
	for (i = 0; i < value_count && status == SQLITE_OK; i++)
		status = bind_value(*statement, (int)i + 1, &values[i]);
	if (status == SQLITE_OK)
		status = sqlite3_step(*statement);
	sqlite3_reset(*statement);
	return status == SQLITE_DONE ? 0 : fail(recording, status);
}

int recording_store(struct recording *recording, enum statement which, const struct value *values,
		    size_t value_count)
{
	int err = recording->error;
	uint64_t text_bytes = 0;
	size_t i;

	if (err)
		return err;
	if (!recording->open_transaction) {
		err = execute(recording, STMT_BEGIN, NULL, 0);
		if (err)
			return err;
		recording->open_transaction = true;
		give_up_spare(recording);
	}
	for (i = 0; i < value_count; i++)
		if (values[i].type == VALUE_TEXT)
			text_bytes += MADE_VALID * strlen(values[i].text);
	if (!recording_has_room(recording, text_bytes))
		return end_full(recording);
	return execute(recording, which, values, value_count);
}

static int commit(struct recording *recording)
{
	int err = recording->error;

	if (err || !recording->open_transaction)
		return err;
	err = execute(recording, STMT_COMMIT, NULL, 0);
	if (err)
		return err;
	recording->open_transaction = false;
	recording->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return 0;
}

static int create_empty(const char *path, const char *shown)
{
	int fd = output_file_create(path, shown);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* SQLite would take a journal that lies there for this database's and play it back. */
static int check_journal(const char *path)
{
	g_autofree char *journal = g_strconcat(path, "-journal", NULL);
	struct stat status;

	if (lstat(journal, &status))
		return 0;
	message("%s is in the way (a journal of an earlier file); remove it", journal);
	return -EEXIST;
}

static int write_schema(struct recording *recording)
{
	static const struct {
		const char *name, *meaning, *remedy;
	} losses[] = {
#define LOSS_ROW(id, name, meaning, remedy) { name, meaning, remedy },
		MEMTOLL_LOSSES(LOSS_ROW)
#undef LOSS_ROW
	};
	char *sql = sqlite3_mprintf("PRAGMA page_size = 4096; PRAGMA journal_mode = DELETE;"
				    "PRAGMA synchronous = OFF;"
				    "PRAGMA temp_store = MEMORY; BEGIN;"
				    "PRAGMA application_id = %d; PRAGMA user_version = %d;",
				    RECORDING_APPLICATION_ID, RECORDING_FORMAT);
	int err = -ENOMEM, status;
	size_t i;

	if (!sql)
		goto out;
	status = sqlite3_exec(recording->database, sql, NULL, NULL, NULL);
	if (status == SQLITE_OK)
		status = recording_schema_create(recording->database);
	recording->open_transaction = !sqlite3_get_autocommit(recording->database);
	if (status != SQLITE_OK) {
		err = fail(recording, status);
		goto out;
	}
	for (i = 0; i < G_N_ELEMENTS(losses); i++) {
		err = STORE(recording, STMT_LOSS_KIND, text(losses[i].name),
			    text(losses[i].meaning), text(losses[i].remedy));
		if (err)
			goto out;
	}
	err = recording_meta_int(recording, "format", RECORDING_FORMAT);
	if (err)
		goto out;
	err = commit(recording);
out:
	sqlite3_free(sql);
	return err;
}

/*
 * The name for SQLite, which is to follow no link and applies that to all of the path: that of
 * the directory itself, then. "file:..." and ":memory:" mean something else to it: from the root.
 */
static char *name_without_links(const char *path)
{
	char *directory = g_path_get_dirname(path), *base = g_path_get_basename(path);
	char *real = realpath(directory, NULL);
	char *name = g_build_filename(real ? real : directory, base, NULL);

	free(real);
	g_free(base);
	g_free(directory);
	return name;
}

static struct recording *create(const char *path, bool force, bool redacts)
{
	struct recording *recording = g_new0(struct recording, 1);
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW, err = -EIO, status;
	char *name = NULL;

	recording->redacts = redacts;
	recording->spare_fd = -1;
	recording->stacks = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	recording->frames = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	if (path) {
		err = output_file_check(path, force);
		if (err)
			goto out;
		/* Replacing waits for the end: until then the new data lies beside the old. */
		if (force && !access(path, F_OK))
			recording->written = g_strdup_printf("%s.tmp-%d", path, (int)getpid());
		else
			recording->written = g_strdup(path);
		err = check_journal(recording->written);
		if (!err)
			err = create_empty(recording->written, path);
		if (err) {
			g_clear_pointer(&recording->written, g_free); /* not ours to remove */
			goto out;
		}
		recording->path = g_strdup(path);
	}
	if (path && !redacts) {
		name = name_without_links(recording->written);
	} else {
		/* By its name alone: SQLITE_OPEN_MEMORY would hold for what VACUUM INTO opens, too. */
		name = g_strdup(":memory:");
		flags |= SQLITE_OPEN_CREATE;
	}
	status = sqlite3_open_v2(name, &recording->database, flags,
				 recording_vfs(RECORDING_WRITTEN));
	if (status != SQLITE_OK) {
		err = fail(recording, status);
		goto out;
	}
	sqlite3_busy_timeout(recording->database, BUSY_MS);
	err = write_schema(recording);
out:
	g_free(name);
	if (err) {
		recording_close(recording);
		return NULL;
	}
	return recording;
}

struct recording *recording_create(const char *path, bool force)
{
	return create(path, force, false);
}

struct recording *recording_create_redacted(const char *path, bool force)
{
	return create(path, force, true);
}

int recording_slice_begin(struct recording *recording, uint64_t start_ns)
{
	if (recording->error)
		return recording->error;
	recording->slice++;
	recording->slice_start_ns = start_ns;
	return STORE(recording, STMT_SLICE, signed_int(recording->slice), count(start_ns),
		     count(start_ns));
}

int recording_slice_commit(struct recording *recording, uint64_t end_ns)
{
	int err = STORE(recording, STMT_SLICE, signed_int(recording->slice),
			count(recording->slice_start_ns), count(end_ns));

	if (err)
		return err;
	err = commit(recording);
	if (err)
		return err;
	recording->committed = recording->slice;
	recording->committed_ns = end_ns;
	return 0;
}

uint64_t recording_resume_full(struct recording *recording)
{
	if (!recording->full || !recording->committed)
		return 0;
	recording->error = 0;
	return recording->committed_ns;
}

/* Bring the file, and its name in the directory, to the disk; then put it in its place. */
static int settle_file(struct recording *recording)
{
	char *directory = g_path_get_dirname(recording->path);
	int err = -EIO, fd, directory_fd = -1;

	fd = open(recording->written, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fsync(fd)) {
		err = -errno;
		goto out;
	}
	if (strcmp(recording->written, recording->path) &&
	    rename(recording->written, recording->path)) {
		err = -errno;
		goto out;
	}
	/* Some file systems cannot sync a directory; the name is then theirs to keep. */
	directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory_fd >= 0)
		fsync(directory_fd);
	err = 0;
out:
	if (err)
		message("%s: %s; the recording is in %s", recording->path, g_strerror(-err),
			recording->written);
	if (fd >= 0)
		close(fd);
	if (directory_fd >= 0)
		close(directory_fd);
	g_free(directory);
	return err;
}

/* VACUUM writes each row anew: no page has room in which anything else was before. */
static int write_redacted(struct recording *recording)
{
	int status = recording_redact(recording->database);
	char *name, *sql;

	if (status == SQLITE_OK && recording->written) {
		name = name_without_links(recording->written);
		sql = sqlite3_mprintf("VACUUM INTO %Q", name);
		status = sql ? sqlite3_exec(recording->database, sql, NULL, NULL, NULL) :
			       SQLITE_NOMEM;
		sqlite3_free(sql);
		g_free(name);
	}
	return status == SQLITE_OK ? 0 : fail(recording, status);
}

int recording_finish(struct recording *recording)
{
	int err = recording->error, status;

	if (err || recording->finished)
		return err;
	err = commit(recording);
	if (err)
		return err;
	status = sqlite3_exec(recording->database, "PRAGMA synchronous = FULL", NULL, NULL, NULL);
	if (status != SQLITE_OK)
		return fail(recording, status);
	err = recording_meta(recording, "complete", "1");
	if (err)
		return err;
	err = commit(recording);
	if (!err && recording->redacts)
		err = write_redacted(recording);
	if (err)
		return err;
	recording->finished = true; /* whole, wherever it lies: nothing to say at close */
	if (recording->path)
		recording->error = settle_file(recording);
	return recording->error;
}

sqlite3 *recording_database(struct recording *recording)
{
	return recording->database;
}

void recording_close(struct recording *recording)
{
	size_t i;

	if (!recording)
		return;
	for (i = 0; i < STMT_COUNT; i++)
		sqlite3_finalize(recording->prepared[i]);
	sqlite3_close(recording->database); /* rolls an open transaction back */
	give_up_spare(recording);
	if (recording->written && !recording->finished) {
		if (!recording->committed || recording->redacts)
			unlink(recording->written);
		else if (strcmp(recording->written, recording->path))
			message("%s is unchanged; what was recorded is in %s", recording->path,
				recording->written);
	}
	g_hash_table_destroy(recording->stacks);
	g_hash_table_destroy(recording->frames);
	g_free(recording->written);
	g_free(recording->path);
	g_free(recording);
}
