// SPDX-License-Identifier: GPL-2.0
#include "probes/programs.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <glib.h>
#include <linux/bpf.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "events/sampling_table.h"
#include "host/boot_cache.h"
#include "host/swapdevice.h"
#include "memtoll.skel.h"
#include "probes/kernel_subset.h"
#include "unwind/unwind_load.h"

#define KIND "kernel"

bool has_find_vma(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_FUNC_find_vma, NULL) == 1;
}

/* Names in the kernel's type information that show what it can do. */
enum kernel_name {
	TASK,
	RSS_BATCH,
	MEMCG_EVENTS,
	PAGE_CACHE_LOOKUPS,
	MMAP_LOCK,
	BLOCK_QUEUE,
	SYSCALL_BEGIN,
	URING_END,
	PAGE_FILLED,
	CASTS,
	MEMORY_KFUNCS,
	KERNEL_NAMES
};

struct kernel_names {
	bool has[KERNEL_NAMES];
	bool lock_tells_path;
};

struct asked_name {
	const char *name;
	uint32_t kind;
};

/*
 * Whether mmap_lock's tracepoint has four arguments: the one that programs do not see is among
 * these.
 */
static bool lock_tells_path(const struct btf *btf)
{
	int id = btf__find_by_name_kind(btf, "btf_trace_mmap_lock_acquire_returned",
					BTF_KIND_TYPEDEF);
	const struct btf_type *type;

	if (id <= 0)
		return false;
	type = btf__type_by_id(btf, btf__type_by_id(btf, id)->type);
	type = btf__type_by_id(btf, type->type);
	return btf_is_func_proto(type) && btf_vlen(type) == 5;
}

static void ask_kernel(const struct asked_name *asked, struct kernel_names *found)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int i;

	if (!btf)
		return;
	for (i = 0; i < KERNEL_NAMES; i++)
		found->has[i] = btf__find_by_name_kind(btf, asked[i].name, asked[i].kind) > 0;
	found->lock_tells_path = lock_tells_path(btf);
	btf__free(btf);
}

/* Freed by the caller. */
static char *question(const struct asked_name *asked)
{
	GString *text = g_string_new("lock_tells_path");
	int i;

	for (i = 0; i < KERNEL_NAMES; i++)
		g_string_append_printf(text, "\n%s %u", asked[i].name, asked[i].kind);
	return g_string_free(text, FALSE);
}

/*
 * That information is some megabytes, and takes as many milliseconds to read: once in a boot, for
 * all questions, and only the answers are kept.
 */
static const struct kernel_names *kernel_names(void)
{
	static const struct asked_name asked[KERNEL_NAMES] = {
		[TASK] = { "task_struct", BTF_KIND_STRUCT },
		/* The batching structure went with commit f1a7941243c1. */
		[RSS_BATCH] = { "mm_rss_stat", BTF_KIND_STRUCT },
		[MEMCG_EVENTS] = { "btf_trace_count_memcg_events", BTF_KIND_TYPEDEF },
		[PAGE_CACHE_LOOKUPS] = { "btf_trace_mm_filemap_get_pages", BTF_KIND_TYPEDEF },
		[MMAP_LOCK] = { "btf_trace_mmap_lock_acquire_returned", BTF_KIND_TYPEDEF },
		[BLOCK_QUEUE] = { "btf_trace_block_bio_queue", BTF_KIND_TYPEDEF },
		[SYSCALL_BEGIN] = { "btf_trace_sys_enter", BTF_KIND_TYPEDEF },
		[URING_END] = { "btf_trace_io_uring_complete", BTF_KIND_TYPEDEF },
		[PAGE_FILLED] = { "btf_trace_mm_filemap_add_to_page_cache", BTF_KIND_TYPEDEF },
		[CASTS] = { "bpf_rdonly_cast", BTF_KIND_FUNC },
		/* The last one of those that came together. */
		[MEMORY_KFUNCS] = { "bpf_mem_cgroup_memory_events", BTF_KIND_FUNC },
	};
	static struct kernel_names found;
	static bool known;
	g_autofree char *key = NULL;

	if (known)
		return &found;
	known = true;
	key = question(asked);
	if (boot_cache_read(KIND, key, &found, sizeof(found)))
		return &found;
	memset(&found, 0, sizeof(found));
	ask_kernel(asked, &found);
	/* Where it has none, or hides it, all that was asked for is missing. */
	if (found.has[TASK])
		boot_cache_write(KIND, key, &found, sizeof(found));
	return &found;
}

static bool kernel_has(enum kernel_name asked)
{
	return kernel_names()->has[asked];
}

bool has_exact_rss_stat(void)
{
	return kernel_has(TASK) && !kernel_has(RSS_BATCH);
}

bool has_memcg_events(void)
{
	return kernel_has(MEMCG_EVENTS);
}

bool has_memory_kfuncs(void)
{
	return kernel_has(MEMORY_KFUNCS);
}

bool has_page_cache_lookups(void)
{
	return kernel_has(PAGE_CACHE_LOOKUPS);
}

bool has_syscall_tracepoints(void)
{
	return kernel_has(SYSCALL_BEGIN);
}

bool has_uring_tracepoint(void)
{
	return kernel_has(URING_END);
}

bool has_page_cache_tracepoint(void)
{
	return kernel_has(PAGE_FILLED);
}

/*
 * Before 6.4 every fault takes the lock of its process's mappings: a program on that tracepoint
 * would cost more than it saves. The page cache reports reads from 6.12 on, which is late enough.
 */
bool has_unwatched_tracepoints(void)
{
	return kernel_has(PAGE_CACHE_LOOKUPS) && kernel_has(MMAP_LOCK) && kernel_has(BLOCK_QUEUE);
}

static bool has_syscalls(const struct programs_config *config)
{
	return config->mappings || config->reads || config->uprobes;
}

/* Rows whose memory is taken beforehand, where memory is short. */
static void have_fewer(struct bpf_map *map)
{
	bpf_map__set_max_entries(map, bpf_map__max_entries(map) / 4);
}

static void choose_swap(struct memtoll_bpf *bpf)
{
	bpf_program__set_autoload(bpf->progs.rss_changed, has_exact_rss_stat());
	bpf_program__set_autoload(bpf->progs.folio_written, has_exact_rss_stat());
	bpf_program__set_autoload(bpf->progs.memcg_counted, has_memcg_events());
}

static void choose(struct memtoll_bpf *bpf, const struct programs_config *config)
{
	if (config->faults && (config->swap || swap_is_on()))
		choose_swap(bpf);
	bpf_program__set_autoload(bpf->progs.process_fork, true);
	bpf_program__set_autoload(bpf->progs.process_exec, true);
	bpf_program__set_autoload(bpf->progs.process_exit, true);
	bpf_program__set_autoload(bpf->progs.process_freed, true);
	bpf_program__set_autoload(bpf->progs.drain_threads, true);
	bpf_program__set_autoload(bpf->progs.fault_begin, config->faults);
	bpf_program__set_autoload(bpf->progs.fault_end_minor, config->faults);
	bpf_program__set_autoload(bpf->progs.fault_end_major, config->faults);
	bpf_program__set_autoload(bpf->progs.direct_begin, config->faults);
	bpf_program__set_autoload(bpf->progs.memcg_begin, config->faults);
	bpf_program__set_autoload(bpf->progs.reclaim_end, config->faults);
	bpf_program__set_autoload(bpf->progs.map_enter, config->mappings);
	bpf_program__set_autoload(bpf->progs.map_exit, config->mappings);
	bpf_program__set_autoload(bpf->progs.cpu_sample, config->samples);
	bpf_program__set_autoload(bpf->progs.read_enter, config->reads);
	bpf_program__set_autoload(bpf->progs.read_exit, config->reads);
	bpf_program__set_autoload(bpf->progs.page_filled, config->faults || config->reads);
	bpf_program__set_autoload(bpf->progs.page_dropped, config->faults || config->reads);
	bpf_program__set_autoload(bpf->progs.read_uring, config->reads);
	bpf_program__set_autoload(bpf->progs.read_unwatched,
				  config->reads && has_page_cache_lookups());
	bpf_program__set_autoload(bpf->progs.read_submitted,
				  config->reads && has_unwatched_tracepoints());
	bpf_program__set_autoload(bpf->progs.map_unwatched,
				  config->mappings && has_unwatched_tracepoints());
	bpf_program__set_autoload(bpf->progs.map_changed,
				  config->mappings && has_unwatched_tracepoints());
	bpf_program__set_autoload(bpf->progs.syscall_begin, has_syscalls(config));
	bpf_program__set_autoload(bpf->progs.syscall_end, has_syscalls(config));
	bpf_program__set_autoload(bpf->progs.lock_enter, config->uprobes);
	bpf_program__set_autoload(bpf->progs.lock_exit, config->uprobes);
	if (config->uprobes)
		uprobe_prepare(bpf, config->mechanism);
	bpf->rodata->cfg_min_size = config->min_size;
	bpf->rodata->cfg_sample = config->sample;
	sampling_fill(bpf->rodata->cfg_sampling_log);
	bpf->rodata->cfg_page_offset = config->pagetable->page_offset;
	bpf->rodata->cfg_page_levels = config->pagetable->levels;
	bpf->rodata->cfg_zero_pfn = config->pagetable->zero_pfn;
	bpf->rodata->cfg_huge_zero_pfn = config->pagetable->huge_zero_pfn;
	bpf->rodata->cfg_mthp_orders = config->pagetable->mthp_orders;
	bpf->rodata->cfg_find_vma = has_find_vma();
	bpf->rodata->cfg_casts = kernel_has(CASTS);
	bpf->rodata->cfg_lock_path =
		config->mappings && has_unwatched_tracepoints() && kernel_names()->lock_tells_path;
	bpf_map__set_max_entries(bpf->maps.events, config->buffer_bytes);
	if (config->stacks) {
		bpf_map__set_max_entries(bpf->maps.stacks, config->stacks);
		have_fewer(bpf->maps.calls_shared);
		have_fewer(bpf->maps.file_reads_shared);
		have_fewer(bpf->maps.map_calls_shared);
	}
}

/* By the programs. Freed by the caller. */
static char *subset_key(void)
{
	size_t size = 0;
	const void *elf = memtoll_bpf__elf_bytes(&size);

	return g_strdup_printf("%zu %08lx", size, crc32_z(0, elf, size));
}

static struct memtoll_bpf *open_programs(void)
{
	g_autofree char *key = subset_key();
	LIBBPF_OPTS(bpf_object_open_opts, options, .btf_custom_path = kernel_subset_path(key));
	struct memtoll_bpf *bpf = memtoll_bpf__open_opts(&options);

	if (bpf && !options.btf_custom_path)
		kernel_subset_keep(key, bpf_object__btf(bpf->obj));
	return bpf;
}

static int load(struct memtoll_bpf *bpf)
{
	int fd = unwinder_prepare(bpf), err;

	if (fd < 0)
		return fd;
	err = memtoll_bpf__load(bpf);
	close(fd);
	return err;
}

/* Load the selected programs one at a time: the first that fails alone is the culprit. */
static const char *find_refused(const struct programs_config *config)
{
	struct memtoll_bpf *bpf;
	struct bpf_program *program;
	const char *refused = NULL;
	unsigned int index = 0, at;
	bool more = true;

	for (index = 0; more && !refused; index++) {
		struct bpf_program *single = NULL;

		bpf = open_programs();
		if (!bpf)
			return NULL;
		choose(bpf, config);
		at = 0;
		bpf_object__for_each_program (program, bpf->obj) {
			if (!bpf_program__autoload(program))
				continue;
			if (at++ == index)
				single = program;
			else
				bpf_program__set_autoload(program, false);
		}
		more = single != NULL;
		if (single && load(bpf))
			refused = bpf_program__name(single);
		/* The name lives in the object; the few bytes of this failing path are kept. */
		if (!refused)
			memtoll_bpf__destroy(bpf);
	}
	return refused;
}

struct memtoll_bpf *programs_load(const struct programs_config *config, const char **refused)
{
	struct memtoll_bpf *bpf = open_programs();
	int err;

	*refused = NULL;
	if (!bpf)
		return NULL;
	choose(bpf, config);
	err = load(bpf);
	if (!err)
		return bpf;
	memtoll_bpf__destroy(bpf);
	if (kernel_subset_drop())
		return programs_load(config, refused);
	*refused = find_refused(config);
	errno = -err;
	return NULL;
}

/* All maps, what settings and counters are in among them. */
static int share_maps(const struct memtoll_bpf *from, struct memtoll_bpf *with)
{
	struct bpf_map *map, *theirs;
	int err;

	bpf_object__for_each_map (map, with->obj) {
		theirs = bpf_object__find_map_by_name(from->obj, bpf_map__name(map));
		if (!theirs)
			return -ENOENT;
		err = bpf_map__reuse_fd(map, bpf_map__fd(theirs));
		if (err)
			return err;
	}
	return 0;
}

static void choose_map_lock(struct memtoll_bpf *bpf)
{
	bpf_program__set_autoload(bpf->progs.map_locked, true);
	bpf_program__set_autoload(bpf->progs.map_placed, true);
	bpf_program__set_autoload(bpf->progs.map_released, true);
}

static void choose_handlers(struct memtoll_bpf *bpf)
{
	bpf_program__set_autoload(bpf->progs.fault_answered, true);
}

static struct memtoll_bpf *load_late(const struct memtoll_bpf *bpf,
				     void (*choose_late)(struct memtoll_bpf *bpf))
{
	struct memtoll_bpf *late = open_programs();
	int err;

	if (!late)
		return NULL;
	choose_late(late);
	err = share_maps(bpf, late);
	/* Not the skeleton's own: it would map what the others have mapped. */
	if (!err)
		err = bpf_object__load(late->obj);
	if (!err)
		return late;
	memtoll_bpf__destroy(late);
	/* The first start of a boot has made it, and loaded nothing with it yet. */
	if (kernel_subset_drop())
		return load_late(bpf, choose_late);
	errno = -err;
	return NULL;
}

struct memtoll_bpf *programs_load_swap(const struct memtoll_bpf *bpf)
{
	return load_late(bpf, choose_swap);
}

struct memtoll_bpf *programs_load_map_lock(const struct memtoll_bpf *bpf)
{
	return load_late(bpf, choose_map_lock);
}

struct memtoll_bpf *programs_load_handlers(const struct memtoll_bpf *bpf)
{
	return load_late(bpf, choose_handlers);
}
