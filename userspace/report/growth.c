// SPDX-License-Identifier: GPL-2.0
#include "report/growth.h"

#include <math.h>
#include <string.h>

#include "base/message.h"
#include "base/shell.h"
#include "base/text.h"
#include "report/growth_internal.h"
#include "report/report_page.h"
#include "report/report_views.h"

/* What is worth a line: this part more, and this part of the time of the later run. */
#define WORTH_COUNTED 0.05
#define WORTH_ESTIMATED 0.2
#define WORTH_TIME 0.001
/* Of CPU samples: standard deviations of the difference of two numbers of them. */
#define WORTH_DEVIATIONS 3

/* As table meta has the default. */
#define PROBES_ALL "alloc,faults,mappings,samples,reads"
#define MIN_SIZE "65536"

struct run {
	bool complete, whole;
	double duration_s, observed_ns;
	char *command, *limit;
	char *lossy, *lost, *estimated;
	char *exit_status; /* of a command; "" */
	/* What must be the same, or is said where it is not. */
	char *min_size, *probes, *not_captured, *kernel, *machine;
};

static void run_free(struct run *run)
{
	g_free(run->command);
	g_free(run->limit);
	g_free(run->lossy);
	g_free(run->lost);
	g_free(run->exit_status);
	g_free(run->estimated);
	g_free(run->min_size);
	g_free(run->probes);
	g_free(run->not_captured);
	g_free(run->kernel);
	g_free(run->machine);
}

static void site_free(void *data)
{
	struct site_growth *site = data;

	g_free(site->key);
	g_free(site->toll);
	g_free(site->call);
	g_free(site->area);
	g_free(site->allocated);
	g_free(site->touched);
	g_free(site->file);
	g_free(site);
}

/* 0 or -errno after a message. */
static int read_run(const struct growth_side *side, struct run *run)
{
	struct page page = { .database = side->database };
	sqlite3_stmt *row;
	int err;

	err = report_views_make(side->database, "run_compared_short", 0);
	if (err)
		return err;
	row = page_query(
		&page,
		"SELECT complete, command, duration_ns, observed_ns, whole, min_size, probes,"
		" kernel, machine, not_captured, lossy, estimated, overhead_limit, lost,"
		" exit_status"
		" FROM temp.run_compared_short LIMIT 1");
	while (page_next(&page, row)) {
		run->complete = sqlite3_column_int(row, 0);
		run->command = page_column(row, 1);
		run->duration_s = sqlite3_column_double(row, 2) / 1e9;
		run->observed_ns = sqlite3_column_double(row, 3);
		run->whole = sqlite3_column_int(row, 4);
		run->min_size = page_column(row, 5);
		run->probes = page_column(row, 6);
		run->kernel = page_column(row, 7);
		run->machine = page_column(row, 8);
		run->not_captured = page_column(row, 9);
		run->lossy = page_column(row, 10);
		run->estimated = page_column(row, 11);
		run->limit = page_column(row, 12);
		run->lost = page_column(row, 13);
		run->exit_status = page_column(row, 14);
	}
	return page.err;
}

/* Whether they measure the same; after a message where not. */
static bool are_comparable(const struct growth_side sides[GROWTH_SIDES],
			   const struct run runs[GROWTH_SIDES])
{
	const struct {
		const char *what, *before, *after;
	} same[] = {
		{ "--min-size", runs[BEFORE].min_size, runs[AFTER].min_size },
		{ "--probes", runs[BEFORE].probes, runs[AFTER].probes },
		{ "tolls that were not captured", runs[BEFORE].not_captured,
		  runs[AFTER].not_captured },
	};
	size_t i;

	for (i = 0; i < GROWTH_SIDES; i++) {
		if (!runs[i].complete) {
			message("report: %s is not finished: its counts are not those of a run; record "
				"it again",
				sides[i].path);
			return false;
		}
		if (!(runs[i].duration_s > 0)) {
			message("report: %s has nothing in it to compare", sides[i].path);
			return false;
		}
	}
	for (i = 0; i < G_N_ELEMENTS(same); i++)
		if (g_strcmp0(same[i].before, same[i].after) != 0) {
			message("report: %s and %s do not measure the same: %s: '%s' and '%s'; record "
				"them alike",
				sides[BEFORE].path, sides[AFTER].path, same[i].what, same[i].before,
				same[i].after);
			return false;
		}
	return true;
}

/*
 * Functions, and names of files: lines move. The kind of memory only where no code is known. Freed
 * by g_free().
 */
static char *key_of(const char *toll, const char *call, const char *area, const char *allocated,
		    const char *allocated_file, const char *touched, const char *touched_file)
{
	g_autofree char *from =
		*allocated_file ? g_path_get_basename(allocated_file) : g_strdup("");
	g_autofree char *to = *touched_file ? g_path_get_basename(touched_file) : g_strdup("");
	GString *key = g_string_new(toll);
	const char *const parts[] = { call,    allocated, from, *allocated || *touched ? "" : area,
				      touched, to };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(parts); i++)
		g_string_append_printf(key, " | %s", parts[i]);
	return g_string_free(key, FALSE);
}

static struct site_growth *site_of(GHashTable *sites, char *key)
{
	struct site_growth *site = g_hash_table_lookup(sites, key);

	if (site) {
		g_free(key);
		return site;
	}
	site = g_new0(struct site_growth, 1);
	site->key = key;
	g_hash_table_insert(sites, key, site);
	return site;
}

static void replace(char **text, char *with)
{
	g_free(*text);
	*text = with;
}

/* One row; the texts stay those of the dearest row of the later side. */
static void take_row(sqlite3_stmt *row, GHashTable *sites, int side, double divisor)
{
	g_autofree char *toll = page_column(row, 0), *call = page_column(row, 1);
	g_autofree char *area = page_column(row, 2), *allocated = page_column(row, 3);
	g_autofree char *allocated_file = page_column(row, 5), *touched = page_column(row, 7);
	g_autofree char *touched_file = page_column(row, 9);
	double time_ns = sqlite3_column_double(row, 11);
	struct site_growth *site = site_of(sites, key_of(toll, call, area, allocated,
							 allocated_file, touched, touched_file));
	bool is_first = !site->toll || (side == AFTER && !site->is_later);
	/* A page is copied where it is written to. */
	bool at_touch = !*allocated_file || (!strcmp(toll, "cow") && *touched_file);

	site->is_later = side == AFTER;
	site->time_ns[side] += time_ns / divisor;
	site->count[side] += sqlite3_column_double(row, 12) / divisor;
	site->bytes[side] += sqlite3_column_double(row, 13) / divisor;
	site->sampled |= sqlite3_column_int(row, 14);
	site->at_least |= sqlite3_column_int(row, 16);
	if (sqlite3_column_type(row, 15) != SQLITE_NULL) {
		site->estimated = true;
		site->error = MAX(site->error, sqlite3_column_double(row, 15));
	}
	if (!is_first && site->area && strcmp(site->area, area) != 0)
		replace(&area, g_strdup(""));
	if (!is_first && time_ns <= site->largest_ns) {
		replace(&site->area, g_steal_pointer(&area));
		return;
	}
	site->largest_ns = time_ns;
	replace(&site->toll, g_steal_pointer(&toll));
	replace(&site->call, g_steal_pointer(&call));
	replace(&site->area, g_steal_pointer(&area));
	replace(&site->allocated, page_column(row, 4));
	replace(&site->touched, page_column(row, 8));
	site->line = sqlite3_column_int64(row, at_touch ? 10 : 6);
	if (at_touch)
		replace(&site->file, g_steal_pointer(&touched_file));
	else
		replace(&site->file, g_steal_pointer(&allocated_file));
}

static int read_sites(const struct growth_side *side, int number, double divisor, GHashTable *sites)
{
	struct page page = { .database = side->database };
	sqlite3_stmt *row = page_query(
		&page,
		"SELECT toll, call, area, allocated, allocated_said, allocated_file,"
		" allocated_line, touched, touched_said, touched_file, touched_line, time_ns,"
		" count, bytes, sampled, error, at_least FROM temp.site_compared_short");

	while (page_next(&page, row))
		take_row(row, sites, number, divisor);
	return page.err;
}

/*
 * The allocator's calls at a place are the site of its own toll; that they are more is the reason in
 * the line of what they cause, and needs none of its own.
 */
static void find_calls(GHashTable *sites, struct site_growth *site)
{
	g_auto(GStrv) parts = g_strsplit(site->key, " | ", -1);
	g_autofree char *key = NULL;
	struct site_growth *calls;

	/* A text of the recording may have the same letters: then it is not known. */
	if (g_strv_length(parts) != 7 || !*site->call || !strcmp(site->toll, "map"))
		return;
	key = key_of("alloc", parts[1], "", parts[2], parts[3], "", "");
	calls = g_hash_table_lookup(sites, key);
	if (calls) {
		memcpy(site->calls, calls->count, sizeof(site->calls));
		memcpy(site->asked, calls->bytes, sizeof(site->asked));
		site->calls_estimated = calls->estimated;
		calls->said |= calls != site;
	}
}

/* Of n events the variance is n; of a rate, which they are divided to, that by the divisor. */
static bool is_beyond_chance(const struct site_growth *site, const double divisors[GROWTH_SIDES])
{
	double variance =
		site->count[AFTER] / divisors[AFTER] + site->count[BEFORE] / divisors[BEFORE];

	return site->count[AFTER] - site->count[BEFORE] >= WORTH_DEVIATIONS * sqrt(variance);
}

/*
 * Whether memory that others leave decides on it: what of files the page cache has, and what fits.
 * A few more, or one where there was none, are nobody's change then, however exact they are.
 */
static bool is_by_chance(const struct site_growth *site)
{
	return site->sampled || !strcmp(site->toll, "file.fault") ||
	       !strcmp(site->toll, "reclaim") || g_str_has_prefix(site->toll, "swap.");
}

/* divisors: seconds, where figures are per second; or else 1. */
static bool is_worth(struct site_growth *site, const double divisors[GROWTH_SIDES],
		     double observed_ns)
{
	const double *figure = growth_by_bytes(site) ? site->bytes : site->count;
	double more = figure[AFTER] - figure[BEFORE];
	double part = site->sampled || site->estimated ? WORTH_ESTIMATED : WORTH_COUNTED;

	/* Of an estimate both may be off: what is more even so. */
	if (!(figure[AFTER] > (1 + part) * (1 + site->error) * figure[BEFORE]))
		return false;
	if (is_by_chance(site) && !is_beyond_chance(site, divisors))
		return false;
	site->cost_ns = site->time_ns[AFTER] * more / figure[AFTER];
	return site->cost_ns * divisors[AFTER] >= WORTH_TIME * observed_ns;
}

static gint by_cost(gconstpointer a, gconstpointer b)
{
	const struct site_growth *one = *(struct site_growth *const *)a;
	const struct site_growth *two = *(struct site_growth *const *)b;

	if (one->cost_ns != two->cost_ns)
		return one->cost_ns < two->cost_ns ? 1 : -1;
	return strcmp(one->key, two->key);
}

/* "zero.libc, calloc, parse_row (rows.c)": of key_of()'s, what there is. */
static char *growth_key(const char *key)
{
	g_auto(GStrv) parts = g_strsplit(key, " | ", -1);
	GString *text = g_string_new(parts[0]);
	guint i;

	/* A text of the recording may have the same letters. */
	if (g_strv_length(parts) != 7) {
		g_string_assign(text, key);
		return g_string_free(text, FALSE);
	}
	for (i = 1; i < 7; i++) {
		bool is_file = i == 3 || i == 6;

		if (*parts[i])
			g_string_append_printf(text, "%s%s%s",
					       is_file ? " (" :
					       i == 5  ? ", touched in " :
							 ", ",
					       parts[i], is_file ? ")" : "");
	}
	return g_string_free(text, FALSE);
}

static void add_finding(struct finding_list *list, const struct site_growth *site, bool per_second)
{
	struct finding *finding = finding_add(list);

	finding->title = g_strdup(growth_title(site));
	finding->site = growth_site(site);
	finding->file = *site->file ? g_strdup(site->file) : NULL;
	finding->line = site->line > 0 && site->line <= G_MAXINT ? (unsigned int)site->line : 0;
	finding->before = growth_figure(site, BEFORE, per_second);
	finding->after = growth_figure(site, AFTER, per_second);
	finding->unit = growth_by_bytes(site) ? (per_second ? "bytes_per_second" : "bytes") :
						(per_second ? "count_per_second" : "count");
	memcpy(finding->number, growth_by_bytes(site) ? site->bytes : site->count,
	       sizeof(finding->number));
	finding->accuracy = site->sampled || site->estimated ? "estimate" :
			    site->at_least		     ? "at_least" :
							       "exact";
	finding->reason = growth_reason(site);
	finding->key = growth_key(site->key);
}

static void add_notes(struct finding_list *list, const struct growth_side sides[GROWTH_SIDES],
		      const struct run runs[GROWTH_SIDES])
{
	size_t i;

	for (i = 0; i < GROWTH_SIDES; i++) {
		if (*runs[i].lossy)
			finding_note(list, "losses of %s exceed 1 %% of their kind: %s",
				     sides[i].path, runs[i].lossy);
		if (*runs[i].lost)
			finding_note(list, "%s lost up to 1 %% of some kinds: %s", sides[i].path,
				     runs[i].lost);
		if (*runs[i].estimated)
			finding_note(
				list,
				"%s: estimates (~), as not all was watched: %s; they are judged "
				"beyond their bounds only; record with --overhead-limit none for "
				"exact counts",
				sides[i].path, runs[i].estimated);
	}
	if (g_strcmp0(runs[BEFORE].kernel, runs[AFTER].kernel) != 0 ||
	    g_strcmp0(runs[BEFORE].machine, runs[AFTER].machine) != 0)
		finding_note(
			list,
			"different kernels: %s %s and %s %s; what they clear and map at once may "
			"differ",
			runs[BEFORE].kernel, runs[BEFORE].machine, runs[AFTER].kernel,
			runs[AFTER].machine);
	if (g_strcmp0(runs[BEFORE].command, runs[AFTER].command) != 0)
		finding_note(list, "different commands: %s and %s", runs[BEFORE].command,
			     runs[AFTER].command);
	if (g_strcmp0(runs[BEFORE].exit_status, runs[AFTER].exit_status) != 0)
		finding_note(list,
			     "the commands ended with status %s and %s: one may have done less",
			     *runs[BEFORE].exit_status ? runs[BEFORE].exit_status : "unknown",
			     *runs[AFTER].exit_status ? runs[AFTER].exit_status : "unknown");
	if (!runs[BEFORE].whole || !runs[AFTER].whole)
		finding_note(
			list,
			"not both are of a command from start to end: figures are per second, and "
			"say nothing where the work of a second differs");
}

/*
 * What records the later one again, and compares; of running processes, and of what came through a
 * pipe, there is no such command.
 */
static void add_commands(struct finding_list *list, const struct growth_side sides[GROWTH_SIDES],
			 const struct run *run)
{
	char *compare[] = { "memtoll",
			    "report",
			    "--baseline",
			    (char *)sides[BEFORE].path,
			    (char *)sides[AFTER].path,
			    NULL };
	const bool has_probes = *run->probes && strcmp(run->probes, PROBES_ALL) != 0;
	const char *record[12] = { "memtoll", "record", "--force" };
	size_t count = 3;

	if (!strcmp(sides[BEFORE].path, "-") || !strcmp(sides[AFTER].path, "-"))
		return;
	if (run->whole && *run->command) {
		g_autofree char *line = NULL;

		if (has_probes) {
			record[count++] = "--probes";
			record[count++] = run->probes;
		}
		if (*run->limit) {
			record[count++] = "--overhead-limit";
			record[count++] = run->limit;
		}
		if (*run->min_size && strcmp(run->min_size, MIN_SIZE) != 0) {
			record[count++] = "--min-size";
			record[count++] = run->min_size;
		}
		record[count++] = "-o";
		record[count++] = sides[AFTER].path;
		line = shell_words((char *const *)record);
		/* The command is as a shell tells it. */
		g_ptr_array_add(list->reproduce, g_strdup_printf("%s -- %s", line, run->command));
	}
	g_ptr_array_add(list->reproduce, shell_words(compare));
}

static struct finding_list *list_of(GHashTable *sites, const struct growth_side sides[GROWTH_SIDES],
				    const struct run runs[GROWTH_SIDES], bool per_second)
{
	g_autoptr(GPtrArray) grown = g_ptr_array_new();
	g_autofree char *command = g_strdup(runs[AFTER].command);
	struct finding_list *list = finding_list_new();
	const double divisors[GROWTH_SIDES] = {
		per_second ? runs[BEFORE].duration_s : 1,
		per_second ? runs[AFTER].duration_s : 1,
	};
	struct site_growth *site;
	GHashTableIter iter;
	guint i;

	g_hash_table_iter_init(&iter, sites);
	while (g_hash_table_iter_next(&iter, NULL, (void **)&site))
		if (is_worth(site, divisors, runs[AFTER].observed_ns)) {
			find_calls(sites, site);
			g_ptr_array_add(grown, site);
		}
	g_ptr_array_sort(grown, by_cost);
	for (i = 0; i < grown->len; i++) {
		site = g_ptr_array_index(grown, i);
		if (!site->said)
			add_finding(list, site, per_second);
	}
	list->checked = g_hash_table_size(sites);
	list->title =
		list->findings->len ?
			g_strdup_printf("memtoll: %u place%s more memory work", list->findings->len,
					list->findings->len == 1 ? " does" : "s do") :
			g_strdup("memtoll: no place does more memory work");
	text_cut(command, FINDING_SITE_COLUMNS);
	list->summary = g_strdup_printf(
		"%s against %s: %u places of %s%s. By counts and bytes, 5 %% more or beyond.",
		sides[AFTER].path, sides[BEFORE].path, list->checked, command,
		per_second ? ", per second" : ", of a whole run");
	add_notes(list, sides, runs);
	add_commands(list, sides, &runs[AFTER]);
	return list;
}

struct finding_list *growth_find(const struct growth_side *before, const struct growth_side *after,
				 bool *lossy)
{
	const struct growth_side sides[GROWTH_SIDES] = { *before, *after };
	struct run runs[GROWTH_SIDES] = { 0 };
	struct finding_list *list = NULL;
	GHashTable *sites = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, site_free);
	bool per_second;
	int i;

	for (i = 0; i < GROWTH_SIDES; i++)
		if (read_run(&sides[i], &runs[i]))
			goto out;
	if (!are_comparable(sides, runs))
		goto out;
	per_second = !runs[BEFORE].whole || !runs[AFTER].whole;
	for (i = 0; i < GROWTH_SIDES; i++)
		if (read_sites(&sides[i], i, per_second ? runs[i].duration_s : 1, sites))
			goto out;
	*lossy = *runs[BEFORE].lossy || *runs[AFTER].lossy;
	list = list_of(sites, sides, runs, per_second);
out:
	g_hash_table_unref(sites);
	for (i = 0; i < GROWTH_SIDES; i++)
		run_free(&runs[i]);
	return list;
}
