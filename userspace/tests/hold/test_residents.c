// SPDX-License-Identifier: GPL-2.0
/* What is resident, by smaps as it may be written; and the blocks that malloc maps one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "hold/locked_ranges.h"
#include "hold/residents.h"
#include "tests/hold/heap_image.h"

#define KIB 1024ULL

static void parse(const char *text, const GArray *owned, struct residents *residents)
{
	FILE *file = fmemopen((void *)text, strlen(text), "r");

	assert_non_null(file);
	residents_parse(file, owned, residents);
	fclose(file);
}

static GArray *no_ranges(void)
{
	return g_array_new(FALSE, FALSE, sizeof(struct owned_range));
}

static const char smaps[] =
	"55d0c0000000-55d0c0010000 r-xp 00000000 08:01 42      /usr/bin/a b\n"
	"Rss:                  40 kB\nPss:                  20 kB\nPrivate_Dirty:         4 kB\n"
	"55d0c0010000-55d0c0014000 rw-p 00010000 08:01 42      /usr/bin/a b\n"
	"Rss:                   8 kB\nPss:                   8 kB\nPrivate_Dirty:         8 kB\n"
	"55d0c1000000-55d0c1100000 rw-p 00000000 00:00 0       [heap]\n"
	"Rss:                1024 kB\nPss:                 512 kB\nSwap:                 64 kB\n"
	"SwapPss:              64 kB\n"
	"7f0000000000-7f0000100000 rw-p 00000000 00:00 0 \n"
	"Rss:                 100 kB\nPss:                 100 kB\nAnonHugePages:        64 kB\n"
	"7f0001000000-7f0001100000 rw-p 00000000 00:00 0 \n"
	"Rss:                  12 kB\nPss:                  12 kB\n"
	"7f0002000000-7f0002100000 rw-s 00000000 00:01 7       /memfd:x (deleted)\n"
	"Rss:                 300 kB\nPss:                 150 kB\n"
	"7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0       [stack]\n"
	"Rss:                  16 kB\nPss:                  16 kB\n"
	"7ffc00030000-7ffc00032000 r-xp 00000000 00:00 0       [vdso]\n"
	"Rss:                   4 kB\nPss:                   0 kB\n"
	"VmFlags: rd ex\n";

/* The stack pointer is in the heap of a runtime: that is no stack. */
static void test_stacks_on_a_heap(void **state)
{
	struct resident_stack stack = { .thread = { .tid = 7, .pointer = 0x7f0001000800 } };
	GArray *owned = no_ranges();
	struct residents residents;

	(void)state;
	residents_init(&residents);
	residents.heap_stacks = true;
	g_array_append_val(residents.stacks, stack);
	parse(smaps, owned, &residents);
	assert_int_equal(residents.sums[RESIDENT_STACKS].rss, 16 * KIB);
	assert_int_equal(residents.sums[RESIDENT_ANONYMOUS].rss, (1024 + 100 + 12) * KIB);
	residents_free(&residents);
	g_array_unref(owned);
}

static void test_kinds(void **state)
{
	struct owned_range range = { .start = 0x55d0c1000000, .end = 0x55d0c1100000 };
	struct resident_stack stack = { .thread = { .tid = 7, .pointer = 0x7f0001000800 } };
	GArray *owned = no_ranges();
	struct residents residents;

	(void)state;
	range.bytes = (struct page_bytes){ 1024 * KIB, 1000 * KIB, 64 * KIB };
	g_array_append_val(owned, range);
	/* A part of another mapping. */
	range = (struct owned_range){ .start = 0x7f0000080000, .end = 0x7f0000090000 };
	range.bytes = (struct page_bytes){ 64 * KIB, 60 * KIB, 0 };
	g_array_append_val(owned, range);
	residents_init(&residents);
	g_array_append_val(residents.stacks, stack);
	parse(smaps, owned, &residents);
	/* The mapping is the heap's as a whole; of the other the part. */
	assert_int_equal(residents.sums[RESIDENT_MALLOC].rss, (1024 + 60) * KIB);
	assert_int_equal(residents.sums[RESIDENT_MALLOC].pss, (512 + 60) * KIB);
	assert_int_equal(residents.sums[RESIDENT_MALLOC].swap, 64 * KIB);
	assert_int_equal(residents.sums[RESIDENT_ANONYMOUS].rss, 40 * KIB);
	assert_int_equal(residents.sums[RESIDENT_STACKS].rss, (12 + 16) * KIB);
	assert_int_equal(residents.sums[RESIDENT_SHARED].rss, 300 * KIB);
	assert_int_equal(residents.sums[RESIDENT_SHARED].pss, 150 * KIB);
	assert_int_equal(residents.sums[RESIDENT_FILES].rss, 48 * KIB);
	assert_int_equal(residents.sums[RESIDENT_FILES].dirty, 12 * KIB);
	assert_int_equal(residents.sums[RESIDENT_SPECIAL].rss, 4 * KIB);
	assert_int_equal(residents_sum(&residents).rss,
			 (40 + 8 + 1024 + 100 + 12 + 300 + 16 + 4) * KIB);
	assert_int_equal(residents.files->len, 2);
	assert_string_equal(g_array_index(residents.files, struct resident_file, 0).path,
			    "/memfd:x (deleted)");
	assert_string_equal(g_array_index(residents.files, struct resident_file, 1).path,
			    "/usr/bin/a b");
	assert_int_equal(g_array_index(residents.stacks, struct resident_stack, 0).sum.rss,
			 12 * KIB);
	residents_free(&residents);
	g_array_unref(owned);
}

/* Beyond so many files all others are one, and nothing is left out of the sum. */
/* Pages of shared memory that a private mapping has copied are the process's own. */
static void test_private_copies(void **state)
{
	static const char text[] =
		"7f0002000000-7f0002100000 rw-p 00000000 00:01 7       /memfd:x (deleted)\n"
		"Rss:                 300 kB\nPss:                 300 kB\n"
		"Anonymous:           296 kB\n"
		"7f0003000000-7f0003100000 rw-p 00000000 00:01 8       /dev/zero\n"
		"Rss:                   0 kB\nPss:                   0 kB\n"
		"Anonymous:             0 kB\nSwap:                 40 kB\n"
		"7f0004000000-7f0004100000 r--p 00000000 00:01 9       /dev/shm/y\n"
		"Rss:                  60 kB\nPss:                  20 kB\n"
		"Anonymous:             4 kB\n"
		"7f0005000000-7f0005100000 rw-s 00000000 00:01 9       /dev/shm/y\n"
		"Rss:                  28 kB\nPss:                  14 kB\n"
		"Anonymous:            28 kB\n";
	GArray *owned = no_ranges();
	struct residents residents;

	(void)state;
	residents_init(&residents);
	parse(text, owned, &residents);
	assert_int_equal(residents.sums[RESIDENT_ANONYMOUS].rss, 300 * KIB);
	assert_int_equal(residents.sums[RESIDENT_ANONYMOUS].swap, 40 * KIB);
	assert_int_equal(residents.sums[RESIDENT_SHARED].rss, 88 * KIB);
	residents_free(&residents);
	g_array_unref(owned);
}

static void test_many_files(void **state)
{
	g_autoptr(GString) text = g_string_new(NULL);
	struct resident_sum others = { 0 };
	GArray *owned = no_ranges();
	struct residents residents;
	unsigned int i;

	(void)state;
	for (i = 0; i < RESIDENT_FILES_MAX + 100; i++)
		g_string_append_printf(text,
				       "%x000-%x000 r--p 00000000 08:01 %u /f%u\nRss:     4 kB\n",
				       0x1000 + i, 0x1001 + i, i + 1, i);
	residents_init(&residents);
	parse(text->str, owned, &residents);
	for (i = 0; i < residents.files->len; i++)
		if (g_str_has_prefix(g_array_index(residents.files, struct resident_file, i).path,
				     "("))
			others = g_array_index(residents.files, struct resident_file, i).sum;
	assert_int_equal(others.rss, 100 * 4 * KIB);
	assert_int_equal(residents.files->len, RESIDENT_FILES_MAX + 1);
	assert_int_equal(residents.sums[RESIDENT_FILES].rss, (RESIDENT_FILES_MAX + 100) * 4 * KIB);
	residents_free(&residents);
	g_array_unref(owned);
}

/* Lines that are none, and values that cannot be: no sum of anything. */
static void test_odd_lines(void **state)
{
	static const char *const texts[] = {
		"",
		"Rss: 4 kB\n",
		"\n\n-\n",
		"9000-1000 rw-p 00000000 00:00 0\nRss: 4 kB\n",
		"1000-2000\nRss: 4 kB\n",
		"zzzz-2000 rw-p 00000000 00:00 0\nRss: 4 kB\n",
	};
	GArray *owned = no_ranges();
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(texts); i++) {
		struct residents residents;

		residents_init(&residents);
		if (*texts[i])
			parse(texts[i], owned, &residents);
		assert_int_equal(residents_sum(&residents).rss, 0);
		residents_free(&residents);
	}
	g_array_unref(owned);
}

/* Two blocks side by side in a mapping, behind memory that is not malloc's. */
static void test_mapped_chunks(void **state)
{
	const uint64_t at = 0x7f3000000000ULL;
	struct mapped_chunks found;
	struct malloc_heaps heaps = { 0 };
	struct heap_image image;

	(void)state;
	heaps.heaps = g_array_new(FALSE, TRUE, sizeof(struct malloc_heap));
	image_init(&image, 112, true, VIEW_PAGE);
	image_add_region(&image, at, 16 * VIEW_PAGE);
	image_finish(&image);
	put_word(&image, at + 3 * VIEW_PAGE + 8, 2 * VIEW_PAGE | 2);
	put_word(&image, at + 5 * VIEW_PAGE + 8, (4 * VIEW_PAGE - 16) | 2); /* 2.43 */
	/* Not one: larger than what is mapped; not whole pages; of an arena. */
	put_word(&image, at + 10 * VIEW_PAGE + 8, 400 * VIEW_PAGE | 2);
	put_word(&image, at + 11 * VIEW_PAGE + 8, (VIEW_PAGE + 16) | 2);
	put_word(&image, at + 12 * VIEW_PAGE + 8, VIEW_PAGE | 6);
	memset(image.regions[2].states + 6, PAGE_ABSENT, 3);
	mapped_chunks_find(&image.view, &image.maps, &heaps, 2, &found);
	assert_int_equal(found.count, 2);
	assert_int_equal(found.bytes.bytes, 6 * VIEW_PAGE);
	assert_int_equal(found.bytes.resident, 3 * VIEW_PAGE);
	assert_int_equal(image.absent_reads, 0);
	mapped_chunks_free(&found);
	mapped_chunks_find(&image.view, &image.maps, &heaps, 3, &found);
	assert_int_equal(found.count, 2);
	mapped_chunks_free(&found);
	/* By its own count malloc has none: nothing is looked for. */
	mapped_chunks_find(&image.view, &image.maps, &heaps, 0, &found);
	assert_int_equal(found.count, 0);
	mapped_chunks_free(&found);
	g_array_unref(heaps.heaps);
	image_free(&image);
}

/* By their flags, a word each: "lo" is locked, and no other is. */
static void test_locked_ranges(void **state)
{
	static const char text[] = "1000-3000 rw-p 00000000 00:00 0 \n"
				   "Locked:                8 kB\n"
				   "VmFlags: rd wr mr mw me lo ac sd \n"
				   "3000-5000 rw-p 00000000 00:00 0 [heap]\n"
				   "VmFlags: rd wr mr mw me ac sd \n"
				   "8000-9000 r--p 00000000 08:01 7 /lo lo\n"
				   "VmFlags: rd lo \n";
	FILE *file = fmemopen((void *)text, strlen(text), "r");
	GArray *ranges = locked_ranges_parse(file);

	(void)state;
	fclose(file);
	assert_int_equal(ranges->len, 2);
	assert_int_equal(locked_ranges_first(ranges, 0x2000, 0x2800), 0x2000);
	assert_int_equal(locked_ranges_first(ranges, 0x3000, 0x5000), 0x5000);
	assert_int_equal(locked_ranges_first(ranges, 0x3000, 0x8800), 0x8000);
	assert_int_equal(locked_ranges_first(ranges, 0x9000, 0xa000), 0xa000);
	assert_int_equal(locked_ranges_first(NULL, 0x1000, 0x2000), 0x2000);
	g_array_unref(ranges);
}

#define STACKS 0x7f4400000000ULL
#define OWN_PID 100

/* A descriptor with its thread's number, as glibc (720) or musl (48) has it. */
static void put_descriptor(struct heap_image *image, uint64_t address, uint64_t self, size_t place,
			   int32_t tid)
{
	struct image_region *region = image_region(image, address);
	uint8_t *at = region->bytes + (address - region->start);

	memcpy(at, &self, sizeof(self));
	memcpy(at + place, &tid, sizeof(tid));
}

/* Of threads that run: by descriptors on the last pages of mappings, of threads that there are. */
static void test_stacks_by_descriptors(void **state)
{
	static const struct thread_stack unknown[] = {
		{ .tid = OWN_PID }, { .tid = 101 },
		{ .tid = 102 },	    { .tid = 103, .pointer = 0x1000 },
		{ .tid = 104 },
	};
	static const uint64_t found[] = { STACKS + 0x53000, STACKS + 0x3700, STACKS + 0x13c00,
					  0x1000, 0 };
	GArray *stacks = g_array_new(FALSE, FALSE, sizeof(struct thread_stack));
	struct heap_image image = { 0 };
	guint i;

	(void)state;
	for (i = 0; i < IMAGE_REGIONS; i++)
		image_add_region(&image, STACKS + i * 0x10000, 0x4000);
	image_finish(&image);
	put_descriptor(&image, STACKS + 0x3700, STACKS + 0x3700, 720, 101);
	put_descriptor(&image, STACKS + 0x13c00, STACKS + 0x13c00, 48, 102);
	/* Of one that is known; of no thread; one that is not where it says; one swapped out. */
	put_descriptor(&image, STACKS + 0x23700, STACKS + 0x23700, 720, 103);
	put_descriptor(&image, STACKS + 0x23900, STACKS + 0x23900, 48, 105);
	put_descriptor(&image, STACKS + 0x33700, STACKS + 0x33708, 720, 104);
	put_descriptor(&image, STACKS + 0x43700, STACKS + 0x43700, 720, 104);
	image_region(&image, STACKS + 0x43700)->states[3] = PAGE_SWAPPED;
	image.mappings[5].path = "[stack]";
	g_array_append_vals(stacks, unknown, G_N_ELEMENTS(unknown));
	thread_stacks_from_descriptors(OWN_PID, &image.view, &image.maps, stacks);
	for (i = 0; i < G_N_ELEMENTS(found); i++)
		assert_int_equal(g_array_index(stacks, struct thread_stack, i).pointer, found[i]);
	assert_int_equal(image.absent_reads, 0);
	g_array_unref(stacks);
	image_free(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_stacks_on_a_heap),
		cmocka_unit_test(test_many_files),
		cmocka_unit_test(test_odd_lines),
		cmocka_unit_test(test_mapped_chunks),
		cmocka_unit_test(test_locked_ranges),
		cmocka_unit_test(test_stacks_by_descriptors),
		cmocka_unit_test(test_private_copies),
	};

	alarm(100); /* a hang is a failure */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
