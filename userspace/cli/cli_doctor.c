// SPDX-License-Identifier: GPL-2.0
/*
 * cli_doctor.c: `memtoll doctor`. JSON is made by SQLite, as in the report: its quoting is right
 * for any path or name.
 */
#include <argp.h>
#include <glib.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "allocators/modules.h"
#include "base/message.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "doctor/argument_check.h"
#include "doctor/ci.h"
#include "doctor/doctor_load.h"
#include "doctor/features.h"
#include "doctor/slow_report.h"
#include "events/names.h"
#include "host/privileges.h"
#include "host/proc.h"

#define DETAIL_COLUMN 21

#define FEATURES_MAX 24

struct doctor_options {
	pid_t pid;
	bool json;
	bool ci;
};

#define OPTION_CI 512

/* What was seen of a module's functions on the live process. */
struct module_check {
	struct argument_check points[FAMILY_MAX];
	bool done;
};

struct findings {
	struct feature features[FEATURES_MAX];
	size_t feature_count;
	struct maps maps;
	struct allocator_module *modules;
	size_t module_count;
	struct module_check *checks; /* of each module; NULL: not checked */
	struct slow_finding *slow;   /* of each module */
	struct code_range memory[16];
	ssize_t memory_count;
	struct probe_load loads[DOCTOR_LOADS_MAX];
	ssize_t load_count; /* -1: not measured */
	struct probe_prices prices;
	struct privilege privileges[PRIVILEGES_MAX]; /* as they were before any was dropped */
	size_t privilege_count;
	bool works;
};

static const struct argp_option argp_options[] = {
	{ "pid", 'p', "PID", 0, "the allocator of this process (default: of memtoll itself)", 1 },
	{ "ci", OPTION_CI, NULL, 0,
	  "what a container or a runner lacks, a line each, with the setting of Docker, GitHub and "
	  "Kubernetes; needs no privileges",
	  1 },
	{ "json", 'j', NULL, 0, "one JSON object instead of text", 1 },
	{ 0 },
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct doctor_options *options = state->input;
	char *end;
	long pid;

	switch (key) {
	case 'p':
		pid = strtol(value, &end, 10);
		if (*end || end == value || pid <= 0 || pid > G_MAXINT)
			refuse("-p '%s' is not a process id", value);
		options->pid = pid;
		return 0;
	case 'j':
		options->json = true;
		return 0;
	case OPTION_CI:
		options->ci = true;
		return 0;
	case ARGP_KEY_END:
		if (options->ci && options->pid != getpid())
			refuse("doctor: --ci and -p exclude each other");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int find_allocators(pid_t pid, struct findings *findings)
{
	int err = maps_read(pid, &findings->maps);

	if (!err)
		err = allocator_modules_find(pid, &findings->maps, &findings->modules,
					     &findings->module_count);
	if (err) {
		message("no process with pid %d whose mappings can be read: %s", pid,
			strerror(-err));
		return STATUS_FAILED;
	}
	findings->slow = g_new0(struct slow_finding, findings->module_count);
	/* Now: after the measurement it may not be asked any more. */
	for (size_t i = 0; i < findings->module_count; i++) {
		findings->modules[i].linkage = allocator_linkage(pid, &findings->modules[i]);
		slow_finding_read(pid, &findings->modules[i], &findings->slow[i]);
	}
	findings->memory_count =
		memory_code(pid, &findings->maps, findings->memory, G_N_ELEMENTS(findings->memory));
	return STATUS_DONE;
}

/*
 * Registers of the arguments that are read at the place, "rsi" or "rax, rsi"; "" where all are
 * where the ABI puts them.
 */
static void name_arguments(const struct probe_point *point, char *text, size_t size)
{
	static const int8_t abi[PLACEMENT_ARGUMENTS] = { 7, 6, 2 };
	size_t at = 0;
	bool moved = false;

	text[0] = '\0';
	for (size_t i = 0; i < PLACEMENT_ARGUMENTS; i++) {
		int8_t number = point->place.registers[i];

		if (!(point->arguments & 1U << i) || at >= size)
			continue;
		moved |= number != abi[i];
		at += snprintf(text + at, size - at, "%s%s", at ? ", " : "",
			       placement_register(number));
	}
	if (!moved)
		text[0] = '\0';
}

static void print_point(const struct probe_point *point, const struct argument_check *check)
{
	char registers[32];

	if (!point->place.found) {
		g_autofree char *prefix = g_strdup_printf("    %-20s ", point->symbol);
		g_autofree char *reason = g_strdup_printf(
			"not probed: %s; at its entry the kernel would single-step, which costs 10"
			" to 20 times as much as an emulated place",
			point->place.refusal);

		text_wrap(stdout, prefix, 25, reason);
		return;
	}
	name_arguments(point, registers, sizeof(registers));
	printf("    %-20s +%-3u %s%s%s%s", point->symbol, point->place.offset,
	       point->place.instruction,
	       point->place.pushed ? "  (entry only: counted, not timed)" : "",
	       *registers ? "  arguments in " : "", registers);
	if (!check || !point->place.offset)
		putchar('\n');
	else if (check->differed)
		printf("  WRONG in %lu of %lu calls\n", (unsigned long)check->differed,
		       (unsigned long)check->entered);
	else if (check->agreed)
		printf("  values proved on %lu of %lu calls\n", (unsigned long)check->agreed,
		       (unsigned long)check->entered);
	else
		puts("  not called while it was watched");
}

static void print_module(const struct findings *findings, size_t index)
{
	const struct allocator_module *module = &findings->modules[index];
	const struct module_check *checked = findings->checks ? &findings->checks[index] : NULL;
	const struct slow_finding *slow = &findings->slow[index];
	size_t i;

	printf("  %s: %s %s (%s)\n", module->path, allocator_kind_name(module->kind),
	       *module->version ? module->version : "of unknown version",
	       allocator_linkage_name(module->linkage));
	for (i = 0; i < module->point_count; i++) {
		print_point(&module->points[i],
			    checked && checked->done ? &checked->points[i] : NULL);
		slow_print(slow, &module->points[i], slow->checked ? &slow->checks[i] : NULL,
			   &findings->prices);
	}
	if (module->forwarded)
		printf("    %zu operators only jump on to these and are seen there\n",
		       module->forwarded);
	if (!module->point_count)
		printf("    %s\n",
		       module->kind == ALLOCATOR_GO ?
			       "Go's own allocator takes its memory by mmap: faults and mappings only" :
			       "no malloc symbol: faults and mappings only");
}

/* Only where the user names a process: to watch it costs it a little. */
static void check_values(pid_t pid, struct findings *findings)
{
	enum uprobe_mechanism mechanism = uprobe_mechanism_find();

	findings->checks = g_new0(struct module_check, findings->module_count);
	for (size_t i = 0; i < findings->module_count; i++) {
		int err = arguments_check(pid, mechanism, &findings->modules[i],
					  findings->checks[i].points);

		findings->checks[i].done = !err;
		if (!err && findings->slow[i].read) {
			err = slow_check(pid, mechanism, &findings->modules[i],
					 &findings->slow[i].paths, SLOW_CHECK_MS, SLOW_CHECK_CALLS,
					 findings->slow[i].checks);
			findings->slow[i].checked = !err;
		}
		if (err)
			message("cannot watch %s in process %d: %s", findings->modules[i].path, pid,
				strerror(-err));
	}
}

static void print_loads(const struct findings *findings)
{
	ssize_t i;

	if (findings->load_count < 0)
		return;
	printf("\nWhat probes would cost it, watched all the time (tried for a moment, a hundredth of "
	       "its\nCPU time; the default limit takes away what is too dear):\n");
	if (!findings->load_count)
		puts("  nothing: it did nothing that is probed");
	for (i = 0; i < findings->load_count; i++) {
		const struct probe_load *load = &findings->loads[i];

		printf("  %-18s %12.0f hits a second of its CPU time, %5.0f ns each: %5.1f %%\n",
		       load->probes, load->hits_per_s, load->hit_ns, load->cost_pct);
	}
}

/* Whether it works, and what stands in the way. */
static void print_answer(const struct findings *findings)
{
	g_autoptr(GString) missing = g_string_new(NULL);
	size_t i;

	for (i = 0; i < findings->feature_count; i++)
		if (findings->features[i].required && !findings->features[i].works)
			g_string_append_printf(missing, "%s%s", missing->len ? ", " : " It needs: ",
					       findings->features[i].name);
	printf("memtoll %s%s\n", findings->works ? "works here." : "does not work here.",
	       missing->str);
}

static void print_privileges(const struct findings *findings)
{
	static const char *const needs[] = {
		[PRIVILEGE_ALWAYS] = "Always",
		[PRIVILEGE_OTHERS] = "For processes of other users",
		[PRIVILEGE_BETTER] = "Better with it",
	};
	const struct privilege *privileges = findings->privileges;
	char prefix[40];
	size_t i;

	puts("\nCapabilities, what each is for, and when it is dropped:");
	for (i = 0; i < findings->privilege_count; i++) {
		g_autofree char *text =
			g_strdup_printf("%s: %s. Until %s.", needs[privileges[i].need],
					privileges[i].reason, privileges[i].until);

		snprintf(prefix, sizeof(prefix), "  %-23s %-4s", privileges[i].name,
			 privileges[i].has			? "yes" :
			 privileges[i].need == PRIVILEGE_ALWAYS ? "NO" :
								  "no");
		text_wrap(stdout, prefix, 30, text);
	}
}

static void print_text(const struct doctor_options *options, const struct findings *findings)
{
	struct utsname machine;
	char prefix[32];
	size_t i;

	print_answer(findings);
	uname(&machine);
	printf("memtoll %s on %s %s (%s)\n\n", memtoll_version, machine.sysname, machine.release,
	       machine.machine);
	for (i = 0; i < findings->feature_count; i++) {
		const struct feature *feature = &findings->features[i];

		snprintf(prefix, sizeof(prefix), "%-15s %-4s ", feature->name,
			 feature->works	   ? "ok" :
			 feature->required ? "NO" :
					     "no");
		text_wrap(stdout, prefix, DETAIL_COLUMN, feature->detail);
		text_wrap(stdout, "                     since: ", DETAIL_COLUMN, feature->source);
	}
	print_privileges(findings);
	printf("\nAllocators of process %d, and where their functions are probed:\n", options->pid);
	for (i = 0; i < findings->module_count; i++)
		print_module(findings, i);
	if (!findings->module_count)
		puts("  none found: only faults and mappings can be traced");
	printf("  memset, memcpy: %zd address ranges known\n", MAX(findings->memory_count, 0));
	print_loads(findings);
}

static void bind_check(sqlite3_stmt *statement, const struct probe_point *point,
		       const struct argument_check *check)
{
	char registers[32];

	name_arguments(point, registers, sizeof(registers));
	sqlite3_bind_text(statement, 10, registers, -1, SQLITE_TRANSIENT);
	if (!check || !point->place.found || !point->place.offset)
		return;
	sqlite3_bind_int64(statement, 11, (sqlite3_int64)check->entered);
	sqlite3_bind_int64(statement, 12, (sqlite3_int64)check->agreed);
	sqlite3_bind_int64(statement, 13, (sqlite3_int64)check->differed);
}

static int fill_allocators(sqlite3 *database, const struct findings *findings)
{
	sqlite3_stmt *statement = NULL;
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < findings->module_count; i++) {
		const struct allocator_module *module = &findings->modules[i];

		rc = sqlite3_prepare_v2(database, "INSERT INTO allocator VALUES (?, ?, ?, ?, ?)",
					-1, &statement, NULL);
		if (rc != SQLITE_OK)
			break;
		sqlite3_bind_text(statement, 1, module->path, -1, SQLITE_STATIC);
		sqlite3_bind_text(statement, 2, allocator_kind_name(module->kind), -1,
				  SQLITE_STATIC);
		sqlite3_bind_text(statement, 3, module->version, -1, SQLITE_STATIC);
		sqlite3_bind_text(statement, 4, allocator_linkage_name(module->linkage), -1,
				  SQLITE_STATIC);
		sqlite3_bind_int64(statement, 5, (sqlite3_int64)module->point_count);
		sqlite3_step(statement);
		rc = sqlite3_finalize(statement);
	}
	return rc;
}

static int fill_tables(sqlite3 *database, const struct findings *findings)
{
	sqlite3_stmt *statement = NULL;
	size_t i, k;
	int rc;

	rc = sqlite3_exec(database,
			  "CREATE TABLE feature (name, required, works, detail, since);"
			  "CREATE TABLE point (module, kind, version, function, offset,"
			  " instruction, timed, refusal, symbol, registers, entered, agreed,"
			  " differed);"
			  "CREATE TABLE allocator (module, kind, version, linkage, functions);"
			  "CREATE TABLE privilege (name, need, has, reason, until);",
			  NULL, NULL, NULL);
	for (i = 0; rc == SQLITE_OK && i < findings->feature_count; i++) {
		const struct feature *feature = &findings->features[i];

		rc = sqlite3_prepare_v2(database, "INSERT INTO feature VALUES (?, ?, ?, ?, ?)", -1,
					&statement, NULL);
		if (rc != SQLITE_OK)
			break;
		sqlite3_bind_text(statement, 1, feature->name, -1, SQLITE_STATIC);
		sqlite3_bind_int(statement, 2, feature->required);
		sqlite3_bind_int(statement, 3, feature->works);
		sqlite3_bind_text(statement, 4, feature->detail, -1, SQLITE_STATIC);
		sqlite3_bind_text(statement, 5, feature->source, -1, SQLITE_STATIC);
		sqlite3_step(statement);
		rc = sqlite3_finalize(statement);
	}
	for (i = 0; i < findings->module_count; i++) {
		const struct allocator_module *module = &findings->modules[i];

		for (k = 0; rc == SQLITE_OK && k < module->point_count; k++) {
			const struct probe_point *point = &module->points[k];
			const struct placement *place = &point->place;

			rc = sqlite3_prepare_v2(database,
						"INSERT INTO point VALUES "
						"(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
						-1, &statement, NULL);
			if (rc != SQLITE_OK)
				break;
			sqlite3_bind_text(statement, 1, module->path, -1, SQLITE_STATIC);
			sqlite3_bind_text(statement, 2, allocator_kind_name(module->kind), -1,
					  SQLITE_STATIC);
			sqlite3_bind_text(statement, 3, module->version, -1, SQLITE_STATIC);
			sqlite3_bind_text(statement, 4, fn_name(point->fn), -1, SQLITE_STATIC);
			if (place->found) {
				sqlite3_bind_int(statement, 5, place->offset);
				sqlite3_bind_text(statement, 6, place->instruction, -1,
						  SQLITE_STATIC);
			} else {
				sqlite3_bind_text(statement, 8, place->refusal, -1, SQLITE_STATIC);
			}
			sqlite3_bind_int(statement, 7, place->found && !place->pushed);
			sqlite3_bind_text(statement, 9, point->symbol, -1, SQLITE_STATIC);
			bind_check(statement, point,
				   findings->checks && findings->checks[i].done ?
					   &findings->checks[i].points[k] :
					   NULL);
			sqlite3_step(statement);
			rc = sqlite3_finalize(statement);
		}
	}
	return rc;
}

static int fill_privileges(sqlite3 *database, const struct findings *findings)
{
	static const char *const needs[] = {
		[PRIVILEGE_ALWAYS] = "always",
		[PRIVILEGE_OTHERS] = "others",
		[PRIVILEGE_BETTER] = "better",
	};
	const struct privilege *privileges = findings->privileges;
	sqlite3_stmt *statement = NULL;
	int rc = SQLITE_OK;
	size_t i;

	for (i = 0; rc == SQLITE_OK && i < findings->privilege_count; i++) {
		rc = sqlite3_prepare_v2(database, "INSERT INTO privilege VALUES (?, ?, ?, ?, ?)",
					-1, &statement, NULL);
		if (rc != SQLITE_OK)
			break;
		sqlite3_bind_text(statement, 1, privileges[i].name, -1, SQLITE_STATIC);
		sqlite3_bind_text(statement, 2, needs[privileges[i].need], -1, SQLITE_STATIC);
		sqlite3_bind_int(statement, 3, privileges[i].has);
		sqlite3_bind_text(statement, 4, privileges[i].reason, -1, SQLITE_STATIC);
		sqlite3_bind_text(statement, 5, privileges[i].until, -1, SQLITE_STATIC);
		sqlite3_step(statement);
		rc = sqlite3_finalize(statement);
	}
	return rc;
}

static int fill_loads(sqlite3 *database, const struct findings *findings)
{
	sqlite3_stmt *statement = NULL;
	int rc = sqlite3_exec(database, "CREATE TABLE load (probes, hits_per_s, hit_ns, cost_pct)",
			      NULL, NULL, NULL);
	ssize_t i;

	for (i = 0; rc == SQLITE_OK && i < findings->load_count; i++) {
		const struct probe_load *load = &findings->loads[i];

		rc = sqlite3_prepare_v2(database, "INSERT INTO load VALUES (?, ?, ?, ?)", -1,
					&statement, NULL);
		if (rc != SQLITE_OK)
			break;
		sqlite3_bind_text(statement, 1, load->probes, -1, SQLITE_STATIC);
		sqlite3_bind_double(statement, 2, load->hits_per_s);
		sqlite3_bind_double(statement, 3, load->hit_ns);
		sqlite3_bind_double(statement, 4, load->cost_pct);
		sqlite3_step(statement);
		rc = sqlite3_finalize(statement);
	}
	return rc;
}

static int fill_slow(sqlite3 *database, const struct findings *findings)
{
	int rc = slow_tables(database);

	for (size_t i = 0; rc == SQLITE_OK && i < findings->module_count; i++)
		rc = slow_fill(database, &findings->slow[i], &findings->modules[i],
			       &findings->prices);
	return rc;
}

static int print_json(const struct doctor_options *options, const struct findings *findings)
{
	static const char query[] =
		"SELECT json_object('format', 1, 'works', json(iif(?1, 'true', 'false')),"
		" 'version', ?2, 'kernel', ?3, 'pid', ?4,"
		" 'features', (SELECT json_group_array(json_object('name', name,"
		"   'required', json(iif(required, 'true', 'false')),"
		"   'works', json(iif(works, 'true', 'false')), 'detail', detail, 'since', since))"
		"   FROM feature),"
		" 'capabilities', (SELECT json_group_array(json_object('name', name, 'need', need,"
		"   'has', json(iif(has, 'true', 'false')), 'reason', reason, 'until', until))"
		"   FROM privilege),"
		" 'allocators', (SELECT json_group_array(json_object('module', module, 'kind', kind,"
		"   'version', version, 'linkage', linkage, 'functions', functions)) FROM allocator),"
		" 'probes', (SELECT json_group_array(json_object('module', module, 'kind', kind,"
		"   'version', version, 'function', function, 'symbol', symbol, 'offset', offset,"
		"   'instruction', instruction, 'timed', json(iif(timed, 'true', 'false')),"
		"   'refusal', refusal, 'registers', registers, 'entered', entered, 'agreed', agreed,"
		"   'differed', differed, 'slow', json(" SLOW_JSON "))) FROM point),"
		" 'load', iif(?5, (SELECT json_group_array(json_object('probes', probes,"
		"   'hits_per_s', ROUND(hits_per_s, 1), 'hit_ns', ROUND(hit_ns, 1),"
		"   'cost_pct', ROUND(cost_pct, 3))) FROM load), NULL))";
	sqlite3 *database = NULL;
	sqlite3_stmt *statement = NULL;
	struct utsname machine;
	int status = STATUS_FAILED;

	uname(&machine);
	if (sqlite3_open(":memory:", &database) == SQLITE_OK &&
	    fill_tables(database, findings) == SQLITE_OK &&
	    fill_allocators(database, findings) == SQLITE_OK &&
	    fill_loads(database, findings) == SQLITE_OK &&
	    fill_privileges(database, findings) == SQLITE_OK &&
	    fill_slow(database, findings) == SQLITE_OK &&
	    sqlite3_prepare_v2(database, query, -1, &statement, NULL) == SQLITE_OK) {
		sqlite3_bind_int(statement, 1, findings->works);
		sqlite3_bind_text(statement, 2, memtoll_version, -1, SQLITE_STATIC);
		sqlite3_bind_text(statement, 3, machine.release, -1, SQLITE_STATIC);
		sqlite3_bind_int(statement, 4, options->pid);
		sqlite3_bind_int(statement, 5, findings->load_count >= 0);
		if (sqlite3_step(statement) == SQLITE_ROW) {
			puts((const char *)sqlite3_column_text(statement, 0));
			status = STATUS_DONE;
		}
	}
	if (status)
		message("cannot make the JSON object: %s", sqlite3_errmsg(database));
	sqlite3_finalize(statement);
	sqlite3_close(database);
	return status;
}

/* Of this container, whatever it may. Exit status. */
static int show_ci(bool json)
{
	g_autoptr(GPtrArray) lacks = ci_find();

	if (ci_print(lacks, json))
		return STATUS_FAILED;
	return ci_works(lacks) ? STATUS_DONE : STATUS_UNSUPPORTED;
}

int cli_doctor(int argc, char **argv)
{
	const struct argp argp = {
		.options = argp_options,
		.parser = parse_option,
		.doc = "Say what this kernel and an allocator allow. Exit status 1 if nothing "
		       "works; of --ci: 3 if something is missing without which nothing is traced."
		       "\vExamples:\n  memtoll doctor\n  memtoll doctor -p 1234\n  memtoll doctor --ci\n",
	};
	struct doctor_options options = { .pid = getpid() };
	struct findings findings = { .works = true, .load_count = -1 };
	size_t i;
	int status;

	if (parse_arguments(&argp, argc, argv, &options))
		return STATUS_USAGE;
	if (options.ci)
		return show_ci(options.json);
	findings.privilege_count = privileges_list(findings.privileges, PRIVILEGES_MAX);
	status = check_privileges();
	if (!status && options.pid != getpid())
		status = check_privileges_for(options.pid);
	if (!status)
		status = find_allocators(options.pid, &findings);
	if (status)
		goto out;
	findings.feature_count = features_find(findings.features, FEATURES_MAX);
	for (i = 0; i < findings.feature_count; i++)
		findings.works &= findings.features[i].works || !findings.features[i].required;
	if (options.pid != getpid() && findings.works)
		check_values(options.pid, &findings);
	if (options.pid != getpid() && findings.works)
		findings.load_count = probe_loads_measure(options.pid, findings.loads,
							  DOCTOR_LOADS_MAX, &findings.prices);
	if (options.json)
		status = print_json(&options, &findings);
	else
		print_text(&options, &findings);
	if (!status && (fflush(stdout) || ferror(stdout))) {
		message("cannot write to standard output");
		status = STATUS_FAILED;
	}
	if (!status && !findings.works)
		status = STATUS_FAILED;
out:
	g_free(findings.checks);
	g_free(findings.slow);
	allocator_modules_free(findings.modules, findings.module_count);
	maps_free(&findings.maps);
	return status;
}
