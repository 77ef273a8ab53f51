/* SPDX-License-Identifier: GPL-2.0 */
/*
 * scopes.h: functions, inlined functions and source line of an address, from DWARF (version 5:
 * sections 2.17 addresses, 3.3 subroutines, 3.3.8 inlined subroutines).
 */
#ifndef MEMTOLL_SCOPES_H
#define MEMTOLL_SCOPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

/* Deeper nests of inlined functions are cut at the outer end. */
#define SCOPES_MAX 32

struct scope {
	const char *name;      /* linker name where there is one; NULL: not known */
	const char *file;      /* NULL: not known */
	const char *directory; /* what file is relative to; NULL: not known */
	uint32_t line;
	bool physical;	/* the function itself, not one inlined into it */
	uint64_t start; /* of the physical function; 0: not known */
};

struct scopes;

/*
 * Index the units of a file's DWARF, which must outlive the result. bias: what to add to DWARF's
 * addresses. Never NULL. Skeletons of split DWARF give lines but no functions: their .dwo files
 * are not opened, since an untrusted program would choose the paths.
 */
struct scopes *scopes_new(Dwarf *dwarf, uint64_t bias);
void scopes_free(struct scopes *scopes);

/*
 * What is at address, innermost first: number written (at most SCOPES_MAX), 0 where no unit
 * covers it. Strings belong to the DWARF. Work and memory are bounded for any input.
 */
size_t scopes_find(struct scopes *scopes, uint64_t address, struct scope *found);

#endif /* MEMTOLL_SCOPES_H */
