/* SPDX-License-Identifier: GPL-2.0 */
/* debugfile.h: finds the separate debug file of a program. */
#ifndef MEMTOLL_DEBUGFILE_H
#define MEMTOLL_DEBUGFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libelf.h>

struct target_rights;

struct debugfile_query {
	const char *path;     /* of the program, as its process sees it; or of the debug file */
	const char *build_id; /* hexadecimal, "" if it has none */
	const char *link;     /* name out of .gnu_debuglink or .gnu_debugaltlink, or NULL */
	uint32_t crc;	      /* out of .gnu_debuglink */
	int root;	      /* the process's root directory, or -1 */
	const struct target_rights *rights; /* by which files are opened; NULL: our own */
};

/*
 * Look below our root and the process's: /usr/lib/debug/.build-id/xx/yyyy.debug, then, by the
 * link, beside the program, in .debug/ and in /usr/lib/debug (GDB manual, "Debugging Information
 * in Separate Files"). Only regular ELF files whose build-id, or lacking that whose CRC, agree. A
 * descriptor and the path in *found (freed by the caller with g_free), or -1. The program names
 * them: no file that a process serves (FUSE) is taken, the search has a time limit (timed_call.h),
 * and what is read for CRCs one of bytes.
 */
int debugfile_open(const struct debugfile_query *query, char **found);

/*
 * A file with this build-id: in the directories (NULL-terminated; each is laid out as
 * /usr/lib/debug, or as a root directory, or just holds the files), then the module's own path
 * here, then the debug file in /usr/lib/debug. Without a time limit. A descriptor and the path in *found (freed by the
 * caller with g_free), or -1.
 */
int debugfile_find(const char *build_id, const char *module, char *const *directories,
		   char **found);

/* Build-id as hexadecimal, "" where there is none. text: BUILD_ID_TEXT bytes. */
#define BUILD_ID_TEXT (2 * 64 + 1)
void build_id_text(const void *bits, size_t len, char *text);
void build_id_of(Elf *elf, char *text);

/* Whether a file begins as ELF files do. libdw would unpack compressed ones into memory. */
bool is_elf_file(int fd);

#endif /* MEMTOLL_DEBUGFILE_H */
