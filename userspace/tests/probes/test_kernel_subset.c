// SPDX-License-Identifier: GPL-2.0
/* A part of type information: what lies where stays, what nobody names goes. */
#include <bpf/btf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/kernel_types.h"
#include "probes/kernel_subset.h"

#define FILLERS 41

static int field(struct btf *btf, const char *name, int type, uint32_t bit, uint32_t bits)
{
	return btf__add_field(btf, name, type, bit, bits);
}

/* Structures that point to one another, hold one another, and have members of all kinds. */
static struct btf *make_kernel(void)
{
	struct btf *btf = btf__new_empty();
	int word, qualified, inner, either, row, next, task, i;

	assert_non_null(btf);
	word = btf__add_int(btf, "unsigned int", 4, 0);
	qualified = btf__add_const(btf, btf__add_typedef(btf, "u32", word));
	inner = btf__add_struct(btf, "inner", 8);
	assert_int_equal(field(btf, "low", word, 0, 0), 0);
	assert_int_equal(field(btf, "few", word, 35, 3), 0);
	either = btf__add_union(btf, NULL, 8);
	assert_int_equal(field(btf, "this", inner, 0, 0), 0);
	assert_int_equal(field(btf, "that", qualified, 0, 0), 0);
	row = btf__add_array(btf, word, inner, 3);
	/* Of the structure that comes next. */
	next = btf__add_ptr(btf, row + 2);
	assert_int_equal(next, row + 1);
	assert_int_equal(btf__add_struct(btf, "outer", 40), next + 1);
	assert_int_equal(field(btf, "next", next, 0, 0), 0);
	assert_int_equal(field(btf, NULL, either, 64, 0), 0);
	assert_int_equal(field(btf, "row", row, 128, 0), 0);
	for (i = 0; i < FILLERS; i++)
		assert_true(btf__add_struct(btf, "nobody", 0) > 0);
	task = btf__add_struct(btf, "task_struct", 16);
	assert_int_equal(field(btf, "outer", next, 0, 0), 0);
	assert_int_equal(field(btf, "flags", qualified, 64, 0), 0);
	assert_true(task > FILLERS);
	assert_true(btf__add_enum(btf, "chosen", 4) > 0);
	assert_int_equal(btf__add_enum_value(btf, "CHOSEN", 7), 0);
	assert_true(btf__add_enum(btf, "unasked", 4) > 0);
	assert_int_equal(btf__add_enum_value(btf, "UNASKED", 1), 0);
	return btf;
}

/* Those of programs: what is behind three underscores is theirs alone. */
static struct btf *make_names(void)
{
	struct btf *btf = btf__new_empty();

	assert_non_null(btf);
	assert_true(btf__add_struct(btf, "outer___old", 0) > 0);
	assert_true(btf__add_struct(btf, "task_struct", 0) > 0);
	assert_true(btf__add_struct(btf, "not_in_this_kernel", 0) > 0);
	assert_true(btf__add_enum(btf, "chosen", 4) > 0);
	return btf;
}

static int find(const struct btf *btf, const char *name, uint32_t kind)
{
	return btf__find_by_name_kind(btf, name, kind);
}

static void test_what_lies_where(void **state)
{
	struct btf *kernel = make_kernel(), *names = make_names();
	struct btf *subset = kernel_subset_make(kernel, names);
	static const char *const members[] = { "next", "this", "that", "row", "few" };
	const struct btf_member *few;
	const struct btf_type *inner;
	size_t i;

	(void)state;
	assert_non_null(subset);
	for (i = 0; i < sizeof(members) / sizeof(*members); i++)
		assert_int_equal(kernel_member_at(subset, "outer", members[i]),
				 kernel_member_at(kernel, "outer", members[i]));
	assert_int_equal(kernel_member_at(subset, "outer", "that"), 8);
	assert_int_equal(kernel_member_at(subset, "task_struct", "flags"), 8);
	assert_int_equal(kernel_member_at(subset, "inner", "low"), 0);
	inner = btf__type_by_id(subset, find(subset, "inner", BTF_KIND_STRUCT));
	few = btf_members(inner) + 1;
	assert_string_equal(btf__name_by_offset(subset, few->name_off), "few");
	assert_int_equal(btf_member_bit_offset(inner, 1), 35);
	assert_int_equal(btf_member_bitfield_size(inner, 1), 3);
	btf__free(subset);
	btf__free(names);
	btf__free(kernel);
}

static void test_what_stays_and_what_goes(void **state)
{
	struct btf *kernel = make_kernel(), *names = make_names();
	struct btf *subset = kernel_subset_make(kernel, names);
	const struct btf_type *chosen;
	int task = find(kernel, "task_struct", BTF_KIND_STRUCT);
	uint32_t id;

	(void)state;
	assert_non_null(subset);
	/* Programs hand its number to the kernel. */
	assert_int_equal(find(subset, "task_struct", BTF_KIND_STRUCT), task);
	chosen = btf__type_by_id(subset, find(subset, "chosen", BTF_KIND_ENUM));
	assert_int_equal(btf_vlen(chosen), 1);
	assert_int_equal(btf_enum(chosen)->val, 7);
	assert_true(find(subset, "nobody", BTF_KIND_STRUCT) < 0);
	assert_true(find(subset, "unasked", BTF_KIND_ENUM) < 0);
	assert_true(find(subset, "not_in_this_kernel", BTF_KIND_STRUCT) < 0);
	assert_true(find(subset, "u32", BTF_KIND_TYPEDEF) < 0);
	for (id = 1; id < btf__type_cnt(subset); id++)
		if (btf_is_ptr(btf__type_by_id(subset, id)))
			assert_int_equal(btf__type_by_id(subset, id)->type, 0);
	btf__free(subset);
	btf__free(names);
	btf__free(kernel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_lies_where),
		cmocka_unit_test(test_what_stays_and_what_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
