// SPDX-License-Identifier: GPL-2.0
/* targets_places.c: whether an allocator is probed at its entries, or past its threads' caches. */
#include "targets/targets_internal.h"

#include <stdarg.h>

#include "base/message.h"
#include "events/names.h"
#include "probes/slow_places.h"
#include "recording/allocator_record.h"
#include "recording/recording.h"

/* Once for each allocator, and only where it was asked for. NULL. */
__attribute__((format(printf, 3, 4))) static const struct slow_places *stays(
	struct targets *targets, const struct allocator_module *module, const char *format, ...)
{
	g_autofree char *reason = NULL;
	va_list args;

	if (targets->config.place != PLACE_SLOW || !module->point_count ||
	    !g_hash_table_add(targets->stay, (gpointer)module))
		return NULL;
	va_start(args, format);
	reason = g_strdup_vprintf(format, args);
	va_end(args);
	message("%s is probed at the entries of its functions: %s", module->path, reason);
	return NULL;
}

static const struct slow_places *places_of(struct targets *targets, pid_t pid,
					   const struct allocator_module *module)
{
	struct slow_places *places = g_hash_table_lookup(targets->slow_places, module);

	if (places)
		return places;
	places = g_new0(struct slow_places, 1);
	slow_places_find(targets->config.bpf, module, pid, &targets->slow_number, places);
	g_hash_table_insert(targets->slow_places, (gpointer)module, places);
	if (places->found[FN_MALLOC] != places->found[FN_FREE])
		stays(targets, module, "%s only, since %s",
		      places->found[FN_MALLOC] ? "free" : "malloc", places->refusal);
	return places;
}

const struct slow_places *targets_places(struct targets *targets, pid_t pid,
					 const struct allocator_module *module, size_t *cached)
{
	const struct slow_places *places;
	g_autofree char *tunables = NULL;

	if (targets->config.place == PLACE_ENTRY || !targets->config.uprobes)
		return NULL;
	if (module->kind != ALLOCATOR_GLIBC)
		return stays(targets, module, "it is not glibc's");
	tunables = tunables_read(pid);
	*cached = slow_places_cached(tunables);
	if (targets->config.min_size <= *cached)
		return stays(targets, module,
			     "its threads may cache blocks of %zu bytes, and --min-size is %lu",
			     *cached, (unsigned long)targets->config.min_size);
	places = places_of(targets, pid, module);
	if (!places->found[FN_MALLOC] && !places->found[FN_FREE])
		return stays(targets, module, "%s", places->refusal);
	return places;
}

int attached_record_places(struct targets *targets, pid_t pid, const struct attached *attached)
{
	static const enum memtoll_fn functions[] = { FN_MALLOC, FN_FREE };
	int err = 0;

	for (size_t i = 0; i < G_N_ELEMENTS(functions) && attached->slow && !err; i++) {
		enum memtoll_fn fn = functions[i];

		if (attached->slow->found[fn] && !attached->unprobed)
			err = recording_past_cache(targets->config.recording, pid,
						   attached->module->path, fn_name(fn),
						   attached->cached, attached->slow->timed[fn]);
	}
	return err;
}

/* frame: a return address in the process; the call before it may be the last of its function. */
static unsigned int fn_returned_to(const struct attached *attached, uint64_t frame)
{
	static const enum memtoll_fn functions[] = { FN_MALLOC, FN_FREE };
	uint64_t at = frame - 1 - attached->code_start + attached->code_offset;

	if (!attached->slow || frame <= attached->code_start || frame > attached->code_end)
		return FN_NONE;
	for (size_t i = 0; i < G_N_ELEMENTS(functions); i++) {
		const struct slow_code *code = attached->slow->code[functions[i]];

		for (size_t k = 0; k < G_N_ELEMENTS(attached->slow->code[0]); k++)
			if (at >= code[k].start && at < code[k].end)
				return functions[i];
	}
	return FN_NONE;
}

bool targets_have_past_cache(const struct targets *targets, pid_t pid)
{
	const struct followed *followed = followed_get(targets, pid);

	for (guint i = 0; followed && i < followed->attached->len; i++)
		if (((const struct attached *)g_ptr_array_index(followed->attached, i))->slow)
			return true;
	return false;
}

unsigned int targets_past_cache(const struct targets *targets, pid_t pid, const __u64 *frames,
				size_t count)
{
	const struct followed *followed = followed_get(targets, pid);
	unsigned int fn = FN_NONE;

	for (guint i = 0; followed && i < followed->attached->len && !fn; i++)
		for (size_t k = 1; k < count && !fn; k++)
			fn = fn_returned_to(g_ptr_array_index(followed->attached, i), frames[k]);
	return fn;
}
