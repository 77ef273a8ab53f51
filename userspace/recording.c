// SPDX-License-Identifier: GPL-2.0
/*
 * recording.c: the writer of recordings. The reader is recording_open.c.
 *
 * journal_mode is DELETE, not WAL: a copy of the file alone is then a whole recording, and a
 * killed tracer leaves at most a rollback journal that the next reader plays back. synchronous is
 * OFF while recording (a crash of the tracer loses nothing by that, only a crash of the machine
 * could) and FULL for the last commit.
 */
#include "recording.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../bpf/losses.h"
#include "message.h"
#include "recording_sql.h"

/* How long a commit waits for a reader that holds the file. */
#define BUSY_MS 10000

enum statement {
	STMT_BEGIN,
	STMT_COMMIT,
	STMT_META,
	STMT_PROCESS,
	STMT_PROCESS_END,
	STMT_ALLOCATOR,
	STMT_PRICE,
	STMT_CALIBRATION,
	STMT_SYSTEM_COUNTER,
	STMT_NOT_CAPTURED,
	STMT_LOSS_KIND,
	STMT_SLICE,
	STMT_PROCESS_SLICE,
	STMT_CALL,
	STMT_BLOCK,
	STMT_FAULT,
	STMT_FAULT_RUN,
	STMT_MAP_CALL,
	STMT_SAMPLE,
	STMT_SWAP,
	STMT_HIT,
	STMT_LOSS,
	STMT_STACK,
	STMT_FRAME,
	STMT_STACK_FRAME,
	STMT_COUNT,
};

static const char *const statements[STMT_COUNT] = {
	[STMT_BEGIN] = "BEGIN",
	[STMT_COMMIT] = "COMMIT",
	[STMT_META] = "INSERT OR REPLACE INTO meta VALUES (?, ?)",
	/* After exec the names change; since when, from whom and why it is traced does not. */
	[STMT_PROCESS] =
		"INSERT INTO process (pid, parent_pid, comm, command, executable, start_ns,"
		" role) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
		" comm = excluded.comm, command = excluded.command,"
		" executable = excluded.executable",
	[STMT_PROCESS_END] = "UPDATE process SET end_ns = ?2, exit_code = ?3 WHERE pid = ?1",
	[STMT_ALLOCATOR] = "INSERT OR REPLACE INTO allocator VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[STMT_PRICE] = "INSERT OR REPLACE INTO price VALUES (?, ?, ?, ?)",
	[STMT_CALIBRATION] = "INSERT OR REPLACE INTO calibration VALUES (?, ?)",
	[STMT_SYSTEM_COUNTER] = "INSERT OR REPLACE INTO system_counter VALUES (?, ?)",
	[STMT_NOT_CAPTURED] = "INSERT OR REPLACE INTO not_captured VALUES (?, ?)",
	[STMT_LOSS_KIND] = "INSERT OR REPLACE INTO loss_kind VALUES (?, ?, ?)",
	[STMT_SLICE] = "INSERT INTO slice VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET"
		       " end_ns = excluded.end_ns",
	[STMT_PROCESS_SLICE] =
		"INSERT INTO process_slice VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
		" cpu_ns = cpu_ns + excluded.cpu_ns,"
		" minor_faults = minor_faults + excluded.minor_faults,"
		" major_faults = major_faults + excluded.major_faults",
	[STMT_CALL] =
		"INSERT INTO call VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
		" ON CONFLICT DO UPDATE SET calls = calls + excluded.calls,"
		" failed = failed + excluded.failed, bytes = bytes + excluded.bytes,"
		" cpu_ns = cpu_ns + excluded.cpu_ns,"
		" timed_calls = timed_calls + excluded.timed_calls,"
		" map_cpu_ns = map_cpu_ns + excluded.map_cpu_ns,"
		" map_calls = map_calls + excluded.map_calls, faults = faults + excluded.faults,"
		" cleared_calls = cleared_calls + excluded.cleared_calls,"
		" cleared_bytes = cleared_bytes + excluded.cleared_bytes,"
		" cleared_cpu_ns = cleared_cpu_ns + excluded.cleared_cpu_ns,"
		" cleared_faults = cleared_faults + excluded.cleared_faults,"
		" mmapped_calls = mmapped_calls + excluded.mmapped_calls,"
		" nested_calls = nested_calls + excluded.nested_calls",
	[STMT_BLOCK] =
		"INSERT INTO block VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
		" made = made + excluded.made, made_bytes = made_bytes + excluded.made_bytes,"
		" freed = freed + excluded.freed, freed_bytes = freed_bytes + excluded.freed_bytes,"
		" never_used_bytes = never_used_bytes + excluded.never_used_bytes",
	[STMT_FAULT] = "INSERT INTO fault VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
		       " ON CONFLICT DO UPDATE SET faults = faults + excluded.faults,"
		       " pages = pages + excluded.pages,"
		       " timed_faults = timed_faults + excluded.timed_faults,"
		       " timed_cpu_ns = timed_cpu_ns + excluded.timed_cpu_ns,"
		       " timed_cpu_us2 = timed_cpu_us2 + excluded.timed_cpu_us2,"
		       " blocked_ns = blocked_ns + excluded.blocked_ns",
	[STMT_FAULT_RUN] = "INSERT INTO fault_run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[STMT_MAP_CALL] =
		"INSERT INTO map_call VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
		" ON CONFLICT DO UPDATE SET"
		" calls = calls + excluded.calls, failed = failed + excluded.failed,"
		" bytes = bytes + excluded.bytes, cpu_ns = cpu_ns + excluded.cpu_ns,"
		" populated = populated + excluded.populated",
	[STMT_SAMPLE] = "INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
			" samples = samples + excluded.samples",
	[STMT_SWAP] = "INSERT INTO swap VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
		      " count = count + excluded.count, pages = pages + excluded.pages,"
		      " cpu_ns = cpu_ns + excluded.cpu_ns,"
		      " blocked_ns = blocked_ns + excluded.blocked_ns",
	[STMT_HIT] = "INSERT INTO hit VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
		     " hits = hits + excluded.hits",
	[STMT_LOSS] = "INSERT INTO loss VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET"
		      " count = count + excluded.count",
	[STMT_STACK] = "INSERT OR IGNORE INTO stack VALUES (?, ?, ?, ?)",
	[STMT_FRAME] = "INSERT INTO frame VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
	[STMT_STACK_FRAME] = "INSERT OR IGNORE INTO stack_frame VALUES (?, ?, ?, ?, ?)",
};

struct recording {
	sqlite3 *database;
	char *path;		/* as named by the user; NULL: in memory */
	char *written;		/* the file that is written: path, or the new one beside it */
	sqlite3_stmt *prepared[STMT_COUNT];
	GHashTable *stacks;	/* ids, as gint64 keys */
	GHashTable *frames;	/* all fields joined -> frame_id */
	int64_t frame_count;
	int64_t slice;		/* begun; 0: none yet */
	int64_t committed;	/* last slice that is in the file */
	uint64_t slice_start_ns;
	bool open_transaction;
	bool finished;
	int error;
};

enum value_type { VALUE_INT, VALUE_REAL, VALUE_TEXT, VALUE_NULL };

struct value {
	enum value_type type;
	int64_t integer;
	double real;
	const char *text;
};

/* Counters beyond 63 bits cannot happen honestly; they must not turn negative. */
static struct value count(uint64_t number)
{
	return (struct value){ .type = VALUE_INT,
			       .integer = number > INT64_MAX ? INT64_MAX : (int64_t)number };
}

static struct value signed_int(int64_t number)
{
	return (struct value){ .type = VALUE_INT, .integer = number };
}

/* Ids and addresses keep their 64 bits, whatever the sign. */
static struct value bits(uint64_t number)
{
	return (struct value){ .type = VALUE_INT, .integer = (int64_t)number };
}

static struct value real(double number)
{
	return (struct value){ .type = VALUE_REAL, .real = number };
}

static struct value text(const char *string)
{
	return (struct value){ .type = string ? VALUE_TEXT : VALUE_NULL, .text = string };
}

static struct value known(int64_t number)
{
	return (struct value){ .type = number < 0 ? VALUE_NULL : VALUE_INT, .integer = number };
}

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
	reason = g_strdup(detail);	/* the rollback changes the message */
	if (recording->open_transaction)
		sqlite3_exec(recording->database, "ROLLBACK", NULL, NULL, NULL);
	recording->open_transaction = false;
	if (recording->committed > 0)
		message("%s: %s; recorded up to slice %lld",
			recording->written ? recording->written : "recording in memory", reason,
			(long long)recording->committed);
	else
		message("%s: %s; nothing was recorded",
			recording->written ? recording->written : "recording in memory", reason);
	g_free(reason);
	return recording->error;
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
		status = sqlite3_prepare_v3(recording->database, statements[which], -1,
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

static int store_values(struct recording *recording, enum statement which,
			const struct value *values, size_t value_count)
{
	int err = recording->error;

	if (err)
		return err;
	if (!recording->open_transaction) {
		err = execute(recording, STMT_BEGIN, NULL, 0);
		if (err)
			return err;
		recording->open_transaction = true;
	}
	return execute(recording, which, values, value_count);
}

#define STORE(recording, which, ...)								\
	store_values(recording, which, (const struct value[]){ __VA_ARGS__ },			\
		     sizeof((const struct value[]){ __VA_ARGS__ }) / sizeof(struct value))

static int commit(struct recording *recording)
{
	int err = recording->error;

	if (err || !recording->open_transaction)
		return err;
	err = execute(recording, STMT_COMMIT, NULL, 0);
	if (err)
		return err;
	recording->open_transaction = false;
	return 0;
}

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
		message("the recording stays owned by root: %s", g_strerror(errno));
}

/* 0, or -errno after the line that says why the path cannot be had. */
static int check_path(const char *path, bool force)
{
	struct stat status;

	if (lstat(path, &status)) {
		if (errno == ENOENT)
			return 0;	/* the directory is judged when the file is made */
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

static int create_file(const char *path, const char *shown)
{
	char *directory = g_path_get_dirname(shown);
	char *journal = g_strconcat(path, "-journal", NULL);
	struct stat status;
	int err = -EIO, fd;

	/* SQLite would take a journal that lies there for this database's and play it back. */
	if (!lstat(journal, &status)) {
		message("%s is in the way (a journal of an earlier file); remove it", journal);
		err = -EEXIST;
		goto out;
	}
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		err = -errno;
		if (err == -ENOENT)
			message("%s: directory %s does not exist", shown, directory);
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
	close(fd);
	err = 0;
out:
	g_free(journal);
	g_free(directory);
	return err;
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
				    "PRAGMA synchronous = OFF; PRAGMA cache_spill = OFF;"
				    "PRAGMA temp_store = MEMORY; BEGIN;"
				    "PRAGMA application_id = %d; PRAGMA user_version = %d; %s",
				    RECORDING_APPLICATION_ID, RECORDING_FORMAT, recording_sql);
	int err = -ENOMEM, status;
	size_t i;

	if (!sql)
		goto out;
	status = sqlite3_exec(recording->database, sql, NULL, NULL, NULL);
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

struct recording *recording_create(const char *path, bool force)
{
	struct recording *recording = g_new0(struct recording, 1);
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW, err = -EIO, status;
	char *name = NULL;

	recording->stacks = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	recording->frames = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	if (path) {
		err = check_path(path, force);
		if (err)
			goto out;
		/* Replacing waits for the end: until then the new data lies beside the old. */
		if (force && !access(path, F_OK))
			recording->written = g_strdup_printf("%s.tmp-%d", path, (int)getpid());
		else
			recording->written = g_strdup(path);
		err = create_file(recording->written, path);
		if (err) {
			g_clear_pointer(&recording->written, g_free);	/* not ours to remove */
			goto out;
		}
		recording->path = g_strdup(path);
		/* "file:..." and ":memory:" mean something else to SQLite. */
		name = path[0] == '/' ? g_strdup(recording->written) :
					g_strconcat("./", recording->written, NULL);
	} else {
		name = g_strdup(":memory:");
		flags |= SQLITE_OPEN_MEMORY | SQLITE_OPEN_CREATE;
	}
	status = sqlite3_open_v2(name, &recording->database, flags, NULL);
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

int recording_meta(struct recording *recording, const char *key, const char *value)
{
	return STORE(recording, STMT_META, text(key), text(value));
}

int recording_meta_int(struct recording *recording, const char *key, int64_t value)
{
	char number[32];

	snprintf(number, sizeof(number), "%lld", (long long)value);
	return recording_meta(recording, key, number);
}

int recording_process(struct recording *recording, const struct process_fact *process)
{
	return STORE(recording, STMT_PROCESS, signed_int(process->pid),
		     process->parent_pid > 0 ? signed_int(process->parent_pid) : text(NULL),
		     text(process->comm), text(process->command), text(process->executable),
		     count(process->start_ns), text(process->role));
}

int recording_process_end(struct recording *recording, pid_t pid, uint64_t end_ns, int exit_code)
{
	return STORE(recording, STMT_PROCESS_END, signed_int(pid), count(end_ns),
		     signed_int(exit_code));
}

int recording_allocator(struct recording *recording, const struct allocator_fact *allocator)
{
	return STORE(recording, STMT_ALLOCATOR, signed_int(allocator->pid),
		     text(allocator->module), text(allocator->kind), text(allocator->version),
		     text(allocator->functions), text(allocator->refused),
		     known(allocator->mmap_threshold_low), known(allocator->mmap_threshold_high),
		     known(allocator->dynamic), text(allocator->tunables));
}

int recording_price(struct recording *recording, const char *probe, double hit_ns,
		    double inside_ns, double error_ns)
{
	return STORE(recording, STMT_PRICE, text(probe), real(hit_ns), real(inside_ns),
		     real(error_ns));
}

int recording_calibration(struct recording *recording, const char *name, double value)
{
	return STORE(recording, STMT_CALIBRATION, text(name), real(value));
}

int recording_system_counter(struct recording *recording, const char *name, int64_t value)
{
	return STORE(recording, STMT_SYSTEM_COUNTER, text(name), signed_int(value));
}

int recording_not_captured(struct recording *recording, const char *toll, const char *reason)
{
	return STORE(recording, STMT_NOT_CAPTURED, text(toll), text(reason));
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

int recording_process_slice(struct recording *recording, pid_t pid, uint64_t cpu_ns,
			    uint64_t minor_faults, uint64_t major_faults)
{
	return STORE(recording, STMT_PROCESS_SLICE, signed_int(recording->slice), signed_int(pid),
		     count(cpu_ns), count(minor_faults), count(major_faults));
}

int recording_call(struct recording *recording, const struct call_fact *call)
{
	const struct memtoll_call_sum *sum = &call->sum;

	return STORE(recording, STMT_CALL, signed_int(recording->slice), signed_int(call->pid),
		     text(call->call), bits(call->stack_id), count(sum->calls), count(sum->failed),
		     count(sum->bytes), count(sum->cpu_ns), count(call->timed_calls),
		     count(sum->map_cpu_ns), count(sum->map_calls), count(sum->faults),
		     count(sum->cleared_calls), count(sum->cleared_bytes),
		     count(sum->cleared_cpu_ns), count(sum->cleared_faults),
		     count(sum->mmapped_calls), signed_int(call->known_clearing),
		     count(sum->nested_calls));
}

int recording_block(struct recording *recording, const struct block_fact *block)
{
	return STORE(recording, STMT_BLOCK, signed_int(recording->slice), signed_int(block->pid),
		     text(block->call), bits(block->stack_id), count(block->made),
		     count(block->made_bytes), count(block->freed), count(block->freed_bytes),
		     count(block->never_used_bytes));
}

int recording_fault(struct recording *recording, const struct fault_fact *fault)
{
	return STORE(recording, STMT_FAULT, signed_int(recording->slice), signed_int(fault->pid),
		     text(fault->fault_class), bits(fault->allocated_stack),
		     text(fault->allocated_call), bits(fault->touched_stack), text(fault->area),
		     text(fault->in_call), signed_int(fault->in_memset), count(fault->faults),
		     count(fault->pages), count(fault->timed_faults), count(fault->timed_cpu_ns),
		     count(fault->timed_cpu_us2), count(fault->blocked_ns));
}

int recording_fault_run(struct recording *recording, const struct fault_run_fact *run)
{
	return STORE(recording, STMT_FAULT_RUN, signed_int(recording->slice), signed_int(run->pid),
		     signed_int(run->tid), text(run->fault_class), bits(run->address),
		     count(run->pages), count(run->faults), count(run->first_ns),
		     count(run->last_ns), bits(run->allocated_stack), bits(run->touched_stack));
}

int recording_map_call(struct recording *recording, const struct map_call_fact *call)
{
	return STORE(recording, STMT_MAP_CALL, signed_int(recording->slice), signed_int(call->pid),
		     text(call->call), text(call->in_call), bits(call->stack_id),
		     count(call->sum.calls), count(call->sum.failed), count(call->sum.bytes),
		     count(call->sum.cpu_ns), count(call->sum.populated));
}

int recording_sample(struct recording *recording, pid_t pid, const char *place,
		     const char *in_call, uint64_t stack_id, uint64_t samples)
{
	return STORE(recording, STMT_SAMPLE, signed_int(recording->slice), signed_int(pid),
		     text(place), text(in_call), bits(stack_id), count(samples));
}

int recording_swap(struct recording *recording, pid_t pid, const char *what,
		   const struct memtoll_swap_sum *sum)
{
	return STORE(recording, STMT_SWAP, signed_int(recording->slice), signed_int(pid),
		     text(what), count(sum->count), count(sum->pages), count(sum->cpu_ns),
		     count(sum->blocked_ns));
}

int recording_hit(struct recording *recording, pid_t pid, const char *probe, uint64_t hits)
{
	return STORE(recording, STMT_HIT, signed_int(recording->slice), signed_int(pid),
		     text(probe), count(hits));
}

int recording_loss(struct recording *recording, const char *name, uint64_t lost)
{
	return STORE(recording, STMT_LOSS, signed_int(recording->slice), text(name), count(lost));
}

int recording_stack(struct recording *recording, uint64_t stack_id, pid_t pid, const char *how,
		    bool complete)
{
	gint64 *key;

	if (recording->error)
		return recording->error;
	if (recording_has_stack(recording, stack_id))
		return 0;
	key = g_new(gint64, 1);
	*key = (gint64)stack_id;
	g_hash_table_add(recording->stacks, key);
	return STORE(recording, STMT_STACK, bits(stack_id), signed_int(pid), text(how),
		     signed_int(complete));
}

static int frame_number(struct recording *recording, const struct frame *frame, int64_t *number)
{
	/* No field holds a control character that is taken for the border between two. */
	char *key = g_strdup_printf("%s\x1f%s\x1f%s\x1f%u\x1f%d\x1f%s\x1f%llx", frame->function,
				    frame->module, frame->file, frame->line, (int)frame->kind,
				    frame->build_id, (unsigned long long)frame->module_offset);
	gint64 *found = g_hash_table_lookup(recording->frames, key);
	int err = -EIO;

	if (found) {
		*number = *found;
		g_free(key);
		return 0;
	}
	*number = ++recording->frame_count;
	found = g_new(gint64, 1);
	*found = *number;
	g_hash_table_insert(recording->frames, key, found);
	err = STORE(recording, STMT_FRAME, signed_int(*number), text(frame->function),
		    text(frame->module), text(frame->file), count(frame->line),
		    text(frame_kind_name(frame->kind)), text(frame->build_id),
		    bits(frame->module_offset));
	return err;
}

int recording_stack_frame(struct recording *recording, uint64_t stack_id, unsigned int depth,
			  uint64_t address, const struct frame *frame, bool inlined)
{
	int64_t number = 0;
	int err = recording->error;

	if (err)
		return err;
	err = frame_number(recording, frame, &number);
	if (err)
		return err;
	return STORE(recording, STMT_STACK_FRAME, bits(stack_id), signed_int(depth), bits(address),
		     signed_int(number), signed_int(inlined));
}

bool recording_has_stack(struct recording *recording, uint64_t stack_id)
{
	gint64 key = (gint64)stack_id;

	return g_hash_table_contains(recording->stacks, &key);
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
	return 0;
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
	if (err)
		return err;
	recording->finished = true;	/* whole, wherever it lies: nothing to say at close */
	if (recording->path)
		recording->error = settle_file(recording);
	return recording->error;
}

sqlite3 *recording_database(struct recording *recording)
{
	return recording->database;
}

const char *recording_path(const struct recording *recording)
{
	return recording->path;
}

void recording_close(struct recording *recording)
{
	size_t i;

	if (!recording)
		return;
	for (i = 0; i < STMT_COUNT; i++)
		sqlite3_finalize(recording->prepared[i]);
	sqlite3_close(recording->database);	/* rolls an open transaction back */
	if (recording->written && !recording->finished) {
		if (!recording->committed)
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
