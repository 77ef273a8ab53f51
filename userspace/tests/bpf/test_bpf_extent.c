// SPDX-License-Identifier: GPL-2.0
/* How many pages one fault has mapped, and from where on: memory/page_state.bpf.c. */
#include "tests/bpf/memory.h"

/* Not where a heap of glibc's may begin: its first fault would be asked about twice. */
#define AREA_START 0x7f1201000000ULL
#define AREA_PAGES 8192
#define AT(page) (AREA_START + (page)*MEMTOLL_PAGE_SIZE)
#define IP 0x401136ULL
#define FRAMES 0x50000ULL
#define EXT4_SUPER_MAGIC 0xef53
#define VMEMMAP 0xffffea0000000000ULL

static struct vm_area_struct area;
static struct mapped_file file;

static void begin_area(__u64 start, __u64 end)
{
	host_begin();
	tables_begin(4);
	add_area(&area, start, end, 0);
	set_entry(AREA_START, 1, 0);
}

static void begin(void)
{
	begin_area(AREA_START, AT(AREA_PAGES));
}

/* The kernel maps [from, to), of consecutive frames. */
static void map_pages(__u64 from, __u64 to)
{
	for (; from < to; from++)
		set_entry(AT(from), 1, page_entry(FRAMES + from));
}

static void assert_extent(__u64 page, __u64 pages, int class)
{
	struct memtoll_run run;

	drain();
	run = next_run();
	assert_int_equal(run.address, AT(page));
	assert_int_equal(run.pages, pages);
	assert_int_equal(run.faults, 1);
	assert_int_equal(run.fault_class, class);
	assert_no_event();
}

/* ---- files: do_fault_around() maps what of 16 pages is in the page cache ---- */

static void begin_file(__u64 start)
{
	begin_area(start, AT(AREA_PAGES));
	set_file(&area, &file, EXT4_SUPER_MAGIC);
}

static void test_around(void **state)
{
	static const unsigned touched[] = { 32, 37, 47 };
	size_t i;

	for (i = 0; i < 3; i++) {
		begin_file(AREA_START);
		fault_at(AT(touched[i]) + 77, IP, READS);
		map_pages(32, 48);
		assert_extent(32, 16, FAULT_FILE);
	}
}

static void test_alone(void **state)
{
	begin_file(AREA_START);
	fault_at(AT(37), IP, READS);
	map_pages(37, 38);
	assert_extent(37, 1, FAULT_FILE);
	/* Nothing at all, as far as is seen: one page all the same. */
	begin_file(AREA_START);
	fault_at(AT(37), IP, READS);
	assert_extent(37, 1, FAULT_FILE);
}

/* Those that were mapped before are none of this fault's. */
static void test_some_were_there(void **state)
{
	begin_file(AREA_START);
	map_pages(32, 35);
	map_pages(44, 45);
	fault_at(AT(37), IP, READS);
	map_pages(35, 48);
	assert_extent(35, 12, FAULT_FILE);
}

/* The page cache has only some. */
static void test_with_holes(void **state)
{
	begin_file(AREA_START);
	fault_at(AT(40), IP, READS);
	map_pages(34, 36);
	map_pages(40, 43);
	assert_extent(34, 5, FAULT_FILE);
}

/* Then the 16 begin with the area: from_pte in do_fault_around(). */
static void test_area_begins_within(void **state)
{
	begin_file(AT(39));
	fault_at(AT(40), IP, READS);
	map_pages(39, 55);
	assert_extent(39, 16, FAULT_FILE);
}

static void test_end_of_table(void **state)
{
	begin_file(AREA_START);
	fault_at(AT(511), IP, READS);
	map_pages(496, 512);
	assert_extent(496, 16, FAULT_FILE);
	begin_file(AREA_START);
	fault_at(AT(0), IP, READS);
	map_pages(0, 16);
	assert_extent(0, 16, FAULT_FILE);
}

/* A table that was not there when the fault began. */
static void test_no_table_before(void **state)
{
	begin_file(AREA_START);
	fault_at(AT(512 + 37), IP, READS);
	map_pages(512 + 32, 512 + 48);
	assert_extent(512 + 32, 16, FAULT_FILE);
}

/* A private page that is written to is copied, alone. */
static void test_copied(void **state)
{
	begin_file(AREA_START);
	fault_at(AT(37), IP, WRITES);
	map_pages(32, 48);
	assert_extent(37, 1, FAULT_COW);
}

/* ---- huge pages ---- */

static void test_huge(void **state)
{
	unsigned casts;

	for (casts = 0; casts < 2; casts++) {
		begin();
		KNOB(cfg_casts, casts);
		fault_at(AT(1024 + 301), IP, WRITES);
		set_entry(AT(1024), 2, page_entry(0x14000) | PS);
		assert_extent(1024, 512, FAULT_ZERO_HUGE);
	}
	/* A table came instead. */
	begin();
	fault_at(AT(1024 + 301), IP, WRITES);
	map_pages(1024 + 301, 1024 + 302);
	assert_extent(1024 + 301, 1, FAULT_ZERO);
}

static void test_gigantic(void **state)
{
	const __u64 start = 0x7f1240000000ULL, bytes = 1ULL << 30;
	struct memtoll_run run;

	begin_area(start, start + bytes);
	memcpy((void *)&area.vm_flags, &(__u64){ VM_HUGETLB_FLAG | 3 }, 8);
	fault_at(start + 0x2345678, IP, WRITES);
	set_entry(start, 3, page_entry(0x140000) | PS);
	drain();
	run = next_run();
	assert_int_equal(run.address, start);
	assert_int_equal(run.pages, 262144);
	assert_int_equal(run.fault_class, FAULT_ZERO_HUGE);
}

/* The process has become another program, or gone: its tables are not to be looked at. */
static void test_tables_gone(void **state)
{
	begin();
	fault_at(AT(1024 + 301), IP, WRITES);
	set_entry(AT(1024), 2, page_entry(0x14000) | PS);
	host_thread()->fault.root = 0;
	assert_extent(1024 + 301, 1, FAULT_ZERO);
}

/* ---- folios of anonymous memory ---- */

/* struct page of a folio's pages, as prep_compound_page() leaves them. */
static void add_folio(__u64 frame, unsigned order)
{
	const __u64 head = VMEMMAP + frame * sizeof(struct page);
	unsigned i;

	kernel_poke_word(KERNEL, head + offsetof(struct page, compound_head), 0);
	for (i = 1; i < 1U << order; i++)
		kernel_poke_word(KERNEL,
				 head + i * sizeof(struct page) +
					 offsetof(struct page, compound_head),
				 head | 1);
	kernel_poke_word(KERNEL, head + offsetof(struct folio, _flags_1), 0xab00 | order);
}

/* Sizes of 2^4 and 2^6 pages are allowed. */
static void begin_folios(void)
{
	begin();
	KNOB(cfg_mthp_orders, 1 << 4 | 1 << 6);
	vmemmap_base = VMEMMAP;
}

static void test_folio(void **state)
{
	static const unsigned touched[] = { 48, 53, 63 };
	size_t i;

	for (i = 0; i < 3; i++) {
		begin_folios();
		fault_at(AT(touched[i]), IP, WRITES);
		add_folio(FRAMES + 48, 4);
		map_pages(48, 64);
		assert_extent(48, 16, FAULT_ZERO_MTHP);
	}
}

/* What another thread's fault has mapped beside it meanwhile is of another folio. */
static void test_neighbour(void **state)
{
	begin_folios();
	fault_at(AT(50), IP, WRITES);
	add_folio(FRAMES + 48, 2);
	add_folio(FRAMES + 52, 2);
	map_pages(48, 56);
	assert_extent(48, 4, FAULT_ZERO_MTHP);
	begin_folios();
	fault_at(AT(50), IP, WRITES);
	map_pages(48, 52); /* four pages of their own */
	assert_extent(50, 1, FAULT_ZERO);
}

/* Larger than the window that is looked at, on either side. */
static void test_large_folio(void **state)
{
	static const unsigned touched[] = { 64, 79, 80, 95, 100, 127 };
	size_t i;

	for (i = 0; i < sizeof(touched) / sizeof(touched[0]); i++) {
		begin_folios();
		fault_at(AT(touched[i]), IP, WRITES);
		add_folio(FRAMES + 64, 6);
		map_pages(64, 128);
		assert_extent(64, 64, FAULT_ZERO_MTHP);
	}
}

/* Without knowing where the kernel keeps struct page: what became present around it. */
static void test_folio_unknown(void **state)
{
	begin_folios();
	vmemmap_base = VMEMMAP_UNKNOWN;
	fault_at(AT(50), IP, WRITES);
	map_pages(48, 64);
	assert_extent(48, 16, FAULT_ZERO_MTHP);
}

/* Where no sizes but 4 KiB are allowed, nothing is looked at. */
static void test_no_folios(void **state)
{
	begin();
	fault_at(AT(50), IP, WRITES);
	map_pages(48, 64);
	assert_extent(50, 1, FAULT_ZERO);
}

static void test_swapped_folio(void **state)
{
	unsigned page;

	begin_folios();
	for (page = 48; page < 64; page++)
		set_entry(AT(page), 1, swap_entry(2, page));
	fault_at(AT(50), IP, READS);
	add_folio(FRAMES + 48, 4);
	map_pages(48, 64);
	assert_extent(48, 16, FAULT_SWAP);
}

/* What lies in a frame before it is copied: memory of one process, or of equal pages of any. */
static void test_merged(void **state)
{
	const __u64 frame = FRAMES + 7, owner = 0xffff888012345670ULL;
	static const struct {
		__u64 mapping;
		bool known;
		int expected;
	} table[] = {
		{ owner | 3, true, FAULT_COW_MERGED },
		{ owner | 1, true, FAULT_COW },
		{ owner | 3, false, FAULT_COW },
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		begin_folios();
		if (!table[i].known)
			vmemmap_base = VMEMMAP_UNKNOWN;
		kernel_poke_word(KERNEL,
				 VMEMMAP + frame * sizeof(struct page) +
					 offsetof(struct folio, mapping),
				 table[i].mapping);
		set_entry(AT(50), 1, page_entry(frame) & ~RW);
		fault_at(AT(50), IP, WRITES | FAULT_BIT_P);
		map_pages(50, 51);
		assert_extent(50, 1, table[i].expected);
	}
}

/* A huge page that a write does not find writable: a page of processes that forked, or the zero page, of nobody. */
static void test_huge_zero(void **state)
{
	const __u64 frame = FRAMES / 512 * 512, owner = 0xffff888012345670ULL;
	static const struct {
		__u64 mapping;
		bool known;
		bool first; /* of the frames that a start has found */
		int expected;
	} table[] = {
		{ 0, true, false, FAULT_ZERO_HUGE },   { 0, true, true, FAULT_ZERO_HUGE },
		{ owner | 1, true, false, FAULT_COW }, { owner | 1, true, true, FAULT_COW },
		{ 0, false, false, FAULT_COW },	       { 0, false, true, FAULT_ZERO_HUGE },
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		begin_folios();
		if (!table[i].known)
			vmemmap_base = VMEMMAP_UNKNOWN;
		KNOB(cfg_huge_zero_pfn, table[i].first ? frame : frame + 512);
		kernel_poke_word(KERNEL,
				 VMEMMAP + frame * sizeof(struct page) +
					 offsetof(struct folio, mapping),
				 table[i].mapping);
		set_entry(AT(50), 2, (page_entry(frame) | PS) & ~RW);
		fault_at(AT(50), IP, WRITES | FAULT_BIT_P);
		set_entry(AT(50), 2, page_entry(frame + 1024) | PS);
		assert_extent(0, 512, table[i].expected);
	}
}

/* ---- where struct page is ---- */

static struct vm_struct stack_area;

/* The thread's kernel stack: mapped at `stack`, its first page is of this frame. */
static void begin_stack(__u64 page_at)
{
	const __u64 stack = 0xffffc90000123000ULL;
	static struct page *pages[4];

	begin();
	vmemmap_base = 0;
	memset(&stack_area, 0, sizeof(stack_area));
	pages[0] = (struct page *)page_at;
	stack_area.pages = pages;
	host.task.stack_vm_area = &stack_area;
	host.task.stack = (void *)stack;
	kernel_object(&stack_area, sizeof(stack_area));
	kernel_object(pages, sizeof(pages));
	set_entry(stack & 0xffffffffffffULL, 1, page_entry(0x3039));
}

static void test_vmemmap(void **state)
{
	begin_stack(VMEMMAP + 0x3039 * sizeof(struct page));
	vmemmap_find();
	assert_int_equal(vmemmap_base, VMEMMAP);
	/* KASLR moves it by multiples of 1 GiB. */
	begin_stack(VMEMMAP + (7ULL << 30) + 0x3039 * sizeof(struct page));
	vmemmap_find();
	assert_int_equal(vmemmap_base, VMEMMAP + (7ULL << 30));
	/* It does not come out as such: then it is not known. */
	begin_stack(VMEMMAP + 0x3030 * sizeof(struct page));
	vmemmap_find();
	assert_int_equal(vmemmap_base, VMEMMAP_UNKNOWN);
	begin_stack(0);
	vmemmap_find();
	assert_int_equal(vmemmap_base, VMEMMAP_UNKNOWN);
	begin_stack(VMEMMAP + 0x3039 * sizeof(struct page));
	kernel_lacks("task->stack_vm_area");
	vmemmap_find();
	assert_int_equal(vmemmap_base, VMEMMAP_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_around),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_some_were_there),
		cmocka_unit_test(test_with_holes),
		cmocka_unit_test(test_area_begins_within),
		cmocka_unit_test(test_end_of_table),
		cmocka_unit_test(test_no_table_before),
		cmocka_unit_test(test_copied),
		cmocka_unit_test(test_huge),
		cmocka_unit_test(test_gigantic),
		cmocka_unit_test(test_tables_gone),
		cmocka_unit_test(test_folio),
		cmocka_unit_test(test_neighbour),
		cmocka_unit_test(test_large_folio),
		cmocka_unit_test(test_folio_unknown),
		cmocka_unit_test(test_no_folios),
		cmocka_unit_test(test_swapped_folio),
		cmocka_unit_test(test_merged),
		cmocka_unit_test(test_huge_zero),
		cmocka_unit_test(test_vmemmap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
