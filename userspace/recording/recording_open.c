// SPDX-License-Identifier: GPL-2.0
/* recording_open.c: opening a recording for reading, and saying what is wrong with it. */
#include "recording/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"
#include "recording/query_number.h"
#include "recording/recording_guard.h"
#include "recording/recording_schema.h"
#include "recording/recording_vfs.h"

/* A commit of the writer holds the file for far less. */
#define BUSY_MS 5000

/* Start of every SQLite database (file format, 1.3). */
#define MAGIC "SQLite format 3"
#define HEADER_BYTES 100
#define PAGE_SIZE_OFFSET 16
#define PAGE_COUNT_OFFSET 28

struct header {
	uint64_t file_bytes;
	uint64_t expected_bytes; /* pages x page size, as the header has it */
};

/* 0, or -errno after the line that says why this cannot be a recording. */
static int check_file(const char *path, const char *name, struct header *header)
{
	uint8_t bytes[HEADER_BYTES];
	int err = -EIO, fd;
	struct stat status;
	uint32_t page_size;
	ssize_t got;

	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to wait for a pipe's writer */
	if (fd < 0 || fstat(fd, &status)) {
		err = -errno;
		message("%s: %s", path, g_strerror(errno));
		goto out;
	}
	if (!S_ISREG(status.st_mode)) {
		message("%s is %s, not a recording", path,
			S_ISDIR(status.st_mode) ? "a directory" : "no regular file");
		err = -EINVAL;
		goto out;
	}
	if (status.st_size == 0) {
		message("%s is empty: nothing was recorded in it", path);
		err = -EINVAL;
		goto out;
	}
	got = pread(fd, bytes, sizeof(bytes), 0);
	if (got < 0) {
		err = -errno;
		message("%s: %s", path, g_strerror(errno));
		goto out;
	}
	err = -EINVAL;
	if ((size_t)got < sizeof(MAGIC) || memcmp(bytes, MAGIC, sizeof(MAGIC))) {
		message("%s is not a recording of memtoll (no SQLite database)", path);
		goto out;
	}
	header->file_bytes = (uint64_t)status.st_size;
	header->expected_bytes = HEADER_BYTES;
	if ((size_t)got == sizeof(bytes)) {
		page_size = (uint32_t)bytes[PAGE_SIZE_OFFSET] << 8 | bytes[PAGE_SIZE_OFFSET + 1];
		if (page_size == 1) /* 65,536 does not fit in 16 bits */
			page_size = 65536;
		header->expected_bytes =
			(uint64_t)page_size * ((uint64_t)bytes[PAGE_COUNT_OFFSET] << 24 |
					       bytes[PAGE_COUNT_OFFSET + 1] << 16 |
					       bytes[PAGE_COUNT_OFFSET + 2] << 8 |
					       bytes[PAGE_COUNT_OFFSET + 3]);
	}
	err = 0;
out:
	if (fd >= 0)
		close(fd);
	return err;
}

static bool quick_check(sqlite3 *database)
{
	sqlite3_stmt *statement = NULL;
	bool ok = false;

	if (sqlite3_prepare_v2(database, "PRAGMA quick_check(1)", -1, &statement, NULL) ==
		    SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		ok = !g_strcmp0((const char *)sqlite3_column_text(statement, 0), "ok");
	sqlite3_finalize(statement);
	return ok;
}

/*
 * No recording has a virtual table, whose rows its module makes up, or a column that is computed: a
 * single instruction of SQLite's can take for ever, and quick_check computes them.
 */
static bool is_plain(sqlite3 *database)
{
	int64_t virtual = -1, computed = -1;

	query_number(database,
		     "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND"
		     " (rootpage = 0 OR sql NOT LIKE 'CREATE TABLE %')",
		     &virtual);
	query_number(database,
		     "SELECT COUNT(*) FROM sqlite_master m, pragma_table_xinfo(m.name, 'main') x"
		     " WHERE m.type = 'table' AND x.hidden > 1",
		     &computed);
	return !virtual && !computed;
}

static void say_damaged(const char *path, const struct header *header)
{
	if (header->expected_bytes > header->file_bytes)
		message("%s is truncated: %llu of %llu bytes are there", path,
			(unsigned long long)header->file_bytes,
			(unsigned long long)header->expected_bytes);
	else
		message("%s is damaged: its tables cannot be read", path);
}

/*
 * 0, or -errno after the line that says what it is instead. From then on it is read with own views.
 */
static int check_content(sqlite3 *database, const char *path, const struct header *header)
{
	int64_t id = 0, format = 0;

	if (query_number(database, "PRAGMA application_id", &id) != SQLITE_ROW ||
	    query_number(database, "PRAGMA user_version", &format) != SQLITE_ROW) {
		say_damaged(path, header);
		return -EINVAL;
	}
	if (id != RECORDING_APPLICATION_ID) {
		message("%s is an SQLite database, but not a recording of memtoll", path);
		return -EINVAL;
	}
	if (format > RECORDING_FORMAT) {
		message("%s has format %lld, of a newer memtoll; this one reads up to format %d",
			path, (long long)format, RECORDING_FORMAT);
		return -EINVAL;
	}
	if (format < 1) {
		message("%s has format %lld, which no memtoll wrote", path, (long long)format);
		return -EINVAL;
	}
	if (header->expected_bytes > header->file_bytes || !is_plain(database) ||
	    !quick_check(database)) {
		say_damaged(path, header);
		return -EINVAL;
	}
	return recording_schema_put_before(database, path);
}

/* A connection that has read its first page; SQLITE_OK, or the status that prevented it. */
static int connect_to(sqlite3 **database, const char *name, int flags, enum recording_files files)
{
	int64_t tables;
	int status;

	status = sqlite3_open_v2(name, database, flags, recording_vfs(files));
	if (status != SQLITE_OK)
		return status;
	/*
	 * Views are parsed and planned in small pieces of memory: one in twenty of a report's time.
	 */
	sqlite3_db_config(*database, SQLITE_DBCONFIG_LOOKASIDE, NULL, 512, 2000);
	sqlite3_busy_timeout(*database, BUSY_MS);
	sqlite3_extended_result_codes(*database, 1);
	/* First of all: a change of it makes SQLite read the schema again. */
	sqlite3_exec(*database, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL);
	/* Nor is anything computed: quick_check asks the file's constraints. */
	sqlite3_exec(*database, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL);
	status = recording_guard(*database);
	if (status != SQLITE_OK)
		return status;
	status = query_number(*database, "SELECT COUNT(*) FROM sqlite_master", &tables);
	return status == SQLITE_ROW ? SQLITE_OK : status;
}

/*
 * What was read of it already, and everything that can be read from one file, to another that is
 * made for it. 0 or -errno.
 */
static int copy_bytes(int from, const char *to, const void *head, size_t head_bytes)
{
	static uint8_t bytes[1 << 16];
	int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int err = fd < 0 ? -errno : 0;
	ssize_t got = 0, put;

	if (!err && write(fd, head, head_bytes) != (ssize_t)head_bytes)
		err = -ENOSPC;
	while (!err) {
		got = read(from, bytes, sizeof(bytes));
		if (got <= 0)
			break;
		put = write(fd, bytes, (size_t)got);
		if (put != got)
			err = put < 0 ? -errno : -ENOSPC;
	}
	if (!err && got < 0)
		err = -errno;
	if (fd >= 0 && close(fd) && !err)
		err = -errno;
	return err;
}

/* The journal names a file as its super-journal (file format, 3.): no recording's ever does. */
static bool names_another_file(int journal, off_t length)
{
	static const uint8_t magic[] = { 0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7 };
	uint8_t end[sizeof(magic)];

	return length > (off_t)sizeof(magic) &&
	       pread(journal, end, sizeof(end), length - (off_t)sizeof(end)) ==
		       (ssize_t)sizeof(end) &&
	       !memcmp(end, magic, sizeof(magic));
}

/* NULL, or why this journal, which anybody may have left there, is not played back. */
static const char *objection(int recording, int journal)
{
	struct stat own, other;

	if (fstat(recording, &own) || fstat(journal, &other) || !S_ISREG(other.st_mode))
		return "is no regular file";
	if (own.st_uid != other.st_uid)
		return "belongs to another user than the recording";
	if (names_another_file(journal, other.st_size))
		return "names another file, which is not memtoll's doing";
	return NULL;
}

/*
 * The writer was killed in the middle of a commit. Its journal is played back in a private copy,
 * which goes with the connection: reading writes to no file but its own.
 */
static int read_recovered(sqlite3 **database, const char *path, const char *name,
			  struct header *header)
{
	char *directory = NULL, *copy = NULL, *copied_journal = NULL;
	char *journal_name = g_strconcat(name, "-journal", NULL);
	int recording = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	int journal = open(journal_name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	int status = SQLITE_READONLY, err = 0;
	const char *why = "is no regular file";

	if (recording < 0 || (journal < 0 && errno != ELOOP)) {
		message("%s was cut off in the middle of a commit, and %s-journal cannot be read: %s",
			path, path, g_strerror(errno));
		goto out;
	}
	if (journal >= 0)
		why = objection(recording, journal);
	if (why) {
		message("%s-journal %s: it is left alone", path, why);
		status = check_file(path, name, header) ? SQLITE_READONLY : SQLITE_OK;
		goto out;
	}
	sqlite3_close(*database);
	*database = NULL;
	directory = g_dir_make_tmp("memtoll-XXXXXX", NULL);
	if (!directory) {
		err = -errno;
	} else {
		copy = g_build_filename(directory, "copy", NULL);
		copied_journal = g_build_filename(directory, "copy-journal", NULL);
		err = copy_bytes(recording, copy, NULL, 0);
		if (!err)
			err = copy_bytes(journal, copied_journal, NULL, 0);
	}
	if (err) {
		message("%s was cut off in the middle of a commit, and cannot be copied to %s: %s",
			path, g_get_tmp_dir(), g_strerror(-err));
		goto out;
	}
	status = connect_to(database, copy, SQLITE_OPEN_READWRITE, RECORDING_RECOVERED);
	sqlite3_close(*database);
	*database = NULL;
	if (status == SQLITE_OK)
		status = connect_to(database, copy, SQLITE_OPEN_READONLY, RECORDING_READ);
	/* What was under way is undone there, and the header is that of the last commit. */
	if (status == SQLITE_OK && check_file(path, copy, header))
		status = SQLITE_READONLY;
out:
	if (copied_journal)
		unlink(copied_journal);
	if (copy)
		unlink(copy);
	if (directory)
		rmdir(directory);
	if (journal >= 0)
		close(journal);
	if (recording >= 0)
		close(recording);
	g_free(copied_journal);
	g_free(copy);
	g_free(directory);
	g_free(journal_name);
	return status;
}

/*
 * A writer died in the middle of a commit: there is a journal, and nobody has the lock of a writer.
 * Called within a read transaction, which keeps a writer that lives from ending its own: a journal
 * of its is there only while it has the lock. (pager.c, hasHotJournal())
 */
static bool cut_off(sqlite3 *database, const char *name)
{
	char *journal = g_strconcat(name, "-journal", NULL);
	struct stat before, after;
	sqlite3_file *file = NULL;
	int reserved = 1;
	bool cut;

	cut = !lstat(journal, &before) &&
	      sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file) ==
		      SQLITE_OK &&
	      file->pMethods->xCheckReservedLock(file, &reserved) == SQLITE_OK && !reserved &&
	      !lstat(journal, &after) && before.st_ino == after.st_ino;
	g_free(journal);
	return cut;
}

/* SQLITE_OK when the database can be read. SQLITE_READONLY: it has been said why not. */
static int start_reading(sqlite3 **database, const char *path, const char *name,
			 struct header *header)
{
	/* Never SQLite's own look at a journal: as root it gives it to the recording's owner. */
	int status = connect_to(database, name, SQLITE_OPEN_READONLY, RECORDING_READ);
	int64_t tables;
	bool cut;

	if (status != SQLITE_OK)
		return status;
	sqlite3_exec(*database, "BEGIN", NULL, NULL, NULL);
	status = query_number(*database, "SELECT COUNT(*) FROM sqlite_master", &tables);
	cut = status == SQLITE_ROW && cut_off(*database, name);
	sqlite3_exec(*database, "COMMIT", NULL, NULL, NULL);
	if (status != SQLITE_ROW)
		return status;
	if (cut)
		return read_recovered(database, path, name, header);
	/* Again: now the writer's commit is over. */
	return check_file(path, name, header) ? SQLITE_READONLY : SQLITE_OK;
}

/* path: what it is called in messages, name: where it is. */
static sqlite3 *open_as(const char *path, const char *name)
{
	struct header header = { 0, 0 };
	sqlite3 *database = NULL;
	int err = -EIO, status;

	err = check_file(path, name, &header);
	if (err)
		goto out;
	status = start_reading(&database, path, name, &header);
	err = -EIO;
	switch (status & 0xff) {
	case SQLITE_OK:
		err = check_content(database, path, &header);
		break;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		message("%s is locked by another program; try again when it is done", path);
		break;
	case SQLITE_READONLY:
		break;
	case SQLITE_INTERRUPT: /* recording_guard() */
		message("%s is damaged: its schema is larger than that of any recording", path);
		break;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		say_damaged(path, &header);
		break;
	default:
		message("%s: %s", path,
			database ? sqlite3_errmsg(database) : sqlite3_errstr(status));
		break;
	}
out:
	if (!err)
		return database;
	sqlite3_close(database);
	return NULL;
}

sqlite3 *recording_open(const char *path)
{
	/* "file:..." means something else to SQLite. */
	g_autofree char *name = path[0] == '/' ? g_strdup(path) : g_strconcat("./", path, NULL);

	return open_as(path, name);
}

/* Of a pipe, whose end may be far: the first bytes are looked at before the others are copied. */
static int copy_stdin(const char *copy)
{
	char magic[sizeof(MAGIC)];
	size_t got = 0;
	ssize_t some;

	while (got < sizeof(magic) &&
	       (some = read(STDIN_FILENO, magic + got, sizeof(magic) - got)) > 0)
		got += (size_t)some;
	if (got < sizeof(magic) || memcmp(magic, MAGIC, sizeof(magic))) {
		message(got ? "standard input is not a recording of memtoll (no SQLite database)" :
			      "standard input is empty: nothing was recorded in it");
		return -EINVAL;
	}
	return copy_bytes(STDIN_FILENO, copy, magic, sizeof(magic));
}

sqlite3 *recording_open_stdin(void)
{
	g_autofree char *directory = NULL, *copy = NULL;
	sqlite3 *database = NULL;
	int err;

	if (isatty(STDIN_FILENO)) {
		message("standard input is a terminal, not a recording");
		return NULL;
	}
	directory = g_dir_make_tmp("memtoll-XXXXXX", NULL);
	if (!directory) {
		message("standard input cannot be copied to %s: %s", g_get_tmp_dir(),
			g_strerror(errno));
		return NULL;
	}
	copy = g_build_filename(directory, "copy", NULL);
	err = copy_stdin(copy);
	if (!err)
		database = open_as("standard input", copy);
	else if (err != -EINVAL)
		message("standard input cannot be copied to %s: %s", g_get_tmp_dir(),
			g_strerror(-err));
	unlink(copy);
	rmdir(directory);
	return database;
}
