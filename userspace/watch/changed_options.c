// SPDX-License-Identifier: GPL-2.0
#include "watch/changed_options.h"

#include <string.h>

#include "watch/trigger.h"

static void name(GString *names, const char *option, bool changed)
{
	if (changed)
		g_string_append_printf(names, "%s%s", names->len ? ", " : "", option);
}

static bool differ(const char *a, const char *b)
{
	return g_strcmp0(a, b) != 0;
}

static void name_tracing(GString *names, const struct session_config *now,
			 const struct session_config *fresh)
{
	name(names, "--slice", now->slice_ns != fresh->slice_ns);
	name(names, "--probes", differ(now->probes, fresh->probes));
	name(names, "--min-size", now->min_size != fresh->min_size);
	name(names, "--place", now->place != fresh->place);
	name(names, "--sample", now->sample != fresh->sample);
	name(names, "--overhead-limit",
	     differ(now->overhead_limit_text, fresh->overhead_limit_text));
	name(names, "--buffer", now->buffer_bytes != fresh->buffer_bytes);
	name(names, "--redact", now->redact != fresh->redact);
}

static bool listens_elsewhere(const struct watch_config *now, const struct watch_config *fresh)
{
	if (now->listens != fresh->listens)
		return true;
	return now->listens &&
	       (now->listen.length != fresh->listen.length ||
		memcmp(&now->listen.socket, &fresh->listen.socket, now->listen.length) != 0);
}

static guint find(const GPtrArray *triggers, const char *text)
{
	guint i = 0;

	while (i < triggers->len && differ(trigger_text(triggers->pdata[i]), text))
		i++;
	return i;
}

/* What stays is exchanged for what is the same. True: something has changed. */
static bool take_triggers(GPtrArray *now, GPtrArray *fresh)
{
	bool changed = now->len != fresh->len;
	gpointer same;
	guint i, k;

	for (i = 0; i < fresh->len; i++) {
		k = find(now, trigger_text(fresh->pdata[i]));
		changed |= k == now->len;
		if (k == now->len)
			continue;
		same = now->pdata[k];
		now->pdata[k] = fresh->pdata[i];
		fresh->pdata[i] = same;
	}
	return changed;
}

static void name_restart(GString *names, const struct watch_config *now,
			 const struct watch_config *fresh)
{
	name(names, "-o", differ(now->directory, fresh->directory));
	name(names, "--listen", listens_elsewhere(now, fresh));
	name(names, "--places", now->places != fresh->places);
	name(names, "-d", now->session.duration_ns != fresh->session.duration_ns);
}

struct changed_options changed_options_take(struct watch_config *now, struct watch_config *fresh)
{
	struct changed_options changed = { g_string_new(""), g_string_new("") };
	const bool targets = target_set_become(now->targets, fresh->targets);
	const uint64_t duration_ns = now->session.duration_ns;
	GPtrArray *triggers = now->triggers;

	name(changed.taken, "-n, -c", targets);
	name(changed.taken, "--rotate", now->rotate_ns != fresh->rotate_ns);
	name(changed.taken, "--keep", now->keep_bytes != fresh->keep_bytes);
	name(changed.taken, "-I", now->interval_ns != fresh->interval_ns);
	name_tracing(changed.taken, &now->session, &fresh->session);
	name(changed.taken, "--metrics", differ(now->metrics_path, fresh->metrics_path));
	name(changed.taken, "--json", differ(now->json_path, fresh->json_path));
	name(changed.taken, "--when", take_triggers(now->triggers, fresh->triggers));
	name(changed.taken, "--detail-for", now->detail_most_ns != fresh->detail_most_ns);
	name(changed.taken, "--detail-pause", now->detail_pause_ns != fresh->detail_pause_ns);
	name(changed.taken, "--detail-limit",
	     differ(now->detailed.overhead_limit_text, fresh->detailed.overhead_limit_text));
	name_restart(changed.restart, now, fresh);
	now->session = fresh->session;
	now->session.duration_ns = duration_ns;
	now->detailed = fresh->detailed;
	now->rotate_ns = fresh->rotate_ns;
	now->keep_bytes = fresh->keep_bytes;
	now->interval_ns = fresh->interval_ns;
	now->metrics_path = fresh->metrics_path;
	now->json_path = fresh->json_path;
	now->triggers = fresh->triggers;
	fresh->triggers = triggers;
	now->detail_most_ns = fresh->detail_most_ns;
	now->detail_pause_ns = fresh->detail_pause_ns;
	return changed;
}

void changed_options_clear(struct changed_options *changed)
{
	g_string_free(changed->taken, TRUE);
	g_string_free(changed->restart, TRUE);
}
