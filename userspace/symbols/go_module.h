/* SPDX-License-Identifier: GPL-2.0 */
/* go_module.h: where a Go program's own table of functions lies in its file (libelf). */
#ifndef MEMTOLL_GO_MODULE_H
#define MEMTOLL_GO_MODULE_H

#include <libelf.h>
#include <stdbool.h>

#include "symbols/go_table.h"

/*
 * The table of an ELF file, whose bytes belong to the Elf. Where the code begins is what the table
 * says, or what the runtime's description of the module (runtime.moduledata) does, as relocated: of
 * position-independent programs, and from Go 1.26 on, the table has no address. Without it the
 * code begins with .text. False: no Go program, or one that this does not know.
 */
bool go_module_read(Elf *elf, struct go_table *table);

#endif /* MEMTOLL_GO_MODULE_H */
