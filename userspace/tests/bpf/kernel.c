// SPDX-License-Identifier: GPL-2.0
/* kernel.c: what a test says that the kernel is, and the helpers by which programs meet it. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif
#include <sys/mman.h>
#include <unistd.h>

#include <glib.h>
#include <linux/bpf.h>

#include "tests/bpf/kernel.h"

struct map {
	enum kernel_map_kind kind;
	unsigned key_bytes;
	unsigned value_bytes;
	unsigned rows;
	GHashTable *values; /* GBytes -> value; not of arrays */
	char *array;
	GQueue records; /* struct record, not read yet */
	unsigned long long written;
};

struct record {
	struct map *ring;
	unsigned long long bytes;
	unsigned long long flags;
	char data[] __attribute__((aligned(16)));
};

struct span {
	uintptr_t start;
	uintptr_t end;
	void *area;
};

struct kernel kernel;

static GHashTable *maps;	/* address of the map -> struct map */
static GHashTable *pages[2];	/* number -> KERNEL_PAGE bytes */
static GHashTable *lacking;	/* names */
static GArray *objects, *areas; /* struct span */
static GPtrArray *garbage;	/* records, until the reset */

static void map_free(void *pointer)
{
	struct map *map = pointer;

	if (map->values)
		g_hash_table_destroy(map->values);
	g_free(map->array);
	g_queue_clear(&map->records);
	g_free(map);
}

static void stop_using(void)
{
	g_clear_pointer(&maps, g_hash_table_destroy);
	g_clear_pointer(&pages[USER], g_hash_table_destroy);
	g_clear_pointer(&pages[KERNEL], g_hash_table_destroy);
	g_clear_pointer(&lacking, g_hash_table_destroy);
	if (objects)
		g_array_free(objects, TRUE);
	if (areas)
		g_array_free(areas, TRUE);
	if (garbage)
		g_ptr_array_free(garbage, TRUE);
	objects = areas = NULL;
	garbage = NULL;
}

void kernel_reset(void)
{
	static int registered;

	if (!registered++)
		atexit(stop_using);
	stop_using();
	kernel = (struct kernel){ .now_ns = 1000000007, .ring_bytes = 1 << 20 };
	maps = g_hash_table_new_full(NULL, NULL, NULL, map_free);
	pages[USER] = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	pages[KERNEL] = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	lacking = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	objects = g_array_new(FALSE, FALSE, sizeof(struct span));
	areas = g_array_new(FALSE, FALSE, sizeof(struct span));
	garbage = g_ptr_array_new_with_free_func(g_free);
}

/* ---- memory ---- */

static char *page_of(enum kernel_space space, unsigned long long address, int make)
{
	gint64 number = address / KERNEL_PAGE;
	char *page = g_hash_table_lookup(pages[space], &number);

	if (!page && make) {
		page = g_malloc0(KERNEL_PAGE);
		g_hash_table_insert(pages[space], g_memdup2(&number, sizeof(number)), page);
	}
	return page;
}

void kernel_poke(enum kernel_space space, unsigned long long address, const void *bytes,
		 unsigned long long count)
{
	const char *from = bytes;

	for (; count; count--, address++)
		page_of(space, address, 1)[address % KERNEL_PAGE] = *from++;
}

void kernel_poke_word(enum kernel_space space, unsigned long long address, unsigned long long word)
{
	kernel_poke(space, address, &word, sizeof(word));
}

void kernel_unmap(enum kernel_space space, unsigned long long address)
{
	gint64 number = address / KERNEL_PAGE;

	g_hash_table_remove(pages[space], &number);
}

void kernel_object(const void *object, unsigned long long bytes)
{
	struct span span = { .start = (uintptr_t)object, .end = (uintptr_t)object + bytes };

	g_array_append_val(objects, span);
}

static const struct span *span_of(const GArray *spans, uintptr_t address)
{
	guint i;

	for (i = 0; i < spans->len; i++) {
		const struct span *span = &g_array_index(spans, struct span, i);

		if (address >= span->start && address < span->end)
			return span;
	}
	return NULL;
}

void kernel_area(void *area, unsigned long long start, unsigned long long end)
{
	struct span span = { .start = start, .end = end, .area = area };

	g_array_append_val(areas, span);
}

long kernel_find_area(unsigned long long address, void **area)
{
	const struct span *span = span_of(areas, address);

	if (kernel.find_area_fails)
		return kernel.find_area_fails;
	if (!span)
		return -ENOENT;
	*area = span->area;
	return 0;
}

void kernel_set(const volatile void *knob, const void *value, unsigned long long bytes)
{
	uintptr_t page_bytes = sysconf(_SC_PAGESIZE), first = (uintptr_t)knob & ~(page_bytes - 1);

	if (mprotect((void *)first, (uintptr_t)knob + bytes - first, PROT_READ | PROT_WRITE)) {
		perror("mprotect");
		abort();
	}
	memcpy((void *)(uintptr_t)knob, value, bytes);
}

/* Like the kernel, leave zeros where not all can be read. */
static long read_space(enum kernel_space space, void *to, unsigned bytes, const void *from)
{
	uintptr_t address = (uintptr_t)from;
	const struct span *object = space == KERNEL ? span_of(objects, address) : NULL;
	const char *page;
	unsigned i;

	if (object && bytes <= object->end - address) {
		memcpy(to, from, bytes);
		return 0;
	}
	for (i = 0; i < bytes; i++) {
		page = page_of(space, address + i, 0);
		if (!page) {
			memset(to, 0, bytes);
			return -EFAULT;
		}
		((char *)to)[i] = page[(address + i) % KERNEL_PAGE];
	}
	return 0;
}

unsigned long long kernel_peek_word(enum kernel_space space, unsigned long long address)
{
	unsigned long long word;

	read_space(space, &word, sizeof(word), (void *)(uintptr_t)address);
	return word;
}

long kernel_read_user(void *to, unsigned bytes, const void *from)
{
	kernel.user_reads++;
	return read_space(USER, to, bytes, from);
}

/*
 * A program's stack is the kernel's memory, too. The variable read is not far above this frame, or
 * where the sanitizer keeps such variables.
 */
static bool is_on_stack(const void *from)
{
#ifdef __SANITIZE_ADDRESS__
	void *kept = __asan_get_current_fake_stack();

	if (kept && __asan_addr_is_in_fake_stack(kept, (void *)from, NULL, NULL))
		return true;
#endif
	return (uintptr_t)from - (uintptr_t)__builtin_frame_address(0) < 4096;
}

long kernel_read_kernel(void *to, unsigned bytes, const void *from)
{
	if (is_on_stack(from)) {
		memcpy(to, from, bytes);
		return 0;
	}
	return read_space(KERNEL, to, bytes, from);
}

long kernel_read_kernel_string(void *to, unsigned bytes, const void *from)
{
	char *text = to;
	unsigned i;

	for (i = 0; i < bytes; i++) {
		if (read_space(KERNEL, &text[i], 1, (const char *)from + i))
			return -EFAULT;
		if (!text[i])
			return i + 1;
	}
	text[bytes - 1] = '\0';
	return bytes;
}

/* What a load through the pointer finds: zeros where there is nothing. */
void *kernel_cast(const void *object, unsigned bytes)
{
	static char nothing[1 << 16] __attribute__((aligned(64)));
	uintptr_t address = (uintptr_t)object;
	const struct span *span = span_of(objects, address);
	char *page;

	if (span)
		return (void *)address;
	page = page_of(KERNEL, address, 0);
	if (page && bytes <= KERNEL_PAGE - address % KERNEL_PAGE)
		return page + address % KERNEL_PAGE;
	/* Of a word at a page's end no more is read than the word. */
	if (page && sizeof(uint64_t) <= KERNEL_PAGE - address % KERNEL_PAGE)
		return memcpy(nothing, page + address % KERNEL_PAGE, sizeof(uint64_t));
	return memset(nothing, 0, sizeof(nothing));
}

/* ---- what this kernel is too old for ---- */

void kernel_lacks(const char *name)
{
	g_hash_table_add(lacking, g_strdup(name));
}

int kernel_has(const char *name)
{
	return !g_hash_table_contains(lacking, name);
}

long kernel_refuses(const char *helper)
{
	fprintf(stderr, "%s: not to be called\n", helper);
	abort();
}

/* ---- maps ---- */

void kernel_map(const void *address, enum kernel_map_kind kind, unsigned key_bytes,
		unsigned value_bytes, unsigned rows)
{
	struct map *map = g_new0(struct map, 1);

	*map = (struct map){
		.kind = kind, .key_bytes = key_bytes, .value_bytes = value_bytes, .rows = rows
	};
	g_queue_init(&map->records);
	if (kind == MAP_ARRAY)
		map->array = g_malloc0_n(rows, value_bytes);
	else if (kind != MAP_RING)
		map->values = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
						    (GDestroyNotify)g_bytes_unref,
						    kind == MAP_TABLES ? NULL : g_free);
	g_hash_table_insert(maps, (void *)address, map);
}

/* One that is not known is a mistake of the test. */
static struct map *map_of(const void *address)
{
	struct map *map = g_hash_table_lookup(maps, address);

	return map ? map : (kernel_refuses("a map that the test has not made"), NULL);
}

static void *value_of(const struct map *map, const void *key)
{
	GBytes *bytes = g_bytes_new_static(key, map->key_bytes);
	void *value = g_hash_table_lookup(map->values, bytes);

	g_bytes_unref(bytes);
	return value;
}

void kernel_map_rows(const void *address, unsigned rows)
{
	map_of(address)->rows = rows;
}

unsigned kernel_map_count(const void *address)
{
	return g_hash_table_size(map_of(address)->values);
}

void *kernel_table(const void *tables, unsigned index, unsigned value_bytes, unsigned rows)
{
	struct map *outer = map_of(tables), *inner;
	void *handle = g_malloc(1);

	g_ptr_array_add(garbage, handle);
	kernel_map(handle, MAP_ARRAY, sizeof(unsigned), value_bytes, rows);
	inner = map_of(handle);
	g_hash_table_replace(outer->values, g_bytes_new(&index, sizeof(index)), handle);
	return inner->array;
}

void *kernel_map_lookup(const void *address, const void *key)
{
	struct map *map = map_of(address);
	unsigned at;

	if (map->kind != MAP_ARRAY)
		return value_of(map, key);
	memcpy(&at, key, sizeof(at));
	return at < map->rows ? map->array + (size_t)at * map->value_bytes : NULL;
}

long kernel_map_update(const void *address, const void *key, const void *value,
		       unsigned long long flags)
{
	struct map *map = map_of(address);
	void *old = kernel_map_lookup(address, key);

	if (old && flags == BPF_NOEXIST)
		return -EEXIST;
	if (!old && (flags == BPF_EXIST || map->kind == MAP_ARRAY))
		return map->kind == MAP_ARRAY ? -E2BIG : -ENOENT;
	if (old) {
		memcpy(old, value, map->value_bytes);
		return 0;
	}
	if (map->kind == MAP_HASH && g_hash_table_size(map->values) >= map->rows)
		return -E2BIG;
	g_hash_table_insert(map->values, g_bytes_new(key, map->key_bytes),
			    g_memdup2(value, map->value_bytes));
	return 0;
}

long kernel_map_delete(const void *address, const void *key)
{
	struct map *map = map_of(address);
	GBytes *bytes = g_bytes_new_static(key, map->key_bytes);
	gboolean was_there = g_hash_table_remove(map->values, bytes);

	g_bytes_unref(bytes);
	return was_there ? 0 : -ENOENT;
}

void *kernel_storage_get(const void *address, const void *task, const void *value,
			 unsigned long long flags)
{
	struct map *map = map_of(address);
	void *stored = value_of(map, &task);

	if (stored || !(flags & BPF_LOCAL_STORAGE_GET_F_CREATE) || kernel.storage_fails)
		return stored;
	stored = value ? g_memdup2(value, map->value_bytes) : g_malloc0(map->value_bytes);
	g_hash_table_insert(map->values, g_bytes_new(&task, sizeof(task)), stored);
	return stored;
}

/* ---- ring buffers ---- */

static unsigned long long unread(const struct map *ring)
{
	unsigned long long bytes = 0;
	GList *at;

	for (at = ring->records.head; at; at = at->next)
		bytes += ((struct record *)at->data)->bytes;
	return bytes;
}

void *kernel_ring_reserve(const void *address, unsigned long long bytes, unsigned long long flags)
{
	struct map *ring = map_of(address);
	struct record *record;

	if (flags || unread(ring) + bytes > kernel.ring_bytes)
		return NULL;
	record = g_malloc0(sizeof(*record) + bytes);
	record->ring = ring;
	record->bytes = bytes;
	g_ptr_array_add(garbage, record);
	return record->data;
}

void kernel_ring_submit(void *data, unsigned long long flags)
{
	struct record *record = (struct record *)((char *)data - offsetof(struct record, data));

	record->flags = flags;
	record->ring->written += record->bytes;
	g_queue_push_tail(&record->ring->records, record);
}

long kernel_ring_output(const void *ring, const void *record, unsigned long long bytes,
			unsigned long long flags)
{
	void *place = kernel_ring_reserve(ring, bytes, 0);

	if (!place)
		return -EAGAIN;
	memcpy(place, record, bytes);
	kernel_ring_submit(place, flags);
	return 0;
}

unsigned long long kernel_ring_query(const void *ring, unsigned long long what)
{
	return what == BPF_RB_AVAIL_DATA ? unread(map_of(ring)) : map_of(ring)->written;
}

const void *kernel_ring_take(const void *ring, unsigned long long *bytes, unsigned long long *flags)
{
	struct record *record = g_queue_pop_head(&map_of(ring)->records);

	if (!record)
		return NULL;
	if (bytes)
		*bytes = record->bytes;
	if (flags)
		*flags = record->flags;
	return record->data;
}

unsigned kernel_ring_count(const void *ring)
{
	return g_queue_get_length(&map_of(ring)->records);
}

/* ---- the rest ---- */

unsigned long long kernel_clock(void)
{
	unsigned long long now = kernel.now_ns;

	kernel.clock_reads++;
	kernel.now_ns += kernel.tick_ns;
	return now;
}

unsigned kernel_random(void)
{
	static unsigned next = 2463534242;

	if (kernel.random)
		return kernel.random;
	/* Marsaglia's xorshift, 2003. */
	next ^= next << 13;
	next ^= next >> 17;
	next ^= next << 5;
	return next;
}
