// SPDX-License-Identifier: GPL-2.0
#include "other_tracers.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <string.h>
#include <unistd.h>

struct other_map {
	int fd;
	uint32_t value_size;
};

static void close_map(gpointer map)
{
	close(((struct other_map *)map)->fd);
}

static bool map_info(int fd, struct bpf_map_info *info)
{
	uint32_t size = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return !bpf_obj_get_info_by_fd(fd, info, &size);
}

/* The name alone may be anybody's; the type of what is in it is memtoll's, of whatever version. */
static bool holds_targets(const struct bpf_map_info *info)
{
	const struct btf_type *type;
	struct btf *btf;
	bool ours;

	if (info->type != BPF_MAP_TYPE_HASH || info->key_size != sizeof(uint32_t) ||
	    strcmp(info->name, "processes") || !info->btf_id)
		return false;
	btf = btf__load_from_kernel_by_id(info->btf_id);
	type = btf ? btf__type_by_id(btf, info->btf_value_type_id) : NULL;
	ours = type && !strcmp(btf__name_by_offset(btf, type->name_off), "memtoll_target");
	btf__free(btf);
	return ours;
}

GArray *other_tracers_find(int own_map)
{
	GArray *maps = g_array_new(FALSE, FALSE, sizeof(struct other_map));
	struct bpf_map_info own, info;
	struct other_map map;
	uint32_t id = 0;

	g_array_set_clear_func(maps, close_map);
	if (!map_info(own_map, &own))
		return maps;
	while (!bpf_map_get_next_id(id, &id)) {
		if (id == own.id)
			continue;
		map.fd = bpf_map_get_fd_by_id(id);
		/* It may have gone meanwhile. */
		if (map.fd < 0)
			continue;
		if (map_info(map.fd, &info) && holds_targets(&info)) {
			map.value_size = info.value_size;
			g_array_append_val(maps, map);
		} else {
			close(map.fd);
		}
	}
	return maps;
}

bool other_tracers_have(const GArray *maps, pid_t pid)
{
	uint32_t key = pid;
	guint i;

	for (i = 0; i < maps->len; i++) {
		const struct other_map *map = &g_array_index(maps, struct other_map, i);
		g_autofree void *value = g_malloc0(map->value_size);

		if (!bpf_map_lookup_elem(map->fd, &key, value))
			return true;
	}
	return false;
}
