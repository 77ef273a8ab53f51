// SPDX-License-Identifier: GPL-2.0
/* fuzz_recording.c: recordings with damaged bytes: refused, or reported. */
#define _GNU_SOURCE 1

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#include "recording/recording.h"
#include "report/growth.h"
#include "report/report.h"

/*
 * What is said of a damaged file goes nowhere: the sanitizers write to the descriptor, not to the
 * stream.
 */
static void report_all(const char *path)
{
	const struct report_options options = { .sites = 10, .color = false };
	FILE *out = fopen("/dev/null", "w"), *said = stderr;
	struct finding_list *list = NULL;
	struct growth_side side;
	sqlite3 *database;
	bool lossy;

	if (!out)
		abort();
	stderr = out;
	database = recording_open(path);
	if (database && !report_text(database, &options, out) &&
	    !report_json(database, &options, out))
		report_folded(database, "zero.libc", out);
	side = (struct growth_side){ .database = database, .path = path };
	if (database && !report_brief(database, 1000, out))
		list = growth_find(&side, &side, &lossy);
	if (list)
		finding_print(list, FINDING_MARKDOWN, out);
	finding_list_free(list);
	sqlite3_close(database);
	stderr = said;
	fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	report_all(fuzz_file(data, size));
	return 0;
}

/* The file's header and schema, and the headers of the next pages. */
size_t fuzz_regions(const uint8_t *data, size_t size, struct fuzz_region *regions)
{
	size_t count = 0, page = 4096;

	(void)data;
	regions[count++] = (struct fuzz_region){ 0, 100 };
	regions[count++] = (struct fuzz_region){ 100, 64 };
	for (; count < FUZZ_REGIONS && page * count < size; count++)
		regions[count] = (struct fuzz_region){ page * count, 64 };
	return count;
}
