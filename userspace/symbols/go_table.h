/* SPDX-License-Identifier: GPL-2.0 */
/*
 * go_table.h: functions, files and lines of a Go program, from the table that its own runtime
 * unwinds and panics by (.gopclntab), which no stripping takes away. Pure: bytes in, names out; the
 * bytes may be anybody's.
 *
 * Go 1.18 and later (runtime/symtab.go, cmd/link/internal/ld/pcln.go, internal/abi/symtab.go).
 */
#ifndef MEMTOLL_GO_TABLE_H
#define MEMTOLL_GO_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct go_bytes {
	const uint8_t *data;
	size_t size;
};

/* Strings are in the table's bytes; never NULL. */
struct go_frame {
	const char *function; /* as Go calls it: "main.(*server).read" */
	const char *file;
	uint32_t line;	/* 0: not known */
	uint64_t start; /* of the function that has the code, into which others are inlined */
};

struct go_table {
	struct go_bytes names, units, files, values, functions;
	struct go_bytes inlined; /* what function data lies in; size 0: not known */
	uint64_t text;		 /* where its code begins */
	uint32_t count;		 /* of functions */
	uint32_t quantum;	 /* bytes of the shortest instruction */
	bool starts_lines;	 /* 1.20 and later: where functions begin is there, too */
};

/* What the table says of itself; text and inlined are for who knows the module. False: none that is known. */
bool go_table_read(struct go_table *table, struct go_bytes bytes, uint64_t *text);

/* Where the part of names lies in the table: the first thing that a module points to. 0: unknown. */
uint64_t go_table_names_offset(struct go_bytes bytes);

/* Innermost inlined function first. Number of frames, 0 where no function has code at the address. */
size_t go_table_find(const struct go_table *table, uint64_t address, struct go_frame *frames,
		     size_t capacity);

#endif /* MEMTOLL_GO_TABLE_H */
