// SPDX-License-Identifier: GPL-2.0
#include "doctor/slow_report.h"

#include <glib.h>
#include <stdio.h>

#include "base/text.h"

#define COLUMN 25

void slow_finding_read(pid_t pid, const struct allocator_module *module,
		       struct slow_finding *finding)
{
	if (module->kind == ALLOCATOR_GLIBC)
		finding->read = slow_paths_open(pid, module->fd, &finding->paths);
}

static uint64_t offset_of(const struct slow_finding *finding, const struct probe_point *point,
			  const struct slow_site *site)
{
	return site->address + finding->paths.shift - point->symbol_offset;
}

/* "call at +148, +405, size in rsi; call at +179, chunk in rdi" */
static void name_places(const struct slow_finding *finding, const struct probe_point *point,
			const struct slow_path *path, GString *text)
{
	const struct slow_site *last = NULL;

	for (size_t i = 0; i < path->site_count; i++) {
		const struct slow_site *site = &path->sites[i], *next = NULL;

		if (site->again)
			continue;
		for (size_t k = i + 1; k < path->site_count && !next; k++)
			next = path->sites[k].again ? NULL : &path->sites[k];
		if (last && last->number == site->number)
			g_string_append(text, ", ");
		else
			g_string_append_printf(text, "%s%s at ", last ? "; " : "",
					       site->instruction);
		if (site->inside)
			g_string_append_printf(text, "+%lu",
					       (unsigned long)offset_of(finding, point, site));
		else
			g_string_append_printf(text, "0x%lx", (unsigned long)site->address);
		if (!next || next->number != site->number)
			g_string_append_printf(text, ", %s in %s%s", slow_value_name(site->value),
					       placement_register(site->number),
					       site->mapped ? " (a mapping of its own)" : "");
		last = site;
	}
}

static double cost_pct(double per_s, double ns)
{
	return per_s * ns * 1e-7;
}

static void name_rates(const struct slow_check *check, const struct probe_point *point,
		       const struct probe_prices *prices, GString *text)
{
	unsigned long came = (unsigned long)(check->agreed + check->differed);

	if (check->differed) {
		g_string_append_printf(text, ". WRONG in %lu of %lu calls",
				       (unsigned long)check->differed, came);
		return;
	}
	if (!check->entered) {
		g_string_append(text, ". Not called while it was watched");
		return;
	}
	g_string_append_printf(text, ". %lu of %lu calls came there%s: %.0f of %.0f a second", came,
			       (unsigned long)check->entered, came ? ", values proved" : "",
			       check->slow_per_s, check->entered_per_s);
	if (prices->once_ns > 0 && prices->ns[point->fn] > 0)
		g_string_append_printf(
			text, ", %.2f %% of a CPU at %.0f ns instead of %.2f %% at %.0f ns",
			cost_pct(check->slow_per_s, prices->once_ns), prices->once_ns,
			cost_pct(check->entered_per_s, prices->ns[point->fn]),
			prices->ns[point->fn]);
}

void slow_print(const struct slow_finding *finding, const struct probe_point *point,
		const struct slow_check *check, const struct probe_prices *prices)
{
	const struct slow_path *path = slow_path_of(&finding->paths, point);
	g_autofree char *prefix = g_strnfill(COLUMN, ' ');
	g_autoptr(GString) text = g_string_new(NULL);

	if (!finding->read || !path)
		return;
	if (!path->found) {
		g_string_append_printf(text, "slow way: no place, since %s", path->refusal);
	} else {
		g_string_append(text, path->bypassed ? "past the cache: " : "slow way: ");
		name_places(finding, point, path, text);
		if (check)
			name_rates(check, point, prices, text);
	}
	text_wrap(stdout, prefix, COLUMN, text->str);
}

int slow_tables(sqlite3 *database)
{
	return sqlite3_exec(database,
			    "CREATE TABLE slow (module, symbol, found, refusal, bypassed, entered,"
			    " agreed, differed, entered_per_s, slow_per_s, entry_ns, slow_ns);"
			    "CREATE TABLE slow_site (module, symbol, address, offset, instruction,"
			    " register, value, again, mapped)",
			    NULL, NULL, NULL);
}

static int fill_site(sqlite3 *database, const struct slow_finding *finding,
		     const struct allocator_module *module, const struct probe_point *point,
		     const struct slow_site *site)
{
	sqlite3_stmt *statement = NULL;
	int rc = sqlite3_prepare_v2(database,
				    "INSERT INTO slow_site VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", -1,
				    &statement, NULL);

	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_text(statement, 1, module->path, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 2, point->symbol, -1, SQLITE_STATIC);
	sqlite3_bind_int64(statement, 3, (sqlite3_int64)site->address);
	if (site->inside)
		sqlite3_bind_int64(statement, 4, (sqlite3_int64)offset_of(finding, point, site));
	sqlite3_bind_text(statement, 5, site->instruction, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 6, placement_register(site->number), -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 7, slow_value_name(site->value), -1, SQLITE_STATIC);
	sqlite3_bind_int(statement, 8, site->again);
	sqlite3_bind_int(statement, 9, site->mapped);
	sqlite3_step(statement);
	return sqlite3_finalize(statement);
}

static void bind_rates(sqlite3_stmt *statement, const struct slow_check *check,
		       const struct probe_point *point, const struct probe_prices *prices)
{
	sqlite3_bind_int64(statement, 6, (sqlite3_int64)check->entered);
	sqlite3_bind_int64(statement, 7, (sqlite3_int64)check->agreed);
	sqlite3_bind_int64(statement, 8, (sqlite3_int64)check->differed);
	sqlite3_bind_double(statement, 9, check->entered_per_s);
	sqlite3_bind_double(statement, 10, check->slow_per_s);
	if (prices->ns[point->fn] > 0)
		sqlite3_bind_double(statement, 11, prices->ns[point->fn]);
	if (prices->once_ns > 0)
		sqlite3_bind_double(statement, 12, prices->once_ns);
}

int slow_fill(sqlite3 *database, const struct slow_finding *finding,
	      const struct allocator_module *module, const struct probe_prices *prices)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < module->point_count && finding->read; i++) {
		const struct probe_point *point = &module->points[i];
		const struct slow_path *path = slow_path_of(&finding->paths, point);
		sqlite3_stmt *statement = NULL;

		if (!path)
			continue;
		rc = sqlite3_prepare_v2(
			database, "INSERT INTO slow VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			-1, &statement, NULL);
		if (rc != SQLITE_OK)
			break;
		sqlite3_bind_text(statement, 1, module->path, -1, SQLITE_STATIC);
		sqlite3_bind_text(statement, 2, point->symbol, -1, SQLITE_STATIC);
		sqlite3_bind_int(statement, 3, path->found);
		if (!path->found)
			sqlite3_bind_text(statement, 4, path->refusal, -1, SQLITE_STATIC);
		sqlite3_bind_int(statement, 5, path->bypassed);
		if (finding->checked && path->found && point->place.found)
			bind_rates(statement, &finding->checks[i], point, prices);
		sqlite3_step(statement);
		rc = sqlite3_finalize(statement);
		for (size_t k = 0; rc == SQLITE_OK && path->found && k < path->site_count; k++)
			rc = fill_site(database, finding, module, point, &path->sites[k]);
	}
	return rc;
}
