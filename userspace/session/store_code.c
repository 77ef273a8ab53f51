// SPDX-License-Identifier: GPL-2.0
#include "session/store_code.h"

#include <bpf/bpf.h>
#include <glib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "host/target_memory.h"
#include "session/store_string.h"

#define KNOWN_MAX (4 * MEMTOLL_STORE_LOOPS)
/* Reading another process's memory takes some 10 us. What is over is called no storing. */
#define DECODED_PER_SLICE 2000

struct known {
	struct memtoll_store_key key;
	struct stored_by by;
	uint64_t decoded_ns; /* samples that are older do not know of it yet */
};

struct store_code {
	int loops_fd;
	GHashTable *known; /* struct known -> itself, which begins with its key */
	uint64_t slice_ns;
	unsigned int decoded;
};

struct store_code *store_code_new(int loops_fd)
{
	struct store_code *code = g_new0(struct store_code, 1);

	code->loops_fd = loops_fd;
	code->known = g_hash_table_new_full(key16_hash, key16_equal, NULL, g_free);
	return code;
}

void store_code_free(struct store_code *code)
{
	if (!code)
		return;
	g_hash_table_destroy(code->known);
	g_free(code);
}

/* The code around a place; at: where that is in it. 0: it cannot be read. */
static size_t read_code(pid_t pid, uint64_t ip, uint8_t *bytes, size_t *at)
{
	uint64_t before = MIN(ip, STORE_LOOP_WINDOW);
	struct memory_range ranges[] = {
		{ .address = ip - before, .to = bytes, .size = before },
		{ .address = ip, .to = bytes + before, .size = STORE_LOOP_WINDOW },
		/* Where a mapping begins or ends near by. */
		{ .address = ip, .to = bytes + before, .size = sizeof(uint64_t) },
	};
	size_t i, len;

	if (target_memory_read_all(pid, ranges, G_N_ELEMENTS(ranges)))
		return 0;
	for (i = 1; i < G_N_ELEMENTS(ranges) && !ranges[i].read; i++)
		;
	if (i == G_N_ELEMENTS(ranges))
		return 0;
	len = ranges[i].size;
	*at = before;
	if (ranges[0].read)
		return before + len;
	memmove(bytes, bytes + before, len);
	*at = 0;
	return len;
}

/* Whether a place is what a function returns to that store_string_waits(). */
static void find_waited_for(pid_t pid, uint64_t ip, const uint8_t *bytes, size_t at,
			    struct store_loop *loop)
{
	uint8_t callee[STORE_LOOP_WINDOW];
	int32_t disp;
	size_t offset;

	if (at < 5 || bytes[at - 5] != 0xe8)
		return;
	memcpy(&disp, bytes + at - 4, sizeof(disp));
	if (!target_memory_read(pid, ip + (uint64_t)(int64_t)disp, callee, sizeof(callee)) &&
	    store_string_waits(callee, sizeof(callee), &offset, loop))
		loop->wire.returned_from = disp + (int32_t)offset;
}

static void decode(struct store_code *code, struct known *known)
{
	uint8_t bytes[2 * STORE_LOOP_WINDOW];
	struct store_loop loop;
	size_t at, len = read_code((pid_t)known->key.tgid, known->key.ip, bytes, &at);

	known->by = (struct stored_by){ .kind = STORE_NONE };
	known->decoded_ns = now_ns();
	if (!len)
		return;
	store_loop_find(bytes, len, at, &loop);
	if (loop.kind == STORE_NONE)
		find_waited_for((pid_t)known->key.tgid, known->key.ip, bytes, at, &loop);
	known->by.kind = loop.kind;
	known->by.value = loop.value;
	known->by.bytes_per_16_cycles = loop.bytes_per_16_cycles;
	known->by.length = loop.length;
	known->by.head = known->key.ip - at + loop.head;
	memcpy(&loop.wire.code, bytes + at, sizeof(loop.wire.code));
	bpf_map_update_elem(code->loops_fd, &known->key, &loop.wire, BPF_ANY);
}

/* False: as many were decoded as there is time for. */
static bool may_decode(struct store_code *code, uint64_t now_ns)
{
	if (now_ns - code->slice_ns > 1000000000ULL) {
		code->slice_ns = now_ns;
		code->decoded = 0;
	}
	return code->decoded++ < DECODED_PER_SLICE;
}

static struct stored_by decode_new(struct store_code *code, struct known *known,
				   const struct memtoll_store_key *key, uint64_t now_ns)
{
	struct stored_by nothing = { .kind = STORE_NONE };

	if (!may_decode(code, now_ns))
		return nothing;
	if (!known) {
		if (g_hash_table_size(code->known) >= KNOWN_MAX)
			g_hash_table_remove_all(code->known);
		known = g_new0(struct known, 1);
		known->key = *key;
		g_hash_table_insert(code->known, &known->key, known);
	}
	decode(code, known);
	return known->by;
}

struct stored_by store_code_at(struct store_code *code, const struct memtoll_sample *sample)
{
	struct memtoll_store_key key = { .ip = sample->ip, .tgid = sample->tgid };
	struct known *known = g_hash_table_lookup(code->known, &key);

	if (known &&
	    (!(sample->stores & STORES_UNKNOWN_CODE) || sample->time_ns <= known->decoded_ns))
		return known->by;
	return decode_new(code, known, &key, sample->time_ns);
}

struct stored_by store_code_of(struct store_code *code, const struct memtoll_run *run)
{
	struct memtoll_store_key key = { .ip = run->ip, .tgid = run->tgid };
	struct known *known = g_hash_table_lookup(code->known, &key);

	return known ? known->by : decode_new(code, NULL, &key, run->last_ns);
}

static gboolean is_of(gpointer key, gpointer known, gpointer pid)
{
	(void)known;
	return ((const struct memtoll_store_key *)key)->tgid == GPOINTER_TO_UINT(pid);
}

void store_code_forget(struct store_code *code, pid_t pid)
{
	g_hash_table_foreach_remove(code->known, is_of, GINT_TO_POINTER(pid));
}
