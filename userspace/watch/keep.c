// SPDX-License-Identifier: GPL-2.0
#include "watch/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "host/output_file.h"
#include "recording/recording.h"
#include "watch/log.h"
#include "watch/part_file.h"

#define PREFIX "watch-"
#define DETAIL "-detail"
#define SUFFIX ".memtoll"
#define PART ".part"
#define LOCK ".memtoll-watch.lock"
/* A watch that was killed leaves its last recording to be finished by who makes it. */
#define LOCK_TRIES 100
#define LOCK_TRY_US 100000
/* The database's header (sqlite.org/fileformat.html): where the application has its mark. */
#define MARK_AT 68

enum age {
	OF_A_CLOCK_AHEAD,
	OF_BEFORE,
	OF_THIS_WATCH,
};

struct own_file {
	char *name;
	uint64_t bytes;
	enum age age;
	gsize number; /* OF_THIS_WATCH: which it was */
};

struct keep {
	GHashTable *numbers; /* name -> which it was, from 1 on */
	gsize made;
};

struct keep *keep_new(void)
{
	struct keep *keep = g_new0(struct keep, 1);

	keep->numbers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	return keep;
}

void keep_free(struct keep *keep)
{
	if (!keep)
		return;
	g_hash_table_destroy(keep->numbers);
	g_free(keep);
}

static char *name_now(bool detailed)
{
	struct timespec now;
	struct tm utc;
	char text[64];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(text, sizeof(text), "%Y%m%dT%H%M%S", &utc);
	return g_strdup_printf(PREFIX "%s.%03ldZ%s" SUFFIX, text, now.tv_nsec / 1000000,
			       detailed ? DETAIL : "");
}

char *keep_name(struct keep *keep, bool detailed)
{
	char *name = name_now(detailed);

	g_hash_table_insert(keep->numbers, g_strdup(name), GSIZE_TO_POINTER(++keep->made));
	return name;
}

bool keep_is_name(const char *name)
{
	return g_regex_match_simple("^" PREFIX "[0-9]{8}T[0-9]{6}\\.[0-9]{3}Z(" DETAIL ")?\\" SUFFIX
				    "$(?!\n)",
				    name, 0, 0);
}

/* The directory, and for the user behind sudo where there was none. */
static int make_directory(const char *directory)
{
	int fd;

	if (mkdir(directory, 0700))
		return errno == EEXIST ? 0 : -errno;
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	give_to_invoker(fd);
	close(fd);
	return 0;
}

int keep_lock(const char *directory)
{
	g_autofree char *path = g_strdup_printf("%s/" LOCK, directory);
	int fd, tries = 0, err = make_directory(directory);

	if (err) {
		watch_log(LOG_ERR, "%s: %s", directory, strerror(-err));
		return -1;
	}
	fd = open_or_make(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		watch_log(LOG_ERR, "%s: %s", path, strerror(errno));
		return -1;
	}
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno == EINTR || (errno == EWOULDBLOCK && tries++ < LOCK_TRIES)) {
			g_usleep(LOCK_TRY_US);
			continue;
		}
		watch_log(LOG_ERR, "%s: %s", directory,
			  errno == EWOULDBLOCK ? "another memtoll watch has this directory" :
						 strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

/* "NAME" of ".NAME.part" or of its journal. */
static char *name_of_part(const char *file)
{
	const char *part = strstr(file, PART);
	char *name;

	if (file[0] != '.' || !part || (strcmp(part, PART) && strcmp(part, PART "-journal")))
		return NULL;
	name = g_strndup(file + 1, part - file - 1);
	if (!keep_is_name(name))
		g_clear_pointer(&name, g_free);
	return name;
}

void keep_remove_unfinished(const char *directory)
{
	GDir *entries = g_dir_open(directory, 0, NULL);
	const char *file;

	while (entries && (file = g_dir_read_name(entries))) {
		g_autofree char *name = name_of_part(file);

		if (!name)
			continue;
		if (g_str_has_suffix(file, PART))
			watch_log(LOG_WARNING, "%s was not finished, and is removed", name);
		part_file_remove(directory, name);
	}
	if (entries)
		g_dir_close(entries);
}

/* By its content, too: a file that only has such a name is somebody's. */
static bool is_own(int directory, const char *name, uint64_t *bytes)
{
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;
	uint8_t mark[4];
	bool own = false;

	if (fd < 0)
		return false;
	if (!fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
	    pread(fd, mark, sizeof(mark), MARK_AT) == sizeof(mark)) {
		own = ((uint32_t)mark[0] << 24 | mark[1] << 16 | mark[2] << 8 | mark[3]) ==
		      RECORDING_APPLICATION_ID;
		*bytes = (uint64_t)status.st_blocks * 512;
	}
	close(fd);
	return own;
}

static gint by_age(gconstpointer a, gconstpointer b)
{
	const struct own_file *one = a, *other = b;

	if (one->age != other->age)
		return one->age < other->age ? -1 : 1;
	if (one->number != other->number)
		return one->number < other->number ? -1 : 1;
	return strcmp(one->name, other->name);
}

static void find_age(const struct keep *keep, const char *now, struct own_file *file)
{
	file->number = GPOINTER_TO_SIZE(g_hash_table_lookup(keep->numbers, file->name));
	if (file->number)
		file->age = OF_THIS_WATCH;
	else
		file->age = strcmp(file->name, now) > 0 ? OF_A_CLOCK_AHEAD : OF_BEFORE;
}

static void clear_own(gpointer data)
{
	g_free(((struct own_file *)data)->name);
}

static uint64_t blocks_bytes(int directory, const char *file)
{
	struct stat status;

	return fstatat(directory, file, &status, AT_SYMLINK_NOFOLLOW) ?
		       0 :
		       (uint64_t)status.st_blocks * 512;
}

struct kept keep_within(struct keep *keep, const char *directory, uint64_t most_bytes)
{
	g_autoptr(GArray) own = g_array_new(FALSE, FALSE, sizeof(struct own_file));
	g_autofree char *now = name_now(false);
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	GDir *entries = g_dir_open(directory, 0, NULL);
	struct kept kept = { 0 };
	const char *file;
	guint i;

	g_array_set_clear_func(own, clear_own);
	while (fd >= 0 && entries && (file = g_dir_read_name(entries))) {
		g_autofree char *part = name_of_part(file);
		struct own_file whole = { 0 };

		if (part) {
			kept.bytes += blocks_bytes(fd, file);
		} else if (keep_is_name(file) && is_own(fd, file, &whole.bytes)) {
			whole.name = g_strdup(file);
			find_age(keep, now, &whole);
			kept.bytes += whole.bytes;
			g_array_append_val(own, whole);
		}
	}
	kept.files = own->len;
	g_array_sort(own, by_age);
	for (i = 0; i < own->len && kept.bytes > most_bytes; i++) {
		const struct own_file *oldest = &g_array_index(own, struct own_file, i);

		if (unlinkat(fd, oldest->name, 0)) {
			watch_log(LOG_WARNING, "%s cannot be removed: %s", oldest->name,
				  strerror(errno));
			continue;
		}
		g_hash_table_remove(keep->numbers, oldest->name);
		kept.bytes -= oldest->bytes;
		kept.files--;
		kept.removed++;
	}
	if (entries)
		g_dir_close(entries);
	if (fd >= 0)
		close(fd);
	return kept;
}

uint64_t keep_part_bytes(const char *directory, const char *name)
{
	g_autofree char *path = part_file_path(directory, name);
	g_autofree char *journal = g_strconcat(path, "-journal", NULL);

	return blocks_bytes(AT_FDCWD, path) + blocks_bytes(AT_FDCWD, journal);
}
