// SPDX-License-Identifier: GPL-2.0
#include "host/pagetable.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "check_pagetable.skel.h"
#include "host/boot_cache.h"
#include "host/huge_pages.h"
#include "host/kernel_types.h"

#define KIND "base"
#define OFFSETS_KIND "offsets"
#define OFFSETS_KEY "task_struct.mm mm_struct.pgd"

#define PAGE 4096UL
#define HUGE (2UL << 20)
#define GIB (1UL << 30)
#define HOLES 64 /* GiB of physical addresses without memory */
#define SECRET_WORDS 2

/* __PAGE_OFFSET_BASE_L4 and _L5, without KASLR (arch/x86/include/asm/page_64_types.h). */
#define DEFAULT_BASE_4 0xffff888000000000ULL
#define DEFAULT_BASE_5 0xff11000000000000ULL
/* Kernel text is mapped here and up; the direct map lies below. */
#define KERNEL_TEXT 0xffffffff80000000ULL
/* Start of kernel text without KASLR (CONFIG_PHYSICAL_START, arch/x86/Kconfig). */
#define LINKED_TEXT 0xffffffff81000000ULL

static int run_check(const struct bpf_program *program, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t args[3] = { a, b, c };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	return bpf_prog_test_run_opts(bpf_program__fd(program), &opts);
}

/* Frame of our own page, walked with this base; 0: none, or the base is wrong. */
static uint64_t own_frame(struct check_pagetable_bpf *check, const void *page, uint64_t base,
			  uint32_t levels)
{
	if (!base || run_check(check->progs.check_walk, (uintptr_t)page, base, levels))
		return 0;
	return check->bss->walked_frame;
}

/*
 * The page holds random words: if the kernel reads the same ones at the frame's place in the direct
 * map, the base is right. (/proc/self/pagemap has the frame, but only for CAP_SYS_ADMIN.)
 */
static bool base_is_right(struct check_pagetable_bpf *check, const uint64_t *page, uint64_t base,
			  uint32_t levels)
{
	uint64_t frame = own_frame(check, page, base, levels);
	size_t i;

	for (i = 0; frame && i < SECRET_WORDS; i++)
		if (run_check(check->progs.check_word, base + frame * PAGE + i * sizeof(*page), 0,
			      0) ||
		    check->bss->word_error || check->bss->word_read != page[i])
			return false;
	return frame != 0;
}

/*
 * The symbol table has megabytes: if its first function is at the address it was linked for, there
 * is no KASLR (arch/x86/mm/kaslr.c), and the rest is not read.
 */
static uint64_t base_from_symbol(struct check_pagetable_bpf *check)
{
	static const char name[] = " page_offset_base\n";
	uint64_t address = 0, first = 0, here;
	char line[512];
	FILE *file = fopen("/proc/kallsyms", "re");

	if (!file)
		return 0;
	while (!address && first != LINKED_TEXT && fgets(line, sizeof(line), file)) {
		here = strtoull(line, NULL, 16);
		if (!first && here >= KERNEL_TEXT)
			first = here;
		if (strstr(line, name))
			address = here;
	}
	fclose(file);
	if (!address || run_check(check->progs.check_word, address, 0, 0))
		return 0;
	return check->bss->word_error ? 0 : check->bss->word_read;
}

static uint64_t base_from_kcore(struct check_pagetable_bpf *check)
{
	uint64_t base = 0;
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	int i, fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);

	(void)check;
	if (fd < 0)
		return 0;
	if (pread(fd, &header, sizeof(header), 0) == sizeof(header)) {
		for (i = 0; i < header.e_phnum && !base; i++) {
			if (pread(fd, &segment, sizeof(segment),
				  header.e_phoff + i * sizeof(segment)) != sizeof(segment))
				break;
			if (segment.p_type == PT_LOAD && segment.p_vaddr < KERNEL_TEXT &&
			    segment.p_paddr != (Elf64_Addr)-1)
				base = segment.p_vaddr - segment.p_paddr;
			if (base & ((1UL << 30) - 1))
				base = 0;
		}
	}
	close(fd);
	return base;
}

/*
 * The root of our page tables is in the direct map, which begins at a multiple of 1 GiB (KASLR:
 * arch/x86/mm/kaslr.c), no further below the root than the size of memory and its holes.
 */
static uint64_t base_below_root(struct check_pagetable_bpf *check, const uint64_t *page,
				uint32_t levels)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * PAGE, base, steps;

	/* The walk reports its root whatever the base. */
	own_frame(check, page, DEFAULT_BASE_4, levels);
	base = check->bss->walked_root & ~(GIB - 1);
	for (steps = 2 * memory / GIB + HOLES; base && steps; steps--, base -= GIB)
		if (base_is_right(check, page, base, levels))
			return base;
	return 0;
}

static uint64_t base_of_4_levels(struct check_pagetable_bpf *check)
{
	(void)check;
	return DEFAULT_BASE_4;
}

static uint64_t base_of_5_levels(struct check_pagetable_bpf *check)
{
	(void)check;
	return DEFAULT_BASE_5;
}

static const struct way {
	uint64_t (*find)(struct check_pagetable_bpf *check);
	const char *source;
} ways[] = {
	{ base_from_symbol, "kernel symbol page_offset_base" },
	{ base_from_kcore, "/proc/kcore" },
	{ base_of_4_levels, "the kernel's default, proved on our own page" },
	{ base_of_5_levels, "the kernel's default, proved on our own page" },
};

#define WAYS (sizeof(ways) / sizeof(*ways))

static bool levels_found(struct check_pagetable_bpf *check, const uint64_t *page, uint64_t base,
			 struct pagetable *pagetable)
{
	uint32_t levels;

	for (levels = 4; levels <= 5; levels++) {
		if (!base_is_right(check, page, base, levels))
			continue;
		pagetable->page_offset = base;
		pagetable->levels = levels;
		return true;
	}
	return false;
}

/* What an earlier start has found during this boot, whose proof is made again. */
struct kept_base {
	uint64_t base;
	uint64_t way;
};

static int find_base(struct check_pagetable_bpf *check, const uint64_t *page,
		     struct pagetable *pagetable)
{
	struct kept_base kept;
	uint32_t levels;

	if (boot_cache_read(KIND, "", &kept, sizeof(kept)) && kept.way < WAYS &&
	    levels_found(check, page, kept.base, pagetable)) {
		pagetable->source = ways[kept.way].source;
		return 0;
	}
	for (kept.way = 0; kept.way < WAYS; kept.way++) {
		kept.base = ways[kept.way].find(check);
		if (!levels_found(check, page, kept.base, pagetable))
			continue;
		pagetable->source = ways[kept.way].source;
		boot_cache_write(KIND, "", &kept, sizeof(kept));
		return 0;
	}
	for (levels = 4; levels <= 5; levels++) {
		pagetable->page_offset = base_below_root(check, page, levels);
		pagetable->levels = levels;
		pagetable->source = "our own page tables, proved on our own page";
		if (pagetable->page_offset)
			return 0;
	}
	return -ENOTSUP;
}

/* Reading untouched anonymous memory maps the shared zero page, or the huge one. */
static void find_zero_pages(struct check_pagetable_bpf *check, char *page,
			    struct pagetable *pagetable)
{
	volatile char *byte = page;
	uintptr_t aligned;
	char *huge;

	(void)*byte;
	pagetable->zero_pfn = own_frame(check, page, pagetable->page_offset, pagetable->levels);
	huge = mmap(NULL, 2 * HUGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (huge == MAP_FAILED)
		return;
	aligned = ((uintptr_t)huge + HUGE - 1) & ~(HUGE - 1);
	if (!madvise((void *)aligned, HUGE, MADV_HUGEPAGE)) {
		byte = (char *)aligned;
		(void)*byte;
		pagetable->huge_zero_pfn = own_frame(check, (void *)aligned, pagetable->page_offset,
						     pagetable->levels);
	}
	/* A huge zero page begins on a huge boundary; anything else is the small one. */
	if (pagetable->huge_zero_pfn % (HUGE / PAGE) ||
	    pagetable->huge_zero_pfn == pagetable->zero_pfn)
		pagetable->huge_zero_pfn = 0;
	pagetable->huge_mapping = huge;
}

/* Sizes below a huge page that are on (admin-guide/mm/transhuge.rst). */
static uint32_t find_mthp_orders(void)
{
	bool inherited = huge_pages_chosen(HUGE_PAGES_CONTROL, "always") ||
			 huge_pages_chosen(HUGE_PAGES_CONTROL, "madvise");
	uint32_t orders = 0, order;
	char path[96];

	for (order = 1; PAGE << order < HUGE; order++) {
		snprintf(path, sizeof(path),
			 "/sys/kernel/mm/transparent_hugepage/hugepages-%lukB/enabled",
			 (PAGE << order) / 1024);
		if (huge_pages_chosen(path, "always") || huge_pages_chosen(path, "madvise") ||
		    (inherited && huge_pages_chosen(path, "inherit")))
			orders |= 1U << order;
	}
	return orders;
}

/* From a task to the root of its page tables. */
struct offsets {
	int64_t mm;
	int64_t pgd;
};

static int ask_offsets(struct offsets *found)
{
	struct btf *btf = btf__load_vmlinux_btf();

	if (!btf)
		return -errno;
	found->mm = kernel_member_at(btf, "task_struct", "mm");
	found->pgd = kernel_member_at(btf, "mm_struct", "pgd");
	btf__free(btf);
	return found->mm < 0 || found->pgd < 0 ? -ENOENT : 0;
}

/* NULL with errno set. */
static struct check_pagetable_bpf *check_load(const struct offsets *offsets)
{
	struct check_pagetable_bpf *check = check_pagetable_bpf__open();
	int err;

	if (!check)
		return NULL;
	check->rodata->cfg_mm_at = offsets->mm;
	check->rodata->cfg_pgd_at = offsets->pgd;
	bpf_program__set_autoload(check->progs.check_walk, true);
	bpf_program__set_autoload(check->progs.check_word, true);
	err = check_pagetable_bpf__load(check);
	if (!err)
		return check;
	check_pagetable_bpf__destroy(check);
	errno = -err;
	return NULL;
}

/* The first page holds random words, the second was never touched. */
static int prove(const struct offsets *offsets, char *pages, struct pagetable *pagetable)
{
	struct check_pagetable_bpf *check = check_load(offsets);
	int err;

	if (!check)
		return -errno;
	err = find_base(check, (uint64_t *)pages, pagetable);
	if (!err)
		find_zero_pages(check, pages + PAGE, pagetable);
	check_pagetable_bpf__destroy(check);
	return err;
}

static int find(char *pages, struct pagetable *pagetable)
{
	struct offsets offsets;
	int err;

	if (boot_cache_read(OFFSETS_KIND, OFFSETS_KEY, &offsets, sizeof(offsets)) &&
	    !prove(&offsets, pages, pagetable))
		return 0;
	err = ask_offsets(&offsets);
	if (!err)
		err = prove(&offsets, pages, pagetable);
	if (!err)
		boot_cache_write(OFFSETS_KIND, OFFSETS_KEY, &offsets, sizeof(offsets));
	return err;
}

int pagetable_find(struct pagetable *pagetable)
{
	char *pages;
	int err;

	memset(pagetable, 0, sizeof(*pagetable));
	pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return -ENOMEM;
	/* One page to write, for the proof, one only to read; no huge page, whose entry differs. */
	madvise(pages, 2 * PAGE, MADV_NOHUGEPAGE);
	err = getrandom(pages, SECRET_WORDS * sizeof(uint64_t), 0) < 0 ? -errno :
									 find(pages, pagetable);
	pagetable->mthp_orders = find_mthp_orders();
	munmap(pages, 2 * PAGE);
	return err;
}

void pagetable_release(struct pagetable *pagetable)
{
	if (pagetable->huge_mapping)
		munmap(pagetable->huge_mapping, 2 * HUGE);
	pagetable->huge_mapping = NULL;
}
