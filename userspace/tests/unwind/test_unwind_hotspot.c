// SPDX-License-Identifier: GPL-2.0
/*
 * test_unwind_hotspot.c: rows of methods as HotSpot makes them. The bytes are those of OpenJDK 17's
 * compilers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <glib.h>

#include "bpf/wire/unwind_rows.h"
#include "unwind/unwind_hotspot.h"

#define PC 0x1000

#define BANG 0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff	/* mov [rsp - 0x14000], eax */
#define BARRED 0xe9, 0x11, 0x22, 0x33, 0x44, 0xfe, 0xff /* a jump in its place */
#define PUSH 0x55
#define SUB_30 0x48, 0x83, 0xec, 0x30
#define ADD_30 0x48, 0x83, 0xc4, 0x30
#define ADD_40 0x48, 0x83, 0xc4, 0x40
#define POP 0x5d
#define POLL 0x49, 0x3b, 0xa7, 0x48, 0x01, 0x00, 0x00, 0x0f, 0x87, 0x05, 0x00, 0x00, 0x00
#define RET 0xc3
#define WORK 0x8b, 0xee

struct expected {
	uint32_t pc;
	int64_t cfa; /* rsp + that; 0: nothing is known */
	bool saved;  /* rbp, at CFA - 16 */
};

static void check(const uint8_t *code, size_t size, const struct expected *expected, size_t count)
{
	g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(struct memtoll_unwind_row));
	size_t i;

	assert_int_equal(unwind_hotspot_rows(code, size, PC, rows), count > 0);
	assert_int_equal(rows->len, count);
	for (i = 0; i < count; i++) {
		const struct memtoll_unwind_row *row =
			&g_array_index(rows, struct memtoll_unwind_row, i);

		assert_int_equal(row->pc, PC + expected[i].pc);
		if (!expected[i].cfa) {
			assert_int_equal(UNWIND_CFA(row->rule), CFA_STOP);
			continue;
		}
		assert_int_equal(UNWIND_CFA(row->rule), CFA_RSP);
		assert_int_equal(UNWIND_CFA_OFFSET(row->rule), expected[i].cfa);
		assert_int_equal(UNWIND_SAVED_RBP(row->rule),
				 expected[i].saved ? RBP_AT_CFA : RBP_SAME);
		if (expected[i].saved)
			assert_int_equal(UNWIND_RBP_OFFSET(row->rule), -16);
	}
}

#define CHECK(code, ...)                                                                      \
	do {                                                                                  \
		const struct expected expected_[] = { __VA_ARGS__ };                          \
                                                                                              \
		check(code, sizeof(code), expected_, sizeof(expected_) / sizeof(*expected_)); \
	} while (0)

static void test_method(void **state)
{
	const uint8_t code[] = { BANG, PUSH, SUB_30, WORK, ADD_30, POP, POLL, RET, WORK, WORK };

	(void)state;
	CHECK(code, { 0, 8, false }, { 8, 16, true }, { 12, 0x40, true }, { 18, 16, true },
	      { 19, 8, false }, { 33, 0x40, true }, { sizeof(code), 0, false });
}

/* What is not to be entered any more still has frames. */
static void test_method_that_is_barred(void **state)
{
	const uint8_t code[] = { BARRED, PUSH, SUB_30, WORK };

	(void)state;
	CHECK(code, { 0, 8, false }, { 8, 16, true }, { 12, 0x40, true },
	      { sizeof(code), 0, false });
}

static void test_prologue_behind_the_check_of_a_class(void **state)
{
	const uint8_t code[] = { 0x44, 0x8b, 0x56, 0x08, 0x49, 0x3b, 0xc2, 0x0f, 0x85,	 1,
				 0,    0,    0,	   0x90, 0x66, 0x90, BANG, PUSH, SUB_30, WORK };

	(void)state;
	CHECK(code, { 0, 8, false }, { 24, 16, true }, { 28, 0x40, true },
	      { sizeof(code), 0, false });
}

/* A stub, and a method that calls nothing: it saves rbp without a push. */
static void test_stub(void **state)
{
	const uint8_t stub[] = { 0x48, 0x83, 0xec, 0x08, 0x48, 0x89, 0x2c, 0x24, WORK };
	const uint8_t method[] = { 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x10, WORK };
	const uint8_t large[] = { 0x48, 0x81, 0xec, 0xa8, 0, 0, 0, 0x48,
				  0x89, 0xac, 0x24, 0xa0, 0, 0, 0, WORK };

	(void)state;
	CHECK(stub, { 0, 8, false }, { 4, 16, false }, { 8, 16, true }, { sizeof(stub), 0, false });
	CHECK(method, { 0, 8, false }, { 4, 32, false }, { 9, 32, true },
	      { sizeof(method), 0, false });
	CHECK(large, { 0, 8, false }, { 7, 0xb0, false }, { 15, 0xb0, true },
	      { sizeof(large), 0, false });
}

/* An `add` of another size is the method's own. */
static void test_no_epilogue(void **state)
{
	const uint8_t code[] = { BANG, PUSH, SUB_30, ADD_40, POP, RET, ADD_30, WORK };

	(void)state;
	CHECK(code, { 0, 8, false }, { 8, 16, true }, { 12, 0x40, true },
	      { sizeof(code), 0, false });
}

static void test_what_is_nothing_of_that(void **state)
{
	const uint8_t framed[] = { BANG, PUSH, 0x48, 0x89, 0xe5, SUB_30, WORK };
	const uint8_t other[] = { PUSH, SUB_30, WORK };
	const uint8_t saved_elsewhere[] = { 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x08 };
	uint8_t far[256];

	(void)state;
	check(framed, sizeof(framed), NULL, 0);
	check(other, sizeof(other), NULL, 0);
	check(saved_elsewhere, sizeof(saved_elsewhere), NULL, 0);
	memset(far, 0x90, sizeof(far));
	check(far, sizeof(far), NULL, 0);
	check(far, 0, NULL, 0);
}

/* Cut anywhere, in memory of just that size: nothing behind it is read (the sanitizers see it). */
static void test_cut_code(void **state)
{
	const uint8_t code[] = { BANG, PUSH, SUB_30, WORK, ADD_30, POP, POLL, RET };
	size_t size;

	(void)state;
	for (size = 1; size < sizeof(code); size++) {
		g_autofree uint8_t *cut = g_malloc(size);
		g_autoptr(GArray) rows =
			g_array_new(FALSE, FALSE, sizeof(struct memtoll_unwind_row));

		memcpy(cut, code, size);
		assert_int_equal(unwind_hotspot_rows(cut, size, PC, rows), size >= 12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_method),
		cmocka_unit_test(test_method_that_is_barred),
		cmocka_unit_test(test_prologue_behind_the_check_of_a_class),
		cmocka_unit_test(test_stub),
		cmocka_unit_test(test_no_epilogue),
		cmocka_unit_test(test_what_is_nothing_of_that),
		cmocka_unit_test(test_cut_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
