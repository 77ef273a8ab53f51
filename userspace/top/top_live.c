// SPDX-License-Identifier: GPL-2.0
#include "top/top_live.h"

#include <errno.h>
#include <string.h>

#include "base/message.h"
#include "base/text.h"
#include "top/top_place.h"
#include "top/top_pseudonyms.h"

#define SITES_OF_PROCESS "20"

enum process_value {
	VALUE_MEMORY,
	VALUE_ZEROING,
	VALUE_SWAP,
	VALUE_COPIES,
	VALUE_FILE,
	VALUE_ALLOCATOR,
	VALUE_MAPPING,
	VALUE_OBSERVED,
	PROCESS_VALUES,
};

enum site_value { SITE_TIME, SITE_BYTES, SITE_COUNT, SITE_VALUES };

static const struct top_columns process_columns = {
	.name = "processes",
	.label = "NAME",
	.label_key = "name",
	.text = "COMMAND",
	.text_keys = { "command" },
	.count = PROCESS_VALUES,
	.columns = {
		[VALUE_MEMORY] = { "TOLL", "toll_s", TOP_PART },
		[VALUE_ZEROING] = { "ZERO", "zeroing_s", TOP_PART },
		[VALUE_SWAP] = { "SWAP", "swap_s", TOP_PART },
		[VALUE_COPIES] = { "COPY", "cow_s", TOP_PART },
		[VALUE_FILE] = { "FILE", "file_s", TOP_PART },
		[VALUE_ALLOCATOR] = { "ALLOC", "allocator_s", TOP_PART },
		[VALUE_MAPPING] = { "MAP", "mapping_s", TOP_PART },
		[VALUE_OBSERVED] = { "ALL", "observed_s", TOP_PART },
	},
};

static const struct top_columns site_columns = {
	.name = "sites",
	.label = "SITES: TOLL",
	.label_key = "toll",
	.text_keys = { "allocated_at", "touched_at" },
	.count = SITE_VALUES,
	.columns = {
		[SITE_TIME] = { "TIME", "time_s", TOP_PART },
		[SITE_BYTES] = { "BYTES", "bytes", TOP_BYTES },
		[SITE_COUNT] = { "COUNT", "count", TOP_COUNT },
	},
};

/* What a process's tolls add up to, by the families of the verdict. */
static const char PROCESSES[] =
	"SELECT o.pid, p.comm, p.command, o.observed_ns, t.family, SUM(t.time_ns)"
	" FROM temp.process_observed o LEFT JOIN main.process p ON p.pid = o.pid"
	" LEFT JOIN (SELECT x.pid, x.time_ns, k.family FROM temp.process_toll x"
	" JOIN temp.toll_kind k ON k.toll = x.toll WHERE k.not_captured IS NULL"
	" AND x.toll <> 'compute') t ON t.pid = o.pid"
	" WHERE o.observed_ns > 0 GROUP BY o.pid, t.family ORDER BY o.pid";

/* As view sites has them, but of each process by itself, and without what it computes. */
static const char SITES[] =
	"WITH part(pid, toll, call, allocated, touched, area, time_ns, bytes, count) AS ("
	"SELECT f.pid, c.toll, f.allocated_call, f.allocated_stack, f.touched_stack,"
	" CASE WHEN f.allocated_call <> '' AND f.area <> 'shared' THEN ''"
	" ELSE RTRIM(f.area || ' ' || f.area_name) END,"
	" SUM(f.faults * c.mean_ns + f.blocked_ns"
	" + (f.faults - f.timed_faults) * c.blocked_mean_ns),"
	" SUM(CASE WHEN c.toll NOT IN ('zero.kernel', 'cow') OR c.writes_page THEN f.pages"
	" ELSE 0 END) * 4096, SUM(f.faults)"
	" FROM main.fault f JOIN temp.fault_price c ON c.class = f.class"
	" WHERE c.toll <> 'compute' GROUP BY 1, 2, 3, 4, 5, 6"
	" UNION ALL SELECT pid, 'zero.libc', call, stack_id, 0, '', SUM(zero_libc_ns),"
	" SUM(cleared_bytes), SUM(cleared_calls) FROM temp.call_cost GROUP BY pid, call, stack_id"
	" UNION ALL SELECT pid, 'alloc', call, stack_id, 0, '', SUM(alloc_ns), SUM(bytes),"
	" SUM(calls) FROM temp.call_cost GROUP BY pid, call, stack_id"
	" UNION ALL SELECT pid, toll, call, stack_id, 0, '', MAX(0.0, SUM(net_ns)), SUM(bytes),"
	" SUM(calls) FROM temp.map_cost GROUP BY pid, toll, call, stack_id"
	" UNION ALL SELECT pid, toll, allocated_call, allocated_stack, stack_id, area,"
	" SUM(time_ns), SUM(bytes), SUM(samples) FROM temp.storing"
	" GROUP BY pid, toll, allocated_call, allocated_stack, stack_id, area"
	" UNION ALL SELECT pid, toll, call, 0, stack_id, area, SUM(cpu_ns + blocked_ns),"
	" SUM(bytes), SUM(count) FROM temp.extra_toll GROUP BY pid, toll, call, stack_id, area)"
	"SELECT pid, toll, call, allocated, touched, area, time_ns, bytes, count FROM ("
	"SELECT *, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY time_ns DESC) AS place FROM part"
	" WHERE time_ns > 0 AND toll IN (SELECT toll FROM temp.toll_kind"
	" WHERE not_captured IS NULL)) WHERE place <= " SITES_OF_PROCESS " ORDER BY time_ns DESC";

struct top_live {
	char *target;
	double limit;
	bool keep;
	uint64_t start_ns;
	struct top_pseudonyms *pseudonyms;
	struct top_places *places;
	GPtrArray *forget; /* statements: rows of slices that were told */
};

struct top_live *top_live_new(const char *target, double limit, bool keep,
			      struct top_pseudonyms *pseudonyms)
{
	struct top_live *live = g_new0(struct top_live, 1);

	live->target = text_printable(target);
	live->limit = limit;
	live->keep = keep;
	live->pseudonyms = pseudonyms;
	live->places = top_places_new(pseudonyms);
	return live;
}

void top_live_free(struct top_live *live)
{
	if (!live)
		return;
	top_places_free(live->places);
	if (live->forget)
		g_ptr_array_free(live->forget, TRUE);
	g_free(live->target);
	g_free(live);
}

static void add_measures(struct top_snapshot *snapshot, const struct interval *interval)
{
	guint i;

	for (i = 0; i < interval->tolls->len; i++) {
		const struct interval_toll *toll =
			&g_array_index(interval->tolls, struct interval_toll, i);
		const struct top_measure measure = {
			.name = toll->name,
			.family = toll->family,
			.time_ns = toll->time_ns,
			.value = toll->share,
			.is_share = true,
		};

		if (toll->captured)
			g_array_append_val(snapshot->measures, measure);
	}
	for (i = 0; i < interval->losses->len; i++) {
		const struct interval_loss *loss =
			&g_array_index(interval->losses, struct interval_loss, i);

		g_array_append_val(snapshot->losses,
				   ((struct top_loss){ loss->name, loss->count, loss->exceeds }));
	}
}

static void add_family(struct top_row *row, const char *family, double time_ns)
{
	static const struct {
		const char *family;
		enum process_value value;
	} values[] = {
		{ "zeroing", VALUE_ZEROING },	  { "swap", VALUE_SWAP },
		{ "cow", VALUE_COPIES },	  { "file", VALUE_FILE },
		{ "allocator", VALUE_ALLOCATOR }, { "mapping", VALUE_MAPPING },
	};
	size_t i;

	row->values[VALUE_MEMORY] += time_ns;
	for (i = 0; i < G_N_ELEMENTS(values); i++)
		if (!strcmp(values[i].family, family))
			row->values[values[i].value] += time_ns;
}

static sqlite3_stmt *prepare(sqlite3 *database, const char *sql)
{
	sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK)
		message("no figures of processes: %s", sqlite3_errmsg(database));
	return statement;
}

/* Of one whose row is yet to come. */
static char *read_name(int64_t pid)
{
	g_autofree char *path = g_strdup_printf("/proc/%" G_GINT64_FORMAT "/comm", pid);
	char *text = NULL;

	return g_file_get_contents(path, &text, NULL, NULL) ? g_strchomp(text) : NULL;
}

static struct top_row *add_process(struct top_live *live, struct top_snapshot *snapshot,
				   int64_t pid, const char *name, const char *command)
{
	g_autofree char *said = NULL, *words = NULL;

	if (live->pseudonyms) {
		said = top_pseudonym(live->pseudonyms, "program", name ? name : "");
		words = g_strconcat(said, " ...", NULL);
		name = said;
		command = words;
	}
	return top_row_add(&snapshot->processes, pid, name, command, NULL);
}

static void add_processes(struct top_live *live, struct top_snapshot *snapshot, sqlite3 *database)
{
	sqlite3_stmt *found = prepare(database, PROCESSES);
	struct top_row *row = NULL;

	while (found && sqlite3_step(found) == SQLITE_ROW) {
		int64_t pid = sqlite3_column_int64(found, 0);

		if (!row || row->pid != pid) {
			const char *name = (const char *)sqlite3_column_text(found, 1);
			g_autofree char *now = name ? NULL : read_name(pid);

			row = add_process(live, snapshot, pid, name ? name : now,
					  (const char *)sqlite3_column_text(found, 2));
			row->values[VALUE_OBSERVED] = sqlite3_column_double(found, 3);
		}
		if (sqlite3_column_type(found, 4) != SQLITE_NULL)
			add_family(row, (const char *)sqlite3_column_text(found, 4),
				   sqlite3_column_double(found, 5));
	}
	sqlite3_finalize(found);
}

/* "calloc: main.c:12 (make)"; without an owner the area. */
static char *owner(struct top_live *live, const struct interval *interval, const char *call,
		   int64_t stack, const char *area)
{
	const char *place = stack ? top_place(live->places, interval->recording, stack) : NULL;

	if (!place && *area)
		return top_pseudonym_area(live->pseudonyms, area);
	if (!place)
		return g_strdup(*call ? call : "?");
	if (*call)
		return g_strdup_printf("%s: %s", call, place);
	return g_strdup(place);
}

static void add_sites(struct top_live *live, struct top_snapshot *snapshot,
		      const struct interval *interval)
{
	sqlite3_stmt *found = prepare(interval->database, SITES);
	struct top_row *row;

	while (found && sqlite3_step(found) == SQLITE_ROW) {
		const char *call = (const char *)sqlite3_column_text(found, 2);
		const char *area = (const char *)sqlite3_column_text(found, 5);
		int64_t allocated = sqlite3_column_int64(found, 3);
		int64_t touched = sqlite3_column_int64(found, 4);
		g_autofree char *first = owner(live, interval, call, allocated, area);
		g_autofree char *second =
			touched ? owner(live, interval, "", touched, area) : g_strdup(first);

		row = top_row_add(&snapshot->details, sqlite3_column_int64(found, 0),
				  (const char *)sqlite3_column_text(found, 1), first, second);
		row->values[SITE_TIME] = sqlite3_column_double(found, 6);
		row->values[SITE_BYTES] = sqlite3_column_double(found, 7);
		row->values[SITE_COUNT] = sqlite3_column_double(found, 8);
	}
	sqlite3_finalize(found);
}

/* Nobody will read them: a recording in memory would grow for as long as somebody looks. */
static void forget_slices(struct top_live *live, sqlite3 *recording)
{
	sqlite3_stmt *row;
	guint i;

	if (!live->forget) {
		live->forget = g_ptr_array_new_with_free_func((GDestroyNotify)sqlite3_free);
		row = prepare(recording, "SELECT DISTINCT t.name FROM main.sqlite_master t"
					 " JOIN pragma_table_info(t.name) c"
					 " WHERE t.type = 'table' AND c.name = 'slice'"
					 " ORDER BY t.name = 'slice'");
		while (row && sqlite3_step(row) == SQLITE_ROW)
			g_ptr_array_add(live->forget,
					sqlite3_mprintf("DELETE FROM main.\"%w\" WHERE slice <"
							" (SELECT MAX(slice) FROM main.slice)",
							sqlite3_column_text(row, 0)));
		sqlite3_finalize(row);
	}
	sqlite3_exec(recording, "BEGIN", NULL, NULL, NULL);
	for (i = 0; i < live->forget->len; i++)
		sqlite3_exec(recording, g_ptr_array_index(live->forget, i), NULL, NULL, NULL);
	sqlite3_exec(recording, "COMMIT", NULL, NULL, NULL);
}

struct top_snapshot *top_live_snapshot(struct top_live *live, const struct interval *interval)
{
	struct top_snapshot *snapshot = top_snapshot_new("target", &process_columns, &site_columns);

	if (!live->start_ns)
		live->start_ns = interval->start_ns;
	snapshot->target = g_strdup(live->target);
	snapshot->elapsed_ns = interval->end_ns - live->start_ns;
	snapshot->interval_ns = interval->end_ns - interval->start_ns;
	snapshot->observed_ns = interval->observed_ns;
	snapshot->overhead = interval->overhead;
	snapshot->limit = live->limit;
	snapshot->recorded = live->keep;
	add_measures(snapshot, interval);
	add_processes(live, snapshot, interval->database);
	add_sites(live, snapshot, interval);
	if (!live->keep)
		forget_slices(live, interval->recording);
	return snapshot;
}

int top_live_mark(const struct interval *interval, const char *note)
{
	sqlite3_stmt *insert = prepare(interval->recording, "INSERT INTO main.mark VALUES (?, ?)");
	bool done = false;

	if (insert) {
		sqlite3_bind_int64(insert, 1, (int64_t)interval->end_ns);
		sqlite3_bind_text(insert, 2, note, -1, SQLITE_STATIC);
		done = sqlite3_step(insert) == SQLITE_DONE;
	}
	sqlite3_finalize(insert);
	return done ? 0 : -EIO;
}
