// SPDX-License-Identifier: GPL-2.0
#include "recording/allocator_record.h"

#include <glib.h>
#include <string.h>

#include "events/names.h"
#include "host/proc.h"
#include "host/target_memory.h"

/* Prefixes of variables, and whose they are: ALLOCATOR_UNKNOWN stands for any. */
static const struct {
	const char *prefix;
	enum allocator_kind kind;
} variables[] = {
	{ "GLIBC_TUNABLES=", ALLOCATOR_GLIBC }, { "MALLOC_CONF=", ALLOCATOR_JEMALLOC },
	{ "MALLOC_", ALLOCATOR_GLIBC }, /* mallopt(3) */
	{ "TCMALLOC_", ALLOCATOR_TCMALLOC },	{ "MIMALLOC_", ALLOCATOR_MIMALLOC },
};

/* Index of the variable's prefix, or the number of prefixes. */
static size_t variable_index(const char *variable)
{
	const char *conf = strstr(variable, "MALLOC_CONF=");
	size_t i = 0;

	/* jemalloc with a prefix of its own has it in the variable, too: JE_MALLOC_CONF. */
	if (conf && conf < strchr(variable, '='))
		return 1;
	while (i < G_N_ELEMENTS(variables) && !g_str_has_prefix(variable, variables[i].prefix))
		i++;
	return i;
}

char *tunables_read(pid_t pid)
{
	g_autoptr(GString) environment = g_string_new(NULL);
	GString *found = g_string_new(NULL);
	bool tunables = false;
	gsize at;

	target_memory_file(pid, "environ", PROC_ENVIRONMENT_MAX, environment);
	for (at = 0; at < environment->len; at += strlen(environment->str + at) + 1) {
		const char *variable = environment->str + at;

		/* The loader ends each of the tunables with a NUL where the colon was. */
		if (tunables && g_str_has_prefix(variable, "glibc.")) {
			g_string_append_printf(found, ":%s", variable);
			continue;
		}
		tunables = g_str_has_prefix(variable, "GLIBC_TUNABLES=");
		if (variable_index(variable) < G_N_ELEMENTS(variables))
			g_string_append_printf(found, "%s%s", found->len ? " " : "", variable);
	}
	return g_string_free(found, FALSE);
}

/* Of the settings those that this kind of allocator reads. Freed by the caller. */
static char *tunables_of(const char *tunables, enum allocator_kind kind)
{
	g_auto(GStrv) words = g_strsplit(tunables ? tunables : "", " ", -1);
	GString *found = g_string_new(NULL);

	for (size_t i = 0; words[i]; i++) {
		size_t which = variable_index(words[i]);

		/* The rest of a value with blanks belongs to what came before. */
		if (which < G_N_ELEMENTS(variables) && kind != ALLOCATOR_UNKNOWN &&
		    variables[which].kind != kind)
			continue;
		g_string_append_printf(found, "%s%s", found->len ? " " : "", words[i]);
	}
	return g_string_free(found, FALSE);
}

/* "malloc+0 calloc+0 free+3", and what was refused with the reason. */
static void describe_points(const struct allocator_module *module, GString *probed,
			    GString *refused)
{
	size_t i;

	for (i = 0; i < module->point_count; i++) {
		const struct probe_point *point = &module->points[i];

		if (point->place.found)
			g_string_append_printf(probed, "%s%s+%u%s", probed->len ? " " : "",
					       point->symbol, point->place.offset,
					       point->place.pushed ? " (entry only)" : "");
		else
			g_string_append_printf(refused, "%s%s: %s", refused->len ? "; " : "",
					       point->symbol, point->place.refusal);
	}
}

/* Setting any of these in the environment switches the dynamic threshold off (mallopt(3)). */
static bool pins_threshold(const char *tunables)
{
	static const char *const names[] = {
		"malloc.mmap_threshold", "malloc.trim_threshold",  "malloc.top_pad",
		"malloc.mmap_max",	 "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_",
		"MALLOC_TOP_PAD_",	 "MALLOC_MMAP_MAX_",
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(names); i++)
		if (strstr(tunables, names[i]))
			return true;
	return false;
}

int allocator_record(struct recording *recording, pid_t pid, const struct allocator_module *module,
		     enum allocator_linkage linkage, const char *unprobed,
		     const struct bounds *threshold, bool pinned, const char *tunables)
{
	bool glibc = module->kind == ALLOCATOR_GLIBC;
	GString *probed = g_string_new(NULL), *refused = g_string_new(NULL);
	g_autofree char *own = tunables_of(tunables, module->kind);
	size_t i;
	int err;

	if (!unprobed)
		describe_points(module, probed, refused);
	err = recording_allocator(
		recording, &(struct allocator_fact){
				   .pid = pid,
				   .module = module->path,
				   .kind = allocator_kind_name(module->kind),
				   .version = module->version,
				   .functions = probed->str,
				   .refused = refused->str,
				   .mmap_threshold_low =
					   glibc && threshold->low ? (int64_t)threshold->low : -1,
				   .mmap_threshold_high = glibc && threshold->high != UINT64_MAX ?
								  (int64_t)threshold->high :
								  -1,
				   .dynamic = glibc ? !pinned && !pins_threshold(own) : -1,
				   .tunables = own,
				   .linkage = allocator_linkage_name(linkage),
			   });
	for (i = 0; i < module->point_count && !err; i++) {
		const struct probe_point *point = &module->points[i];
		bool probed_here = point->place.found && !unprobed;

		err = recording_allocator_probe(
			recording, &(struct allocator_probe_fact){
					   .pid = pid,
					   .module = module->path,
					   .symbol = point->symbol,
					   .call = fn_name(point->fn),
					   .offset = probed_here ? (int)point->place.offset : -1,
					   .instruction = point->place.instruction,
					   .timed = probed_here && !point->place.pushed,
					   .refusal = unprobed ? unprobed : point->place.refusal,
				   });
	}
	g_string_free(probed, TRUE);
	g_string_free(refused, TRUE);
	return err;
}
