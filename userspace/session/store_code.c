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
/*
 * Each takes some us, and what is new 10 more for its code to be read. What is over is called no
 * storing.
 */
#define DECODED_PER_SECOND 2000

struct known {
	struct memtoll_store_key key;
	struct stored_by by;
	uint64_t decoded_ns; /* samples that are older do not know of it yet */
};

struct store_code {
	int loops_fd;
	GHashTable *known; /* struct known -> itself, which begins with its key */
	uint64_t second_ns;
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

/* The code around a place. */
struct around {
	uint8_t bytes[2 * STORE_LOOP_WINDOW];
	size_t len;
	uint64_t address;
};

static bool read_code(pid_t pid, uint64_t ip, struct around *around)
{
	uint64_t before = MIN(ip, STORE_LOOP_WINDOW);
	struct memory_range ranges[] = {
		{ .address = ip - before, .to = around->bytes, .size = before },
		{ .address = ip, .to = around->bytes + before, .size = STORE_LOOP_WINDOW },
		/* Where a mapping begins or ends near by. */
		{ .address = ip, .to = around->bytes + before, .size = sizeof(uint64_t) },
	};
	size_t i;

	if (target_memory_read_all(pid, ranges, G_N_ELEMENTS(ranges)))
		return false;
	for (i = 1; i < G_N_ELEMENTS(ranges) && !ranges[i].read; i++)
		;
	if (i == G_N_ELEMENTS(ranges))
		return false;
	around->len = ranges[i].size;
	around->address = ip;
	if (ranges[0].read) {
		around->len += before;
		around->address -= before;
	} else {
		memmove(around->bytes, around->bytes + before, around->len);
	}
	return true;
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

static struct known *known_at(struct store_code *code, const struct memtoll_store_key *key)
{
	struct known *known = g_hash_table_lookup(code->known, key);

	if (known)
		return known;
	if (g_hash_table_size(code->known) >= KNOWN_MAX)
		g_hash_table_remove_all(code->known);
	known = g_new0(struct known, 1);
	known->key = *key;
	g_hash_table_insert(code->known, &known->key, known);
	return known;
}

/* loop: as found at that offset of code that was read now. */
static void tell(struct store_code *code, struct known *known, const struct around *around,
		 size_t at, struct store_loop *loop)
{
	known->by.kind = loop->kind;
	known->by.value = loop->value;
	known->by.bytes_per_16_cycles = loop->bytes_per_16_cycles;
	known->by.length = loop->length;
	known->by.head = around->address + loop->head;
	known->decoded_ns = now_ns();
	memcpy(&loop->wire.code, around->bytes + at, sizeof(loop->wire.code));
	bpf_map_update_elem(code->loops_fd, &known->key, &loop->wire, BPF_ANY);
}

/* A loop's next samples are at others of its instructions: each would be unknown at its first. */
static void decode_rest(struct store_code *code, uint32_t tgid, const struct around *around,
			const struct store_loop *loop, size_t decoded)
{
	struct store_loop same;
	size_t at;

	for (at = loop->head; at < loop->end && at + sizeof(same.wire.code) <= around->len &&
			      code->decoded < DECODED_PER_SECOND;
	     at = store_loop_next(around->bytes, loop, at)) {
		struct memtoll_store_key key = { .ip = around->address + at, .tgid = tgid };

		if (at == decoded)
			continue;
		code->decoded++;
		store_loop_find(around->bytes, around->len, at, &same);
		if (same.kind == loop->kind && same.head == loop->head)
			tell(code, known_at(code, &key), around, at, &same);
	}
}

static struct stored_by decode(struct store_code *code, const struct memtoll_store_key *key)
{
	struct known *known = known_at(code, key);
	struct store_loop loop;
	struct around around;
	struct stored_by by;
	size_t at;

	known->by = (struct stored_by){ .kind = STORE_NONE };
	known->decoded_ns = now_ns();
	if (!read_code((pid_t)key->tgid, key->ip, &around))
		return known->by;
	at = key->ip - around.address;
	store_loop_find(around.bytes, around.len, at, &loop);
	if (loop.kind == STORE_NONE)
		find_waited_for((pid_t)key->tgid, key->ip, around.bytes, at, &loop);
	tell(code, known, &around, at, &loop);
	by = known->by;
	decode_rest(code, key->tgid, &around, &loop, at);
	return by;
}

/* False: as many were decoded as there is time for. */
static bool may_decode(struct store_code *code, uint64_t now_ns)
{
	if (now_ns - code->second_ns > 1000000000ULL) {
		code->second_ns = now_ns;
		code->decoded = 0;
	}
	return code->decoded++ < DECODED_PER_SECOND;
}

static struct stored_by decode_new(struct store_code *code, const struct memtoll_store_key *key,
				   uint64_t now_ns)
{
	struct stored_by nothing = { .kind = STORE_NONE };

	return may_decode(code, now_ns) ? decode(code, key) : nothing;
}

struct stored_by store_code_at(struct store_code *code, const struct memtoll_sample *sample)
{
	struct memtoll_store_key key = { .ip = sample->ip, .tgid = sample->tgid };
	const struct known *known = g_hash_table_lookup(code->known, &key);

	if (known &&
	    (!(sample->stores & STORES_UNKNOWN_CODE) || sample->time_ns <= known->decoded_ns))
		return known->by;
	return decode_new(code, &key, sample->time_ns);
}

struct stored_by store_code_of(struct store_code *code, const struct memtoll_run *run)
{
	struct memtoll_store_key key = { .ip = run->ip, .tgid = run->tgid };
	const struct known *known = g_hash_table_lookup(code->known, &key);

	return known ? known->by : decode_new(code, &key, run->last_ns);
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
