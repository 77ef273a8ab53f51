// SPDX-License-Identifier: GPL-2.0
/*
 * recording_vfs.c: SQLite's own access to files, with what a recording never needs left out.
 *
 * Each is a copy of the default VFS with three functions put before its own. Its other functions
 * look at nothing of the VFS but what is copied (os_unix.c: pAppData, mxPathname).
 */
#include "recording/recording_vfs.h"

#include <errno.h>
#include <glib.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* How often somebody may put a file where the journal is to be made, between two system calls. */
#define TRIES 100

static const char *const names[] = {
	[RECORDING_WRITTEN] = "memtoll-written",
	[RECORDING_READ] = "memtoll-read",
	[RECORDING_RECOVERED] = "memtoll-recovered",
};

static bool is_journal(const char *name)
{
	return g_str_has_suffix(name, "-journal");
}

static sqlite3_vfs *base(void)
{
	return sqlite3_vfs_find(NULL);
}

/*
 * A journal is made by whoever writes, or not at all: what lies there is not followed, and not
 * used.
 */
static int open_journal(const char *name, sqlite3_file *file, int flags, int *given)
{
	int i, status = SQLITE_CANTOPEN;

	for (i = 0; i < TRIES && status == SQLITE_CANTOPEN; i++) {
		if (unlink(name) && errno != ENOENT)
			break; /* a directory, or a right that is missing: the open says which */
		status = base()->xOpen(base(), name, file, flags | SQLITE_OPEN_EXCLUSIVE, given);
	}
	return status;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *given)
{
	file->pMethods = NULL;
	if (flags & (SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL))
		return SQLITE_CANTOPEN;
	if (name && (flags & SQLITE_OPEN_MAIN_JOURNAL) && (flags & SQLITE_OPEN_CREATE) &&
	    !strcmp(vfs->zName, names[RECORDING_WRITTEN]))
		return open_journal(name, file, flags, given);
	return base()->xOpen(base(), name, file, flags, given);
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	return is_journal(name) ? base()->xDelete(base(), name, sync) : SQLITE_IOERR_DELETE;
}

/* Asked before each transaction: is there a journal that has to be played back? */
static int access_file(sqlite3_vfs *vfs, const char *name, int how, int *there)
{
	bool journal = is_journal(name) && strcmp(vfs->zName, names[RECORDING_RECOVERED]);

	*there = 0;
	if (how == SQLITE_ACCESS_EXISTS && (journal || g_str_has_suffix(name, "-wal")))
		return SQLITE_OK;
	return base()->xAccess(base(), name, how, there);
}

const char *recording_vfs(enum recording_files files)
{
	static sqlite3_vfs all[G_N_ELEMENTS(names)];
	static gsize done;
	size_t i;

	if (g_once_init_enter(&done)) {
		for (i = 0; i < G_N_ELEMENTS(names) && base(); i++) {
			all[i] = *base();
			all[i].zName = names[i];
			all[i].xOpen = open_file;
			all[i].xDelete = delete_file;
			all[i].xAccess = access_file;
			if (sqlite3_vfs_register(&all[i], 0) != SQLITE_OK)
				break;
		}
		g_once_init_leave(&done, 1);
	}
	return sqlite3_vfs_find(names[files]) ? names[files] : NULL;
}
