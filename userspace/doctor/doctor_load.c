// SPDX-License-Identifier: GPL-2.0
#include "doctor/doctor_load.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "events/names.h"
#include "session/session.h"

/* One look at the clock and the answer: with attaching and detaching it is some three seconds. */
#define MOMENT_NS 800000000ULL
#define MOMENT_LIMIT 0.01

static void read_prices(sqlite3 *database, struct probe_prices *prices)
{
	sqlite3_stmt *row = NULL;

	if (sqlite3_prepare_v2(database, "SELECT probe, hit_ns FROM probe_cost", -1, &row, NULL))
		return;
	while (sqlite3_step(row) == SQLITE_ROW) {
		const char *probe = (const char *)sqlite3_column_text(row, 0);

		for (unsigned int fn = 1; fn < FN_COUNT; fn++)
			if (probe && !strcmp(probe, fn_name(fn)))
				prices->ns[fn] = sqlite3_column_double(row, 1);
	}
	sqlite3_finalize(row);
	/* free returns nothing. */
	prices->once_ns = prices->ns[FN_FREE];
}

/* By a recording in memory with a small budget: the same probes, prices and estimates. */
ssize_t probe_loads_measure(pid_t pid, struct probe_load *loads, size_t capacity,
			    struct probe_prices *prices)
{
	const struct session_config config = {
		.pids = &pid,
		.pid_count = 1,
		.duration_ns = MOMENT_NS,
		.min_size = MIN_SIZE_DEFAULT,
		.buffer_bytes = BUFFER_DEFAULT,
		.uprobes = true,
		.faults = true,
		.mappings = true,
		.samples = true,
		.reads = true,
		.overhead_limit = MOMENT_LIMIT,
		.overhead_limit_text = "1",
		.probes = "alloc,faults,mappings,samples,reads",
		.command_line = "memtoll doctor",
	};
	struct session *session = session_new(&config);
	sqlite3_stmt *row = NULL;
	ssize_t count = -1;

	if (session_record(session))
		goto out;
	session_close(session);
	/* Its views were only written: who opens a file reads them, which nobody does of this one. */
	sqlite3_exec(session_database(session), "PRAGMA writable_schema = RESET", NULL, NULL, NULL);
	if (sqlite3_prepare_v2(session_database(session),
			       "SELECT probes, hits_per_s, hit_ns,"
			       " cost_pct FROM probe_load ORDER BY position",
			       -1, &row, NULL)) {
		message("cannot judge the rates: %s", sqlite3_errmsg(session_database(session)));
		goto out;
	}
	for (count = 0; (size_t)count < capacity && sqlite3_step(row) == SQLITE_ROW; count++) {
		struct probe_load *load = &loads[count];

		snprintf(load->probes, sizeof(load->probes), "%s", sqlite3_column_text(row, 0));
		load->hits_per_s = sqlite3_column_double(row, 1);
		load->hit_ns = sqlite3_column_double(row, 2);
		load->cost_pct = sqlite3_column_double(row, 3);
	}
	sqlite3_finalize(row);
	read_prices(session_database(session), prices);
out:
	session_free(session);
	return count;
}
