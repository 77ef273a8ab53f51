/* SPDX-License-Identifier: GPL-2.0 */
/*
 * recording_vfs.h: the files that SQLite may touch for a recording: the recording and its journal.
 *
 * Whoever may write to a recording's directory can leave a journal beside it. SQLite plays a
 * journal back that it finds, and deletes the file that the journal calls its super-journal,
 * whichever that is (file format, 3 and 4.1): with the rights of who opens the database.
 */
#ifndef MEMTOLL_RECORDING_VFS_H
#define MEMTOLL_RECORDING_VFS_H

enum recording_files {
	RECORDING_WRITTEN,   /* no journal is there but the one this process made */
	RECORDING_READ,	     /* a journal is not looked at */
	RECORDING_RECOVERED, /* a private copy: its journal is played back */
};

/*
 * Name of the VFS for sqlite3_open_v2(). None of them opens a super-journal, whose name is another
 * file's, or deletes anything but a journal. NULL: SQLite has no memory left.
 */
const char *recording_vfs(enum recording_files files);

#endif /* MEMTOLL_RECORDING_VFS_H */
