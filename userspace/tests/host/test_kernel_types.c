// SPDX-License-Identifier: GPL-2.0
/* Members of a structure by its type information, which is made here, against where the compiler has them. */
#include <bpf/btf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/kernel_types.h"

/* What is described below, for the compiler to say where its members are. */
struct described {
	uint32_t first;
	union {
		uint64_t either;
		struct {
			uint32_t low;
			uint32_t high;
		};
	};
	uint32_t few : 3;
	struct {
		uint32_t hidden;
	} named;
};

static int add_struct(struct btf *btf, const char *name, uint32_t bytes)
{
	int id = btf__add_struct(btf, name, bytes);

	assert_true(id > 0);
	return id;
}

static struct btf *describe(void)
{
	struct btf *btf = btf__new_empty();
	int word, dword, halves, either, named;

	assert_non_null(btf);
	word = btf__add_int(btf, "unsigned int", 4, 0);
	dword = btf__add_int(btf, "unsigned long", 8, 0);
	halves = add_struct(btf, NULL, 8);
	assert_int_equal(btf__add_field(btf, "low", word, 0, 0), 0);
	assert_int_equal(btf__add_field(btf, "high", word, 32, 0), 0);
	either = btf__add_union(btf, NULL, 8);
	assert_int_equal(btf__add_field(btf, "either", dword, 0, 0), 0);
	assert_int_equal(btf__add_field(btf, NULL, halves, 0, 0), 0);
	named = add_struct(btf, NULL, 4);
	assert_int_equal(btf__add_field(btf, "hidden", word, 0, 0), 0);
	add_struct(btf, "described", sizeof(struct described));
	assert_int_equal(btf__add_field(btf, "first", word, 0, 0), 0);
	assert_int_equal(
		btf__add_field(btf, NULL, either, 8 * offsetof(struct described, either), 0), 0);
	assert_int_equal(
		btf__add_field(btf, "few", word, 8 * (offsetof(struct described, high) + 4), 3), 0);
	assert_int_equal(
		btf__add_field(btf, "named", named, 8 * offsetof(struct described, named), 0), 0);
	return btf;
}

static void test_members(void **state)
{
	struct btf *btf = describe();

	(void)state;
	assert_int_equal(kernel_member_at(btf, "described", "first"), 0);
	assert_int_equal(kernel_member_at(btf, "described", "either"),
			 offsetof(struct described, either));
	assert_int_equal(kernel_member_at(btf, "described", "high"),
			 offsetof(struct described, high));
	assert_int_equal(kernel_member_at(btf, "described", "named"),
			 offsetof(struct described, named));
	btf__free(btf);
}

static void test_what_is_not_there(void **state)
{
	struct btf *btf = describe();

	(void)state;
	assert_int_equal(kernel_member_at(btf, "described", "hidden"), -ENOENT);
	assert_int_equal(kernel_member_at(btf, "described", "few"), -ENOENT);
	assert_int_equal(kernel_member_at(btf, "other", "first"), -ENOENT);
	btf__free(btf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_what_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
