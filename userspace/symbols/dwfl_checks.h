/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dwfl_checks.h: checks of hostile files before libdwfl (elfutils 0.188) reads them, where it would
 * use unbounded time or memory.
 */
#ifndef MEMTOLL_DWFL_CHECKS_H
#define MEMTOLL_DWFL_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

#include <elfutils/libdw.h>
#include <libelf.h>

/* Whether .gnu_debugdata, which libdwfl unpacks whole, stays small; it may be a bomb. */
bool debugdata_is_small(Elf *elf);

/*
 * Where no section is a symbol table that it can read, libdwfl counts the dynamic symbols itself:
 * along a chain of .gnu.hash, through all of the file if that is made so, and each word of it takes
 * longer than the one before (find_dynsym() by elf_getdata_rawchunk()): a file of 1 MiB takes
 * minutes. Which sections it can read is not judged here: a chain that long is in no real file.
 * bias: as dwfl_module_getelf() has it.
 */
bool symbols_are_bounded(Elf *elf, uint64_t bias);

/*
 * libdw opens the file that .gnu_debugaltlink names when the caller found none. It would wait for
 * ever on a FIFO.
 */
bool alternative_is_regular(Dwarf *dwarf);

#endif /* MEMTOLL_DWFL_CHECKS_H */
