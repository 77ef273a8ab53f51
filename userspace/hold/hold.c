// SPDX-License-Identifier: GPL-2.0
#include "hold/hold.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocators/glibc_params.h"
#include "base/clock.h"
#include "hold/locked_ranges.h"
#include "hold/pin_hints.h"
#include "host/memory_room.h"
#include "host/proc.h"

#define DATA_MAX 16 /* mappings of a libc's data */
#define LOOKS_MAX 2 /* for main_arena */

/* Whether it is a program of 32 bits: its pointers and chunks are others. */
static bool is_narrow(pid_t pid)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/exe", pid);
	unsigned char ident[EI_NIDENT] = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool narrow = false;

	if (fd < 0)
		return false;
	if (read(fd, ident, sizeof(ident)) == (ssize_t)sizeof(ident))
		narrow = !memcmp(ident, ELFMAG, SELFMAG) && ident[EI_CLASS] == ELFCLASS32;
	close(fd);
	return narrow;
}

/* "2.36": 236; 0: another form. */
static unsigned int version_of(const char *text)
{
	char *end;
	unsigned long major = strtoul(text, &end, 10), minor;

	if (*end != '.' || major != 2)
		return 0;
	minor = strtoul(end + 1, NULL, 10);
	return minor < 100 ? 200 + (unsigned int)minor : 0;
}

static bool is_of(const struct mapping *mapping, const struct allocator_module *module)
{
	return mapping->inode == module->inode && mapping->dev_major == module->dev_major &&
	       mapping->dev_minor == module->dev_minor;
}

/* The module's writable data, and the anonymous memory right behind it. */
static size_t find_data(const struct maps *maps, const struct allocator_module *module,
			const struct mapping *data[DATA_MAX])
{
	size_t count = 0, i;

	for (i = 0; i < maps->count && count < DATA_MAX; i++) {
		const struct mapping *mapping = &maps->entries[i];
		bool behind = i && !mapping->inode && !*mapping->path && count &&
			      data[count - 1] == mapping - 1 && mapping[-1].end == mapping->start;

		if (mapping->write && mapping->read && (is_of(mapping, module) || behind))
			data[count++] = mapping;
	}
	return count;
}

static uint64_t find_par(pid_t pid, const struct maps *maps, const struct allocator_module *module)
{
	uint64_t address = 0;
	size_t i;

	for (i = 0; i < maps->count; i++)
		if (maps->entries[i].exec && is_of(&maps->entries[i], module) &&
		    malloc_par_find(pid, &maps->entries[i], &address))
			return address;
	return 0;
}

/* What of its memory is the allocator's, ascending. */
static GArray *owned_ranges(const struct heap_walk *walk, const struct mapped_chunks *mapped)
{
	GArray *owned = g_array_new(FALSE, FALSE, sizeof(struct owned_range));
	guint i = 0, k = 0;

	while (i < walk->chunks->len || k < mapped->ranges->len) {
		const struct owned_range *range =
			k < mapped->ranges->len ?
				&g_array_index(mapped->ranges, struct owned_range, k) :
				NULL;
		const struct heap_chunks *chunks =
			i < walk->chunks->len ?
				&g_array_index(walk->chunks, struct heap_chunks, i) :
				NULL;

		if (!chunks || (range && range->start < chunks->heap->start)) {
			g_array_append_vals(owned, range, 1);
			k++;
			continue;
		}
		struct owned_range heap = { .start = chunks->heap->start,
					    .end = chunks->heap->end };

		page_bytes_add(&heap.bytes, &chunks->pages, heap.start, heap.end);
		g_array_append_val(owned, heap);
		i++;
	}
	return owned;
}

/* Whether its malloc has a heap, which was not found. */
static bool has_heap(const struct maps *maps, uint64_t par, const struct malloc_numbers *numbers)
{
	size_t i;

	if (par)
		return numbers->sbrk_base != 0;
	for (i = 0; i < maps->count; i++)
		if (!strcmp(maps->entries[i].path, "[heap]"))
			return true;
	return false;
}

/* How many chunks may be kept: a sixteenth of the memory that there is for them. */
static uint64_t kept_most(void)
{
	uint64_t bytes = (uint64_t)memory_room_of(getpid()).bytes / 16;

	return CLAMP(bytes / sizeof(struct kept_chunk), CHUNKS_KEPT, CHUNKS_KEPT_MAX);
}

/* The inside of a glibc. NULL, or why it is not known. */
static const char *read_heaps(const struct process_view *view, struct maps *maps,
			      const struct allocator_module *module, bool read_swapped,
			      struct hold_process *process, GArray **owned)
{
	const struct mapping *data[DATA_MAX];
	struct malloc_heaps heaps = { 0 };
	struct heap_walk walk;
	uint64_t par = find_par(process->pid, maps, module);
	g_autoptr(GArray) locked = NULL;
	const char *unknown = "";
	unsigned int i;
	size_t count;

	for (i = 0; i < LOOKS_MAX && unknown; i++) {
		/* A thread may wait for a processor in the middle of a change: let it go on. */
		if (i && has_heap(maps, par, &heaps.numbers))
			view->view.pause(view->view.context);
		/* What looked into files took a while, in which heaps grow. */
		maps_free(maps);
		malloc_heaps_free(&heaps);
		if (maps_read(process->pid, maps))
			return "its mappings cannot be read any more";
		count = find_data(maps, module, data);
		unknown = malloc_heaps_find(&view->view, maps, data, count, par,
					    version_of(module->version), &heaps);
	}
	if (!unknown) {
		heap_walk_init(&walk, &view->view, &heaps, read_swapped);
		walk.kept_most = kept_most();
		locked = locked_ranges_read(process->pid);
		walk.locked = locked;
		heap_walk_run(&walk);
		if (walk.gone) {
			heap_walk_free(&walk);
			malloc_heaps_free(&heaps);
			return "its memory went away: it ended, or became another program";
		}
		heap_sum_make(&walk, &process->heaps);
		pin_hints_find(process->pid, &view->view, maps, &process->heaps);
		mapped_chunks_find(&view->view, maps, &heaps, heaps.numbers.mmaps,
				   &process->mapped);
		*owned = owned_ranges(&walk, &process->mapped);
		process->numbers = heaps.numbers;
		process->lost_heaps = heaps.lost_heaps;
		process->has_heaps = true;
		heap_walk_free(&walk);
	} else if (has_heap(maps, par, &heaps.numbers)) {
		process->lost_heaps = 1;
	}
	malloc_heaps_free(&heaps);
	return unknown;
}

/* NULL, or why they are not known. */
static const char *read_counters(const struct process_view *view, const struct maps *maps,
				 const struct allocator_module *module,
				 struct allocator_counters *counters)
{
	const struct mapping *data[DATA_MAX];
	const struct counters_place place = {
		.view = &view->view,
		.maps = maps,
		.module = module,
		.data = data,
		.data_count = find_data(maps, module, data),
	};

	allocator_counters_read(&place, counters);
	return counters->known ? NULL : allocator_counters_unknown(module->kind);
}

static void read_allocators(const struct process_view *view, struct maps *maps, bool read_swapped,
			    struct hold_process *process, GArray **owned)
{
	struct allocator_module *modules = NULL;
	size_t count = 0, i;

	if (allocator_modules_find(process->pid, maps, &modules, &count)) {
		process->lost_heaps = has_heap(maps, 0, NULL);
		return;
	}
	for (i = 0; i < count; i++) {
		struct hold_allocator allocator = { .kind = modules[i].kind,
						    .path = g_strdup(modules[i].path) };

		g_strlcpy(allocator.version, modules[i].version, sizeof(allocator.version));
		if (modules[i].kind != ALLOCATOR_GLIBC)
			allocator.unknown =
				read_counters(view, maps, &modules[i], &allocator.counters);
		else if (process->has_heaps)
			allocator.unknown = "it is a second glibc, and only the first is read";
		else
			allocator.unknown =
				read_heaps(view, maps, &modules[i], read_swapped, process, owned);
		g_array_append_val(process->allocators, allocator);
	}
	allocator_modules_free(modules, count);
}

static bool has_go(const struct hold_process *process)
{
	guint i;

	for (i = 0; i < process->allocators->len; i++)
		if (g_array_index(process->allocators, struct hold_allocator, i).kind ==
		    ALLOCATOR_GO)
			return true;
	return false;
}

static void clear_allocator(gpointer data)
{
	g_free(((struct hold_allocator *)data)->path);
}

static int read_process(struct hold_process *process, const struct process_view *view,
			bool read_swapped)
{
	struct residents_known known = { 0 };
	g_autoptr(GArray) owned = NULL;
	g_autoptr(GArray) stacks = NULL;
	struct proc_stat before, after;
	struct maps maps = { 0 };
	uint64_t start = now_ns();
	uint8_t state;
	int err = proc_stat_read(process->pid, 0, &before);

	if (!err)
		err = maps_read(process->pid, &maps);
	if (!err) {
		g_strlcpy(process->name, before.comm, sizeof(process->name));
		read_allocators(view, &maps, read_swapped, process, &owned);
		process->walk_ns = now_ns() - start;
		if (!owned)
			owned = g_array_new(FALSE, FALSE, sizeof(struct owned_range));
		residents_free(&process->residents);
		stacks = thread_stacks_find(process->pid, &view->view, &known.threads);
		known.owned = owned;
		known.stacks = stacks;
		known.heap_stacks = has_go(process);
		err = residents_read(process->pid, &known, &process->residents);
	}
	/* A kernel that does not tell where they are leaves it unknown. */
	if (!err && residents_sum(&process->residents).huge)
		huge_use_read(view, &process->huge);
	/*
	 * What ended, or became another program, meanwhile has figures of two. The latter keeps its
	 * start, but not the memory that the pagemap is of.
	 */
	if (!err &&
	    (proc_stat_read(process->pid, 0, &after) || after.start_ticks != before.start_ticks ||
	     after.state == 'Z' || !process->residents.whole.rss ||
	     !view->view.pages(view->view.context, VIEW_PAGE, 1, &state)))
		err = -ESRCH;
	maps_free(&maps);
	return err == -ENOENT ? -ESRCH : err;
}

int hold_read(pid_t pid, bool read_swapped, struct hold_process *process)
{
	struct process_view view;
	int err;

	*process = (struct hold_process){ .pid = pid };
	process->allocators = g_array_new(FALSE, FALSE, sizeof(struct hold_allocator));
	g_array_set_clear_func(process->allocators, clear_allocator);
	residents_init(&process->residents);
	if (is_narrow(pid))
		return -ENOEXEC;
	err = process_view_open(pid, &view);
	if (!err)
		err = read_process(process, &view, read_swapped);
	process_view_close(&view);
	return err == -ENOENT ? -ESRCH : err;
}

void hold_free(struct hold_process *process)
{
	g_clear_pointer(&process->allocators, g_array_unref);
	heap_sum_free(&process->heaps);
	mapped_chunks_free(&process->mapped);
	residents_free(&process->residents);
}

uint64_t hold_unknown(const struct hold_process *process)
{
	const struct arena_sum *all = &process->heaps.all;

	return all->unread.bytes + all->hidden.bytes + all->unfollowed.bytes;
}

uint64_t hold_heap_bytes(const struct hold_process *process)
{
	const struct arena_sum *all = &process->heaps.all;

	return arena_free(all).bytes + all->bytes[CHUNK_LIVE].bytes + all->overhead.bytes +
	       hold_unknown(process);
}

bool hold_is_partial(const struct hold_process *process)
{
	return process->heaps.corrupt || process->lost_heaps ||
	       hold_unknown(process) > hold_heap_bytes(process) / 100;
}
