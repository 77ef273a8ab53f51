// SPDX-License-Identifier: GPL-2.0
/* recording_open.c: opening a recording for reading, and saying what is wrong with it. */
#include "recording.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "message.h"

/* A commit of the writer holds the file for far less. */
#define BUSY_MS 5000

/* Start of every SQLite database (file format, 1.3). */
#define MAGIC "SQLite format 3"
#define HEADER_BYTES 100
#define PAGE_SIZE_OFFSET 16
#define PAGE_COUNT_OFFSET 28

struct header {
	uint64_t file_bytes;
	uint64_t expected_bytes;	/* pages x page size, as the header has it */
};

/* 0, or -errno after the line that says why this cannot be a recording. */
static int check_file(const char *path, struct header *header)
{
	uint8_t bytes[HEADER_BYTES];
	int err = -EIO, fd;
	struct stat status;
	uint32_t page_size;
	ssize_t got;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to wait for a pipe's writer */
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
		if (page_size == 1)	/* 65,536 does not fit in 16 bits */
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

/* One integer of a query; SQLITE_ROW, or the status that prevented it. */
static int query_int(sqlite3 *database, const char *sql, int64_t *value)
{
	sqlite3_stmt *statement = NULL;
	int status = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);

	if (status == SQLITE_OK)
		status = sqlite3_step(statement);
	if (status == SQLITE_ROW)
		*value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return status;
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
 * The writer was killed in the middle of a commit: play its journal back. This is the only case
 * in which reading writes.
 */
static bool roll_back(const char *name)
{
	sqlite3 *database = NULL;
	int64_t tables;
	bool done;

	done = sqlite3_open_v2(name, &database, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
	       sqlite3_busy_timeout(database, BUSY_MS) == SQLITE_OK &&
	       query_int(database, "SELECT COUNT(*) FROM sqlite_master", &tables) == SQLITE_ROW;
	sqlite3_close(database);
	return done;
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

/* 0, or -EINVAL after the line that says what it is instead. */
static int check_content(sqlite3 *database, const char *path, const struct header *header)
{
	int64_t id = 0, format = 0, views = 0;

	if (query_int(database, "PRAGMA application_id", &id) != SQLITE_ROW ||
	    query_int(database, "PRAGMA user_version", &format) != SQLITE_ROW) {
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
	if (header->expected_bytes > header->file_bytes || !quick_check(database)) {
		say_damaged(path, header);
		return -EINVAL;
	}
	if (query_int(database,
		      "SELECT COUNT(*) FROM sqlite_master WHERE type = 'view' AND name IN"
		      " ('verdict', 'finding', 'toll', 'sites', 'report_json')",
		      &views) != SQLITE_ROW ||
	    views != 5) {
		message("%s lacks the views of a recording", path);
		return -EINVAL;
	}
	return 0;
}

/* SQLITE_OK when the database can be read, its journal played back where one was left. */
static int start_reading(sqlite3 **database, const char *name, int64_t *tables)
{
	int attempt, status = SQLITE_ERROR;

	for (attempt = 0; attempt < 2; attempt++) {
		status = sqlite3_open_v2(name, database, SQLITE_OPEN_READONLY, NULL);
		if (status != SQLITE_OK)
			return status;
		sqlite3_busy_timeout(*database, BUSY_MS);
		sqlite3_extended_result_codes(*database, 1);
		/* The views of a file from elsewhere may call nothing that has effects. */
		sqlite3_db_config(*database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
		status = query_int(*database, "SELECT COUNT(*) FROM sqlite_master", tables);
		if (status == SQLITE_ROW)
			return SQLITE_OK;
		if (status != SQLITE_READONLY_ROLLBACK && status != SQLITE_READONLY_RECOVERY &&
		    (status & 0xff) != SQLITE_CANTOPEN)
			return status;
		if (attempt == 0 && !roll_back(name))
			return SQLITE_READONLY_ROLLBACK;
		if (attempt == 0)
			sqlite3_close(*database);
	}
	return status;
}

sqlite3 *recording_open(const char *path)
{
	struct header header = { 0, 0 };
	sqlite3 *database = NULL;
	int err = -EIO, status;
	char *name = NULL;
	int64_t tables = 0;

	err = check_file(path, &header);
	if (err)
		goto out;
	/* "file:..." means something else to SQLite. */
	name = path[0] == '/' ? g_strdup(path) : g_strconcat("./", path, NULL);
	status = start_reading(&database, name, &tables);
	err = -EIO;
	switch (status & 0xff) {
	case SQLITE_OK:
		/* Again: now the writer's commit is over and the journal played back. */
		err = check_file(path, &header);
		if (!err)
			err = check_content(database, path, &header);
		break;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		message("%s is locked by another program; try again when it is done", path);
		break;
	case SQLITE_READONLY:
		message("%s was cut off in the middle of a commit and must be written to once: copy"
			" it and %s-journal to a directory of your own", path, path);
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
	g_free(name);
	if (!err)
		return database;
	sqlite3_close(database);
	return NULL;
}
