// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE 1

#include "symbols/object_cache.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/keyed_hash.h"
#include "base/root_open.h"
#include "host/target_memory.h"
#include "host/target_rights.h"

/* Files kept open; each may need a second descriptor for its debug file. */
#define DESCRIPTORS_MAX 16384U
/* Left to the rest of the program. */
#define DESCRIPTORS_SPARE 256U
/* Container roots kept open; processes of further ones find only the host's debug files. */
#define ROOTS_MAX 256U
/* A process may write to its vDSO: only so many variants are kept. */
#define VDSOS_MAX 256U
/* Two pages today, with a wide margin. */
#define VDSO_MAX (256 * 1024ULL)

struct file_key {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec modified;
};

struct file {
	struct file_key key;
	struct object *object;
	bool has_rights; /* of a process; not nobody's */
};

struct vdso {
	GBytes *bytes;
	struct object *object;
};

struct root {
	dev_t device;
	ino_t inode;
	int fd;
};

struct object_cache {
	GHashTable *files; /* file_key -> struct file */
	GArray *vdsos;
	GArray *roots;
	unsigned int descriptors;
};

static guint hash_file(gconstpointer data)
{
	const struct file_key *key = data;

	return keyed_hash_file(key->inode, key->device);
}

static gboolean equal_file(gconstpointer left, gconstpointer right)
{
	const struct file_key *a = left;
	const struct file_key *b = right;

	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->modified.tv_sec == b->modified.tv_sec &&
	       a->modified.tv_nsec == b->modified.tv_nsec;
}

static void free_file(gpointer data)
{
	struct file *file = data;

	object_free(file->object);
	g_free(file);
}

struct object_cache *object_cache_new(void)
{
	struct object_cache *cache = g_new0(struct object_cache, 1);

	cache->files = g_hash_table_new_full(hash_file, equal_file, NULL, free_file);
	cache->vdsos = g_array_new(FALSE, FALSE, sizeof(struct vdso));
	cache->roots = g_array_new(FALSE, FALSE, sizeof(struct root));
	object_guard_install();
	return cache;
}

void object_cache_free(struct object_cache *cache)
{
	guint i;

	g_hash_table_destroy(cache->files);
	for (i = 0; i < cache->vdsos->len; i++) {
		struct vdso *vdso = &g_array_index(cache->vdsos, struct vdso, i);

		g_bytes_unref(vdso->bytes);
		object_free(vdso->object);
	}
	g_array_free(cache->vdsos, TRUE);
	for (i = 0; i < cache->roots->len; i++)
		close(g_array_index(cache->roots, struct root, i).fd);
	g_array_free(cache->roots, TRUE);
	object_guard_remove();
	g_free(cache);
}

void object_cache_count(struct object_cache *cache, int change)
{
	cache->descriptors += change;
}

bool object_cache_has_room(const struct object_cache *cache)
{
	rlim_t wanted = 2 * ((rlim_t)cache->descriptors + 1) + DESCRIPTORS_SPARE;
	struct rlimit limit;

	if (cache->descriptors >= DESCRIPTORS_MAX)
		return false;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return false;
	if (wanted <= limit.rlim_cur)
		return true;
	/* Doubled, so that it is not raised for every file. */
	limit.rlim_cur = MIN(limit.rlim_max, 2 * wanted);
	return setrlimit(RLIMIT_NOFILE, &limit) == 0 && wanted <= limit.rlim_cur;
}

/* Descriptor of the process's root directory, kept open; -1 where it is our own. */
static int root_of(struct object_cache *cache, pid_t pid)
{
	struct root root = { .fd = root_open(pid) };
	struct stat status;
	struct stat own;
	guint i;

	if (root.fd < 0)
		return -1;
	if (fstat(root.fd, &status) || stat("/", &own) ||
	    (status.st_dev == own.st_dev && status.st_ino == own.st_ino))
		goto unwanted;
	for (i = 0; i < cache->roots->len; i++) {
		const struct root *known = &g_array_index(cache->roots, struct root, i);

		if (known->device == status.st_dev && known->inode == status.st_ino) {
			close(root.fd);
			return known->fd;
		}
	}
	if (cache->roots->len >= ROOTS_MAX || !object_cache_has_room(cache))
		goto unwanted;
	root.device = status.st_dev;
	root.inode = status.st_ino;
	g_array_append_val(cache->roots, root);
	cache->descriptors++;
	return root.fd;
unwanted:
	close(root.fd);
	return -1;
}

/*
 * The C library and its loader, as library_code.sql has them. Their lines are no place in a program,
 * and distributions pack them: with glibc's debug file installed, unpacking it was a third of what a
 * short recording took in user mode. "memtoll symbolize" has them.
 */
static bool is_c_library(const char *path)
{
	static const char *const names[] = {
		"libc.so", "libc-2.", "libpthread", "ld-linux", "ld-musl-", "libc.musl-",
	};
	const char *slash = strrchr(path, '/');
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(names); i++)
		if (g_str_has_prefix(slash ? slash + 1 : path, names[i]))
			return true;
	return false;
}

struct object *object_cache_file(struct object_cache *cache, pid_t pid,
				 const struct mapping *mapping)
{
	struct target_rights rights;
	struct stat status;
	struct file *file;
	bool room = object_cache_has_room(cache);
	int fd = mapping_open(pid, mapping);

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) || !S_ISREG(status.st_mode)) {
		close(fd);
		return NULL;
	}
	/*
	 * By fstat(), since /proc/PID/maps has other device numbers on btrfs and overlayfs; with
	 * size and time, since a file that was rewritten in place is a different one.
	 */
	file = g_new0(struct file, 1);
	file->key.device = status.st_dev;
	file->key.inode = status.st_ino;
	file->key.size = status.st_size;
	file->key.modified = status.st_mtim;
	if (g_hash_table_contains(cache->files, &file->key)) {
		struct file *known = g_hash_table_lookup(cache->files, &file->key);

		close(fd);
		g_free(file);
		/* Who had it first was gone by then. */
		if (!known->has_rights && target_rights_read(pid, &rights)) {
			object_set_rights(known->object, &rights);
			known->has_rights = true;
		}
		return known->object;
	}
	/* Now: the process may be gone when its names are asked for. */
	file->has_rights = target_rights_read(pid, &rights);
	file->object = object_new(fd, mapping->path, root_of(cache, pid), &rights);
	if (is_c_library(mapping->path))
		object_without_lines(file->object);
	if (!room)
		object_drop_fd(file->object);
	cache->descriptors += object_is_open(file->object);
	g_hash_table_insert(cache->files, &file->key, file);
	return file->object;
}

/* The vDSO is not a file: copied from the process, or from ourselves where that is forbidden. */
static GBytes *vdso_bytes(pid_t pid, const struct mapping *mapping)
{
	size_t size = (size_t)(mapping->end - mapping->start);
	const void *own = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	struct maps maps = { 0 };
	const struct mapping *mine;
	GBytes *bytes = NULL;
	char *copy;

	if (size == 0 || size > VDSO_MAX)
		return NULL;
	copy = g_malloc(size);
	if (!target_memory_read(pid, mapping->start, copy, size)) {
		bytes = g_bytes_new_take(copy, size);
		copy = NULL;
	} else if (own && maps_read(getpid(), &maps) == 0) {
		/* A 32-bit process has a different vDSO, usually of another size. */
		mine = maps_find(&maps, (uint64_t)(uintptr_t)own);
		if (mine && mine->end - mine->start == size)
			bytes = g_bytes_new(own, size);
	}
	maps_free(&maps);
	g_free(copy);
	return bytes;
}

struct object *object_cache_vdso(struct object_cache *cache, pid_t pid,
				 const struct mapping *mapping)
{
	struct vdso vdso = { .bytes = vdso_bytes(pid, mapping) };
	size_t size;
	const void *data;
	guint i;
	int fd;

	if (!vdso.bytes)
		return NULL;
	for (i = 0; i < cache->vdsos->len; i++) {
		const struct vdso *known = &g_array_index(cache->vdsos, struct vdso, i);

		if (g_bytes_equal(known->bytes, vdso.bytes)) {
			g_bytes_unref(vdso.bytes);
			return known->object;
		}
	}
	data = g_bytes_get_data(vdso.bytes, &size);
	fd = cache->vdsos->len < VDSOS_MAX && object_cache_has_room(cache) ?
		     memfd_create("vdso", MFD_CLOEXEC) :
		     -1;
	if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
		if (fd >= 0)
			close(fd);
		g_bytes_unref(vdso.bytes);
		return NULL;
	}
	cache->descriptors++;
	vdso.object = object_new(fd, mapping->path, -1, NULL);
	g_array_append_val(cache->vdsos, vdso);
	return vdso.object;
}
