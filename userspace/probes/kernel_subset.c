// SPDX-License-Identifier: GPL-2.0
#include "probes/kernel_subset.h"

#include <bpf/btf.h>
#include <errno.h>
#include <glib.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/boot_cache.h"

#define KIND "btf-1" /* one more with each change of what is made of the same types */

/* What libbpf reads by a name. */
static struct file {
	int fd;
	char *path; /* NULL: none */
	bool dropped;
} kept;

struct subset {
	const struct btf *from;
	struct btf *to;
	uint32_t pointer; /* one that stands for all */
	GArray *wanted;	  /* uint32_t: ids in `from` */
	uint32_t *ids;	  /* by those in `from`: in `to`; 0: not wanted */
	uint32_t *order;  /* by ids in `to`, the highest of which is `last`: in `from`; 0: a gap */
	uint32_t last;
};

/* Whose ids programs hand to the kernel (bpf_core_type_id_kernel()): they have to stay what they are. */
static const char *const pinned[] = { "task_struct", "pt_regs" };

/* What follows three underscores is for us alone (libbpf: "flavors"). Freed by the caller. */
static char *essential_name(const char *name)
{
	const char *flavor = strstr(name, "___");

	return g_strndup(name, flavor ? (size_t)(flavor - name) : strlen(name));
}

static const char *name_of(const struct btf *btf, const struct btf_type *type)
{
	return btf__name_by_offset(btf, type->name_off);
}

/* What relocations begin with. */
static bool is_root(const struct btf_type *type)
{
	return btf_is_composite(type) || btf_is_any_enum(type);
}

static GHashTable *root_names(const struct btf *names)
{
	GHashTable *found = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	uint32_t id, count = btf__type_cnt(names);

	for (id = 1; id < count; id++) {
		const struct btf_type *type = btf__type_by_id(names, id);

		if (is_root(type) && type->name_off)
			g_hash_table_add(found, essential_name(name_of(names, type)));
	}
	return found;
}

/* The type that relocations see: names and qualifiers they look through, and at no pointer's target. */
static uint32_t seen_as(struct subset *subset, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(subset->from, id);

	while (btf_is_mod(type) || btf_is_typedef(type) || btf_is_type_tag(type)) {
		id = type->type;
		type = btf__type_by_id(subset->from, id);
	}
	if (!btf_is_ptr(type))
		return id;
	if (!subset->pointer)
		subset->pointer = id;
	return subset->pointer;
}

/* With all that lies in it. What lies in itself there is not: it ends. */
static void want(struct subset *subset, uint32_t named)
{
	uint32_t id = seen_as(subset, named), i;
	const struct btf_type *type = btf__type_by_id(subset->from, id);

	if (!id || subset->ids[id])
		return;
	subset->ids[id] = UINT32_MAX; /* until it has one */
	g_array_append_val(subset->wanted, id);
	if (btf_is_array(type)) {
		want(subset, btf_array(type)->type);
		want(subset, btf_array(type)->index_type);
	}
	for (i = 0; btf_is_composite(type) && i < btf_vlen(type); i++)
		want(subset, btf_members(type)[i].type);
}

static void want_roots(struct subset *subset, const struct btf *names)
{
	g_autoptr(GHashTable) roots = root_names(names);
	uint32_t id, count = btf__type_cnt(subset->from);

	for (id = 1; id < count; id++) {
		const struct btf_type *type = btf__type_by_id(subset->from, id);

		if (is_root(type) && type->name_off &&
		    g_hash_table_contains(roots, name_of(subset->from, type)))
			want(subset, id);
	}
}

static void place(struct subset *subset, uint32_t at, uint32_t id)
{
	subset->order[at] = id;
	subset->ids[id] = at;
	subset->last = MAX(subset->last, at);
}

static bool is_pinned(const struct subset *subset, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(subset->from, id);
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(pinned); i++)
		if (btf_is_struct(type) && !strcmp(name_of(subset->from, type), pinned[i]))
			return true;
	return false;
}

/* The others around those that are pinned. */
static void number(struct subset *subset)
{
	const uint32_t *wanted = &g_array_index(subset->wanted, uint32_t, 0);
	uint32_t i, next = 1;

	for (i = 0; i < subset->wanted->len; i++)
		if (is_pinned(subset, wanted[i]))
			place(subset, wanted[i], wanted[i]);
	for (i = 0; i < subset->wanted->len; i++) {
		if (is_pinned(subset, wanted[i]))
			continue;
		while (subset->order[next])
			next++;
		place(subset, next, wanted[i]);
	}
}

static uint32_t new_id(struct subset *subset, uint32_t named)
{
	return subset->ids[seen_as(subset, named)];
}

static int put_composite(struct subset *subset, const struct btf_type *type)
{
	const struct btf_member *member = btf_members(type);
	const char *name = name_of(subset->from, type);
	int i, err,
		id = btf_is_struct(type) ? btf__add_struct(subset->to, name, type->size) :
					   btf__add_union(subset->to, name, type->size);

	for (i = 0; i < btf_vlen(type) && id > 0; i++) {
		err = btf__add_field(subset->to,
				     btf__name_by_offset(subset->from, member[i].name_off),
				     (int)new_id(subset, member[i].type),
				     btf_member_bit_offset(type, i),
				     btf_member_bitfield_size(type, i));
		if (err)
			return err;
	}
	return id;
}

/* Its id, or a negative errno. */
static int put(struct subset *subset, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(subset->from, id);

	if (!id || btf_is_ptr(type))
		return btf__add_ptr(subset->to, 0);
	if (btf_is_array(type))
		return btf__add_array(subset->to, (int)new_id(subset, btf_array(type)->index_type),
				      (int)new_id(subset, btf_array(type)->type),
				      (int)btf_array(type)->nelems);
	if (btf_is_composite(type))
		return put_composite(subset, type);
	return btf__add_type(subset->to, subset->from, type);
}

static int put_all(struct subset *subset)
{
	uint32_t at;
	int id;

	for (at = 1; at <= subset->last; at++) {
		id = put(subset, subset->order[at]);
		if (id < 0)
			return id;
		if (id != (int)at)
			return -EINVAL;
	}
	return 0;
}

struct btf *kernel_subset_make(const struct btf *kernel, const struct btf *names)
{
	g_autofree uint32_t *ids = g_new0(uint32_t, btf__type_cnt(kernel));
	g_autofree uint32_t *order = g_new0(uint32_t, btf__type_cnt(kernel));
	struct subset subset = { .from = kernel, .ids = ids, .order = order };
	int err;

	subset.to = btf__new_empty();
	if (!subset.to)
		return NULL;
	subset.wanted = g_array_new(FALSE, FALSE, sizeof(uint32_t));
	want_roots(&subset, names);
	number(&subset);
	err = put_all(&subset);
	g_array_free(subset.wanted, TRUE);
	if (!err)
		return subset.to;
	btf__free(subset.to);
	errno = -err;
	return NULL;
}

void kernel_subset_keep(const char *key, const struct btf *names)
{
	struct btf *kernel, *made;
	uint32_t size = 0;
	const void *data;

	if (kept.dropped || !boot_cache_keeps())
		return;
	kernel = btf__load_vmlinux_btf();
	made = kernel ? kernel_subset_make(kernel, names) : NULL;
	data = made ? btf__raw_data(made, &size) : NULL;
	if (data)
		boot_cache_write(KIND, key, data, size);
	btf__free(made);
	btf__free(kernel);
}

static void copy_out(struct file *file, const void *content, size_t size)
{
	file->fd = memfd_create("kernel types", MFD_CLOEXEC);
	if (file->fd < 0)
		return;
	if (write(file->fd, content, size) == (ssize_t)size)
		file->path = g_strdup_printf("/proc/self/fd/%d", file->fd);
	else
		close(file->fd);
}

const char *kernel_subset_path(const char *key)
{
	g_autofree void *content = NULL;
	size_t size = 0;

	if (kept.path || kept.dropped)
		return kept.path;
	content = boot_cache_load(KIND, key, &size);
	if (content)
		copy_out(&kept, content, size);
	return kept.path;
}

bool kernel_subset_drop(void)
{
	if (!kept.path)
		return false;
	close(kept.fd);
	g_clear_pointer(&kept.path, g_free);
	kept.dropped = true;
	return true;
}
