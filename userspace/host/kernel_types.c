// SPDX-License-Identifier: GPL-2.0
#include "host/kernel_types.h"

#include <bpf/btf.h>
#include <errno.h>
#include <string.h>

#define DEPTH_MOST 8 /* of anonymous members in one another */

static int64_t find_in(const struct btf *btf, const struct btf_type *type, const char *name,
		       int depth)
{
	const struct btf_member *member = btf_members(type);
	int i, count = btf_vlen(type);

	for (i = 0; i < count; i++, member++) {
		uint32_t bits = btf_member_bit_offset(type, i);
		const char *own = btf__name_by_offset(btf, member->name_off);
		const struct btf_type *inner;
		int64_t at;

		if (own && *own) {
			if (strcmp(own, name))
				continue;
			if (bits % 8 || btf_member_bitfield_size(type, i))
				return -ENOENT;
			return bits / 8;
		}
		inner = btf__type_by_id(btf, member->type);
		if (!inner || !btf_is_composite(inner) || !depth)
			continue;
		at = find_in(btf, inner, name, depth - 1);
		if (at >= 0)
			return bits / 8 + at;
	}
	return -ENOENT;
}

int64_t kernel_member_at(const struct btf *btf, const char *structure, const char *member)
{
	int id = btf__find_by_name_kind(btf, structure, BTF_KIND_STRUCT);

	if (id <= 0)
		return -ENOENT;
	return find_in(btf, btf__type_by_id(btf, id), member, DEPTH_MOST);
}
