/* SPDX-License-Identifier: GPL-2.0 */
/*
 * memory.h: areas and page tables of the test's process, and faults in them.
 *
 * Page tables as the Intel SDM has them, vol. 3A, 4.5: 512 entries of 8 bytes, the index of the
 * lowest level in bits 12 to 20 of the address, of each higher one in the nine bits above. Levels
 * here are the kernel's: 1 pte, 2 pmd, 3 pud, 4 p4d (the root where there are four), 5 pgd.
 */
#ifndef TESTS_BPF_MEMORY_H
#define TESTS_BPF_MEMORY_H

#include "tests/bpf/native.h"
#include "tests/bpf/page_cache.h"

/* Bits of an entry: SDM tables 4-15 to 4-20; PROT_NONE: _PAGE_BIT_PROTNONE in pgtable_types.h. */
#define P (1ULL << 0)
#define RW (1ULL << 1)
#define US (1ULL << 2)
#define ACCESSED (1ULL << 5)
#define DIRTY (1ULL << 6)
#define PS (1ULL << 7)
#define PROT_NONE (1ULL << 8)
#define USERFAULT (1ULL << 10)
#define XD (1ULL << 63)
#define PAGE_BITS (P | RW | US | ACCESSED | DIRTY | XD)

/*
 * Where the direct map begins, by default, and with five levels
 * (Documentation/arch/x86/x86_64/mm.rst).
 */
#define DIRECT_4 0xffff888000000000ULL
#define DIRECT_5 0xff11000000000000ULL

#define FIRST_TABLE 0x1000ULL /* frames of page tables, one after another */

static struct {
	unsigned levels;
	__u64 direct;
	__u64 next; /* frame of the next table */
} tables;

/* A series that is being read, run by run. */
static struct {
	const struct memtoll_series *series;
	unsigned at;
	__u64 address;
	int files; /* told of before the runs */
} reading;

/* A present entry of a page frame. */
static inline __u64 page_entry(__u64 frame)
{
	return frame << 12 | PAGE_BITS;
}

/*
 * __swp_entry() and __swp_entry_to_pte() of arch/x86/include/asm/pgtable_64.h: the offset inverted.
 */
static inline __u64 swap_entry(__u64 type, __u64 offset)
{
	return ~offset << 14 >> 5 | type << 59;
}

static inline void tables_begin(unsigned levels)
{
	reading.series = NULL;
	tables.levels = levels;
	tables.direct = levels == 5 ? DIRECT_5 : DIRECT_4;
	tables.next = FIRST_TABLE + 1;
	KNOB(cfg_page_levels, levels);
	KNOB(cfg_page_offset, tables.direct);
	host.mm.pgd = (pgd_t *)(tables.direct + (FIRST_TABLE << 12));
	kernel_poke_word(KERNEL, (__u64)host.mm.pgd, 0);
}

/* Where the entry of this level for the address is; tables above it are made. */
static inline __u64 entry_place(__u64 address, unsigned level)
{
	__u64 table = (__u64)host.mm.pgd, place, entry;
	unsigned at;

	for (at = tables.levels;; at--) {
		place = table + (address >> (12 + 9 * (at - 1)) & 511) * 8;
		if (at == level)
			return place;
		entry = kernel_peek_word(KERNEL, place);
		if (!entry) {
			entry = tables.next << 12 | P | RW | US | ACCESSED;
			kernel_poke_word(KERNEL, place, entry);
			kernel_poke_word(KERNEL, tables.direct + (tables.next << 12), 0);
			tables.next++;
		}
		table = tables.direct + (entry & 0x000ffffffffff000ULL);
	}
}

static inline void set_entry(__u64 address, unsigned level, __u64 entry)
{
	kernel_poke_word(KERNEL, entry_place(address, level), entry);
}

/* The area [start, end); flags: VM_*, besides reading and writing. It stays the caller's. */
static inline void add_area(struct vm_area_struct *area, __u64 start, __u64 end, __u64 flags)
{
	flags |= 3; /* VM_READ, VM_WRITE */
	memset(area, 0, sizeof(*area));
	area->vm_start = start;
	area->vm_end = end;
	area->vm_mm = &host.mm;
	/* Constant for all but the kernel's own functions. */
	memcpy((void *)&area->vm_flags, &flags, sizeof(flags));
	kernel_object(area, sizeof(*area));
	kernel_area(area, start, end);
}

/* A file, mapped by an area: from its first page on, or as vm_pgoff says. */
struct mapped_file {
	struct file file;
	struct page_cache cache;
	struct inode inode;
	struct super_block super_block;
	struct dentry dentry;
	char name[32];
};

static inline void set_file(struct vm_area_struct *area, struct mapped_file *mapped, __u64 magic)
{
	static struct vm_operations_struct operations;

	memset(mapped, 0, sizeof(*mapped));
	strcpy(mapped->name, "data");
	mapped->file.f_inode = &mapped->inode;
	memcpy((void *)&mapped->file.f_path.dentry, &(void *){ &mapped->dentry }, sizeof(void *));
	mapped->inode.i_sb = &mapped->super_block;
	mapped->inode.i_ino = 104729;
	mapped->super_block.s_magic = magic;
	mapped->super_block.s_dev = 8 << 20 | 1;
	memcpy((void *)&mapped->dentry.d_name.name, &(void *){ mapped->name }, sizeof(void *));
	kernel_object(mapped, sizeof(*mapped));
	mapped->file.f_mapping = &mapped->cache.mapping;
	area->vm_file = &mapped->file;
	area->vm_ops = &operations;
}

/* A page fault's error code: SDM vol. 3A, 4.7. */
#define FAULT_BIT_P 1
#define FAULT_BIT_WRITE 2
#define FAULT_BIT_USER 4
#define WRITES (FAULT_BIT_WRITE | FAULT_BIT_USER)
#define READS FAULT_BIT_USER

/* The thread's instruction at ip faults on this address. */
static inline void fault_at(__u64 address, __u64 ip, __u64 error)
{
	__u64 args[3] = { address, (__u64)&host.regs, error };

	host.regs.ip = ip;
	fault_begin((struct bpf_raw_tracepoint_args *)args);
}

/* All that is open is sent. */
static inline void drain(void)
{
	struct bpf_iter__task context = { .task = &host.task };

	drain_threads(&context);
}

/* The next run, which may be one of a series: what that does not say is as it must have been. */
static inline struct memtoll_run next_run(void)
{
	const struct memtoll_series *series = reading.series;
	const struct memtoll_plain_run *plain;
	const __u32 *record;
	struct memtoll_run run;

	if (!series) {
		while ((record = kernel_ring_take(&events, NULL, NULL))) {
			reading.files += *record == EVENT_FILE;
			if (*record != EVENT_STACK && *record != EVENT_FILE)
				break;
		}
		if (!record)
			fail_msg("there are no more runs");
		if (*record == EVENT_RUN)
			return *(const struct memtoll_run *)record;
		assert_int_equal(*record, EVENT_SERIES);
		reading.series = series = (const struct memtoll_series *)record;
		reading.at = 0;
		reading.address = series->address;
	}
	plain = &series->runs[reading.at];
	run = (struct memtoll_run){
		.kind = EVENT_RUN,
		.tgid = series->tgid,
		.tid = series->tid,
		.fault_class = series->fault_class,
		.area = series->area,
		.flags = plain->flags,
		.address = reading.address,
		.pages = plain->pages,
		.faults = plain->pages,
		.first_ns = series->first_ns + plain->first_after_ns,
		.last_ns = series->first_ns + plain->last_after_ns,
		.ip = plain->ip,
		.stack_id = plain->stack_id,
		.inode = series->inode,
		.dev = series->dev,
	};
	reading.address += plain->pages * MEMTOLL_PAGE_SIZE;
	if (++reading.at == series->count)
		reading.series = NULL;
	return run;
}

#endif /* TESTS_BPF_MEMORY_H */
