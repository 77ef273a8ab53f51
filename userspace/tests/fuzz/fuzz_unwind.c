// SPDX-License-Identifier: GPL-2.0
/* fuzz_unwind.c: call frame information (.eh_frame) of broken ELF files, made into rows. */
#define _GNU_SOURCE 1

#include "fuzz.h"

#include <stdlib.h>

#include "elf_regions.h"
#include "unwind/unwind_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unwind_table table;

	if (unwind_table_compile_memory(data, size, &table)) {
		if (table.rows || table.count)
			abort();
		return 0;
	}
	/* What BPF bisects: ascending, each row another rule, and an end. */
	if (!table.count || table.count > UNWIND_ROWS_MAX ||
	    table.rows[table.count - 1].rule != CFA_STOP)
		abort();
	for (size_t i = 1; i < table.count; i++)
		if (table.rows[i - 1].pc >= table.rows[i].pc ||
		    table.rows[i - 1].rule == table.rows[i].rule)
			abort();
	unwind_table_free(&table);
	return 0;
}

size_t fuzz_regions(const uint8_t *data, size_t size, struct fuzz_region *regions)
{
	return elf_regions(data, size, ".eh_frame", regions);
}
