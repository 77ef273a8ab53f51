// SPDX-License-Identifier: GPL-2.0
#include "gate/bounds.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "base/options.h"
#include "base/text.h"
#include "gate/toml_file.h"

#define KIB 1024.0
/* A budget is written by hand. */
#define FILE_MOST (1 << 20)
/* A bound that holds nothing is a slip; a double counts to the second one by one. */
#define FACTOR_MOST 1e9
#define AMOUNT_MOST 9007199254740992.0

#define FAULTS (GATE_FAULTS | GATE_MAPPINGS) /* MAP_POPULATE and mlock fault inside a call */

/* In the order of view toll_kind. */
const struct gate_toll gate_tolls[] = {
	{ "zero.kernel", "zeroing", FAULTS, GATE_FAULT | GATE_BY_KERNEL, 0.02, 64, 256 * KIB, 0,
	  0 },
	{ "zero.libc", "zeroing", GATE_ALLOC, 0, 0.005, 4, 64 * KIB, 0, KIB },
	{ "zero.app", "zeroing", GATE_SAMPLES, GATE_SAMPLED, 0, 0, 0, 0, 0 },
	{ "swap.in", "swap", FAULTS, GATE_FAULT, 0, 0, 0, 0, 0 },
	{ "swap.out", "swap", GATE_FAULTS, 0, 0, 0, 0, 0, 0 },
	{ "reclaim", "swap", FAULTS, 0, 0, 0, 0, 0, 0 },
	{ "cow", "cow", FAULTS, GATE_FAULT | GATE_BY_KERNEL, 0.02, 64, 256 * KIB, 0, 0 },
	{ "file.fault", "file", FAULTS, GATE_FAULT, 0, 0, 0, 0, 0 },
	{ "file.read", "file", GATE_READS, 0, 0.005, 4, 64 * KIB, 2, 4 * KIB },
	{ "fault.user", "userfault", FAULTS, GATE_FAULT, 0, 0, 0, 0, 0 },
	{ "fault.other", "other", FAULTS, GATE_FAULT, 0, 0, 0, 0, 0 },
	{ "alloc", "allocator", GATE_ALLOC, 0, 0.005, 16, 64 * KIB, 16, 4 * KIB },
	/* bytes: address space, of which threads take more or less to align it */
	{ "map", "mapping", GATE_MAPPINGS, GATE_BY_KERNEL, 0.02, 16, 0, 0, 0 },
	{ "copy.app", "compute", GATE_SAMPLES, GATE_SAMPLED, 0, 0, 0, 0, 0 },
	{ "compute", "compute", GATE_SAMPLES, GATE_SAMPLED, 0, 0, 0, 0, 0 },
};
const size_t gate_toll_count = G_N_ELEMENTS(gate_tolls);

static const struct gate_toll *find_toll(const char *name)
{
	size_t i;

	for (i = 0; i < gate_toll_count; i++)
		if (!strcmp(gate_tolls[i].name, name))
			return &gate_tolls[i];
	return NULL;
}

static bool is_family(const char *name)
{
	size_t i;

	for (i = 0; i < gate_toll_count; i++)
		if (!strcmp(gate_tolls[i].family, name))
			return true;
	return false;
}

static void bound_free(void *data)
{
	struct bound *bound = data;

	g_free(bound->name);
	g_free(bound->pattern);
	g_free(bound->of);
	g_free(bound->said);
	g_free(bound);
}

static struct bounds *bounds_new(const char *path)
{
	struct bounds *budget = g_new0(struct bounds, 1);

	budget->path = g_strdup(path);
	budget->list = g_ptr_array_new_with_free_func(bound_free);
	return budget;
}

void bounds_free(struct bounds *budget)
{
	if (!budget)
		return;
	g_ptr_array_unref(budget->list);
	g_free(budget->path);
	g_free(budget);
}

/* ---- what a bound is on ---- */

/* "zero", "libc": joined by dots. */
static char *join(char *const *keys, size_t count)
{
	GString *text = g_string_new(NULL);
	size_t i;

	for (i = 0; i < count; i++)
		g_string_append_printf(text, "%s%s", i ? "." : "", keys[i]);
	return g_string_free(text, FALSE);
}

/* As TOML has it: what is no bare key is quoted. */
static char *written(char *const *keys)
{
	GString *text = g_string_new(NULL);
	size_t i;

	for (i = 0; keys[i]; i++) {
		bool bare = *keys[i] && strspn(keys[i], G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS
					       "_-") == strlen(keys[i]);

		g_string_append_printf(text, bare ? "%s%s" : "%s\"%s\"", i ? "." : "", keys[i]);
	}
	return g_string_free(text, FALSE);
}

/* Tolls whose events are calls. */
static bool has_calls(const struct bound *bound)
{
	static const char *const called[] = { "alloc",	   "map",     "zero.libc", "file.read",
					      "allocator", "mapping", NULL };

	return g_strv_contains(called, bound->of);
}

static bool take_metric(const char *word, struct bound *bound)
{
	if (!strcmp(word, "count") || (!strcmp(word, "calls") && has_calls(bound)))
		bound->metric = GATE_COUNT;
	else if (!strcmp(word, "bytes"))
		bound->metric = GATE_BYTES;
	else if (!strcmp(word, "time"))
		bound->metric = GATE_TIME;
	else
		return false;
	return true;
}

/* keys: a toll or a family, and what of it. Why not, freed by g_free(), or NULL. */
static char *take_what(char *const *keys, struct bound *bound)
{
	size_t count = g_strv_length((char **)keys);
	g_autofree char *name = NULL;
	const struct gate_toll *toll;

	if (count < 2)
		return g_strdup("say what is bounded: zero.libc.bytes, alloc.calls, faults.count");
	name = join(keys, count - 1);
	toll = find_toll(name);
	bound->of = g_strdup("");
	if (!strcmp(name, "faults")) {
		bound->scope = GATE_ALL_FAULTS;
	} else if (!strcmp(name, "observed")) {
		bound->scope = GATE_OBSERVED;
	} else if (!strcmp(keys[0], "family") && count == 3 && is_family(keys[1])) {
		bound->scope = GATE_FAMILY;
		g_free(bound->of);
		bound->of = g_strdup(keys[1]);
	} else if (toll) {
		bound->scope = GATE_TOLL;
		g_free(bound->of);
		bound->of = g_strdup(name);
	} else {
		return g_strdup_printf("'%s' is no toll; memtoll report --full names them", name);
	}
	if (!take_metric(keys[count - 1], bound))
		return g_strdup_printf("'%s' is not count, bytes or time%s", keys[count - 1],
				       has_calls(bound) ? ", or calls" : "");
	if (bound->metric == GATE_TIME) {
		if (bound->scope == GATE_ALL_FAULTS)
			return g_strdup("faults have their time in their tolls: zero.kernel.time");
		if (bound->pattern)
			return g_strdup("of a site there are counts and bytes, and no time");
		return NULL;
	}
	if ((toll && (toll->flags & GATE_SAMPLED)) || !strcmp(bound->of, "compute"))
		return g_strdup_printf("%s is an estimate of samples, which no bound can be held "
				       "against; bound what is counted",
				       name);
	if (bound->scope == GATE_OBSERVED)
		return g_strdup("of all that was observed there is a time, and no count");
	return NULL;
}

/* ---- how much it may be ---- */

/* "10 MiB", "12", "20 ms": in bytes, events or seconds. */
static bool take_amount(const char *text, enum gate_metric metric, double *value)
{
	g_auto(GStrv) words = g_strsplit(text, " ", -1);
	g_autofree char *joined = g_strjoinv("", words);
	uint64_t whole;

	if (metric == GATE_TIME) {
		if (!parse_duration(joined, &whole) || !g_ascii_isalpha(joined[strlen(joined) - 1]))
			return false;
		*value = whole / 1e9;
		return true;
	}
	if (metric == GATE_BYTES ?
		    !parse_size(joined, &whole) :
		    !g_ascii_string_to_unsigned(joined, 10, 0, G_MAXINT64, &whole, NULL))
		return false;
	*value = whole;
	return true;
}

/* "1.05 x ", "2*": before "baseline". */
static bool take_factor(const char *text, double *factor)
{
	g_autofree char *number = g_strchomp(g_strdup(text));
	char *end;

	if (!*number) {
		*factor = 1;
		return true;
	}
	if (!g_ascii_isdigit(*number))
		return false;
	*factor = g_ascii_strtod(number, &end);
	while (*end == ' ')
		end++;
	return (!strcmp(end, "x") || !strcmp(end, "*")) && *factor > 0 && isfinite(*factor);
}

/* One of what is added up. */
static bool take_term(const char *text, struct bound *bound)
{
	double value;
	char *end;

	if (g_str_has_suffix(text, "baseline")) {
		g_autofree char *before = g_strndup(text, strlen(text) - strlen("baseline"));

		return !bound->factor && take_factor(before, &bound->factor);
	}
	if (g_str_has_suffix(text, "%") && bound->factor && g_ascii_isdigit(*text)) {
		value = g_ascii_strtod(text, &end);
		while (*end == ' ')
			end++;
		bound->factor += value / 100;
		return !strcmp(end, "%") && isfinite(value);
	}
	if (!take_amount(text, bound->metric, &value))
		return false;
	bound->more += value;
	return true;
}

static bool take_sum(const char *text, struct bound *bound)
{
	g_autofree char *all = g_strstrip(g_strdup(text));
	g_auto(GStrv) terms = NULL;
	size_t i;

	if (g_str_has_prefix(all, "<="))
		memset(all, ' ', 2);
	g_strstrip(all);
	bound->said = g_strdup(all);
	terms = g_strsplit(all, "+", -1);
	for (i = 0; terms[i]; i++)
		if (!take_term(g_strstrip(terms[i]), bound))
			return false;
	return i > 0 && bound->factor <= FACTOR_MOST && bound->more <= AMOUNT_MOST;
}

static char *take_value(const struct toml_value *value, struct bound *bound)
{
	static const char *const like[] = {
		[GATE_COUNT] = "1000, \"baseline\", \"1.05 x baseline\", \"baseline + 5 % + 16\"",
		[GATE_BYTES] =
			"\"10 MiB\", \"baseline\", \"1.05 x baseline\", \"baseline + 4 KiB\"",
		[GATE_TIME] = "\"20 ms\", \"1.1 x baseline\"",
	};
	g_autofree char *number = g_strdup_printf("%" G_GINT64_FORMAT, value->number);
	const char *text = value->kind == TOML_TEXT ? value->text : number;

	if (value->kind != TOML_OTHER && take_sum(text, bound)) {
		if (bound->metric != GATE_TIME || !bound->factor || !bound->more)
			return NULL;
		return g_strdup("a time is bounded by a time or by a multiple of the baseline's, "
				"not by both");
	}
	return g_strdup_printf("%s%s%s is no bound; like %s", value->kind == TOML_OTHER ? "" : "'",
			       value->kind == TOML_OTHER ? "that" : text,
			       value->kind == TOML_OTHER ? "" : "'", like[bound->metric]);
}

/* ---- the file ---- */

static char *take_bound(const struct toml_value *value, struct bounds *budget)
{
	struct bound *bound = g_new0(struct bound, 1);
	char *const *keys = value->keys;
	char *wrong;

	g_ptr_array_add(budget->list, bound);
	bound->line = value->line;
	bound->name = written(keys);
	if (!strcmp(keys[0], "site")) {
		if (!keys[1] || !*keys[1])
			return g_strdup("a site has a pattern: site.\"parse_*\".alloc.calls");
		bound->pattern = g_strdup(keys[1]);
		keys += 2;
	}
	wrong = take_what(keys, bound);
	return wrong ? wrong : take_value(value, bound);
}

static bool take_all(const char *text, size_t length, struct bounds *budget)
{
	g_autofree char *wrong = NULL;
	g_autoptr(GPtrArray) values = NULL;
	const char *name = "";
	unsigned int line = 0;
	guint i;

	values = toml_values(text, length, &wrong, &line);
	for (i = 0; values && !wrong && i < values->len; i++) {
		const struct toml_value *value = g_ptr_array_index(values, i);

		line = value->line;
		wrong = take_bound(value, budget);
		name = ((struct bound *)g_ptr_array_index(budget->list, i))->name;
	}
	if (wrong) {
		g_autofree char *all = g_strdup_printf("%s:%u: %s%s%s", budget->path, line, name,
						       *name ? ": " : "", wrong);
		g_autofree char *shown = text_printable(all);

		message("gate: %s", shown);
		return false;
	}
	if (!budget->list->len)
		message("gate: %s has no bound; memtoll gate --init writes some", budget->path);
	return budget->list->len > 0;
}

/* Of what may be a pipe, or have no end, no more than a budget has. NULL after one message. */
static char *read_budget(const char *path, size_t *length)
{
	FILE *file = fopen(path, "re");
	char *text = g_malloc(FILE_MOST + 1);
	int err = file ? 0 : errno;

	if (file) {
		*length = fread(text, 1, FILE_MOST + 1, file);
		err = ferror(file) ? errno : 0;
		fclose(file);
	}
	if (!err && *length <= FILE_MOST)
		return text;
	if (err)
		message("gate: cannot read the budget %s: %s", path, strerror(err));
	else
		message("gate: %s is larger than 1 MiB: that is no budget", path);
	g_free(text);
	return NULL;
}

struct bounds *bounds_read(const char *path)
{
	struct bounds *budget = bounds_new(path);
	size_t length = 0;
	g_autofree char *text = read_budget(path, &length);

	if (text && take_all(text, length, budget))
		return budget;
	bounds_free(budget);
	return NULL;
}

static void add_usual(struct bounds *budget, const struct gate_toll *toll, enum gate_metric metric)
{
	struct bound *bound = g_new0(struct bound, 1);
	double more = metric == GATE_BYTES ? toll->bytes : toll->events;
	char number[64];

	bound->of = g_strdup(toll->name);
	bound->metric = metric;
	bound->factor = 1 + toll->part;
	bound->more = more;
	bound->name = g_strdup_printf("%s.%s", toll->name, bound_metric_name(bound));
	if (metric == GATE_BYTES)
		format_bytes(number, sizeof(number), more);
	else
		format_count(number, sizeof(number), more);
	bound->said = g_strdup_printf("baseline + %g %% + %s", 100 * toll->part, number);
	g_ptr_array_add(budget->list, bound);
}

struct bounds *bounds_usual(void)
{
	struct bounds *budget = bounds_new(NULL);
	size_t i;

	for (i = 0; i < gate_toll_count; i++) {
		if (gate_tolls[i].events)
			add_usual(budget, &gate_tolls[i], GATE_COUNT);
		if (gate_tolls[i].bytes)
			add_usual(budget, &gate_tolls[i], GATE_BYTES);
	}
	return budget;
}

static bool is_of(const struct bound *bound, const struct gate_toll *toll)
{
	switch (bound->scope) {
	case GATE_TOLL:
		return !strcmp(bound->of, toll->name);
	case GATE_FAMILY:
		return !strcmp(bound->of, toll->family);
	case GATE_ALL_FAULTS:
		return toll->flags & GATE_FAULT;
	default:
		return true;
	}
}

unsigned int bounds_probes(const struct bounds *budget)
{
	unsigned int probes = 0;
	size_t k;
	guint i;

	for (i = 0; i < budget->list->len; i++) {
		const struct bound *bound = g_ptr_array_index(budget->list, i);

		/* What one toll takes is known where the others are. */
		if (bound->metric == GATE_TIME)
			return GATE_ALL;
		for (k = 0; k < gate_toll_count; k++)
			if (is_of(bound, &gate_tolls[k]) && !(gate_tolls[k].flags & GATE_SAMPLED))
				probes |= gate_tolls[k].probes;
		/* The site of a fault may be where its block was allocated. */
		if (bound->pattern && probes & GATE_FAULTS)
			probes |= GATE_ALLOC;
	}
	return probes;
}

const struct bound *bounds_against_baseline(const struct bounds *budget)
{
	guint i;

	for (i = 0; i < budget->list->len; i++) {
		const struct bound *bound = g_ptr_array_index(budget->list, i);

		if (bound->factor)
			return bound;
	}
	return NULL;
}

const struct bound *bounds_on_time(const struct bounds *budget)
{
	guint i;

	for (i = 0; i < budget->list->len; i++) {
		const struct bound *bound = g_ptr_array_index(budget->list, i);

		if (bound->metric == GATE_TIME)
			return bound;
	}
	return NULL;
}

const char *bound_metric_name(const struct bound *bound)
{
	if (bound->metric == GATE_TIME)
		return "time";
	if (bound->metric == GATE_BYTES)
		return "bytes";
	return has_calls(bound) ? "calls" : "count";
}
