// SPDX-License-Identifier: GPL-2.0
/*
 * Which allocators targets have mapped, and their probes; the rest of the targets is in targets.c.
 * In the order of a process's life: files are scanned, probed, and detached.
 */
#include "targets/targets_internal.h"

#include <errno.h>
#include <glib.h>
#include <string.h>

#include "allocators/glibc_params.h"
#include "base/message.h"
#include "host/seccomp.h"
#include "recording/allocator_record.h"

/* Allocators of a process that are probed; two are many. */
#define MODULES_MAX 32
/* Files that hold one, of all processes together. */
#define MODULES_ALL_MAX 1024

void attached_free(gpointer data)
{
	struct attached *attached = data;
	int group;

	for (group = GROUP_PAIR; group < PROBE_GROUPS; group++)
		uprobe_detach_aside(attached->groups[group]);
	g_free(attached);
}

void scan_free(gpointer data)
{
	struct scan *scan = data;

	allocator_modules_free(scan->modules, scan->count);
	g_free(scan);
}

static char *module_key(const struct mapping *mapping)
{
	return g_strdup_printf("%u:%u:%lu", mapping->dev_major, mapping->dev_minor,
			       (unsigned long)mapping->inode);
}

/* Scanned, and not written over since. */
static bool is_known(const struct targets *targets, const char *key)
{
	gpointer module;

	return g_hash_table_lookup_extended(targets->modules, key, NULL, &module) &&
	       (!module || !allocator_module_is_rewritten(module));
}

/*
 * Each is a descriptor for the length of the recording: a process that maps ever new ones does not
 * get them all.
 */
static void forget_too_many(struct targets *targets, struct scan *scan)
{
	if (targets->module_count + scan->count > MODULES_ALL_MAX) {
		targets->losses.attach_failures += scan->count;
		allocator_modules_free(scan->modules, scan->count);
		scan->modules = NULL;
		scan->count = 0;
	}
	targets->module_count += scan->count;
}

/* Scan files never seen before; the result is kept for all processes. */
static void scan_modules(struct targets *targets, pid_t pid, const struct maps *maps)
{
	struct maps fresh = { .entries = g_new0(struct mapping, maps->count) };
	struct scan *scan;
	size_t i;

	for (i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->entries[i];
		g_autofree char *key = module_key(mapping);

		if (mapping->inode && !is_known(targets, key))
			fresh.entries[fresh.count++] = *mapping;
	}
	if (!fresh.count)
		goto out;
	scan = g_new0(struct scan, 1);
	g_ptr_array_add(targets->scans, scan);
	if (!allocator_modules_find(pid, &fresh, &scan->modules, &scan->count)) {
		for (i = 0; i < fresh.count; i++) {
			/* Executable and without an allocator: not scanned again. */
			if (fresh.entries[i].exec)
				g_hash_table_insert(targets->modules, module_key(&fresh.entries[i]),
						    NULL);
		}
		forget_too_many(targets, scan);
		for (i = 0; i < scan->count; i++) {
			const struct allocator_module *module = &scan->modules[i];

			g_hash_table_insert(targets->modules,
					    g_strdup_printf("%u:%u:%lu", module->dev_major,
							    module->dev_minor,
							    (unsigned long)module->inode),
					    (gpointer)module);
		}
	}
out:
	g_free(fresh.entries);
}

static struct attached *attached_get(const struct followed *followed,
				     const struct allocator_module *module)
{
	guint i;

	for (i = 0; i < followed->attached->len; i++) {
		struct attached *attached = g_ptr_array_index(followed->attached, i);

		if (attached->module == module)
			return attached;
	}
	return NULL;
}

/*
 * Attach or detach the probes of one module in one process as wanted. may_wait: later, if the
 * kernel is behind with detaching those of dead processes.
 */
static void watch_module(struct targets *targets, struct followed *followed,
			 struct attached *attached, bool may_wait)
{
	unsigned int group;

	for (group = GROUP_PAIR; group < PROBE_GROUPS; group++) {
		bool wanted = targets->watched & 1U << group;
		struct uprobe_attachment **attachment = &attached->groups[group];

		if (!wanted) {
			uprobe_detach_aside(*attachment);
			*attachment = NULL;
		} else if (!*attachment && may_wait && uprobe_dead_are_many()) {
			/* Most of a storm are dead by now. The others are tried again soon. */
			followed->target.changed = true;
		} else if (!*attachment && allocator_module_is_rewritten(attached->module)) {
			targets->losses.attach_failures++;
			attached->unprobed = "its file was written over";
			return;
		} else if (!*attachment) {
			*attachment = uprobe_attach(targets->config.bpf, targets->config.mechanism,
						    followed->target.pid, attached->module,
						    attached->slow, group);
			if (*attachment || errno == ESRCH)
				continue;
			targets->losses.attach_failures++;
			attached->unprobed = "the kernel refused";
			message("cannot probe %s in process %d: %s", attached->module->path,
				followed->target.pid, strerror(errno));
			return;
		}
	}
}

void targets_watch(struct targets *targets, unsigned int groups)
{
	GHashTableIter iter;
	gpointer value;
	guint i;

	if (groups == targets->watched)
		return;
	targets->watched = groups;
	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct followed *followed = value;

		for (i = 0; i < followed->attached->len && !followed->target.exited; i++)
			watch_module(targets, followed, g_ptr_array_index(followed->attached, i),
				     false);
	}
}

/* Probes at returns would end it: none are set. Told once. */
static bool is_endangered(struct targets *targets, pid_t pid)
{
	if (!targets->config.uprobes || !seccomp_may_refuse_returns() || !seccomp_confines(pid) ||
	    !seccomp_refuses_returns())
		return false;
	if (!targets->endangered)
		message("this kernel's seccomp would end process %d at a probe: the allocator of "
			"processes with such a filter is not watched",
			pid);
	targets->endangered = true;
	targets->losses.attach_failures++;
	return true;
}

/* NULL: the process has too many. */
static struct attached *attached_add(struct targets *targets, struct followed *followed,
				     const struct allocator_module *module)
{
	struct attached *attached;

	if (followed->attached->len >= MODULES_MAX) {
		targets->losses.attach_failures += !followed->too_many;
		followed->too_many = true;
		return NULL;
	}
	attached = g_new0(struct attached, 1);
	attached->module = module;
	attached->slow = targets_places(targets, followed->target.pid, module, &attached->cached);
	attached->linkage = allocator_linkage(followed->target.pid, module);
	if (!targets->config.uprobes)
		attached->unprobed = "left out by --probes or the overhead limit";
	else if (is_endangered(targets, followed->target.pid))
		attached->unprobed = "this kernel's seccomp would end the process";
	g_ptr_array_add(followed->attached, attached);
	return attached;
}

/* The file was written over while it runs here: its probes stay, and no others are added. */
static bool has_older(const struct followed *followed, const struct allocator_module *module)
{
	guint i;

	for (i = 0; i < followed->attached->len; i++) {
		const struct attached *attached = g_ptr_array_index(followed->attached, i);

		if (attached->image == followed->images && attached->module != module &&
		    attached->module->inode == module->inode &&
		    attached->module->dev_major == module->dev_major &&
		    attached->module->dev_minor == module->dev_minor)
			return true;
	}
	return false;
}

/* Another program in the process may have another cache. */
static void move_places(struct targets *targets, struct followed *followed,
			struct attached *attached)
{
	const struct slow_places *slow =
		targets_places(targets, followed->target.pid, attached->module, &attached->cached);
	enum probe_group group = probe_group_of(FN_MALLOC);

	if (slow == attached->slow)
		return;
	attached->slow = slow;
	uprobe_detach_aside(attached->groups[group]);
	attached->groups[group] = NULL;
}

/* NULL: the process has too many, or had its file before that was written over. */
struct attached *followed_attach_module(struct targets *targets, struct followed *followed,
					const struct allocator_module *module)
{
	struct attached *attached = attached_get(followed, module);

	if (!attached && has_older(followed, module))
		return NULL;
	if (!attached)
		attached = attached_add(targets, followed, module);
	else if (attached->image != followed->images)
		move_places(targets, followed, attached);
	/* Its probes may have gone with the thread that they were tied to. */
	if (attached && !attached->unprobed)
		watch_module(targets, followed, attached, !targets->config.held);
	return attached;
}

/* Probe every allocator module that the process maps and that is not probed in it yet. */
void followed_attach_modules(struct targets *targets, struct followed *followed,
			     const struct maps *maps)
{
	pid_t pid = followed->target.pid;
	size_t i;

	if (!maps->count)
		return;
	scan_modules(targets, pid, maps);
	followed->callocs.count = 0;
	for (i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->entries[i];
		struct allocator_module *module;
		struct attached *attached;
		g_autofree char *key = NULL;

		if (!mapping->exec || !mapping->inode)
			continue;
		key = module_key(mapping);
		module = g_hash_table_lookup(targets->modules, key);
		if (!module)
			continue;
		callocs_add(&followed->callocs, module, mapping);
		attached = followed_attach_module(targets, followed, module);
		if (!attached || attached->image == followed->images)
			continue;
		attached->image = followed->images;
		attached->code_start = mapping->start;
		attached->code_end = mapping->end;
		attached->code_offset = mapping->offset;
		/* Of several mappings of its code the first has it, or none. */
		if (module->kind == ALLOCATOR_GLIBC && !followed->malloc_par)
			malloc_par_find(pid, mapping, &followed->malloc_par);
	}
	targets_publish_callocs(targets, followed);
	thresholds_set_glibc(targets->config.thresholds, pid, followed_uses_glibc(followed));
}

bool followed_has_allocator(const struct followed *followed)
{
	guint i;

	for (i = 0; i < followed->attached->len; i++) {
		const struct attached *attached = g_ptr_array_index(followed->attached, i);

		if (attached->module->point_count)
			return true;
	}
	return false;
}

/* Detach its probes; what was attached stays listed, for the recording. */
void followed_detach(struct followed *followed)
{
	guint i;

	for (i = 0; i < followed->attached->len; i++) {
		struct attached *attached = g_ptr_array_index(followed->attached, i);
		int group;

		for (group = GROUP_PAIR; group < PROBE_GROUPS; group++) {
			if (followed->target.exited)
				uprobe_detach_dead(attached->groups[group]);
			else
				uprobe_detach_aside(attached->groups[group]);
			attached->groups[group] = NULL;
		}
	}
}

void targets_detach(struct targets *targets)
{
	GHashTableIter iter;
	gpointer value;

	targets->watched = 0;
	targets->detached = true;
	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value))
		followed_detach(value);
	uprobe_detach_finish();
}

unsigned int targets_without_allocator(const struct targets *targets)
{
	unsigned int count = targets->forgotten_without;
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, targets->followed);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		const struct followed *followed = value;

		/* Of a storm those that were not looked at are counted by themselves. */
		count += !followed->target.brief && !followed_has_allocator(followed);
	}
	return count;
}

int targets_record_allocators(struct targets *targets)
{
	GHashTableIter iter;
	gpointer value;
	int err = 0;
	guint i;

	g_hash_table_iter_init(&iter, targets->followed);
	while (!err && g_hash_table_iter_next(&iter, NULL, &value)) {
		const struct followed *followed = value;
		struct bounds threshold;

		thresholds_get(targets->config.thresholds, followed->target.pid, THRESHOLD_MMAP,
			       &threshold);
		for (i = 0; i < followed->attached->len && !err; i++) {
			const struct attached *attached = g_ptr_array_index(followed->attached, i);

			err = allocator_record(targets->config.recording, followed->target.pid,
					       attached->module, attached->linkage,
					       attached->unprobed, &threshold, followed->pinned,
					       followed->tunables);
			if (!err)
				err = attached_record_places(targets, followed->target.pid,
							     attached);
		}
	}
	return err;
}

bool targets_is_allocator(const struct targets *targets, pid_t pid, const char *path)
{
	const struct followed *followed = followed_get(targets, pid);
	guint i;

	for (i = 0; followed && *path && i < followed->attached->len; i++) {
		const struct attached *attached = g_ptr_array_index(followed->attached, i);
		const struct allocator_module *module = attached->module;
		bool known = module->kind == ALLOCATOR_JEMALLOC ||
			     module->kind == ALLOCATOR_TCMALLOC ||
			     module->kind == ALLOCATOR_MIMALLOC;

		if (!strcmp(module->path, path))
			return attached->linkage == LINKAGE_PRELOADED ||
			       (known && attached->linkage == LINKAGE_DYNAMIC);
	}
	return false;
}
