// SPDX-License-Identifier: GPL-2.0
/*
 * What a fault was, from the page-table entry at its start and how it ended: the table of
 * doc/architecture.md. The whole way of the programs: a fault begins, ends, and its run is read.
 */
#include "tests/bpf/memory.h"

#define AREA_START 0x7f1200000000ULL
#define AREA_END 0x7f1200800000ULL
#define PAGE (AREA_START + 0x123000)
#define IP 0x401136ULL
#define ZERO_FRAME 0x2a3fULL
#define HUGE_ZERO_FRAME 0x12200ULL

/* include/linux/mm.h */
#define VM_SHARED 0x8
#define VM_MAYSHARE 0x80
#define VM_HUGETLB 0x00400000
#define VM_UFFD_MISSING 0x200
#define VM_PFNMAP 0x400
#define VM_UFFD_WP 0x1000
#define VM_IO 0x4000
#define VM_MIXEDMAP 0x10000000
/* include/uapi/linux/magic.h */
#define TMPFS_MAGIC 0x01021994
#define EXT4_SUPER_MAGIC 0xef53

enum where { ANONYMOUS, PRIVATE_FILE, SHARED_FILE, SHARED_MEMORY, PRIVATE_MEMORY, HUGETLB };

/* Of the area in its file, in pages. */
#define OFFSET 104729

static struct vm_area_struct area;
static struct mapped_file file;

static void begin(enum where where)
{
	static const unsigned flags[] = {
		[SHARED_FILE] = VM_SHARED | VM_MAYSHARE,
		[SHARED_MEMORY] = VM_SHARED | VM_MAYSHARE,
		[HUGETLB] = VM_HUGETLB,
	};

	host_begin();
	tables_begin(4);
	KNOB(cfg_zero_pfn, ZERO_FRAME);
	KNOB(cfg_huge_zero_pfn, HUGE_ZERO_FRAME);
	add_area(&area, AREA_START, AREA_END,
		 where < sizeof(flags) / sizeof(flags[0]) ? flags[where] : 0);
	if (where == PRIVATE_FILE || where == SHARED_FILE)
		set_file(&area, &file, EXT4_SUPER_MAGIC);
	else if (where == SHARED_MEMORY || where == PRIVATE_MEMORY)
		set_file(&area, &file, TMPFS_MAGIC);
	area.vm_pgoff = OFFSET;
}

/* Constant for all but the kernel's own functions. */
static void change_area(__u64 add, __u64 remove)
{
	__u64 flags = (area.vm_flags | add) & ~remove;

	memcpy((void *)&area.vm_flags, &flags, sizeof(flags));
}

/* The last table is there, as a rule. */
static void set_page(__u64 entry)
{
	set_entry(PAGE, 1, entry);
}

enum end { MIN, MAJ };

/* The run of the one fault that has begun, which ends so. */
static struct memtoll_run end_fault(enum end end)
{
	ends_seen = 1;
	if (end == MAJ)
		fault_end_major(NULL);
	else
		fault_end_minor(NULL);
	drain();
	return next_run();
}

static int class_of(__u64 error, enum end end)
{
	struct memtoll_run run;
	int class;

	fault_at(PAGE + 0x7d1, IP, error);
	run = end_fault(end);
	class = run.fault_class;
	assert_int_equal(run.address, PAGE);
	assert_int_equal(run.pages, 1);
	assert_int_equal(run.faults, 1);
	assert_int_equal(run.flags & RUN_MAJOR, end == MAJ ? RUN_MAJOR : 0);
	assert_int_equal(run.flags & RUN_WRITE, error & FAULT_BIT_WRITE ? RUN_WRITE : 0);
	assert_int_equal(run.flags & RUN_KERNEL_MODE, error & FAULT_BIT_USER ? 0 : RUN_KERNEL_MODE);
	assert_no_event();
	return class;
}

struct row {
	enum where where;
	__u64 entry;
	__u64 error;
	enum end end;
	int expected;
};

static void check(const struct row *rows, size_t count)
{
	const struct row *row;
	int class;

	for (row = rows; row < rows + count; row++) {
		memset(&file, 0, sizeof(file));
		begin(row->where);
		set_page(row->entry);
		class = class_of(row->error, row->end);
		if (class != row->expected)
			fail_msg("row %zd: class %d, not %d", row - rows, class, row->expected);
		assert_lost_only(0, 0);
	}
}

#define CHECK(rows) check(rows, sizeof(rows) / sizeof((rows)[0]))

static void test_empty_entry(void **state)
{
	static const struct row rows[] = {
		{ ANONYMOUS, 0, WRITES, MIN, FAULT_ZERO },
		{ ANONYMOUS, 0, READS, MIN, FAULT_ZERO_READ },
		{ ANONYMOUS, 0, FAULT_BIT_WRITE, MIN, FAULT_ZERO },
		{ PRIVATE_FILE, 0, READS, MIN, FAULT_FILE },
		{ PRIVATE_FILE, 0, READS, MAJ, FAULT_FILE },
		{ PRIVATE_FILE, 0, WRITES, MIN, FAULT_COW },
		{ SHARED_FILE, 0, READS, MIN, FAULT_FILE },
		{ SHARED_FILE, 0, WRITES, MIN, FAULT_FILE },
		{ SHARED_FILE, 0, WRITES, MAJ, FAULT_FILE },
		/* Cleared when it is taken from the pool. */
		{ HUGETLB, 0, WRITES, MIN, FAULT_ZERO_HUGE },
		{ HUGETLB, 0, READS, MIN, FAULT_ZERO_HUGE },
	};

	CHECK(rows);
}

/* The same in shared memory: its file knows whether there is a page, and where. */
static void test_empty_entry_of_shared_memory(void **state)
{
	const __u64 swapped = CACHE_VALUE(5ULL << 58 | 4099);
	const struct {
		enum where where;
		__u64 cached;
		__u64 error;
		enum end end;
		int expected;
		__u32 device;
	} rows[] = {
		{ SHARED_MEMORY, 0, READS, MIN, FAULT_SHARED_ZERO, 0 },
		{ SHARED_MEMORY, 0, WRITES, MIN, FAULT_SHARED_ZERO, 0 },
		{ SHARED_MEMORY, 0, FAULT_BIT_WRITE, MIN, FAULT_SHARED_ZERO, 0 },
		{ SHARED_MEMORY, CACHE_FOLIO, READS, MIN, FAULT_SHARED, 0 },
		{ SHARED_MEMORY, CACHE_FOLIO, WRITES, MIN, FAULT_SHARED, 0 },
		{ SHARED_MEMORY, swapped, READS, MAJ, FAULT_SWAP, 5 },
		{ SHARED_MEMORY, swapped, WRITES, MAJ, FAULT_SWAP, 5 },
		/* It is in the swap cache. */
		{ SHARED_MEMORY, swapped, WRITES, MIN, FAULT_SWAP, 5 },
		/* It went there after its slot was looked at. */
		{ SHARED_MEMORY, CACHE_FOLIO, READS, MAJ, FAULT_SWAP, 0 },
		{ SHARED_MEMORY, 0, WRITES, MAJ, FAULT_SWAP, 0 },
		/* A copy of one's own of the page, which must be there first. */
		{ PRIVATE_MEMORY, 0, WRITES, MIN, FAULT_COW, 0 },
		{ PRIVATE_MEMORY, CACHE_FOLIO, WRITES, MIN, FAULT_COW, 0 },
		{ PRIVATE_MEMORY, swapped, WRITES, MAJ, FAULT_SWAP, 5 },
		{ PRIVATE_MEMORY, 0, READS, MIN, FAULT_SHARED_ZERO, 0 },
		{ PRIVATE_MEMORY, CACHE_FOLIO, READS, MIN, FAULT_FILE, 0 },
		{ PRIVATE_MEMORY, swapped, READS, MAJ, FAULT_SWAP, 5 },
	};
	struct memtoll_run run;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(rows[i].where);
		set_page(0);
		/* A neighbour, so that there is a tree. */
		cache_put(&file.cache, 0, 0, CACHE_FOLIO);
		cache_put(&file.cache, (PAGE - AREA_START) / MEMTOLL_PAGE_SIZE + OFFSET, 0,
			  rows[i].cached);
		fault_at(PAGE, IP, rows[i].error);
		run = end_fault(rows[i].end);
		if (run.fault_class != rows[i].expected)
			fail_msg("row %zd: class %d, not %d", i, run.fault_class, rows[i].expected);
		assert_int_equal(run.swap_type, rows[i].device);
		assert_lost_only(0, 0);
	}
}

/* What is in the page cache's tree was not found: the end of the fault alone tells. */
/* fallocate() made it: it is in the page cache, but not cleared yet. */
static void test_page_without_content(void **state)
{
	static struct folio folio;
	int filled;

	for (filled = 0; filled < 2; filled++) {
		__u64 flags = filled ? 1ULL << PG_uptodate : 0;

		begin(SHARED_MEMORY);
		kernel_object(&folio, sizeof(folio));
		memcpy((void *)&folio, &flags, sizeof(flags));
		set_page(0);
		cache_put(&file.cache, (PAGE - AREA_START) / MEMTOLL_PAGE_SIZE + OFFSET, 0,
			  (__u64)&folio);
		fault_at(PAGE, IP, WRITES);
		assert_int_equal(end_fault(MIN).fault_class,
				 filled ? FAULT_SHARED : FAULT_SHARED_ZERO);
	}
}

static void test_page_cache_is_unknown(void **state)
{
	begin(SHARED_MEMORY);
	cache_put(&file.cache, (PAGE - AREA_START) / MEMTOLL_PAGE_SIZE + OFFSET, 0, CACHE_FOLIO);
	cache_node_of(file.cache.mapping.i_pages.xa_head)->array = NULL;
	set_page(0);
	fault_at(PAGE, IP, READS);
	assert_int_equal(end_fault(MIN).fault_class, FAULT_SHARED);
	assert_lost_only(LOST_PAGE_CACHE, 1);
	fault_at(PAGE, IP, READS);
	assert_int_equal(end_fault(MAJ).fault_class, FAULT_SWAP);
}

static void test_present_entry(void **state)
{
	const __u64 zero = page_entry(ZERO_FRAME) & ~RW, other = page_entry(0x77777) & ~RW;
	const __u64 present = FAULT_BIT_P;
	const struct row rows[] = {
		{ ANONYMOUS, zero, WRITES | present, MIN, FAULT_ZERO_UPGRADE },
		{ PRIVATE_FILE, other, WRITES | present, MIN, FAULT_REUSE },
		{ SHARED_FILE, other, WRITES | present, MIN, FAULT_FILE },
		{ SHARED_MEMORY, other, WRITES | present, MIN, FAULT_SHARED },
		/* Another thread's fault was quicker. */
		{ ANONYMOUS, other, READS, MIN, FAULT_OTHER },
		{ ANONYMOUS, zero, READS, MIN, FAULT_OTHER },
		/* A hint for NUMA: present, but for the MMU. */
		{ ANONYMOUS, (page_entry(0x77777) & ~P) | PROT_NONE, READS, MIN, FAULT_OTHER },
	};

	CHECK(rows);
}

/* What a userfaultfd's handler is asked for, by how the area is registered. */
static void test_userfaultfd(void **state)
{
	const __u64 protected = (page_entry(0x77777) & ~RW) | USERFAULT, present = FAULT_BIT_P;
	const struct {
		enum where where;
		unsigned flags;
		__u64 entry, error;
		int expected;
	} rows[] = {
		{ ANONYMOUS, VM_UFFD_MISSING, 0, READS, FAULT_USER },
		{ ANONYMOUS, VM_UFFD_MISSING, 0, WRITES, FAULT_USER },
		{ ANONYMOUS, VM_UFFD_MISSING | VM_UFFD_WP, 0, WRITES, FAULT_USER },
		{ HUGETLB, VM_UFFD_MISSING, 0, WRITES, FAULT_USER },
		/* Of write protection alone it is not asked for what is not there. */
		{ ANONYMOUS, VM_UFFD_WP, 0, WRITES, FAULT_ZERO },
		{ ANONYMOUS, VM_UFFD_WP, protected, WRITES | present, FAULT_USER },
		{ ANONYMOUS, VM_UFFD_WP, protected & ~USERFAULT, WRITES | present, FAULT_REUSE },
		{ ANONYMOUS, VM_UFFD_WP, swap_entry(31, 4), WRITES, FAULT_USER },
		{ ANONYMOUS, VM_UFFD_WP, swap_entry(31, 4), READS, FAULT_OTHER },
		{ ANONYMOUS, VM_UFFD_MISSING, swap_entry(3, 4), WRITES, FAULT_SWAP },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(rows[i].where);
		change_area(rows[i].flags, 0);
		area.vm_userfaultfd_ctx.ctx = (void *)KERNEL;
		set_page(rows[i].entry);
		assert_int_equal(class_of(rows[i].error, i % 2 ? MAJ : MIN), rows[i].expected);
	}
}

/* It is registered after a thread has been there: who has slept looks again. */
static void test_userfaultfd_later(void **state)
{
	begin(ANONYMOUS);
	fault_at(PAGE, IP, WRITES);
	assert_int_equal(end_fault(MIN).fault_class, FAULT_ZERO);
	change_area(VM_UFFD_MISSING, 0);
	area.vm_userfaultfd_ctx.ctx = (void *)KERNEL;
	host.task.nvcsw++;
	fault_at(PAGE + 0x5000, IP, WRITES);
	assert_int_equal(end_fault(MIN).fault_class, FAULT_USER);
}

/* Nothing is cleared where there are no pages, or where the answer is a signal. */
static void test_no_page_of_the_kernels(void **state)
{
	const __u64 present = page_entry(0x77777) & ~RW;
	const struct {
		enum where where;
		unsigned flags, without;
		__u64 entry, error;
		int expected;
	} rows[] = {
		{ ANONYMOUS, VM_PFNMAP, 0, 0, READS, FAULT_OTHER },
		{ PRIVATE_FILE, VM_IO, 0, 0, WRITES, FAULT_OTHER },
		{ ANONYMOUS, VM_MIXEDMAP, 0, 0, READS, FAULT_OTHER },
		{ SHARED_FILE, VM_PFNMAP, 0, present, WRITES | FAULT_BIT_P, FAULT_OTHER },
		{ ANONYMOUS, 0, 2, 0, WRITES, FAULT_FORBIDDEN },
		{ ANONYMOUS, 0, 2, 0, READS, FAULT_ZERO_READ },
		{ ANONYMOUS, 0, 3, 0, READS, FAULT_FORBIDDEN },
		{ ANONYMOUS, 0, 2, present, WRITES | FAULT_BIT_P, FAULT_FORBIDDEN },
		{ ANONYMOUS, 0, 0, swap_entry(22, 4), READS, FAULT_SWAP },
		{ ANONYMOUS, 0, 0, swap_entry(24, 4), READS, FAULT_MOVED },
		{ PRIVATE_FILE, 0, 0, swap_entry(26, 4), WRITES, FAULT_MOVED },
		{ ANONYMOUS, 0, 0, swap_entry(31, 4), WRITES, FAULT_OTHER },
	};
	struct memtoll_run run;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(rows[i].where);
		change_area(rows[i].flags, rows[i].without);
		set_page(rows[i].entry);
		fault_at(PAGE, IP, rows[i].error);
		run = end_fault(MIN);
		assert_int_equal(run.fault_class, rows[i].expected);
		assert_int_equal(run.area == AREA_DEVICE, rows[i].flags != 0);
	}
}

/* A frame of 0 means that it was not found: then page frame 0 is not the zero page. */
static void test_zero_page_unknown(void **state)
{
	begin(ANONYMOUS);
	KNOB(cfg_zero_pfn, 0);
	set_page(page_entry(0) & ~RW);
	assert_int_not_equal(class_of(WRITES | FAULT_BIT_P, MIN), FAULT_ZERO_UPGRADE);
}

/* Whether the frame is another afterwards tells a copy from a page that had become private. */
static void test_copy_or_reuse(void **state)
{
	begin(ANONYMOUS);
	set_page(page_entry(0x77777) & ~RW);
	fault_at(PAGE, IP, WRITES | FAULT_BIT_P);
	set_page(page_entry(0x77779));
	assert_int_equal(end_fault(MIN).fault_class, FAULT_COW);

	begin(ANONYMOUS);
	set_page(page_entry(0x77777) & ~RW);
	fault_at(PAGE, IP, WRITES | FAULT_BIT_P);
	set_page(page_entry(0x77777));
	assert_int_equal(end_fault(MIN).fault_class, FAULT_REUSE);
}

static void test_huge_entries(void **state)
{
	struct memtoll_run run;

	/* The huge zero page, written to: it is split, or replaced by a huge page. */
	begin(ANONYMOUS);
	set_entry(PAGE, 2, (page_entry(HUGE_ZERO_FRAME) | PS) & ~RW);
	fault_at(PAGE, IP, WRITES | FAULT_BIT_P);
	set_entry(PAGE, 2, page_entry(0x14000) | PS);
	run = end_fault(MIN);
	assert_int_equal(run.fault_class, FAULT_ZERO_HUGE);
	assert_int_equal(run.pages, 512);
	assert_int_equal(run.address, PAGE & ~0x1fffffULL);

	begin(ANONYMOUS);
	set_entry(PAGE, 2, (page_entry(HUGE_ZERO_FRAME) | PS) & ~RW);
	fault_at(PAGE, IP, WRITES | FAULT_BIT_P);
	set_entry(PAGE, 2, 0);
	set_page(page_entry(0x14007));
	run = end_fault(MIN);
	assert_int_equal(run.fault_class, FAULT_ZERO_UPGRADE);
	assert_int_equal(run.pages, 1);

	/* Another huge page, shared since a fork: copied as a whole, or page by page. */
	begin(ANONYMOUS);
	set_entry(PAGE, 2, (page_entry(0x14000) | PS) & ~RW);
	fault_at(PAGE, IP, WRITES | FAULT_BIT_P);
	set_entry(PAGE, 2, 0);
	set_page(page_entry(0x99999));
	run = end_fault(MIN);
	assert_int_equal(run.fault_class, FAULT_COW);
	assert_int_equal(run.pages, 1);

	begin(ANONYMOUS);
	set_entry(PAGE, 2, (page_entry(0x14000) | PS) & ~RW);
	fault_at(PAGE, IP, WRITES | FAULT_BIT_P);
	set_entry(PAGE, 2, page_entry(0x14000) | PS);
	run = end_fault(MIN);
	assert_int_equal(run.fault_class, FAULT_REUSE);
}

static void test_swap(void **state)
{
	const __u64 first = swap_entry(0, 0), some = swap_entry(22, 0xabcdef1);
	const struct row rows[] = {
		{ ANONYMOUS, first, READS, MIN, FAULT_SWAP },
		{ ANONYMOUS, some, WRITES, MIN, FAULT_SWAP },
		{ ANONYMOUS, some, WRITES, MAJ, FAULT_SWAP },
		{ ANONYMOUS, first, FAULT_BIT_WRITE, MAJ, FAULT_SWAP },
		/* A private page of a file's mapping may be on swap, too. */
		{ PRIVATE_FILE, some, READS, MAJ, FAULT_SWAP },
		/*
		 * include/linux/swap.h: MAX_SWAPFILES is 23 where all the special types are built
		 * in.
		 */
		{ ANONYMOUS, swap_entry(23, 0x1234), READS, MIN, FAULT_OTHER },
		{ ANONYMOUS, swap_entry(31, 0x1234), READS, MIN, FAULT_OTHER },
	};

	CHECK(rows);
}

static void test_swap_device_is_kept(void **state)
{
	struct memtoll_run run;

	begin(ANONYMOUS);
	set_page(swap_entry(5, 0x1234));
	fault_at(PAGE, IP, READS);
	run = end_fault(MAJ);
	assert_int_equal(run.fault_class, FAULT_SWAP);
	assert_int_equal(run.swap_type, 5);
}

/* Where a major one's page came from; the slowest decides, and of a minor one it is not asked. */
static void test_swap_source(void **state)
{
	static const struct {
		__u32 device, zswap, zero;
		enum end end;
		int expected;
	} rows[] = {
		{ 0, 0, 0, MAJ, FAULT_SWAP },	    { 1, 0, 0, MAJ, FAULT_SWAP },
		{ 0, 1, 0, MAJ, FAULT_SWAP_ZSWAP }, { 0, 0, 1, MAJ, FAULT_SWAP_ZERO },
		{ 1, 7, 3, MAJ, FAULT_SWAP },	    { 0, 1, 3, MAJ, FAULT_SWAP_ZSWAP },
		{ 0, 1, 0, MIN, FAULT_SWAP },
	};
	struct open_fault *fault;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(ANONYMOUS);
		set_page(swap_entry(0, 0x1234));
		fault_at(PAGE, IP, READS);
		fault = &host_thread()->fault;
		fault->in_device = rows[i].device;
		fault->in_zswap = rows[i].zswap;
		fault->in_zero = rows[i].zero;
		assert_int_equal(end_fault(rows[i].end).fault_class, rows[i].expected);
	}
}

/* No tables: nothing is known of the fault, and that is said. */
static void test_walk_fails(void **state)
{
	begin(ANONYMOUS);
	host.mm.pgd = NULL;
	fault_at(PAGE, IP, WRITES);
	assert_int_equal(end_fault(MIN).fault_class, FAULT_OTHER);
	assert_lost_only(LOST_WALK_FAILED, 1);
}

/* Where it lies. */
static void test_areas(void **state)
{
	static const struct {
		__u64 start, end, address;
		int expected;
	} rows[] = {
		{ AREA_START, AREA_END, PAGE, AREA_ANON },
		{ HEAP, HEAP_TOP, HEAP + 0x1000, AREA_HEAP },
		{ START_STACK - 0x21000, START_STACK + 0x1000, START_STACK - 0x3000, AREA_STACK },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		host_begin();
		tables_begin(4);
		add_area(&area, rows[i].start, rows[i].end, 0);
		fault_at(rows[i].address, IP, WRITES);
		assert_int_equal(end_fault(MIN).area, rows[i].expected);
		assert_lost_only(0, 0);
	}
	/*
	 * None holds the address: just below the stack it is about to grow, elsewhere it is lost.
	 */
	host_begin();
	tables_begin(4);
	fault_at(START_STACK - 0x100000, IP, WRITES);
	assert_int_equal(end_fault(MIN).area, AREA_STACK);
	assert_lost_only(0, 0);
	host_begin();
	tables_begin(4);
	fault_at(PAGE, IP, WRITES);
	assert_int_equal(end_fault(MIN).area, AREA_UNKNOWN);
	assert_lost_only(LOST_AREA_UNKNOWN, 1);
}

static void test_file_is_named_once(void **state)
{
	const struct memtoll_file *named;

	begin(PRIVATE_FILE);
	set_page(0);
	fault_at(PAGE, IP, READS);
	area_generation++;
	fault_at(PAGE + 0x5000, IP, READS);
	drain();
	named = next_event(EVENT_FILE);
	assert_string_equal(named->name, "data");
	assert_int_equal(named->inode, 104729);
	assert_int_equal(named->tgid, TGID);
	next_run();
	next_run();
	assert_no_event();
}

/* How many of so many files, each in an area of its own, wake userspace. */
static int wakes_for_files(int count)
{
	unsigned long long flags = 0;
	const __u32 *record;
	int i, told = 0, woken = 0;

	for (i = 0; i < count; i++) {
		file.inode.i_ino++;
		area_generation++;
		fault_at(PAGE, IP, READS);
		while ((record = kernel_ring_take(&events, NULL, &flags)))
			if (*record == EVENT_FILE) {
				told++;
				woken += flags == BPF_RB_FORCE_WAKEUP;
			}
	}
	assert_int_equal(told, count);
	return woken;
}

/* Each is an interrupt: a program that maps one after the other has no more than a few. */
static void test_files_wake_for_few(void **state)
{
	begin(PRIVATE_FILE);
	set_page(0);
	woken_until_ns = 0;
	assert_int_equal(wakes_for_files(1009), 64);
	kernel.now_ns += 1000000000;
	assert_int_equal(wakes_for_files(13), 13);
}

/* Of shared anonymous memory each mapping has a file: none is told of, and all are of one. */
static void test_zero_files_have_no_name(void **state)
{
	struct memtoll_run run;
	int i;

	for (i = 0; i < 2; i++) {
		begin(SHARED_MEMORY);
		if (i)
			strcpy(file.name, "dev/zero");
		reading.files = 0;
		set_page(0);
		fault_at(PAGE, IP, WRITES);
		run = end_fault(MIN);
		assert_int_equal(run.area, AREA_SHARED);
		assert_int_equal(run.inode, 104729);
		assert_int_equal(run.flags & RUN_ZERO_FILE, i ? RUN_ZERO_FILE : 0);
		assert_int_equal(reading.files, !i);
	}
}

/* A helper of the kernel's that may not sleep, or an address with a tag: no page will be mapped. */
static void test_no_fault_at_all(void **state)
{
	begin(ANONYMOUS);
	set_page(0);
	host.task.pagefault_disabled = 1;
	fault_at(PAGE, IP, FAULT_BIT_WRITE);
	host.task.pagefault_disabled = 0;
	fault_at(PAGE | 1ULL << 62, IP, FAULT_BIT_WRITE);
	drain();
	assert_no_event();
	/* In user mode it is one. */
	host.task.pagefault_disabled = 1;
	assert_int_equal(class_of(WRITES, MIN), FAULT_ZERO);
}

/* Of a process that is not traced nothing is seen. */
static void test_stranger(void **state)
{
	begin(ANONYMOUS);
	set_page(0);
	host.task.tgid = host.task.pid = TGID + 1;
	fault_at(PAGE, IP, WRITES);
	drain();
	/* Its number's lowest bits are a traced one's. */
	host.task.tgid = host.task.pid = TGID + PROCESS_FILTER_SIZE;
	fault_at(PAGE, IP, WRITES);
	drain();
	assert_no_event();
	assert_lost_only(0, 0);
}

/* As large as the mount says: 2 MiB, 1 GiB; 2 MiB where that cannot be read. */
static void test_size_of_huge_pool(void **state)
{
	static struct super_block sb;
	static struct inode host_inode = { .i_sb = &sb };
	static struct address_space mapping = { .host = &host_inode };
	struct area_cache area = { .mapping = (__u64)&mapping };

	host_begin();
	assert_int_equal(hugetlb_pages(&area), 512);
	kernel_object(&sb, sizeof(sb));
	kernel_object(&host_inode, sizeof(host_inode));
	kernel_object(&mapping, sizeof(mapping));
	sb.s_blocksize_bits = 21;
	assert_int_equal(hugetlb_pages(&area), 512);
	sb.s_blocksize_bits = 30;
	assert_int_equal(hugetlb_pages(&area), 512 * 512);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_entry),
		cmocka_unit_test(test_empty_entry_of_shared_memory),
		cmocka_unit_test(test_page_without_content),
		cmocka_unit_test(test_page_cache_is_unknown),
		cmocka_unit_test(test_present_entry),
		cmocka_unit_test(test_userfaultfd),
		cmocka_unit_test(test_userfaultfd_later),
		cmocka_unit_test(test_no_page_of_the_kernels),
		cmocka_unit_test(test_zero_page_unknown),
		cmocka_unit_test(test_copy_or_reuse),
		cmocka_unit_test(test_huge_entries),
		cmocka_unit_test(test_swap),
		cmocka_unit_test(test_swap_device_is_kept),
		cmocka_unit_test(test_swap_source),
		cmocka_unit_test(test_walk_fails),
		cmocka_unit_test(test_areas),
		cmocka_unit_test(test_file_is_named_once),
		cmocka_unit_test(test_files_wake_for_few),
		cmocka_unit_test(test_zero_files_have_no_name),
		cmocka_unit_test(test_no_fault_at_all),
		cmocka_unit_test(test_stranger),
		cmocka_unit_test(test_size_of_huge_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
